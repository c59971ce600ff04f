"""The commands for models that exist, and the demo. Their docstrings are their help."""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

import notsorandom
from notsorandom import FourierClassifier
from notsorandom._utils.files import FileFormatError
from notsorandom._utils.progress import Progress
from notsorandom.baselines import RandomFourierFeatures
from notsorandom.cli.fit import read_training_table, split_rows
from notsorandom.cli.loading import (
    LoadedModel,
    compute_scores,
    counted_from,
    encode,
    is_training_file,
    steps_of,
)
from notsorandom.data.files import open_data_file, open_writer
from notsorandom.data.rows import Array
from notsorandom.datasets import make_windmill
from notsorandom.display import GameDisplay
from notsorandom.display.figures import save_figure
from notsorandom.display.inspection import scores_by_size
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.resume import read_checkpoint_header
from notsorandom.io import read_metadata

# Options of `predict`: the flag, the beginning of the columns' names, method, and words.
EXTRAS = [("scores", "score", "decision_function", "decision values")]
EXTRAS += [("proba", "proba", "predict_proba", "probabilities")]
EXTRAS += [("set", "set", "predict_set", "sets of classes")]
# Beginnings of formulas in spreadsheets, but of numbers.
FORMULA = re.compile(r"(?![+-]?[\d.,]+([eE][+-]?\d+)?\Z)[=+\-@\t\r]")
# Of the demo: numbers of features, the largest that are learned, and numbers of samples.
DEMO_SIZES, LEARNED_SIZE, N_TRAIN, N_TEST = (20, 100, 5000), 100, 2000, 10_000


def predict(options: argparse.Namespace) -> dict[str, Any] | None:
    """Predict for each row of a data file of any size.

    For example:
      notsorandom predict model.skops new.csv -o predictions.csv
      notsorandom predict model.skops new.parquet --keep id --proba -o predictions.parquet
      notsorandom predict model.skops new.csv --proba | head
      notsorandom predict model.skops new.csv --interval 0.9

    Reads and writes in blocks of rows, so files can be larger than memory. Columns are found by
    name, other columns are ignored. Files without column names (.npy, .npz, .libsvm) must have the
    number of columns of the training data. The output, by default CSV on standard output, is .csv
    or .parquet. A file appears when it is complete. In CSV, text that a spreadsheet would compute
    as a formula gets a quote in front of it, as in '=A1, unless --formulas is given.

    --interval 0.9 writes the columns low and high: limits that cover 90 % of the targets. --set 0.9
    writes a column for each class: whether it is in a set that has the right one in 90 % of rows.
    """
    import pandas as pd

    if options.json and options.output is None:
        options.parser.error("--json replaces the predictions on standard output: give --output")
    loaded = LoadedModel.open(options.model, options.trust)
    check_extras(steps_of(loaded.model)[-1], options)
    file = open_data_file(options.data, max_bytes=options.max_bytes)
    start, n_rows = time.perf_counter(), 0
    is_text = options.output is None or options.output.suffix.lower() == ".csv"
    if options.output and options.output.exists() and options.output.samefile(options.data):
        options.parser.error(f"--output {options.output} is an input file: give another one")
    shown = not options.quiet and options.output is not None and sys.stderr.isatty()
    with open_writer(options.output) as write, Progress(0, "rows", shown) as bar:
        for X, kept in loaded.blocks(file, options.keep):
            columns = {name: np.asarray(kept[name]) for name in options.keep}
            with counted_from(n_rows):
                predicted = predict_columns(loaded, X, options)
            for name, column in predicted:
                while name in columns:  # kept, or the name of another prediction
                    name += "_predicted"
                columns[name] = column
            frame = pd.DataFrame(columns)
            write(escape_formulas(frame) if is_text and not options.formulas else frame)
            n_rows += X.shape[0]
            bar.update(n_rows)
    if options.output is None:
        return None
    return {
        "output": str(options.output),
        "rows": n_rows,
        "file read as": file.dialect or None,
        "seconds": round(time.perf_counter() - start, 3),
    }


