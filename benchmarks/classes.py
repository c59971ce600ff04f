"""What more classes cost: seconds a round of the game and a machine, for K = 2 to 100.

    python benchmarks/classes.py

Samples around random centres, some for each class, in 64 columns. All ratios are to two classes, in
this run.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from notsorandom import FourierFeatures
from notsorandom.display.inspection import fit_machines
from notsorandom.experiments.tables import Table
from notsorandom.game import LOSSES, Player
from notsorandom.game.scoring import predicted_codes, signs
from notsorandom.linear.newton import decide

CENTRES_A_CLASS = 3
SPREAD = 3.0


def blobs(n_samples: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples and their classes."""
    rng = np.random.default_rng(seed)
    centres = SPREAD * np.random.default_rng(0).standard_normal((n_classes * CENTRES_A_CLASS, 64))
    which = rng.integers(len(centres), size=n_samples)
    X = centres[which] + 2 * rng.standard_normal((n_samples, 64))
    return X.astype(np.float32), which % n_classes


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=100)
    options = parser.parse_args()
    rows, first = [], (0.0, 0.0)
    for n_classes in (2, 10, 30, 100):
        X, y = blobs(options.samples, n_classes, 1)
        X_test, y_test = blobs(5000, n_classes, 2)
        features = FourierFeatures(options.features, smoothing=0.06, random_state=0).fit(X, y)
        a_round = features.history_["seconds"][-1] / len(features.history_["seconds"])
        player = Player(LOSSES["hinge"](1.0), signs(y, n_classes, np.float32))
        began = time.perf_counter()
        coef, intercept = fit_machines(features.transform(X), player)
        machines = time.perf_counter() - began
        predictions = predicted_codes(decide(features.transform(X_test), coef, intercept))
        first = first if any(first) else (a_round, machines)
        rows.append(
            (
                str(n_classes),
                f"{1000 * a_round:.0f}",
                f"{a_round / first[0]:.1f}",
                f"{machines:.2f}",
                f"{machines / first[1]:.1f}",
                f"{100 * np.mean(predictions == y_test):.1f}",
            )
        )
        print(*rows[-1], flush=True)
    headers = ("K", "ms a round", "ratio", "s of machines", "ratio", "test %")
    print(Table("More classes", "", headers, tuple(rows)).markdown())


if __name__ == "__main__":
    main()
