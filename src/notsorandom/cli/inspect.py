"""``notsorandom inspect``."""

from __future__ import annotations

import argparse
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom._utils.files import FileFormatError
from notsorandom.cli.loading import read_fit_record
from notsorandom.io.models import ModelFile, read_model_file

SUMMARY = "print the metadata of a model file or a checkpoint"
EXAMPLES = "example: notsorandom inspect model.safetensors\n\nNothing in the file is executed."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", type=Path, help="a model file (.safetensors) or a checkpoint")


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return the metadata of a file; with ``--json`` all of it."""
    path = options.file
    result: dict[str, Any]
    if zipfile.is_zipfile(path):
        result = {"kind": "checkpoint", **read_checkpoint_parameters(path)}
    elif options.json:
        file = read_model_file(path)
        shapes = {name: list(array.shape) for name, array in file.arrays.items()}
        result = {"kind": "model", **file.metadata, "arrays": shapes}
    else:
        result = {"kind": "model", **summarize(read_model_file(path))}
    return result | {"bytes": path.stat().st_size}


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
        "C": "C_",
        "smoothing": "smoothing_",
        "search spectrum": "spectrum_",
        "classes": "classes_",
        "names": "feature_names_in_",
    }
    if metadata["parameters"].get("loss") == "logistic":
        attributes["temperature"] = "temperature_"
    values = {name: file.attribute(attribute) for name, attribute in attributes.items()}
    return {
        "class": metadata["class"],
        "written by": f"notsorandom {metadata['library']}, format {metadata['format']}",
        **{name: getattr(value, "tolist", lambda v=value: v)() for name, value in values.items()},
        **metadata["metrics"],
        **read_fit_record(metadata),
        "parameters": metadata["parameters"],
    }
