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
from notsorandom.cli.arguments import Commands, add_command, check_output
from notsorandom.cli.output import print_result
from notsorandom.io import read_model_file


def add_convert(commands: Commands) -> None:
    """Add ``notsorandom convert`` to the commands."""
    convert = add_command(
        commands,
        "convert",
        run_convert,
        "convert a model file to an ONNX graph in float32, or to the arrays and metadata in .npz",
        "example: notsorandom convert model.safetensors -o model.onnx",
    )
    convert.add_argument("model", type=Path, help="a model file (.safetensors)")
    convert.add_argument(
        "-o", "--output", type=Path, required=True, help="the .onnx or .npz file to write"
    )


def run_convert(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
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
    result = {"output": str(options.output), "bytes": options.output.stat().st_size}
    print_result(result, options.json)
    return 0
