"""Print what is in a model file or a checkpoint.

For example: notsorandom inspect model.skops

Nothing in the file is executed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from notsorandom._utils.files import FileFormatError
from notsorandom.cli.loading import LoadedModel
from notsorandom.estimators.resume import read_checkpoint_header


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", type=Path, help="a model file (.skops) or a checkpoint")


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return what is known about a file."""
    path: Path = options.file
    if path.suffix.lower() == ".skops":
        loaded = LoadedModel.open(path)
        metadata = loaded.metadata
        versions = f"notsorandom {metadata['library']}, scikit-learn {metadata['scikit-learn']}"
        found = loaded.describe() | metadata["metrics"]
        found |= {"description": metadata["description"] or None, "written by": versions}
        return {"kind": "model", **found, "bytes": path.stat().st_size}
    try:
        header = read_checkpoint_header(path)
    except FileFormatError as error:
        raise ValueError(f"{path} is neither a model file (.skops) nor a checkpoint.") from error
    return {"kind": "checkpoint", **header, "bytes": path.stat().st_size}
