"""Ten classes of MNIST, all 60,000 images: learned against random features for the same SVMs.

    python -m benchmarks.multiclass --features 500,2000

Samples are pixels / 255. The baseline is scikit-learn's RBFSampler at the median bandwidth, with as
many features and the same linear models, one per class (hinge, C = 1). Ours are learned for that
loss and C. Times are those of learning the features, including the choice of the smoothing, and of
solving the linear models. Memory is the peak of the process so far. Our defaults, with logistic
loss and C chosen, are in ``benchmarks.calibration`` and ``benchmarks.speed``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from benchmarks.common import make_parser, timed
from benchmarks.memory import peak_bytes
from experiments.svm import fit_svm
from experiments.tables import Table
from notsorandom import FourierFeatures
from notsorandom.baselines import median_gamma
from notsorandom.datasets import fetch_mnist


def fit_features(method: str, X: Any, y: Any, n_features: int, seed: int) -> Any:
    """Return a fitted transformer."""
    if method == "ours":
        return FourierFeatures(n_features, loss="hinge", C=1.0, random_state=seed).fit(X, y)
    gamma = median_gamma(X[:: max(1, len(X) // 10_000)])
    return RBFSampler(gamma=gamma, n_components=n_features, random_state=seed).fit(X)


def main() -> None:
    """Print one line per fit, then the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--features", default="500,2000", help="comma-separated")
    parser.add_argument("--methods", default="ours,random", help="comma-separated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", help="folder of MNIST")
    options = parser.parse_args()
    images, y, test_images, y_test = fetch_mnist(options.data)
    X, X_test = (part.astype(np.float32) / 255 for part in (images, test_images))
    rows = []
    for size in map(int, options.features.split(",")):
        for method in options.methods.split(","):
            features, learning = timed(fit_features, method, X, y, size, options.seed)
            predict, solving = timed(fit_svm, features.transform(X).astype(np.float32), y, 10)
            predictions = predict(features.transform(X_test).astype(np.float32))
            rows.append(
                (
                    f"{size:,}",
                    method,
                    f"{100 * np.mean(predictions == y_test):.2f}",
                    f"{learning:.0f}",
                    f"{solving:.0f}",
                    f"{peak_bytes() / 1e9:.1f}",
                )
            )
            print(*rows[-1], flush=True)
    headers = ("m", "features", "test %", "s to learn", "s to solve", "peak GB")
    print(Table("MNIST, ten classes", "", headers, tuple(rows)).markdown())


if __name__ == "__main__":
    main()
