"""The commands and their arguments."""

from __future__ import annotations

import argparse
import ast
import csv
import inspect
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from notsorandom import FourierClassifier, __version__
from notsorandom._utils.files import check_output_path
from notsorandom._utils.parameters import check_number
from notsorandom.cli import commands
from notsorandom.cli.fit import LINEAR, fit
from notsorandom.data.files import MAX_BYTES
from notsorandom.game.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from notsorandom.game.solvers import SOLVERS
from notsorandom.tabular.numbers import OUTPUTS

DETAILS = """\
For examples: notsorandom COMMAND --help

Results go to standard output, error messages of one line to standard error. Exit codes: 0 success;
1 a file is missing or its content is wrong; 2 wrong arguments; 130 interrupted."""

DEFAULT = " (default: %(default)s)"


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; the docstring of a command is its help."""
    layout: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    summary = "Learn a kernel instead of guessing one."
    parser = argparse.ArgumentParser("notsorandom", None, summary, DETAILS, **layout)
    parser.add_argument("--version", action="version", version=f"notsorandom {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name, (run, flags, suffixes, settings) in COMMANDS.items():
        summary, _, epilog = inspect.cleandoc(run.__doc__ or "").partition("\n\n")
        command = subparsers.add_parser(
            name, help=summary, description=summary, epilog=epilog, **layout
        )
        command.set_defaults(run=run, parser=command)
        if suffixes:
            text, kind = f"{' or '.join(suffixes)} file to write", partial(output_file, suffixes)
            text += DEFAULT if "default" in settings else ""
            command.add_argument("-o", "--output", type=kind, help=text, **settings)
        columns = command.add_mutually_exclusive_group() if "--drop" in flags else command
        for flag in [*flags.split(), "--json"]:
            text, default, kind = ARGUMENTS[flag]
            text += DEFAULT if default is not None and kind not in (bool, names) else ""
            form = {"type" if callable(kind) else "choices": kind, "default": default}
            form = {"action": "store_true"} if kind is bool else form
            group = columns if flag in ("--columns", "--drop") else command
            group.add_argument(flag, help=text, **form)
    return parser


def output_file(suffixes: list[str], path: str) -> Path:
    """Return the path of a file that can be written, with one of these suffixes."""
    try:
        checked = check_output_path(path, *suffixes)
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not os.access(checked.resolve().parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"the folder of {path} can't be written to")
    return checked


def in_range(kind: type, low: float, high: float) -> Callable[[str], float]:
    """Return a type of arguments: numbers from `low` to `high`."""

    def number(text: str) -> float:
        if not low <= kind(text) <= high:
            raise argparse.ArgumentTypeError(f"{text} is not allowed: give {low} to {high}")
        return kind(text)

    return number


def share(text: str) -> float:
    """Return a number between 0 and 1."""
    value = parse_number(text)
    try:
        check_number("the share", value, above=0, below=1)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return float(value)


def names(text: str) -> list[str]:
    """Split a comma-separated list; a name with a comma is in double quotes."""
    return [name.strip() for line in csv.reader([text]) for name in line if name.strip()]


def parse_number(text: str) -> Any:
    """Return a number, or a list of numbers, if the text is one, for the estimator's own checks."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


DEFAULTS = FourierClassifier()
TASKS, SCALES = ["auto", "classification", "regression"], ["auto", "standard", "none"]
LOSS_NAMES = [*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES]
# Help, default, and type or choices.
ARGUMENTS: dict[str, tuple[str, Any, Any]] = {
    "model": ("a model file (.skops)", None, Path),
    "file": ("a model file (.skops) or a checkpoint", None, Path),
    "data": ("a data file: text with a header, .parquet, .npy, .npz or .libsvm", None, Path),
    "--target": ("name of the target column", None, str),
    "--columns": ("comma-separated columns to learn from", [], names),
    "--drop": ("comma-separated columns to ignore", [], names),
    "--keep": ("comma-separated columns to copy to the output", [], names),
    "--scores": ("also write decision values", False, bool),
    "--proba": ("also write probabilities", False, bool),
    "--interval": ("also write limits of intervals that cover this share", None, share),
    "--set": ("also write sets of classes that cover this share", None, share),
    "--task": ("auto decides by the loss if it is given, else by the target", "auto", TASKS),
    "--loss": (f"loss of the model ({DEFAULTS.loss}, or squared, if not given)", None, LOSS_NAMES),
    "--n-components": ("number of features, or auto", DEFAULTS.n_components, parse_number),
    "--C": ("inverse regularisation, or auto: chosen on training rows", DEFAULTS.C, parse_number),
    "--smoothing": (
        "noise in units of the median distance of samples, or auto; higher is smoother",
        DEFAULTS.smoothing,
        parse_number,
    ),
    "--solver": ("how the game is solved", DEFAULTS.solver, list(SOLVERS)),
    "--linear": (
        "a linear part beside the waves; auto: if it is clearly better on training rows",
        DEFAULTS.linear,
        list(LINEAR),
    ),
    "--space": ("samples on the sphere get norm one", DEFAULTS.space, ["euclidean", "sphere"]),
    "--class-weight": ("give all classes the same total weight", None, ["balanced"]),
    "--numbers": (
        "tables with --scale auto: by quartiles (raw) or ranks (scores)",
        "auto",
        list(OUTPUTS),
    ),
    "--scale": ("scaling of numbers: auto scales tables, not arrays", "auto", SCALES),
    "--checkpoint": ("file from which an interrupted fit continues", None, Path),
    "--holdout": ("fraction of the rows to hold out", 0.2, in_range(float, 0, 0.9)),
    "--seed": ("random seed", 0, in_range(int, 0, 2**31 - 1)),
    "--max-bytes": ("most bytes of a file, uncompressed, to hold in memory", MAX_BYTES, int),
    "--formulas": ("write text that is a formula in spreadsheets as it is", False, bool),
    "--trust": (
        "comma-separated classes that the model file may have; be sure who wrote it",
        [],
        names,
    ),
    "--research": ("also bounds of the game: minutes for ten thousand rows", False, bool),
    "--quiet": ("show no progress", False, bool),
    "--json": ("print JSON, with fractions instead of percent", False, bool),
}
FIT = "data --target --columns --drop --task --loss --n-components --C --smoothing --solver"
FIT += " --linear --space --class-weight --numbers --scale --checkpoint --holdout --seed --quiet"
FIT += " --max-bytes"
PREDICT = "model data --keep --scores --proba --interval --set --formulas --quiet --max-bytes"
PREDICT += " --trust"
EVALUATE = "model data --target --max-bytes --trust"
PICTURES = [".png", ".pdf", ".svg"]  # which every installation of matplotlib can write
# Function, arguments, suffixes of the file that it writes, and settings of that argument.
COMMANDS: dict[str, tuple[Callable[..., Any], str, list[str], dict[str, Any]]] = {
    "fit": (fit, FIT, [".skops"], {"required": True}),
    "predict": (commands.predict, PREDICT, [".csv", ".parquet"], {}),
    "evaluate": (commands.evaluate, EVALUATE, [], {}),
    "inspect": (commands.inspect, "file --trust", [], {}),
    "convert": (commands.convert, "model --trust", [".onnx"], {"required": True}),
    "report": (
        commands.report,
        f"{EVALUATE} --research --quiet",
        [".html", ".htm"],
        {"default": "report.html"},
    ),
    "demo": (commands.demo, "--seed", PICTURES, {"default": "notsorandom-demo.png"}),
}
