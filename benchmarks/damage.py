"""Damaged and forged model files: each is refused, or is a model that predicts.

    python -m benchmarks.damage --files 20000

Every file is made from a valid one by one of `DAMAGES`, at random. Nothing in them may be executed:
forged files name functions that would create a file. Prints how many files were refused and how
many predict, the slowest load, and the most memory that a load took.
"""

from __future__ import annotations

import faulthandler
import os
import tracemalloc
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.common import make_parser, timed
from benchmarks.forgery import DAMAGES, MARKER, pick
from notsorandom import (
    Enumerate,
    FileFormatError,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    Sphere,
    load,
    save,
)


def make_models() -> dict[str, tuple[Any, Any]]:
    """Return fitted models of all kinds, with samples for each."""
    import pandas

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")
    settings: dict[str, Any] = {"smoothing": 0.06, "C": 1.0, "random_state": 0}
    classifier = FourierClassifier(8, **settings)
    sphere, zonal = Sphere(normalize=True), Sphere("zonal", normalize=True)
    frame = pandas.DataFrame(X, columns=list("abc"))
    table = frame.assign(
        a=frame["a"].where(frame["a"] > -1), city=rng.choice(["x", "y", "y", "z"], 60)
    )
    one_hot = OneHotEncoder(min_frequency=15, handle_unknown="infrequent_if_exist", drop="first")
    encode = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), list("abc")),
        (one_hot, ["city"]),
    )
    voters = [("one", classifier), ("two", make_pipeline(StandardScaler(), classifier))]
    wide = rng.normal(size=(60, 1000))
    return {
        "classifier": (FourierClassifier("auto", max_components=8, **settings).fit(X, y), X),
        "three classes": (FourierClassifier(8, **settings).fit(X, np.arange(60) % 3), X),
        "wide": (FourierClassifier(100, **settings).fit(wide, y), wide),
        "regressor": (FourierRegressor(8, phase="paired", **settings).fit(X, X[:, :2]), X),
        "features": (FourierFeatures(8, **settings).fit(frame, y), frame),
        "harmonic": (
            FourierClassifier(8, space=sphere, search=Enumerate(2), **settings).fit(X, y),
            X,
        ),
        "zonal": (FourierFeatures(8, space=zonal, **settings).fit(X, y), X),
        "pipeline": (make_pipeline(StandardScaler(), clone(classifier)).fit(X, y), X),
        "table": (make_pipeline(encode, clone(classifier)).fit(table, y), table),
        "voting": (VotingClassifier(voters).fit(X, y), X),
    }


def load_and_predict(path: Path, X: Any) -> str:
    """Return "refused", or what happened when a loaded model was used for rows like `X`."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load(path)
        except FileFormatError:
            return "refused"
        if not hasattr(X, "columns") and model.n_features_in_ != X.shape[1]:
            X = np.random.default_rng(0).normal(size=(3, model.n_features_in_))
        try:
            result = model.predict(X) if hasattr(model, "predict") else model.transform(X)
        except ValueError:  # a clean error: numbers too large, other names of columns
            return "refused rows"
    assert result.shape[0] == len(X)
    return "predicts"


def memory_of_load(path: Path) -> int:
    """Return the most bytes that a load takes."""
    tracemalloc.start()
    with np.errstate(all="ignore"), warnings.catch_warnings(), suppress(FileFormatError):
        warnings.simplefilter("ignore")
        load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def write_models(path: Path) -> list[tuple[bytes, Any]]:
    """Return the contents of valid files, with samples for each."""
    contents = []
    for model, X in make_models().values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            contents.append((save(model, path, {"accuracy": 0.9}).read_bytes(), X))
    return contents


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    options = parser.parse_args()
    faulthandler.enable()
    counts: dict[str, Counter[str]] = {damage.__name__: Counter() for damage in DAMAGES}
    slowest, most, excess = (0.0, 0), (0.0, 0), (0, 0)
    with TemporaryDirectory() as folder:
        os.environ[MARKER] = str(Path(folder) / "executed")
        path = Path(folder) / "model.skops"
        contents = write_models(path)
        for number in range(options.first, options.first + options.files):
            rng = np.random.default_rng(number)
            damage = DAMAGES[number % len(DAMAGES)]
            (content, X), (other, _) = pick(rng, contents), pick(rng, contents)
            path.write_bytes(damage(content, rng, other))
            faulthandler.dump_traceback_later(60, exit=True)
            try:
                outcome, seconds = timed(load_and_predict, path, X)
            except Exception as error:
                outcome, seconds = f"{type(error).__name__}: {error}"[:80], 0.0
                print(f"file {number}, {damage.__name__}: {outcome}", flush=True)
            faulthandler.cancel_dump_traceback_later()
            slowest = max(slowest, (seconds, number))
            size, memory = path.stat().st_size, memory_of_load(path)
            most = max(most, (memory / size, number)) if size > 2**18 else most
            excess = max(excess, (memory - 4 * size, number))
            counts[damage.__name__][outcome] += 1
            assert not Path(os.environ[MARKER]).exists(), f"file {number} executed something"
    for name, outcomes in counts.items():
        print(f"{name:16}", dict(outcomes))
    print("in all", dict(sum(counts.values(), Counter())))
    print(f"slowest load and prediction: {slowest[0]:.2f} s (file {slowest[1]})")
    print(f"most memory of files over 256 KB: {most[0]:.2f} x the file (file {most[1]})")
    print(f"most memory beyond 4 x the file: {excess[0] / 1024:.0f} KB (file {excess[1]})")


if __name__ == "__main__":
    main()
