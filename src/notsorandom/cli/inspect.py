"""``notsorandom inspect``."""

from __future__ import annotations

import argparse
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom._utils.files import FileFormatError
from notsorandom.cli.arguments import Commands, add_command
from notsorandom.cli.loading import read_fit_record
from notsorandom.cli.output import print_result
from notsorandom.io.models import ModelFile, read_model_file


def add_inspect(commands: Commands) -> None:
    """Add ``notsorandom inspect`` to the commands."""
    inspect = add_command(
        commands,
        "inspect",
        run_inspect,
        "print the metadata of a model file or a checkpoint",
        "example: notsorandom inspect model.safetensors\n\nNothing in the file is run.",
    )
    inspect.add_argument("file", type=Path, help="a model file (.safetensors) or a checkpoint")


def run_inspect(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the metadata of a file."""
    path = options.file
    result: dict[str, Any]
    if zipfile.is_zipfile(path):
        result = {"kind": "checkpoint", **read_checkpoint_parameters(path)}
    else:
        file = read_model_file(path)
        result = {"kind": "model", **(file.metadata if options.json else summarize(file))}
        if options.json:
            result["arrays"] = {name: list(array.shape) for name, array in file.arrays.items()}
    print_result(result | {"bytes": path.stat().st_size}, options.json)
    return 0


def read_checkpoint_parameters(path: Path) -> dict[str, str]:
    """Return the parameters and data digests of the fit that a checkpoint belongs to."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return dict(json.loads(bytes(archive["header"]))["fit"])
    except (LookupError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FileFormatError(f"{path} is neither a model file nor a checkpoint.") from error


def summarize(file: ModelFile) -> dict[str, Any]:
    """Return the most useful part of the metadata of a model."""
    metadata = file.metadata
    attributes = {
        "columns": "n_features_in_",
        "training samples": "n_samples_fit_",
        "smoothing": "smoothing_",
        "classes": "classes_",
        "names": "feature_names_in_",
    }
    values = {name: file.attribute(attribute) for name, attribute in attributes.items()}
    return {
        "class": metadata["class"],
        "written by": f"notsorandom {metadata['library']}, format {metadata['format']}",
        **{name: getattr(value, "tolist", lambda v=value: v)() for name, value in values.items()},
        **metadata["metrics"],
        **read_fit_record(metadata),
        "parameters": metadata["parameters"],
    }