def check_extras(last: Any, options: argparse.Namespace) -> None:
    """End with an error unless the last step has what the options add to predictions."""
    logistic = "fit a classifier with --loss logistic"
    hints = {"set": f"give --interval for numbers, or {logistic}"}
    hints |= {"interval": "give --set for classes, or fit a model of numbers"}
    for flag, _, method, words in [*EXTRAS, ("interval", "", "predict_interval", "intervals")]:
        value = getattr(options, flag)
        if not value:
            continue
        if not hasattr(last, method):
            hint = hints.get(flag, f"leave it out, or {logistic}")
            options.parser.error(f"--{flag}: this {type(last).__name__} has no {words}; {hint}")
        if flag in hints and isinstance(last, FourierEstimator):
            try:
                last._thresholds(value)
            except ValueError as error:
                options.parser.error(f"--{flag}: {error}")


def predict_columns(
    loaded: LoadedModel, X: Any, options: argparse.Namespace
) -> list[tuple[str, Array]]:
    """Return names and columns of predictions, with what options add to them, or of features."""
    if not hasattr(loaded.model, "predict"):
        return to_columns(loaded.model.transform(X), loaded.model.get_feature_names_out())
    name = loaded.record.get("target", "prediction")
    model, X = encode(loaded.model, X)
    only_classes = not any(getattr(options, flag) for flag, *_ in EXTRAS)
    if is_classifier(model) and model is not loaded.model and only_classes:
        X = X.astype(np.float32)  # many times faster; only classes of equal scores may differ
    values = model.predict(X)
    columns = to_columns(
        values, [name] if values.ndim == 1 else [f"{name}_{k}" for k in range(values.shape[1])]
    )
    for flag, prefix, method, _ in EXTRAS:
        if getattr(options, flag):
            coverage = [options.set] if flag == "set" else []
            values, labels = getattr(model, method)(X, *coverage), model.classes_.tolist()
            labels = labels[1:] if values.ndim == 1 else labels  # of two classes, the second
            columns += to_columns(values, [f"{prefix}_{label}" for label in labels])
    if options.interval:
        limits = model.predict_interval(X, options.interval)
        endings = [f"_{k}" for k in range(limits.shape[1])] if limits.ndim > 2 else [""]
        labels = [f"{limit}{ending}" for ending in endings for limit in ("low", "high")]
        columns += to_columns(limits, labels)
    return columns


def to_columns(values: Any, names: Any) -> list[tuple[str, Array]]:
    """Return the columns of an array or data frame with their names."""
    values = np.asarray(values)
    return list(zip(names, values.reshape(len(values), -1).T, strict=True))


def escape_formulas(frame: Any) -> Any:
    """Return a frame with a quote before text and names that a spreadsheet takes for a formula."""
    import pandas as pd

    def escape(texts: Any) -> Any:
        texts = texts.astype(object)  # categories are a fixed set
        is_formula = texts.astype(str).str.match(FORMULA) & texts.map(lambda x: isinstance(x, str))
        return texts.where(~is_formula, "'" + texts.astype(str)) if is_formula.any() else texts

    is_text = [column.dtype.kind not in "biufM" for _, column in frame.items()]
    frame = frame.assign(**{n: escape(frame[n]) for n in frame.columns[is_text]})
    return frame.set_axis(escape(pd.Series(frame.columns, dtype=object)), axis=1)


def evaluate(options: argparse.Namespace) -> dict[str, Any]:
    """Compute the accuracy or R^2 of a model on a data file of any size.

    For example:
      notsorandom evaluate model.skops test.csv
      notsorandom evaluate model.skops test.parquet --target label --json

    Prints the accuracy or R^2 with its standard error, and the score of guessing the largest class
    or the mean. For classes: ROC AUC and average precision (of the second of two classes, or the
    mean over all, each against the rest), recall and precision per class, and the log loss if the
    model has probabilities. For numbers: root mean squared error, mean absolute error, and how many
    rows are within their intervals, with the mean width. By default the target is the column of
    that name in the training data.
    """
    loaded = LoadedModel.open(options.model, options.trust)
    if not hasattr(loaded.model, "predict"):
        options.parser.error(f"{options.model} holds features, which have no predictions")
    file = open_data_file(options.data, max_bytes=options.max_bytes)
    result = compute_scores(loaded.model, loaded.labelled_blocks(file, options.target))
    if is_training_file(options.data, loaded.record):
        result["caution"] = (
            "the model was fitted to this file: these figures say little about new rows"
        )
    return result


