"""The search for peaks: its cost beside the paper's, and the directions it searches in.

    python -m benchmarks.search peaks
    python -m benchmarks.search peaks --tasks mnist-4-9 plane-bird --smoothing 0
    python -m benchmarks.search directions --splits 4 --features 100
    python -m benchmarks.search rows

peaks       Cost of one frequency: ascents from Gaussian starts against the paper's Langevin
            dynamics, on the pair auto-truck (n = 10,000, d = 512), or on others. Both searches get
            the same landscapes, of the first round of a game and of the round after 40 frequencies,
            with the default smoothing and without. A height is the square root of the potential,
            relative to its largest possible value. `Ascent` is also shown with more steps, all of
            them on all rows.
directions  Mean validation accuracy by number of principal directions that frequencies are searched
            in, its difference from the default with the standard error of the paired differences,
            and the seconds of a fit; 1024 directions are all of them. Three quarters of the
            training images of each pair of classes are used for training and one quarter for
            validation; test images are not used. The models are SVMs at C = 1 with one smoothing
            and the Gaussian spectrum.
rows        The same by number of rows that the directions are computed from. Of at most twice as
            many rows as given, all are used: here with 4096.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.common import run_command, timed
from experiments.tables import Table
from experiments.tasks import TASKS, load_task
from notsorandom import Ascent, Euclidean, FourierClassifier, Langevin
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Problem, play
from notsorandom.game.problem import signs_from_codes
from notsorandom.spaces import Landscape, view

# The default first.
NUMBERS_OF_DIRECTIONS = (128, 32, 64, 96, 192, 256, 1024)
NUMBERS_OF_ROWS = (4096, 1024, 2048)


def compare_peaks(
    tasks: tuple[str, ...] = ("auto-truck",),
    rounds: int = 10,
    particles: int = 500,
    smoothing: tuple[float, ...] = (0.06, 0.0),
    data: str | None = None,
) -> None:
    """Print the seconds of both searches per frequency, and the heights of their peaks."""
    for task in tasks:
        print(task)
        X, y, _, _ = load_task(task, data)
        problem = Problem(LOSSES["hinge"], signs_from_codes(y, 2, np.float32), Rows(X))
        result = play(
            problem,
            space=Euclidean(),
            search=Ascent(),
            n_frequencies=40,
            rng=np.random.default_rng(0),
        )
        duals = {"first round": problem.first_dual(), "after 40 frequencies": result.dual}
        for value in smoothing:
            for name, dual in duals.items():
                print(f"{name}, smoothing {value}")
                landscape = Landscape(result.space, problem.rows, problem.measure(dual), value)
                langevin = Langevin(n_steps=100, n_particles=particles)
                slow, slow_height = measure(langevin, landscape, 1)
                for search in (Ascent(), Ascent(n_steps=24, subsample=1.0)):
                    seconds, height = measure(search, landscape, rounds)
                    print(
                        f"    1 / {slow / seconds:.0f} of Langevin's time, "
                        f"{height / slow_height:.3f} of its height"
                    )


def measure(search: Any, landscape: Landscape, repeats: int) -> tuple[float, float]:
    """Return seconds per frequency, and the mean height of the best peak."""
    rng = np.random.default_rng(1)
    start, n_found, heights = time.perf_counter(), 0, []
    for _ in range(repeats):
        peaks = search.find(landscape, search.n_peaks, rng)
        n_found += len(peaks)
        heights.append(np.exp(peaks.height[0] / 2))
    seconds = (time.perf_counter() - start) / n_found
    print(
        f"  {type(search).__name__:<9} {seconds:8.4f} s per frequency, "
        f"{n_found / repeats:.1f} per search, best height {np.mean(heights):.4f}",
        flush=True,
    )
    return seconds, float(np.mean(heights))


def compare_views(
    constant: str,
    numbers: Sequence[int],
    splits: int = 4,
    features: int = 100,
    smoothing: float = 0.07,
    data: str | None = None,
) -> None:
    """Print validation accuracies by the value of a constant of `notsorandom.spaces.view`."""
    scores: dict[int, list[float]] = {number: [] for number in numbers}
    seconds = dict.fromkeys(numbers, 0.0)
    for name in TASKS:
        task = load_task(name, data)
        for seed in range(splits):
            X, X_held_out, y, y_held_out = train_test_split(
                task.X, task.y, test_size=0.25, stratify=task.y, random_state=seed
            )
            for number in numbers:
                setattr(view, constant, number)
                model = FourierClassifier(
                    features,
                    loss="hinge",
                    C=1.0,
                    smoothing=smoothing,
                    search=Ascent(spectrum="gaussian"),
                    random_state=seed,
                )
                _, spent = timed(model.fit, X, y)
                seconds[number] += spent
                scores[number].append(100 * model.score(X_held_out, y_held_out))
    usual = np.array(scores[numbers[0]])
    rows = []
    for number in sorted(numbers):
        differences = np.array(scores[number]) - usual
        error = differences.std() / np.sqrt(len(differences))
        rows.append(
            (
                str(number),
                f"{np.mean(scores[number]):.2f}",
                f"{differences.mean():+.2f} +- {error:.2f}",
                f"{seconds[number] / len(differences):.2f}",
            )
        )
    headers = (constant, "accuracy, %", "difference", "seconds")
    print(Table("Principal directions", headers=headers, rows=tuple(rows)).markdown())


COMMANDS: dict[str, Callable[..., None]] = {
    "peaks": compare_peaks,
    "directions": partial(compare_views, "MAX_DIRECTIONS", NUMBERS_OF_DIRECTIONS),
    "rows": partial(compare_views, "DIRECTION_ROWS", NUMBERS_OF_ROWS),
}


if __name__ == "__main__":
    run_command(__doc__, COMMANDS)
