"""What a frequency costs: the default search against the paper's Langevin dynamics.

    python benchmarks/search.py

Samples of the shape that the paper's image tasks have (n = 10,000, d = 512), made from a formula.
Both searches look at the same landscapes, of the first and of a later round of a game, unsmoothed
and smoothed; the heights are square roots of the potential's share of its largest value.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from notsorandom import Ascent, Euclidean, Langevin
from notsorandom.game import LOSSES, play
from notsorandom.rows import Rows
from notsorandom.spaces import Landscape


def main() -> None:
    """Time both searches, and compare what they find."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--dimension", type=int, default=512)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    spectrum = np.arange(1, options.dimension + 1) ** -0.5  # correlated columns, as of images
    X = (rng.standard_normal((options.samples, options.dimension)) * spectrum).astype(np.float32)
    waves = rng.standard_normal((5, options.dimension)) / 2
    noise = 0.5 * rng.standard_normal(options.samples)
    labels = np.where(np.cos(X @ waves.T).sum(axis=1) + noise > 0, 1, -1)[:, None]
    labels = labels.astype(np.float32)
    rows, loss = Rows(X), LOSSES["hinge"](1.0)
    result = play(
        rows,
        labels,
        space=Euclidean(),
        search=Ascent(),
        loss=loss,
        n_frequencies=20,
        rng=rng,
    )
    states = {"first round": np.full_like(labels, 0.5), "after 20": result.dual}
    for smoothing in (0.0, 0.06):
        for name, dual in states.items():
            landscape = Landscape(result.space, rows, dual * labels, smoothing)
            print(f"{name}, smoothing {smoothing}")
            seconds, height = cost(Ascent(), landscape, 10)
            slow, slow_height = cost(Langevin(n_steps=100, n_particles=500), landscape, 1)
            print(
                f"  ratio: 1 / {slow / seconds:.0f} of the time, height {height - slow_height:+.4f}"
            )


def cost(search: Any, landscape: Landscape, repeats: int) -> tuple[float, float]:
    """Seconds a frequency, and the mean height of the best peak of a search."""
    rng = np.random.default_rng(1)
    mass = np.abs(landscape.measure).sum()
    began, found, heights = time.perf_counter(), 0, []
    for _ in range(repeats):
        peaks = search.find(landscape, search.n_peaks, rng)
        found += len(peaks)
        heights.append(np.exp(peaks.height[0] / 2) / mass)
    seconds = (time.perf_counter() - began) / found
    print(
        f"  {type(search).__name__:<9} {seconds:8.4f} s a frequency, "
        f"{found / repeats:.1f} a search, best height {np.mean(heights):.4f}",
        flush=True,
    )
    return seconds, float(np.mean(heights))


if __name__ == "__main__":
    main()
