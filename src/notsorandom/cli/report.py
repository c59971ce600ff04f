"""``notsorandom report``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom.cli.arguments import Commands, check_file
from notsorandom.cli.loading import Served, open_both, target_of, target_type
from notsorandom.cli.training import Training, digest_of, split
from notsorandom.data.tables import read_whole
from notsorandom.io import rescaled, scaler_of

EXAMPLES = """\
examples:
  notsorandom report notsorandom-runs -o report.html
  notsorandom report model.safetensors train.csv -o report.html
  notsorandom report model.safetensors train.csv --test test.csv

A model's page needs the data that it was fitted to. Rows that the command fit held out are measured
on, unless --test gives others."""


def add_report(commands: Commands) -> None:
    """Describe ``notsorandom report``."""
    report = commands.add_parser(
        "report",
        help="make one page of a run, or of a model: tables, charts and games",
        description="Make a page in one file that opens in any browser: of the records of a run, "
        "or of a model.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_argument(
        "what", type=Path, metavar="run", help="folder of a run's records, or a model"
    )
    report.add_argument("data", type=Path, nargs="?", help="of a model: the data it was fitted to")
    report.add_argument("--target", help="of a model: name of the target's column")
    report.add_argument("--test", type=Path, help="of a model: other data to measure on")
    report.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("report.html"),
        help="where the page goes (default: %(default)s)",
    )
    report.add_argument("--json", action="store_true", help="print where it is as JSON")
    report.set_defaults(run=run_report)


def run_report(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Check the arguments, then write the page."""
    check_file(parser, options.output, (".html", ".htm"))
    if options.what.suffix != ".safetensors":
        if options.data or options.test or options.target:
            parser.error("data, --target and --test are for models, files that end in .safetensors")

        from notsorandom.experiments.report import write_run_report

        page = write_run_report(options.what, options.output)
    elif options.data is None:
        parser.error("a model's page needs the data that it was fitted to: give a second file")
    else:
        page = model_page(options)
    print(json.dumps({"page": str(page.resolve())}) if options.json else page.resolve())
    return 0


def model_page(options: argparse.Namespace) -> Path:
    """Write the page of a model."""
    served = open_both(options.what, options.data)
    data = read_labelled(served, options)
    facts = served.about
    if facts and facts["digest"] != digest_of(data):
        raise ValueError(f"{options.data} is not the data that {options.what} was fitted to.")
    train, held = split(data, facts.get("holdout", 0.0), facts.get("seed", 0))
    X, X_test, y_test = data.X[train], data.X[held], data.y[held]
    model = served.model
    if options.test:
        other = read_labelled(open_both(options.what, options.test), options)
        X_test, y_test = other.X, other.y
    if facts.get("scaled"):
        scaler = scaler_of(X)
        model, X = rescaled(model, scaler, back=True), scaler.transform(X)
        X_test = scaler.transform(X_test) if len(y_test) else X_test
    tested: dict[str, Any] = {"X_test": X_test, "y_test": y_test} if len(y_test) else {}
    page: Path = model.report(options.output, X, data.y[train], title=options.what.stem, **tested)
    return page


def read_labelled(served: Served, options: argparse.Namespace) -> Training:
    """The rows of a table with their target."""
    target, kind = target_of(served, options.target), target_type(served.model)
    X, y, names = read_whole(served.table, served.features, target, kind or np.dtype(float))
    return Training(X, y, names, target, kind is not None, "")
