"""Ten classes of MNIST, all 60,000 images: ours at its defaults against random features.

    python benchmarks/multiclass.py --features 500,2000

Pixels / 255. The other is scikit-learn's RBFSampler at the median bandwidth with as many features
and the same final machines, one a class (hinge, C = 1). The seconds of ours are those of learning
the features, its smoothing included, and of solving the machines; the memory is the most that the
process had.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from notsorandom import FourierFeatures
from notsorandom.baselines import median_gamma
from notsorandom.datasets import fetch_mnist
from notsorandom.display.inspection import fit_machines
from notsorandom.experiments.tables import Table
from notsorandom.game import LOSSES, Player
from notsorandom.game.scoring import predicted_codes, signs
from notsorandom.linear.newton import decide

METHODS = ("ours", "random")


def features_of(method: str, X: Any, y: Any, n_features: int, seed: int) -> Any:
    """A fitted transformer."""
    if method == "ours":
        return FourierFeatures(n_features, random_state=seed).fit(X, y)
    gamma = median_gamma(X[:: max(1, len(X) // 10_000)])
    return RBFSampler(gamma=gamma, n_components=n_features, random_state=seed).fit(X)


def peak_gigabytes() -> float:
    """The most memory that this process had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def main() -> None:
    """Print a line for each fit as it ends, then the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", default="500,2000", help="comma-separated")
    parser.add_argument("--methods", default="ours,random", help="comma-separated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", help="folder of MNIST")
    options = parser.parse_args()
    images, y, test_images, y_test = fetch_mnist(options.data)
    X, X_test = (part.astype(np.float32) / 255 for part in (images, test_images))
    player = Player(LOSSES["hinge"](1.0), signs(y, 10, np.float32))
    rows = []
    for size in map(int, options.features.split(",")):
        for method in options.methods.split(","):
            began = time.perf_counter()
            features = features_of(method, X, y, size, options.seed)
            learned = time.perf_counter()
            coef, intercept = fit_machines(features.transform(X).astype(np.float32), player)
            solved = time.perf_counter()
            scores = decide(features.transform(X_test).astype(np.float32), coef, intercept)
            accuracy = 100 * np.mean(predicted_codes(scores) == y_test)
            rows.append(
                (
                    f"{size:,}",
                    method,
                    f"{accuracy:.2f}",
                    f"{learned - began:.0f}",
                    f"{solved - learned:.0f}",
                    f"{peak_gigabytes():.1f}",
                )
            )
            print(*rows[-1], flush=True)
    headers = ("m", "features", "test %", "s to learn", "s to solve", "GB so far")
    print(Table("MNIST, ten classes", "", headers, tuple(rows)).markdown())


if __name__ == "__main__":
    main()
