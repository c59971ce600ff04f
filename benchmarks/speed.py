"""Speed of the default fit, from a hundred rows to a hundred thousand.

    python -m benchmarks.speed [part ...] --data DIR

truck    automobiles against trucks of CIFAR-10, 100 features, against 5000 random features with
         LinearSVC; and the same samples in float64
small    iris, wine and breast_cancer, as they are and standardised, against a grid search of SVC
tables   5,000 and 50,000 rows of 20 columns against HistGradientBoostingClassifier
busy     automobiles against trucks beside another busy process, against the same fit without it
auto     n_components="auto" against a fit with the number of features it ends with, and the seconds
         until the first progress line
chosen   C="auto" against C=1.0, both with smoothing and spectrum chosen; and against a fit without
         trials, at what was chosen
mnist    ten classes of MNIST, 60,000 images, 500 features
csv      `notsorandom fit` of a CSV file with 100,000 rows, against the fit alone
predict  transform and predict of 200,000 rows by n_jobs; and of one row, also of a table, against
         scikit-learn
tiny     fits of few samples with unusual spaces, searches and shapes

Each number is the least of `--repeats` runs. Runs that are compared alternate, so that ratios hold
on a machine that is not quiet. After `--timeout` seconds no repetition starts, and repetitions of
auto and tiny are ended: "inf" if none was done, "nan" if there is nothing to compare with then.
"at most" is the limit of the ratio, or of the seconds where nothing is compared.
"""

from __future__ import annotations

import io
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isinf, nan
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_info

from benchmarks.common import busy_process, least_of_messages, least_seconds, run_parts, timed
from experiments.tables import Table
from experiments.tasks import load_task
from notsorandom import Ascent, FourierClassifier, FourierFeatures, Sphere, tabular_pipeline
from notsorandom.baselines import median_gamma
from notsorandom.datasets import fetch_mnist

HEADERS = ("", "ours, s", "other, s", "ratio", "at most", "reached")
GRID = {"C": [0.1, 1, 10, 100], "gamma": ["scale", 0.01, 0.1, 1]}
CSV_ROWS, CSV_SHARE = 100_000, 0.8  # the command holds out a fifth of the rows
PREDICTED_ROWS, N_CALLS = 200_000, 100  # a call with one row is too short to time alone


