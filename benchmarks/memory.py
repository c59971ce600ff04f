"""Peak memory of a fit above that of its data.

python benchmarks/memory.py --samples 200000 --dimension 100
"""

from __future__ import annotations

import argparse
import resource

import numpy as np

from notsorandom import FourierClassifier


def peak_megabytes() -> float:
    """Largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Fit once and print the peak."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--dimension", type=int, default=100)
    parser.add_argument("--features", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((options.samples, options.dimension), dtype=np.float32)
    y = np.cos(3 * X[:, 0]) + 0.3 * X[:, 1] > 0
    before = peak_megabytes()
    model = FourierClassifier(options.features, random_state=0).fit(X, y)
    after = peak_megabytes()
    print(
        f"data {X.nbytes / 2**20:.0f} MB; peak before the fit {before:.0f} MB, after {after:.0f} MB"
    )
    print(f"the fit added {after - before:.0f} MB to the data and the libraries")
    print(f"training accuracy {model.score(X, y):.3f}")


if __name__ == "__main__":
    main()
