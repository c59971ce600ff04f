"""``notsorandom convert``."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

import numpy as np

import notsorandom
from notsorandom._utils.files import write_whole
from notsorandom.cli.arguments import Commands, check_file
from notsorandom.cli.output import tell
from notsorandom.io.layout import KIND
from notsorandom.io.tensors import TensorFile

ENDINGS = (".onnx", ".npz")


def add_convert(commands: Commands) -> None:
    """Describe ``notsorandom convert``."""
    convert = commands.add_parser(
        "convert",
        help="turn a model file into one for other programs",
        description="Turn a model file into an ONNX graph, in single precision, for other "
        "runtimes; or into NumPy's .npz, its arrays and what it says of itself in JSON.",
        epilog="example: notsorandom convert model.safetensors -o model.onnx",
    )
    convert.add_argument("model", type=Path, help="a .safetensors file of a model")
    convert.add_argument("-o", "--output", type=Path, required=True, help=".onnx or .npz")
    convert.add_argument("--json", action="store_true", help="print what was done as JSON")
    convert.set_defaults(run=run_convert)


def run_convert(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Check the arguments, then write the other file."""
    check_file(parser, options.output, ENDINGS)
    model = notsorandom.load(options.model)
    if options.output.suffix == ".onnx":
        model.to_onnx(options.output)
    else:
        with TensorFile(options.model) as file:
            arrays: dict[str, Any] = {name: file.read(name) for name in file.entries}
            content = io.BytesIO()
            np.savez(content, **arrays, about=np.array(file.metadata[KIND]))
        write_whole(options.output, content.getvalue())
    tell({"output": str(options.output), "bytes": options.output.stat().st_size}, options.json)
    return 0
