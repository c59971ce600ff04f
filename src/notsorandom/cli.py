"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from notsorandom import __version__

# Kinds of picture that every installation of matplotlib can write.
PICTURES = (".png", ".pdf", ".svg")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="notsorandom",
        description="Learn a kernel instead of guessing one.",
        epilog="example: notsorandom demo --output windmill.png",
    )
    parser.add_argument("--version", action="version", version=f"notsorandom {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="learn the windmill: a table against random features, and a picture of the game",
        description="Learn the windmill data, print learned against random features at 20, 100 "
        "and 500 of them, and draw the game. Takes less than a minute.",
    )
    demo.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("notsorandom-demo.png"),
        help="where the picture goes (default: %(default)s)",
    )
    demo.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    options = parser.parse_args(arguments)
    folder = options.output.resolve().parent
    if not folder.is_dir():
        parser.error(f"--output {options.output}: the folder {folder} doesn't exist; make it first")
    if options.output.suffix not in PICTURES or options.output.is_dir():
        parser.error(f"--output {options.output}: name a file that ends in {', '.join(PICTURES)}")
    if not 0 <= options.seed < 2**31:
        parser.error(f"--seed {options.seed}: it must be from 0 to {2**31 - 1}")

    from notsorandom.experiments.demo import run_demo

    try:
        run_demo(options.output, print, options.seed)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0
