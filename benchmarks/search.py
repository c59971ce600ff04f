"""What a frequency costs: the default search against the paper's Langevin dynamics.

    python benchmarks/search.py

On the pair auto-truck (n = 10,000, d = 512). Both searches look at the same
landscapes, of the first round of a game and of the one after 40 frequencies, at the default
smoothing and without; a height is the square root of the potential's share of its largest value.
`Ascent` is also shown with more steps, all of them on all rows.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from notsorandom import Ascent, Euclidean, Langevin
from notsorandom.data.rows import Rows
from notsorandom.experiments.tasks import TASKS, load_task
from notsorandom.game import LOSSES, Player, play
from notsorandom.spaces import Landscape


def main() -> None:
    """Time both searches, and compare what they find."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="auto-truck", choices=TASKS)
    parser.add_argument("--data-home", default=None)
    options = parser.parse_args()
    X, y, _, _ = load_task(options.task, options.data_home)
    labels = np.where(y == 1, 1, -1)[:, None].astype(np.float32)
    rows, player = Rows(X), Player(LOSSES["hinge"](1.0), labels)
    result = play(
        rows,
        player,
        space=Euclidean(),
        search=Ascent(),
        n_frequencies=40,
        rng=np.random.default_rng(0),
    )
    states = {"first round": player.first(), "after 40": result.dual}
    for smoothing in (0.06, 0.0):
        for name, dual in states.items():
            landscape = Landscape(result.space, rows, dual, smoothing)
            print(f"{name}, smoothing {smoothing}")
            slow, slow_height = cost(Langevin(n_steps=100, n_particles=500), landscape, 1)
            for search in (Ascent(), Ascent(n_steps=24, subsample=1.0)):
                seconds, height = cost(search, landscape, 10)
                print(
                    f"    1 / {slow / seconds:.0f} of Langevin's time, "
                    f"{height / slow_height:.3f} of its height"
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
