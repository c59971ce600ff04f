"""Learned against random features on eight pairs of classes of MNIST and CIFAR-10.

    python benchmarks/pairs.py --tasks auto-truck,mnist-4-9 --features 100 --seeds 3

All training images of the two classes, the official test images; MNIST as pixels / 255, CIFAR-10 by
its 512 HoG descriptors. Ours runs at its defaults; the other is scikit-learn's RBFSampler (median
bandwidth) with LinearSVC(loss="hinge"), at the same number of features and at 5000. Everything is
timed in this one run, one fit at a time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from notsorandom import FourierClassifier
from notsorandom.baselines import median_gamma
from notsorandom.experiments.tasks import TASKS, load_task

LARGE = 5000


def measure(model: Any, data: Any) -> tuple[float, float, float]:
    """Test accuracy in percent, seconds to fit, seconds to predict."""
    X, y, X_test, y_test = data
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # liblinear's, on hard random features
        model.fit(X, y)
    fit = time.perf_counter() - began
    predict = []
    for _ in range(5):  # the fastest counts: a call takes milliseconds, and so does a hiccup
        began = time.perf_counter()
        predictions = model.predict(X_test)
        predict.append(time.perf_counter() - began)
    return 100 * float(np.mean(predictions == y_test)), fit, min(predict)


def ours(n_features: int, seed: int) -> FourierClassifier:
    """The learned features, at their defaults."""
    return FourierClassifier(n_features, random_state=seed)


def random_model(n_features: int, X: Any, seed: int) -> Any:
    """Median-bandwidth random features and a linear SVM, on centred data."""
    sampler = RBFSampler(gamma=median_gamma(X), n_components=n_features, random_state=seed)
    return make_pipeline(
        StandardScaler(with_std=False), sampler, LinearSVC(loss="hinge", random_state=seed)
    )


def main() -> None:
    """Run the tasks and print a block for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", default=",".join(TASKS), help="comma-separated (default: all)")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data-home", default=None)
    parser.add_argument("--skip-large", action="store_true", help="leave out random at 5000")
    options = parser.parse_args()
    tasks = options.tasks.split(",")
    unknown = [task for task in tasks if task not in TASKS]
    if unknown:
        parser.error(f"unknown tasks {', '.join(unknown)}: choose from {', '.join(TASKS)}")
    sizes = [options.features] if options.skip_large else [options.features, LARGE]
    for task in tasks:
        data = load_task(task, options.data_home)
        print(f"{task}: {len(data[0])} training and {len(data[2])} test samples", flush=True)
        makers: dict[str, Callable[[int], Any]] = {
            f"ours, m = {options.features}": partial(ours, options.features),
            **{f"random, m = {size}": partial(random_model, size, data[0]) for size in sizes},
        }
        # One after the other within a seed, so that a slow minute of the machine hits all alike.
        runs = np.array(
            [
                [measure(make(seed), data) for make in makers.values()]
                for seed in range(options.seeds)
            ]
        )  # (n_seeds, n_models, 3)
        means = runs.mean(axis=0)
        for name, (accuracy, fit, predict), spread in zip(
            makers, means, runs[:, :, 0].std(axis=0), strict=True
        ):
            print(
                f"  {name:<18} {accuracy:6.2f} +- {spread:.2f} %   "
                f"fit {fit:7.3f} s   predict {predict:8.4f} s"
            )
        for name, other in list(zip(makers, means, strict=True))[1:]:
            gain, (fit, predict) = means[0, 0] - other[0], means[0, 1:] / other[1:]
            print(
                f"  ours / {name}: {gain:+.2f} points, fit x {fit:.2f}, predict x {predict:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
