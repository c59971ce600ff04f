"""``notsorandom convert``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import notsorandom
from notsorandom.cli.arguments import check_output

SUMMARY = "convert a model file to an ONNX graph in float32"
EXAMPLES = """\
example: notsorandom convert model.skops -o model.onnx

The graph of a model of a table has an input for each column: numbers, and text for categories
("missing" where there is none). Dates are given as the parts that "notsorandom inspect" lists."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", type=Path, help="a model file (.skops)")
    text = "the .onnx file to write"
    parser.add_argument("-o", "--output", type=Path, required=True, help=text)


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Check the arguments, then write the file."""
    check_output(parser, options.output, (".onnx",), options.model)
    notsorandom.to_onnx(notsorandom.load(options.model), options.output)
    return {"output": str(options.output), "bytes": options.output.stat().st_size}
