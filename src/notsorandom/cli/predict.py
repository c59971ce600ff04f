"""``notsorandom predict``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from notsorandom._utils.progress import Progress
from notsorandom._utils.threads import working
from notsorandom.cli.arguments import Commands, check_file, check_not_same, listed_words
from notsorandom.cli.loading import open_both
from notsorandom.data.rows import Array
from notsorandom.data.tables import Block, open_writer
from notsorandom.game.scoring import predicted_codes

# Of the features of a block, and of its rows.
BLOCK_BYTES, LEAST_ROWS = 2**25, 1024

EXAMPLES = """\
examples:
  notsorandom predict model.safetensors new.csv -o predictions.csv
  notsorandom predict model.safetensors new.parquet --keep id --scores -o predictions.parquet
  notsorandom predict model.safetensors new.csv | head

The file is read, and the predictions written, a block of rows at a time: it may be of any size.
Columns are found by their names; others are ignored. Where there are no names (.npy, .npz, .libsvm)
they must be as many as at fit. The predictions are in place when all of them are there."""


def add_predict(commands: Commands) -> None:
    """Describe ``notsorandom predict``."""
    predict = commands.add_parser(
        "predict",
        help="predict for the rows of a file, of any size",
        description="Predict for each row of a data file.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    predict.add_argument("model", type=Path, help="a .safetensors file of a model")
    predict.add_argument("data", type=Path, help="the rows to predict for")
    predict.add_argument(
        "-o",
        "--output",
        type=Path,
        help=".csv, .parquet or .npy (default: standard output, as CSV)",
    )
    predict.add_argument(
        "--keep", default="", help="columns to copy to the output, comma-separated"
    )
    predict.add_argument("--scores", action="store_true", help="decision values too")
    predict.add_argument("--quiet", action="store_true", help="no progress")
    predict.add_argument("--json", action="store_true", help="print what was done as JSON")
    predict.set_defaults(run=run_predict)


def run_predict(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Check the arguments, then predict."""
    if options.output is not None:
        check_file(parser, options.output, (".csv", ".parquet", ".npy"))
        check_not_same(parser, options.output, options.data, options.model)
    elif options.json:
        parser.error("--json prints what was done, so the predictions need a file: give -o")
    model, about, table, features = open_both(options.model, options.data)
    if options.scores and not hasattr(model, "decision_function"):
        parser.error(f"--scores: a {type(model).__name__} has none beside what it predicts")
    name = about.get("target", "prediction")
    if name.lstrip("-").isdecimal():  # a column's number is no name
        name = "prediction"
    # A block's features are held: they are as many as take about as much as a block of samples.
    max_rows = max(LEAST_ROWS, BLOCK_BYTES // (8 * model.kernel_.n_components))
    blocks = table.blocks(features, keep=listed_words(options.keep), max_rows=max_rows)

    def predicted(block: Block) -> tuple[int, dict[str, Any]]:
        made = predictions(model, block.X, name, options.scores)
        apart = {f"{key}_predicted" if key in block.kept else key: made[key] for key in made}
        return len(block), block.kept | apart

    began, n_rows = time.perf_counter(), 0
    shown = not options.quiet and options.output is not None and sys.stderr.isatty()
    with (
        open_writer(options.output) as write,
        Progress(0, "rows", shown) as bar,
        working(-1) as workers,
    ):
        for count, columns in workers.each(predicted, blocks):
            write(columns)
            n_rows += count
            bar.update(n_rows)
    seconds = time.perf_counter() - began
    if options.json:
        done = {"rows": n_rows, "seconds": round(seconds, 3), "output": str(options.output)}
        print(json.dumps(done))
    elif options.output is not None:
        print(f"{options.output}: {n_rows:,} rows in {seconds:.1f} s")
    return 0


def predictions(model: Any, X: Any, name: str, with_scores: bool) -> dict[str, Array]:
    """Columns of what a model says of some rows."""
    if hasattr(model, "transform"):
        return columns_of(model.transform(X), model.get_feature_names_out().tolist())
    if not with_scores:
        values = model.predict(X)
        names = [name] if values.ndim == 1 else [f"{name}_{k}" for k in range(values.shape[1])]
        return columns_of(values, names)
    scores = model.decision_function(X)
    labels = model.classes_.tolist() if scores.ndim > 1 else [model.classes_[1]]
    codes = predicted_codes(scores.reshape(len(scores), -1))
    return {name: model.classes_[codes]} | columns_of(scores, [f"score_{each}" for each in labels])


def columns_of(values: Array, names: list[str]) -> dict[str, Array]:
    """An array's columns, by name."""
    return dict(zip(names, values.reshape(len(values), -1).T, strict=True))
