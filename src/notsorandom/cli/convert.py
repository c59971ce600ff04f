"""Convert a model file to an ONNX graph in float32.

For example: notsorandom convert model.skops -o model.onnx

The graph of a model of a table has an input for each column: numbers, and text for categories
("missing" where there is none). Dates are given as the parts that "notsorandom inspect" lists.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import notsorandom
from notsorandom.cli.arguments import add_output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", type=Path, help="a model file (.skops)")
    add_output(parser, [".onnx"], "the .onnx file to write", required=True)


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Write the graph."""
    notsorandom.to_onnx(notsorandom.load(options.model), options.output)
    return {"output": str(options.output), "bytes": options.output.stat().st_size}
