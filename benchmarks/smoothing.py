"""Accuracy of the automatic smoothing relative to the best fixed one, on the paper's eight pairs.

    python -m benchmarks.smoothing --seeds 3

The best fixed value is chosen on the test samples, which isn't possible in practice: it is an upper
bound, not a method.
"""

from __future__ import annotations

import numpy as np

from benchmarks.common import make_parser
from experiments.tasks import TASKS, load_task
from notsorandom import FourierClassifier

FIXED = (0.0, 0.02, 0.04, 0.06, 0.09, 0.13)


def main() -> None:
    """Print test accuracies in percent, one line per task."""
    parser = make_parser(__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS), help="comma-separated (default: all)")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", help="folder of MNIST and CIFAR-10")
    options = parser.parse_args()
    print(f"{'':<12}" + "".join(f"{value:>8}" for value in (*FIXED, "auto", "- best")))
    for task in options.tasks.split(","):
        X, y, X_test, y_test = load_task(task, options.data)
        scores = []
        for smoothing in (*FIXED, "auto"):
            runs = [
                FourierClassifier(options.features, smoothing=smoothing, random_state=seed)
                .fit(X, y)
                .score(X_test, y_test)
                for seed in range(options.seeds)
            ]
            scores.append(100 * float(np.mean(runs)))
        scores.append(scores[-1] - max(scores[:-1]))
        print(f"{task:<12}" + "".join(f"{score:8.2f}" for score in scores), flush=True)


if __name__ == "__main__":
    main()
