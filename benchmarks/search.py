"""Cost of one frequency: ascents from Gaussian starts against the paper's Langevin dynamics.

    python -m benchmarks.search
    python -m benchmarks.search --task mnist-4-9 plane-bird --smoothing 0

On the pair auto-truck (n = 10,000, d = 512), or on others. Both searches get the same landscapes,
of the first round of a game and of the round after 40 frequencies, with the default smoothing and
without. A height is the square root of the potential, relative to its largest possible value.
`Ascent` is also shown with more steps, all of them on all rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.common import make_parser
from experiments.tasks import TASKS, load_task
from notsorandom import Ascent, Euclidean, Langevin
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Problem, play
from notsorandom.game.problem import signs_from_codes
from notsorandom.spaces import Landscape


def main() -> None:
    """Time both searches and compare the peaks they find."""
    parser = make_parser(__doc__)
    parser.add_argument("--task", nargs="+", default=["auto-truck"], choices=TASKS)
    parser.add_argument("--data", help="folder of MNIST and CIFAR-10")
    parser.add_argument("--rounds", type=int, default=10, help="searches by Ascent")
    parser.add_argument("--particles", type=int, default=500, help="of Langevin dynamics")
    parser.add_argument("--smoothing", nargs="+", type=float, default=[0.06, 0.0])
    options = parser.parse_args()
    for task in options.task:
        print(task)
        compare(task, options)


def compare(task: str, options: Any) -> None:
    """Compare the searches on one task."""
    X, y, _, _ = load_task(task, options.data)
    problem = Problem(LOSSES["hinge"], signs_from_codes(y, 2, np.float32), Rows(X))
    result = play(
        problem,
        space=Euclidean(),
        search=Ascent(),
        n_frequencies=40,
        rng=np.random.default_rng(0),
    )
    duals = {"first round": problem.first_dual(), "after 40 frequencies": result.dual}
    for smoothing in options.smoothing:
        for name, dual in duals.items():
            landscape = Landscape(result.space, problem.rows, problem.measure(dual), smoothing)
            print(f"{name}, smoothing {smoothing}")
            langevin = Langevin(n_steps=100, n_particles=options.particles)
            slow, slow_height = measure(langevin, landscape, 1)
            for search in (Ascent(), Ascent(n_steps=24, subsample=1.0)):
                seconds, height = measure(search, landscape, options.rounds)
                print(
                    f"    1 / {slow / seconds:.0f} of Langevin's time, "
                    f"{height / slow_height:.3f} of its height"
                )


def measure(search: Any, landscape: Landscape, repeats: int) -> tuple[float, float]:
    """Return seconds per frequency, and the mean height of the best peak."""
    rng = np.random.default_rng(1)
    mass = np.abs(landscape.measure).sum()
    start, n_found, heights = time.perf_counter(), 0, []
    for _ in range(repeats):
        peaks = search.find(landscape, search.n_peaks, rng)
        n_found += len(peaks)
        heights.append(np.exp(peaks.height[0] / 2) / mass)
    seconds = (time.perf_counter() - start) / n_found
    print(
        f"  {type(search).__name__:<9} {seconds:8.4f} s per frequency, "
        f"{n_found / repeats:.1f} per search, best height {np.mean(heights):.4f}",
        flush=True,
    )
    return seconds, float(np.mean(heights))


if __name__ == "__main__":
    main()
