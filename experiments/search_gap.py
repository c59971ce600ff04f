"""How far the peaks that searches find are below the highest known ones, and what that costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments.records import Config, Record
from experiments.tables import Table
from experiments.tasks import TaskLoader
from notsorandom import Ascent, Euclidean, Langevin, Thorough
from notsorandom.data.rows import Array, Rows
from notsorandom.game import LOSSES, Problem, SearchGap, play
from notsorandom.search import Search
from notsorandom.spaces import Landscape, Points

N_SAMPLES, N_ROUNDS, N_SEEDS = 1000, 10, 3
DIMENSIONS = (2, 5, 20)
# Labels and smoothings: where the potential has many peaks of similar height, and where not. The
# wave is of one column, and so high that in many columns no Gaussian start is near its frequency.
SETTINGS = (("random", 0.07), ("random", 0.3), ("product", 0.07), ("wave", 0.07))
LABELS: dict[str, Callable[[Array, Array], Array]] = {
    "random": lambda X, noise: noise,
    "product": lambda X, noise: X[:, 0] * X[:, 1],
    "wave": lambda X, noise: np.cos(3 * X[:, 0]),
}
SEARCHES: dict[str, type[Search]] = {"ascent": Ascent, "langevin": Langevin, "thorough": Thorough}
# Ascents that must agree on the highest known peak: four times as many as in the search itself.
N_AGREEING = 20
# A peak that is lower by more than this share counts as missed.
MISSED = 0.01


class Timed:
    """A search and the CPU seconds that it took."""

    def __init__(self, search: Search) -> None:
        self.search, self.seconds = search, 0.0

    def find(self, landscape: Landscape, n_peaks: int, rng: np.random.Generator) -> Points:
        """Return what the search finds."""
        start = time.process_time()
        points = self.search.find(landscape, n_peaks, rng)
        self.seconds += time.process_time() - start
        return points


def search_gap_configs(n_rounds: int = N_ROUNDS, n_seeds: int = N_SEEDS) -> list[Config]:
    """Return one run per kind of labels, dimension and seed."""
    return [
        {
            "kind": "search-gap",
            "labels": labels,
            "smoothing": smoothing,
            "dimension": dimension,
            "n_rounds": n_rounds,
            "seed": seed,
        }
        for labels, smoothing in SETTINGS
        for dimension in DIMENSIONS
        for seed in range(n_seeds)
    ]


def run_search_gap(config: Config, load: TaskLoader) -> dict[str, Any]:
    """Play one game with each search; return gaps, their term in the theorem, and seconds."""
    rng = np.random.default_rng(config["seed"])
    X = rng.standard_normal((N_SAMPLES, config["dimension"])).astype(np.float32)
    labels = np.sign(LABELS[config["labels"]](X, rng.standard_normal(N_SAMPLES)))
    problem = Problem(LOSSES["hinge"], labels[:, None].astype(np.float32), Rows(X))
    outcome = {}
    for name, search in SEARCHES.items():
        gap = SearchGap(Thorough(n_peaks=1, n_agreeing=N_AGREEING))
        timed = Timed(search(n_peaks=1))  # type: ignore[call-arg]
        play(
            problem,
            space=Euclidean(),
            search=timed,
            n_frequencies=config["n_rounds"],
            rng=rng,
            smoothing=config["smoothing"],
            observers=[gap],
        )
        outcome[name] = {
            "shares": gap.shares.tolist(),
            "term": float(gap.epsilons.mean() / 2 / N_SAMPLES),
            "cpu_seconds": timed.seconds / config["n_rounds"],
        }
    return outcome


def search_gap_tables(records: Sequence[Record]) -> list[Table]:
    """Return shares of rounds that missed the peak, ratios of the heights, terms and times."""
    rows = []
    for labels, smoothing in SETTINGS:
        for name in SEARCHES:
            cells, terms, times = [], [], []
            for dimension in DIMENSIONS:
                outcomes = [
                    record["outcome"]
                    for record in records
                    if record["config"]["labels"] == labels
                    and record["config"]["smoothing"] == smoothing
                    and record["config"]["dimension"] == dimension
                ]
                shares = np.concatenate([outcome[name]["shares"] for outcome in outcomes])
                cells.append(f"{np.mean(shares > MISSED):.0%}, {np.median(1 - shares):.2f}")
                terms.append(np.mean([outcome[name]["term"] for outcome in outcomes]))
                seconds, usual = (
                    sum(outcome[each]["cpu_seconds"] for outcome in outcomes)
                    for each in (name, "ascent")
                )
                times.append(seconds / usual)
            rows.append(
                (
                    f"{labels} labels, smoothing {smoothing:g}",
                    name,
                    *cells,
                    ", ".join(f"{term:.2g}" for term in terms),
                    ", ".join(f"{ratio:.0f}" for ratio in times),
                )
            )
    text = (
        f"{N_SAMPLES:,} normal samples, one peak a round. Rounds whose peak is more than "
        f"{MISSED:.0%} below the highest known, and the median ratio of the two; by dimension, the "
        "theorem's term, the mean of epsilon_t over two, as a share of C n, which no objective "
        "exceeds, and CPU time as a multiple of the default search's."
    )
    columns = ("game", "search", *(f"d = {dimension}" for dimension in DIMENSIONS), "term", "time")
    return [Table("Gaps of the searches", text, columns, tuple(rows))]