@dataclass(frozen=True)
class Row:
    """Seconds of ours and of the other, and the limit of their ratio.

    Without `other`, the limit is one of seconds. A limit of infinity is none. Seconds are infinite
    if the fit was ended.
    """

    title: str
    ours: float
    other: float | None
    limit: float

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table."""
        value = self.ours if self.other is None else self.ours / self.other
        return (
            self.title,
            f"{self.ours:.3g}",
            "" if self.other is None else f"{self.other:.3g}",
            "" if self.other is None else f"{value:.2f}",
            "" if isinf(self.limit) else f"{self.limit:g}" + (" s" if self.other is None else ""),
            "" if isinf(self.limit) else "yes" if value <= self.limit else "no",
        )


def show(title: str, rows: Sequence[Row], *notes: str) -> None:
    """Print a table."""
    cells = tuple(row.cells() for row in rows)
    print(Table(title, "", HEADERS, cells, notes).markdown(), end="\n\n", flush=True)


def default_model(**parameters: Any) -> FourierClassifier:
    """Return our classifier with its defaults and a seed."""
    return FourierClassifier(random_state=0, **parameters)


def make_table(n_rows: int) -> tuple[Any, Any]:
    """Return samples of 20 columns in float64, and labels."""
    return make_classification(n_rows, 20, n_informative=10, random_state=0)


def run_truck(data_home: str | None, repeats: int, timeout: float) -> None:
    """Compare with random features, and float64 with float32."""
    X, y, X_test, y_test = load_task("auto-truck", data_home)
    models = {name: default_model(n_components=100) for name in ("float32", "float64")}
    sampler = RBFSampler(gamma=median_gamma(X), n_components=5000, random_state=0)
    linear = LinearSVC(loss="hinge", random_state=0)
    other = make_pipeline(StandardScaler(with_std=False), sampler, linear)
    calls = {
        "float32": partial(models["float32"].fit, X, y),
        "float64": partial(models["float64"].fit, X.astype(np.float64), y),
        "random": partial(other.fit, X, y),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of liblinear
        seconds = least_seconds(calls, repeats, timeout)
    accuracies = {name: model.score(X_test, y_test) for name, model in models.items()}
    show(
        "auto-truck",
        [
            Row("float32 / 5000 random features", seconds["float32"], seconds["random"], 0.20),
            Row("float64 / float32", seconds["float64"], seconds["float32"], 1.3),
        ],
        "aim: 0.15 of random features",
        f"test accuracy: {accuracies['float32']:.2%} in float32, {accuracies['float64']:.2%} in "
        f"float64, {other.score(X_test, y_test):.2%} with random features",
    )


def run_small(data_home: str | None, repeats: int, timeout: float) -> None:
    """Compare with a grid search on small data."""
    rows = []
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        name = load.__name__.removeprefix("load_")
        for kind, samples in (("as is", X), ("scaled", StandardScaler().fit_transform(X))):
            calls = {
                "ours": partial(default_model().fit, samples, y),
                "other": partial(GridSearchCV(SVC(), GRID, cv=3, n_jobs=1).fit, samples, y),
            }
            rows.append(Row(f"{name}, {kind}", **least_seconds(calls, repeats, timeout), limit=1.0))
    show("Small data / grid search of SVC", rows, "aim: 0.15 s")


def run_tables(data_home: str | None, repeats: int, timeout: float) -> None:
    """Compare with gradient boosting on tables."""
    rows = []
    for n_rows in (5_000, 50_000):
        X, y = make_table(n_rows)
        calls = {
            "ours": partial(default_model().fit, X, y),
            "other": partial(HistGradientBoostingClassifier(random_state=0).fit, X, y),
        }
        rows.append(Row(f"{n_rows:,} rows", **least_seconds(calls, repeats, timeout), limit=1.0))
    show("Tables of 20 columns / HistGradientBoosting", rows, "aim: 0.5")


def run_busy(data_home: str | None, repeats: int, timeout: float) -> None:
    """Compare fits beside a busy process with fits without it."""
    X, y, _, _ = load_task("auto-truck", data_home)

    def fit_beside() -> None:
        with busy_process():
            default_model().fit(X, y)

    calls: dict[str, Callable[[], Any]] = {
        "ours": fit_beside,
        "other": partial(default_model().fit, X, y),
    }
    row = Row("busy / quiet", **least_seconds(calls, repeats, timeout), limit=2.5)
    show("auto-truck beside a busy process", [row])


class ReportingStream(io.TextIOBase):
    """Standard error that sends the time of its first output through a connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.start: float | None = time.perf_counter()

    def write(self, text: str) -> int:
        """Drop the text."""
        if self.start is not None:
            self.connection.send(("line", time.perf_counter() - self.start))
            self.start = None
        return len(text)


def fit_auto(connection: Connection, n_rows: int, repeats: int) -> None:
    """Send the seconds of fits with "auto", of plain fits, and until the first progress line."""
    X, y = make_table(n_rows)
    default_model().fit(X[:200], y[:200])  # what the first fit of a process imports isn't timed
    for _ in range(repeats):
        original, sys.stderr = sys.stderr, ReportingStream(connection)
        model = default_model(n_components="auto", verbose=1)
        connection.send(("auto", timed(model.fit, X, y)[1]))
        sys.stderr = original
        size = model.coef_.shape[1]
        connection.send(("size", size))
        connection.send(("plain", timed(default_model(n_components=size).fit, X, y)[1]))
    connection.close()


def run_auto(data_home: str | None, repeats: int, timeout: float) -> None:
    """Compare automatic numbers of features with given ones."""
    rows, notes = [], []
    for n_rows in (5_000, 50_000):
        least = least_of_messages(fit_auto, n_rows, repeats, timeout=timeout)
        rows.append(Row(f"{n_rows:,} rows", least.get("auto", inf), least.get("plain", nan), 3.0))
        rows.append(Row(f"{n_rows:,} rows, first line", least.get("line", inf), None, 1.0))
        size = f"ended with {least['size']} features" if "size" in least else "not done"
        notes.append(f"{n_rows:,} rows: {size}")
    show('n_components="auto" / the fit at its size', rows, *notes)


