"""The cost of more classes: seconds per round of the game and of the linear models, 2 to 100.

    python -m benchmarks.classes

Samples around random centres, several centres per class, in 64 columns. All ratios are to two
classes in the same run. Nothing is chosen by trials, and the linear models are SVMs at C = 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common import make_parser, timed
from experiments.svm import fit_svm
from experiments.tables import Table
from notsorandom import Ascent, FourierFeatures

CENTRES_PER_CLASS = 3
SPREAD = 3.0
SETTINGS: dict[str, Any] = {
    "loss": "hinge",
    "C": 1.0,
    "smoothing": 0.06,
    "search": Ascent(spectrum="gaussian"),
}


def make_blobs(n_samples: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples and their classes."""
    rng = np.random.default_rng(seed)
    centres = SPREAD * np.random.default_rng(0).standard_normal((n_classes * CENTRES_PER_CLASS, 64))
    which = rng.integers(len(centres), size=n_samples)
    X = centres[which] + 2 * rng.standard_normal((n_samples, 64))
    return X.astype(np.float32), which % n_classes


def main() -> None:
    """Print one line per number of classes, then the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--classes", default="2,10,30,100", help="comma-separated")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=100)
    options = parser.parse_args()
    rows, first = [], (0.0, 0.0)
    for n_classes in map(int, options.classes.split(",")):
        X, y = make_blobs(options.samples, n_classes, 1)
        X_test, y_test = make_blobs(5000, n_classes, 2)
        features = FourierFeatures(options.features, random_state=0, **SETTINGS).fit(X, y)
        per_round = features.history_["seconds"][-1] / len(features.history_["seconds"])
        predict, linear = timed(fit_svm, features.transform(X), y, n_classes)
        predictions = predict(features.transform(X_test))
        first = first if any(first) else (per_round, linear)
        rows.append(
            (
                str(n_classes),
                f"{1000 * per_round:.0f}",
                f"{per_round / first[0]:.1f}",
                f"{linear:.2f}",
                f"{linear / first[1]:.1f}",
                f"{100 * np.mean(predictions == y_test):.1f}",
            )
        )
        print(*rows[-1], flush=True)
    headers = ("classes", "ms per round", "ratio", "s for linear models", "ratio", "test %")
    print(Table("Number of classes", "", headers, tuple(rows)).markdown())


if __name__ == "__main__":
    main()