def inspect(options: argparse.Namespace) -> dict[str, Any]:
    """Print what is in a model file or a checkpoint.

    For example: notsorandom inspect model.skops

    Nothing in the file is executed, unless --trust says so.
    """
    path: Path = options.file
    if path.suffix.lower() == ".skops":
        found, metadata = LoadedModel.open(path, options.trust).describe(), read_metadata(path)
        versions = f"notsorandom {metadata['library']}, scikit-learn {metadata['scikit-learn']}"
        found = {"kind": "model", **found, **metadata["metrics"]}
        others = {name: value for name, value in metadata["description"].items() if name != "fit"}
        found |= {"description": others or None, "written by": versions}
    else:
        try:
            found = {"kind": "checkpoint", **read_checkpoint_header(path)}
        except FileFormatError as error:
            message = f"{path} is neither a model file (.skops) nor a checkpoint."
            raise ValueError(message) from error
    return {**found, "bytes": path.stat().st_size}


def convert(options: argparse.Namespace) -> dict[str, Any]:
    """Convert a model file to an ONNX graph in float32.

    For example: notsorandom convert model.skops -o model.onnx

    The graph of a model of a table has an input for each column: numbers, and text for categories
    ("missing" where there is none). Dates are given as the parts that "notsorandom inspect" lists.
    """
    notsorandom.to_onnx(notsorandom.load(options.model, trusted=options.trust), options.output)
    return {"output": str(options.output), "bytes": options.output.stat().st_size}


def report(options: argparse.Namespace) -> dict[str, Any]:
    """Write a page about a model: one HTML file that opens in any browser.

    For example: notsorandom report model.skops train.csv -o report.html

    Needs the file that the model was fitted to. Scores are computed on the rows that
    "notsorandom fit" held out.
    """
    loaded = LoadedModel.open(options.model, options.trust)
    file = open_data_file(options.data, max_bytes=options.max_bytes)
    record = {"holdout": 0.0, "seed": 0, "target": None, **loaded.record}
    if loaded.record and not is_training_file(options.data, record):
        raise ValueError(
            f"{options.data} is not the file that {options.model} was fitted to: give that one."
        )
    options.target = options.target or record["target"]
    options.task = "classification" if is_classifier(loaded.model) else "regression"
    options.columns, options.drop = loaded.names, []
    data = read_training_table(file, options)
    train, test = split_rows(data, record["holdout"], record["seed"])
    X_test, y_test = data.take(test) if len(test) else (None, None)
    X, y = data.take(train)
    if options.target is not None:  # the page names it
        import pandas as pd

        y = pd.Series(y, name=options.target)
    title = f"{options.model.stem}, a model of {options.data.name}"
    settings: dict[str, Any] = {"X_test": X_test, "y_test": y_test, "title": title}
    settings |= {"research": options.research, "verbose": not options.quiet}
    page = notsorandom.report(loaded.model, X, y, options.output, **settings)
    return {"page": str(page.resolve())}


def demo(options: argparse.Namespace) -> dict[str, Any]:
    """Learn the windmill data: a table against random features, and a picture of the game.

    For example: notsorandom demo -o windmill.png

    All features get the same linear model. Takes some seconds.
    """
    seed, shown = options.seed, sys.stderr.isatty()
    train = make_windmill(N_TRAIN, random_state=seed)
    test = make_windmill(N_TEST, random_state=seed + 1)
    start = time.perf_counter()
    model = FourierClassifier(LEARNED_SIZE, linear=False, random_state=seed, verbose=shown)
    model.fit(*train)
    result: dict[str, Any] = {"data": "the windmill", "rows": N_TRAIN, "test rows": N_TEST}
    result["seconds of learning"] = round(time.perf_counter() - start, 2)
    baselines = {"random": RandomFourierFeatures(random_state=seed)}
    _, scores = scores_by_size(model, *train, *test, DEMO_SIZES, baselines)
    for size, *accuracies in zip(DEMO_SIZES, *scores.values(), strict=True):
        found = {f"{name} accuracy": float(a) for name, a in zip(scores, accuracies, strict=True)}
        result[f"{size} features"] = {name: a for name, a in found.items() if np.isfinite(a)}
    try:
        display = GameDisplay.from_estimator(model, *train)
    except ImportError as error:
        return {**result, "picture": str(error)}
    save_figure(display.figure_, options.output)
    return {**result, "picture": str(options.output.resolve())}
