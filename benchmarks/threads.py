"""Speed-up by a second thread, and what it costs.

    python -m benchmarks.threads

Fits the same model with n_jobs=1, 2 and None in turn. Prints the shortest of several times, and
whether the models are equal. Then passes of growing size in one thread and in two, from which
``SHARED_WORK`` of notsorandom/data/rows.py comes, and the costs of a pool and of a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.common import make_parser, timed
from notsorandom import Ascent, FourierClassifier
from notsorandom._utils.threads import thread_pool
from notsorandom.data import rows
from notsorandom.data.rows import Rows


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    compare_fits(options)
    with patch.object(rows, "SHARED_WORK", 0):
        compare_passes()
    measure_costs()


def compare_fits(options: Any) -> None:
    """Print the seconds of fits with one thread, two and the default."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((options.rows, options.columns), dtype=np.float32)
    y = np.cos(X @ rng.standard_normal(options.columns).astype(np.float32) * 0.3) > 0
    # A game and an SVM without trials.
    settings: dict[str, Any] = {"loss": "hinge", "C": 1.0, "smoothing": 0.06, "random_state": 0}
    search = Ascent(spectrum="gaussian")
    models = {
        n_jobs: FourierClassifier(options.features, search=search, n_jobs=n_jobs, **settings)
        for n_jobs in (1, 2, None)
    }
    times = [
        [timed(model.fit, X, y)[1] for model in models.values()] for _ in range(options.repeats)
    ]
    one, two, default = np.min(times, axis=0)
    equal = all(np.array_equal(models[1].coef_, model.coef_) for model in models.values())
    print(f"{options.rows:,} rows, {options.columns} columns, {options.features} features")
    print(f"1 job: {one:.2f} s; 2 jobs: {two:.2f} s; speed-up {one / two:.2f}")
    print(f"n_jobs=None: {default:.2f} s; equal models: {equal}")


def compare_passes(n_columns: int = 20, n_frequencies: int = 8) -> None:
    """Print the time of one pass of the search in one thread and in two."""
    rng = np.random.default_rng(0)
    frequencies = rng.standard_normal((n_columns, n_frequencies), dtype=np.float32)

    def sums(X: Any) -> tuple[Any, ...]:
        waves = np.cos(X @ frequencies)
        return waves.sum(axis=0), waves.T @ X

    print("multiplications of a pass, its us in one thread and in two")
    for n_rows in (2048, 4096, 8192, 16384, 32768, 65536):
        X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
        work = n_rows * (n_columns + rows.OTHER_WORK) * n_frequencies
        with thread_pool(1) as one, thread_pool(2) as two:
            times = [best(Rows(X, pool=pool).sum_blocks, sums) for pool in (one, two)]
        print(f"2^{np.log2(work):.1f} {times[0]:7.0f} {times[1]:7.0f}")


def measure_costs() -> None:
    """Print what is paid besides the computation itself."""

    def open_pool() -> None:
        with thread_pool(2):
            pass

    data = Rows(np.ones((150, 4), dtype=np.float32))
    zeros = np.zeros(4)
    print(f"a pool, BLAS limited: {best(open_pool):.1f} us")
    print(f"a pass over one block: {best(data.sum_blocks, lambda X: (zeros,)):.1f} us")


def best(function: Callable[..., Any], *arguments: Any, repeats: int = 300) -> float:
    """Return the shortest time in microseconds."""
    return 1e6 * min(timed(function, *arguments)[1] for _ in range(repeats))


if __name__ == "__main__":
    main()
