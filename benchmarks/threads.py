"""Speed-up by a second thread.

    python -m benchmarks.threads

Fits the same model with n_jobs=1 and n_jobs=2 in turn. Prints the shortest of several times, and
whether the models are equal.
"""

from __future__ import annotations

import numpy as np

from benchmarks.common import make_parser, timed
from notsorandom import FourierClassifier


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((options.rows, options.columns), dtype=np.float32)
    y = np.cos(X @ rng.standard_normal(options.columns).astype(np.float32) * 0.3) > 0
    models = {
        n_jobs: FourierClassifier(options.features, smoothing=0.06, random_state=0, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    }
    times = [
        [timed(model.fit, X, y)[1] for model in models.values()] for _ in range(options.repeats)
    ]
    one, two = np.min(times, axis=0)
    print(f"{options.rows:,} rows, {options.columns} columns, {options.features} features")
    print(f"1 job: {one:.2f} s; 2 jobs: {two:.2f} s; speed-up {one / two:.2f}")
    print(f"equal models: {np.array_equal(models[1].coef_, models[2].coef_)}")


if __name__ == "__main__":
    main()
