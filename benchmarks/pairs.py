"""Learned against random features on eight pairs of classes of MNIST and CIFAR-10.

    python -m benchmarks.pairs --tasks auto-truck,mnist-4-9 --features 100 --seeds 3

All training images of the two classes, and the official test images; MNIST as pixels / 255,
CIFAR-10 as 512 HoG descriptors. Ours has its defaults, logistic loss with C and smoothing chosen;
the baseline is scikit-learn's RBFSampler (median bandwidth) with LinearSVC(loss="hinge"), at the
same number of features and at 5000. With the same SVM for both: ``python -m experiments table1``.
All times are from one run, one fit at a time.
"""

from __future__ import annotations

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

from benchmarks.common import make_parser, timed
from experiments.tasks import TASKS, Task, load_task
from notsorandom import FourierClassifier
from notsorandom.baselines import median_gamma

LARGE = 5000
N_TIMINGS = 5  # of predictions, which take milliseconds; the fastest counts


def measure(model: Any, task: Task) -> tuple[float, float, float]:
    """Return test accuracy in percent, seconds to fit, seconds to predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of liblinear, on random features
        _, fit_seconds = timed(model.fit, task.X, task.y)
    predict_seconds = min(timed(model.predict, task.X_test)[1] for _ in range(N_TIMINGS))
    return 100 * float(model.score(task.X_test, task.y_test)), fit_seconds, predict_seconds


def learned_model(n_features: int, seed: int) -> FourierClassifier:
    """Return our model with its defaults."""
    return FourierClassifier(n_features, random_state=seed)


def random_model(n_features: int, X: Any, seed: int) -> Any:
    """Return median-bandwidth random features and a linear SVM, on centred data."""
    sampler = RBFSampler(gamma=median_gamma(X), n_components=n_features, random_state=seed)
    return make_pipeline(
        StandardScaler(with_std=False), sampler, LinearSVC(loss="hinge", random_state=seed)
    )


def main() -> None:
    """Run the tasks and print a block for each."""
    parser = make_parser(__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS), help="comma-separated (default: all)")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", help="folder of MNIST and CIFAR-10")
    parser.add_argument("--skip-large", action="store_true", help="omit 5000 random features")
    options = parser.parse_args()
    tasks = options.tasks.split(",")
    unknown = [task for task in tasks if task not in TASKS]
    if unknown:
        parser.error(f"unknown tasks {', '.join(unknown)}: choose from {', '.join(TASKS)}")
    sizes = [options.features] if options.skip_large else [options.features, LARGE]
    for name in tasks:
        task = load_task(name, options.data)
        print(f"{name}: {len(task.X)} training and {len(task.X_test)} test samples", flush=True)
        makers: dict[str, Callable[[int], Any]] = {
            f"ours, m = {options.features}": partial(learned_model, options.features),
            **{f"random, m = {size}": partial(random_model, size, task.X) for size in sizes},
        }
        # All models of a seed in turn, so that disturbances affect all of them.
        runs = np.array(
            [
                [measure(make(seed), task) for make in makers.values()]
                for seed in range(options.seeds)
            ]
        )  # (n_seeds, n_models, 3)
        means = runs.mean(axis=0)
        for title, (accuracy, fit, predict), spread in zip(
            makers, means, runs[:, :, 0].std(axis=0), strict=True
        ):
            print(
                f"  {title:<18} {accuracy:6.2f} +- {spread:.2f} %   "
                f"fit {fit:7.3f} s   predict {predict:8.4f} s"
            )
        for title, other in list(zip(makers, means, strict=True))[1:]:
            gain, (fit, predict) = means[0, 0] - other[0], means[0, 1:] / other[1:]
            print(
                f"  ours / {title}: {gain:+.2f} points, fit x {fit:.2f}, predict x {predict:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
