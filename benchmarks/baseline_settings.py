"""Settings of the baselines that come closest to the paper's accuracies, without test images.

    python -m benchmarks.baseline_settings

The paper states neither the phases of its random features nor LKRF's divergence. Here three
quarters of the training images of each task are used for training and one quarter for validation.
The best setting is the closest to the paper's accuracies. ``python -m experiments table1`` uses
others; docs/reproduction.md compares them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.common import make_parser
from experiments import paper
from experiments.svm import fit_svm
from experiments.tables import Table
from experiments.tasks import TASKS, load_task
from notsorandom.baselines import LKRF, RandomFourierFeatures

RHOS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


def settings(size: int) -> dict[str, tuple[str, Any]]:
    """Return the paper's method and a transformer for each setting."""
    phases = {
        f"RBF-RF, {phase}": ("rbf", RandomFourierFeatures(size, phase=phase, random_state=0))
        for phase in ("paired", "random")
    }
    return phases | {
        f"LKRF, rho = {rho}": ("lkrf", LKRF(size, rho=rho, random_state=0)) for rho in RHOS
    }


def main() -> None:
    """Print one line per task, then the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS), help="comma-separated (default: all)")
    parser.add_argument("--features", default="100,500", help="comma-separated, of the paper's")
    parser.add_argument("--data", help="folder of MNIST and CIFAR-10")
    options = parser.parse_args()
    gaps: dict[str, list[float]] = {}
    for task in options.tasks.split(","):
        data = load_task(task, options.data)
        X, X_validation, y, y_validation = train_test_split(
            data.X, data.y, test_size=0.25, random_state=0, stratify=data.y
        )
        for size in map(int, options.features.split(",")):
            for name, (method, features) in settings(size).items():
                predict = fit_svm(features.fit(X, y).transform(X), y)
                predictions = predict(features.transform(X_validation))
                accuracy = 100 * np.mean(predictions == y_validation)
                theirs = paper.TABLE1[task][method][paper.SIZES.index(size)]
                gaps.setdefault(name, []).append(accuracy - theirs)
        print(task, {name: round(float(gap[-1]), 1) for name, gap in gaps.items()}, flush=True)
    rows = tuple(
        (
            name,
            f"{np.mean(gap):+.2f}",
            f"{np.mean(np.abs(gap)):.2f}",
            f"{np.sum(np.abs(gap) <= 2)} of {len(gap)}",
        )
        for name, gap in gaps.items()
    )
    headers = ("setting", "mean difference", "mean absolute difference", "within 2 points")
    caption = "Validation accuracy minus the paper's test accuracy, in points."
    print(Table("Settings of the baselines", caption, headers, rows).markdown())


if __name__ == "__main__":
    main()
