"""The principal directions that frequencies are searched in: how many, and of how many rows.

    python -m benchmarks.directions --splits 4 --features 100
    python -m benchmarks.directions --rows

Three quarters of the training images of each pair of classes are used for training and one quarter
for validation; test images are not used. Prints the mean validation accuracy per number of
directions, or with ``--rows`` per number of rows that they are computed from, its difference from
the default with the standard error of the paired differences, and the seconds of a fit. 1024
directions are all of them. Of at most twice as many rows as given, all are used: here with 4096.
The models are SVMs at C = 1 with one smoothing and the Gaussian spectrum, so that nothing else
differs.
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.common import make_parser, timed
from experiments.tables import Table
from experiments.tasks import TASKS, load_task
from notsorandom import Ascent, FourierClassifier
from notsorandom.spaces import view

# The default first.
NUMBERS = (128, 32, 64, 96, 192, 256, 1024)
ROWS = (4096, 1024, 2048)


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", help="folder of MNIST and CIFAR-10")
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--smoothing", type=float, default=0.07)
    parser.add_argument("--rows", action="store_true", help="compare numbers of rows")
    options = parser.parse_args()
    name, numbers = ("DIRECTION_ROWS", ROWS) if options.rows else ("MAX_DIRECTIONS", NUMBERS)
    scores: dict[int, list[float]] = {number: [] for number in numbers}
    seconds = dict.fromkeys(numbers, 0.0)
    for task in TASKS:
        data = load_task(task, options.data)
        for seed in range(options.splits):
            X, X_held_out, y, y_held_out = train_test_split(
                data.X, data.y, test_size=0.25, stratify=data.y, random_state=seed
            )
            for number in numbers:
                setattr(view, name, number)
                model = FourierClassifier(
                    options.features,
                    loss="hinge",
                    C=1.0,
                    smoothing=options.smoothing,
                    search=Ascent(spectrum="gaussian"),
                    random_state=seed,
                )
                _, spent = timed(model.fit, X, y)
                seconds[number] += spent
                scores[number].append(100 * model.score(X_held_out, y_held_out))
    usual = np.array(scores[numbers[0]])
    rows = []
    for number in sorted(numbers):
        differences = np.array(scores[number]) - usual
        error = differences.std() / np.sqrt(len(differences))
        rows.append(
            (
                str(number),
                f"{np.mean(scores[number]):.2f}",
                f"{differences.mean():+.2f} +- {error:.2f}",
                f"{seconds[number] / len(differences):.2f}",
            )
        )
    headers = ("rows" if options.rows else "directions", "accuracy, %", "difference", "seconds")
    print(Table("Principal directions", headers=headers, rows=tuple(rows)).markdown())


if __name__ == "__main__":
    main()
