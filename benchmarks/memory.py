"""Peak memory of a fit beyond that of its data.

python -m benchmarks.memory --samples 200000 --dimension 100
"""

from __future__ import annotations

import resource
import sys

import numpy as np

from benchmarks.common import make_parser
from notsorandom import FourierClassifier


def peak_bytes() -> int:
    """Return the largest resident size of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    """Fit once and print the peak."""
    parser = make_parser(__doc__)
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--dimension", type=int, default=100)
    parser.add_argument("--features", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((options.samples, options.dimension), dtype=np.float32)
    y = np.cos(3 * X[:, 0]) + 0.3 * X[:, 1] > 0
    before = peak_bytes() / 2**20
    model = FourierClassifier(options.features, random_state=0).fit(X, y)
    after = peak_bytes() / 2**20
    print(f"data {X.nbytes / 2**20:.0f} MB; peak before the fit {before:.0f} MB, after {after:.0f}")
    print(f"memory of the fit: {after - before:.0f} MB")
    print(f"training accuracy {model.score(X, y):.3f}")


if __name__ == "__main__":
    main()
