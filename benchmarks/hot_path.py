"""Potential and gradient against the bare matrix products of their sizes.

    python benchmarks/hot_path.py

A sweep over the samples with all particles multiplies samples by frequencies, and waves by samples;
everything else it does (sines and cosines, weights, sums) is on top. Both are timed in turn, matrix
products with one thread; the rate is the sweep's over that of the products alone, whole or by
blocks, whichever is faster.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from notsorandom.data.rows import Array, Rows
from notsorandom.spaces import Euclidean


def whole_products(X: Array, frequencies: Array, waves: Array) -> None:
    """The bare products."""
    X @ frequencies.T
    waves.T @ X


def block_products(X: Array, frequencies: Array, waves: Array) -> None:
    """The same by blocks that stay in cache between the two."""
    for start in range(0, len(X), 2048):
        block = slice(start, start + 2048)
        whole_products(X[block], frequencies, waves[block])


def seconds(function: Callable[[], Any]) -> float:
    """Time of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=512)
    parser.add_argument("--particles", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((options.rows, options.columns), dtype=np.float32)
    measure = rng.standard_normal((options.rows, 1), dtype=np.float32)
    frequencies = 0.03 * rng.standard_normal((options.particles, options.columns), dtype=np.float32)
    waves = rng.standard_normal((options.rows, 2 * options.particles), dtype=np.float32)
    rows = Rows(X)
    space = Euclidean().resolve(rows, rng)
    with threadpool_limits(1, user_api="blas"):
        pairs = [
            (
                min(
                    seconds(lambda: whole_products(X, frequencies, waves)),
                    seconds(lambda: block_products(X, frequencies, waves)),
                ),
                seconds(lambda: space.amplitudes_and_gradient(rows, measure, frequencies)),
            )
            for _ in range(options.repeats)
        ]
    bare, ours = np.min(pairs, axis=0)
    print(f"{options.rows:,} rows, {options.columns} columns, {options.particles} particles")
    print(f"products {1e3 * bare:.0f} ms, potential and gradient {1e3 * ours:.0f} ms")
    print(f"rate: {bare / ours:.2f} of the products'")


if __name__ == "__main__":
    main()