def run_chosen(data_home: str | None, repeats: int, timeout: float) -> None:
    """Compare a chosen C with a given one, and with the choice given as a whole."""
    images = load_task("auto-truck", data_home)
    cancer = load_breast_cancer(return_X_y=True)
    data = {
        "breast_cancer": (StandardScaler().fit_transform(cancer[0]), cancer[1]),
        "5,000 rows": make_table(5_000),
        "auto-truck": (images.X, images.y),
    }
    rows, notes = [], []
    for name, (X, y) in data.items():
        model = default_model(n_components=100).fit(X, y)
        chosen = {
            "C": model.C_,
            "smoothing": model.smoothing_,
            "search": Ascent(spectrum=model.spectrum_),
        }
        calls = {
            "auto": partial(default_model(n_components=100).fit, X, y),
            "given": partial(default_model(n_components=100, C=1.0).fit, X, y),
            # A transformer needs no temperature, so it has no trials.
            "game": partial(FourierFeatures(random_state=0, **chosen).fit, X, y),
        }
        seconds = least_seconds(calls, repeats, timeout)
        rows.append(Row(f"{name}, C='auto' / C=1.0", seconds["auto"], seconds["given"], 1.1))
        rows.append(
            Row(f"{name}, fit / game without trials", seconds["auto"], seconds["game"], inf)
        )
        notes.append(
            f"{name}: {model.spectrum_}, smoothing {model.smoothing_:g}, C = {model.C_:.3g}"
        )
    show("What is chosen", rows, *notes)


def run_mnist(data_home: str | None, repeats: int, timeout: float) -> None:
    """Fit all of MNIST."""
    images, y, test_images, y_test = fetch_mnist(data_home)
    X, X_test = (part.astype(np.float32) / 255 for part in (images, test_images))
    model = default_model(n_components=500)
    calls = {
        "features": partial(FourierFeatures(500, random_state=0).fit, X, y),
        "classifier": partial(model.fit, X, y),
    }
    seconds = least_seconds(calls, repeats, timeout)
    show(
        "MNIST, ten classes, 500 features",
        [
            # Half of the 38 s that it took on two quiet cores when this benchmark was written.
            Row("FourierFeatures", seconds["features"], None, 19.0),
            Row("FourierClassifier", seconds["classifier"], None, inf),
        ],
        f"test accuracy {model.score(X_test, y_test):.2%}",
    )


def run_csv(data_home: str | None, repeats: int, timeout: float) -> None:
    """Compare the command with the fit of the same rows in memory."""
    import pandas as pd

    X, y = make_table(CSV_ROWS)
    n_training = round(CSV_SHARE * CSV_ROWS)
    samples = StandardScaler().fit_transform(X[:n_training])  # as the command scales them
    with TemporaryDirectory() as name:
        folder = Path(name)
        table = pd.DataFrame(X, columns=[f"column_{number}" for number in range(X.shape[1])])
        table.assign(label=y).to_csv(folder / "table.csv", index=False)
        files = [str(folder / "table.csv"), "-o", str(folder / "model.skops")]
        command = [sys.executable, "-m", "notsorandom.cli", "fit", *files, "--target", "label"]
        start = [sys.executable, "-c", "import notsorandom.cli.fit, skops.io"]
        calls: dict[str, Callable[[], Any]] = {
            "command": partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL),
            "start": partial(subprocess.run, start, check=True),
            "fit": partial(default_model(n_components=100).fit, samples, y[:n_training]),
        }
        seconds = least_seconds(calls, repeats, timeout)
    work = seconds["command"] - seconds["start"]
    rows = [
        Row("command / fit alone", seconds["command"], seconds["fit"], limit=2.0),
        Row("command less start and imports / fit alone", work, seconds["fit"], limit=2.0),
    ]
    show(f"`notsorandom fit`, CSV file of {CSV_ROWS:,} rows", rows)


def repeat_call(function: Callable[[Any], Any], X: Any, n_calls: int) -> None:
    """Call a function several times."""
    for _ in range(n_calls):
        function(X)


