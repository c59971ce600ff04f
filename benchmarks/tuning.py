"""What trials choose, against its neighbours: smoothing, C and spectrum on the paper's eight pairs.

    python -m benchmarks.tuning --seeds 3 --data DIR

Three quarters of the training images are used for training and one quarter for validation; test
images are not used. Prints what the default fit chose, its mean validation
accuracy and log loss, and how much these change with each neighbour of the choice alone. A good
choice has no neighbour with a clearly better accuracy and a smaller log loss. The other spectrum is
not among the candidates if samples of many columns are seen in 128 principal directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.common import make_parser
from experiments.chosen import chosen_settings, describe_choices
from experiments.tables import Table
from experiments.tasks import TASKS, load_task
from notsorandom import Ascent, FourierClassifier

OTHER = {"gaussian": "cauchy", "cauchy": "gaussian"}


def neighbours(model: FourierClassifier) -> dict[str, dict[str, Any]]:
    """Return the parameters of the choice's neighbours."""
    C, smoothing, spectrum = model.C_, model.smoothing_, str(model.spectrum_)
    chosen: dict[str, Any] = {"C": C, "smoothing": smoothing, "search": Ascent(spectrum=spectrum)}
    changes: dict[str, dict[str, Any]] = {
        "C / 10": {"C": C / 10},
        "C * 10": {"C": C * 10},
        "smoothing / 3": {"smoothing": smoothing / 3},
        "smoothing * 3": {"smoothing": smoothing * 3},
        "other spectrum": {"search": Ascent(spectrum=OTHER[spectrum])},
    }
    return {name: chosen | change for name, change in changes.items()}


def measure(model: FourierClassifier, X: Any, y: Any) -> Any:
    """Return accuracy in percent and log loss."""
    return np.array([100 * model.score(X, y), log_loss(y, model.predict_proba(X))])


def main() -> None:
    """Print one line per task, then the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS), help="comma-separated (default: all)")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--data", help="folder of MNIST and CIFAR-10")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    names: list[str] = []
    for task in options.tasks.split(","):
        data = load_task(task, options.data)
        choices, values, changes = [], [], []
        for seed in range(options.seeds):
            X, X_held_out, y, y_held_out = train_test_split(
                data.X, data.y, test_size=0.25, stratify=data.y, random_state=seed
            )
            model = FourierClassifier(options.features, random_state=seed).fit(X, y)
            choices.append({"chosen": chosen_settings(model)})
            others = neighbours(model)
            names = list(others)
            values.append(measure(model, X_held_out, y_held_out))
            fitted = [
                FourierClassifier(options.features, random_state=seed, **other).fit(X, y)
                for other in others.values()
            ]
            changes.append([measure(each, X_held_out, y_held_out) - values[-1] for each in fitted])
        accuracy, loss = np.mean(values, axis=0)
        cells = [f"{each[0]:+.2f}, {each[1]:+.3f}" for each in np.mean(changes, axis=0)]
        rows.append((task, describe_choices(choices), f"{accuracy:.2f}, {loss:.3f}", *cells))
        print(*rows[-1], sep="; ", flush=True)
    headers = ("task", "chosen", "accuracy, log loss", *names)
    caption = "Neighbours: differences from the choice in accuracy (points) and in log loss."
    print(Table("What trials choose", caption, headers, tuple(rows)).markdown())


if __name__ == "__main__":
    main()
