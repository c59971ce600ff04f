"""``notsorandom convert``."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

import notsorandom
from notsorandom._utils.files import write_atomic
from notsorandom.cli.arguments import check_output
from notsorandom.io import read_model_file

SUMMARY = "convert a model file to an ONNX graph in float32, or to the arrays and metadata in .npz"
EXAMPLES = "example: notsorandom convert model.safetensors -o model.onnx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", type=Path, help="a model file (.safetensors)")
    text = "the .onnx or .npz file to write"
    parser.add_argument("-o", "--output", type=Path, required=True, help=text)


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Check the arguments, then write the file."""
    check_output(parser, options.output, (".onnx", ".npz"), options.model)
    if options.output.suffix.lower() == ".onnx":
        notsorandom.to_onnx(notsorandom.load(options.model), options.output)
    else:
        file = read_model_file(options.model)
        content = io.BytesIO()
        arrays: dict[str, Any] = file.arrays | {"metadata": np.array(json.dumps(file.metadata))}
        np.savez(content, **arrays)
        write_atomic(options.output, content.getvalue())
    return {"output": str(options.output), "bytes": options.output.stat().st_size}