def run_predict(data_home: str | None, repeats: int, timeout: float) -> None:
    """Compare numbers of threads for many rows, and with scikit-learn for one row.

    With many rows the default must not be slower than one thread, but for noise, and two threads
    must share them. With one row no number of threads may cost more than a pipeline.
    """
    X = np.random.default_rng(0).standard_normal((PREDICTED_ROWS, 50), dtype=np.float32)
    training = X[:5000], np.cos(X[:5000, 0] + X[:5000, 1]) > 0
    sampler = RBFSampler(n_components=100, random_state=0)
    others = sampler.fit(*training), make_pipeline(sampler, LinearSVC()).fit(*training)
    models = {
        n_jobs: (
            FourierFeatures(random_state=0, n_jobs=n_jobs).fit(*training),
            default_model(n_components=100, n_jobs=n_jobs).fit(*training),
        )
        for n_jobs in (None, 1, 2)
    }
    rows = []
    for index, method in enumerate(("transform", "predict")):
        functions = {n_jobs: getattr(pair[index], method) for n_jobs, pair in models.items()}
        many = {n_jobs: partial(function, X) for n_jobs, function in functions.items()}
        seconds = least_seconds(many, 3 * repeats, timeout)  # short, so noisy
        for n_jobs, limit in ((None, 1.1), (2, 0.8)):
            title = f"{method}, {PREDICTED_ROWS:,} rows, n_jobs={n_jobs} / n_jobs=1"
            rows.append(Row(title, seconds[n_jobs], seconds[1], limit))
        named = {f"n_jobs={n_jobs}": function for n_jobs, function in functions.items()}
        named["other"] = getattr(others[index], method)
        single = {name: partial(repeat_call, named[name], X[:1], N_CALLS) for name in named}
        means = {name: value / N_CALLS for name, value in least_seconds(single, repeats).items()}
        other = means.pop("other")
        for name, value in means.items():
            rows.append(Row(f"{method}, one row, {name} / scikit-learn", value, other, 2.0))
    rows.append(compare_table_rows(repeats))
    libraries = [
        f"{library['internal_api']} ({library['num_threads']} threads)"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]
    show("transform and predict", rows, f"BLAS as it is found: {', '.join(libraries)}")


def compare_table_rows(repeats: int) -> Row:
    """Compare the prediction of one row of a table with a pipeline of scikit-learn's alone."""
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1000, 20))).add_prefix("number_")
    for k in range(5):
        frame[f"text_{k}"] = rng.choice(["Rome", "Oslo", "Bonn"], len(frame))
    y = (frame["number_0"] > 0) ^ (frame["text_0"] == "Rome")
    encode = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), frame.columns[:20]),
        (OneHotEncoder(handle_unknown="ignore"), frame.columns[20:]),
    )
    models = {
        "ours": tabular_pipeline(n_components=100, C=1.0, smoothing=0.1, random_state=0),
        "other": make_pipeline(encode, LinearSVC()),
    }
    single = {
        name: partial(repeat_call, model.fit(frame, y).predict, frame[:1], N_CALLS)
        for name, model in models.items()
    }
    means = {name: value / N_CALLS for name, value in least_seconds(single, repeats).items()}
    return Row("predict, one row of a table / scikit-learn", means["ours"], means["other"], 2.0)


TINY: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "zonal sphere, 300 x 2, 4 features": (
        (300, 2),
        {"n_components": 4, "space": Sphere(basis="zonal", normalize=True)},
    ),
    'search="langevin", 100 x 30, 20 features': (
        (100, 30),
        {"n_components": 20, "search": "langevin"},
    ),
    "100 x 5000, 20 features": ((100, 5000), {"n_components": 20}),
}


def fit_tiny(connection: Connection, title: str, repeats: int) -> None:
    """Send the seconds of the fits."""
    shape, parameters = TINY[title]
    X = np.random.default_rng(0).standard_normal(shape)
    y = X[:, 0] * X[:, 1] > 0
    default_model(n_components=2).fit(X[:50], y[:50])  # imports aren't timed
    for _ in range(repeats):
        connection.send(("fit", timed(default_model(**parameters).fit, X, y)[1]))
    connection.close()


def run_tiny(data_home: str | None, repeats: int, timeout: float) -> None:
    """Time fits of few samples."""
    rows = []
    for title in TINY:
        least = least_of_messages(fit_tiny, title, repeats, timeout=timeout)
        rows.append(Row(title, least.get("fit", inf), None, 2.0))
    show("Tiny fits", rows)


PARTS = {
    "truck": run_truck,
    "small": run_small,
    "tables": run_tables,
    "busy": run_busy,
    "auto": run_auto,
    "chosen": run_chosen,
    "mnist": run_mnist,
    "csv": run_csv,
    "predict": run_predict,
    "tiny": run_tiny,
}


if __name__ == "__main__":
    run_parts(__doc__, PARTS, repeats=3, timeout=600)
