"""``notsorandom inspect``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from notsorandom.cli.arguments import Commands
from notsorandom.cli.loading import facts_of
from notsorandom.cli.output import tell
from notsorandom.estimators.checkpoints import KIND as CHECKPOINT
from notsorandom.io.loading import described
from notsorandom.io.packing import Unpacker
from notsorandom.io.tensors import TensorFile


def add_inspect(commands: Commands) -> None:
    """Describe ``notsorandom inspect``."""
    inspect = commands.add_parser(
        "inspect",
        help="say what a model file or a checkpoint is",
        description="Print what a file says of itself: nothing in it is run, and no model is made.",
        epilog="example: notsorandom inspect model.safetensors",
    )
    inspect.add_argument("file", type=Path, help="a .safetensors file of a model, or a checkpoint")
    inspect.add_argument("--json", action="store_true", help="print all of it as JSON")
    inspect.set_defaults(run=run_inspect)


def run_inspect(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print what a file is."""
    with TensorFile(options.file) as file:
        if CHECKPOINT in file.metadata:
            told = file.told(CHECKPOINT)
            outcome = {"kind": "checkpoint", **told["identity"]}
        else:
            told = described(file)
            outcome = {"kind": "model", **(told if options.json else in_short(told))}
            if not options.json:
                unpack = Unpacker(file).unpack
                for name, key in (("classes", "classes_"), ("names", "feature_names_in_")):
                    if key in told["learned"]:
                        outcome[name] = unpack(told["learned"][key]).tolist()
        if options.json:
            outcome["arrays"] = {name: list(entry.shape) for name, entry in file.entries.items()}
        outcome["bytes"] = file.size
    tell(outcome, options.json)
    return 0


def in_short(told: dict[str, Any]) -> dict[str, Any]:
    """What a person wants to know first."""
    learned = told["learned"]
    short = {
        "class": told["class"],
        "written by": f"notsorandom {told['library']}, format {told['format']}",
        "columns": learned["n_features_in_"],
        "training samples": learned["n_samples_fit_"],
        "smoothing": learned["smoothing_"],
        **told["metrics"],
        **facts_of(told),
        "parameters": told["parameters"],
        "data": dict(learned["_fingerprint"]["pairs"]),
    }
    return {name: value for name, value in short.items() if value is not None}
