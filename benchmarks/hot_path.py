"""Potential and gradient relative to the matrix products that they contain.

    python -m benchmarks.hot_path

One pass over the samples multiplies samples by frequencies, and waves by samples. Sines and
cosines, weights and sums come on top. Both are timed in turn with one BLAS thread. The result is
the pass's speed relative to the products alone, on all rows or by blocks, whichever is faster.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import make_parser, timed
from notsorandom.data.rows import Array, Rows
from notsorandom.spaces import Euclidean


def products(X: Array, frequencies: Array, waves: Array) -> None:
    """Compute the matrix products."""
    X @ frequencies.T
    waves.T @ X


def block_products(X: Array, frequencies: Array, waves: Array) -> None:
    """Compute them by blocks that stay in cache between the two."""
    for start in range(0, len(X), 2048):
        block = slice(start, start + 2048)
        products(X[block], frequencies, waves[block])


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
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
        times = [
            (
                min(
                    timed(products, X, frequencies, waves)[1],
                    timed(block_products, X, frequencies, waves)[1],
                ),
                timed(space.amplitudes_and_gradient, rows, measure, frequencies)[1],
            )
            for _ in range(options.repeats)
        ]
    bare, ours = np.min(times, axis=0)
    print(f"{options.rows:,} rows, {options.columns} columns, {options.particles} particles")
    print(f"products {1e3 * bare:.0f} ms, potential and gradient {1e3 * ours:.0f} ms")
    print(f"relative speed: {bare / ours:.2f}")


if __name__ == "__main__":
    main()
