"""Helpers of several benchmarks."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any


def timed(function: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    """Return the result of a call and its seconds."""
    start = time.perf_counter()
    result = function(*args)
    return result, time.perf_counter() - start


def make_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser whose description is the module's docstring."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def run_parts(doc: str | None, parts: Mapping[str, Callable[[str | None], None]]) -> None:
    """Run the parts named on the command line, by default all; each gets the data folder."""
    parser = make_parser(doc)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(parts))
    parser.add_argument("--data", help="folder of MNIST and CIFAR-10")
    options = parser.parse_args()
    for part in options.parts:
        if part not in parts:
            parser.error(f"unknown part {part!r}: choose from {', '.join(parts)}")
    for part in options.parts or parts:
        parts[part](options.data)
