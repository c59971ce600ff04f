"""The Fourier potential of a known density beside that of its samples, by their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq

from experiments.records import Config, Record
from experiments.tables import Table
from experiments.tasks import TaskLoader
from notsorandom import Euclidean
from notsorandom.data.rows import Array, Rows
from notsorandom.display import import_pyplot
from notsorandom.spaces.landscape import potential_of
from notsorandom.spaces.supremum import concentration_sample_size

SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
N_SEEDS, BANDWIDTH, N_SIDE = 20, 5.0, 41
# Each class is uniform on a square of this half-width, with its centre at plus or minus this.
HALF_WIDTH, CENTER = 1.0, np.array([1.0, 0.5])
# The theorem's probability of a larger deviation.
DELTA = 0.05


def potential_configs(sizes: Sequence[int] = SIZES, n_seeds: int = N_SEEDS) -> list[Config]:
    """Return one run per number of samples."""
    return [{"kind": "potential", "n_samples": n, "n_seeds": n_seeds} for n in sizes]


def frequency_grid() -> Array:
    """Return the frequencies of a square grid within the bandwidth."""
    axis = np.linspace(-BANDWIDTH, BANDWIDTH, N_SIDE)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return grid[(grid * grid).sum(axis=1) <= BANDWIDTH**2]


def ideal_potential(frequencies: Array) -> Array:
    """Return the squared transform of the density of class 1 minus that of class -1.

    Each has mass 1/2. The transform of a square is a product of cardinal sines.
    """
    square = np.sinc(HALF_WIDTH * frequencies / np.pi).prod(axis=1)
    return (np.sin(frequencies @ CENTER) * square) ** 2


def draw_samples(n_samples: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return samples and labels of the two classes."""
    labels = rng.choice([-1.0, 1.0], size=n_samples)
    X = rng.uniform(-HALF_WIDTH, HALF_WIDTH, size=(n_samples, 2)) + labels[:, None] * CENTER
    return X, labels


def run_potential(config: Config, load: TaskLoader) -> dict[str, Any]:
    """Return the largest deviation over the frequencies, for each seed."""
    frequencies, n = frequency_grid(), config["n_samples"]
    ideal, deviations = ideal_potential(frequencies), []
    space = Euclidean(1.0, np.zeros(2, np.float32))
    for seed in range(config["n_seeds"]):
        X, labels = draw_samples(n, np.random.default_rng([n, seed]))
        rows, measure = Rows(X.astype(np.float32)), labels[:, None].astype(np.float32) / n
        amplitudes = space.amplitudes(rows, measure, frequencies.astype(np.float32))
        deviations.append(float(np.abs(potential_of(amplitudes) - ideal).max()))
    return {"deviations": deviations}


def theorem(n_samples: int) -> float:
    """Return the deviation that the theorem allows, with the constants that we prove."""
    reach = BANDWIDTH * float(np.linalg.norm(HALF_WIDTH + CENTER))
    return float(
        brentq(
            lambda epsilon: concentration_sample_size(2, reach, epsilon, DELTA) - n_samples,
            1e-6,
            1e3,
        )
    )


def potential_tables(records: Sequence[Record]) -> list[Table]:
    """Return mean and largest deviation by number of samples, and the slope."""
    sizes = [record["config"]["n_samples"] for record in records]
    means = [float(np.mean(record["outcome"]["deviations"])) for record in records]
    rows = [
        (
            f"{n:,}",
            f"{mean:.4f}",
            f"{np.quantile(record['outcome']['deviations'], 1 - DELTA):.4f}",
            f"{theorem(n):.2f}",
        )
        for n, mean, record in zip(sizes, means, records, strict=True)
    ]
    notes: tuple[str, ...] = ()
    if len(sizes) > 1:
        slope = np.polyfit(np.log(sizes), np.log(means), 1)[0]
        notes = (f"Slope of the mean in the logarithms: {slope:.2f}.",)
    text = (
        "Two classes, uniform on overlapping squares. Largest deviation of the potential of n "
        f"samples over n^2 from that of their density, over the frequencies up to {BANDWIDTH:g}: "
        f"mean and {1 - DELTA:.0%} quantile of {len(records[0]['outcome']['deviations'])} draws."
    )
    columns = ("n", "mean", f"{1 - DELTA:.0%} quantile", "theorem")
    return [Table("Concentration of the potential", text, columns, tuple(rows), notes)]


def draw_potential(records: Sequence[Record]) -> dict[str, Any]:
    """Draw the potentials of the density and of some samples, and the deviations."""
    frequencies = frequency_grid()
    figure, axes = import_pyplot().subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    X, labels = draw_samples(300, np.random.default_rng(0))
    sampled = np.abs(labels @ np.exp(1j * X @ frequencies.T) / len(X)) ** 2
    for axis, values, title in (
        (axes[0], ideal_potential(frequencies), "potential of the density"),
        (axes[1], sampled, "of 300 samples"),
    ):
        axis.tripcolor(*frequencies.T, values, shading="gouraud", vmin=0, vmax=sampled.max())
        axis.set(title=title, aspect="equal")
    sizes = np.array([record["config"]["n_samples"] for record in records])
    means = np.array([np.mean(record["outcome"]["deviations"]) for record in records])
    axes[2].loglog(sizes, means, "o-", label="largest deviation, mean")
    axes[2].loglog(sizes, means[0] * (sizes / sizes[0]) ** -0.5, "k:", label="slope -1/2")
    axes[2].loglog(sizes, [theorem(n) for n in sizes], "C1--", label="theorem")
    axes[2].set(xlabel="samples", title="deviation over frequencies")
    axes[2].legend(fontsize="small")
    return {"potential": figure}
