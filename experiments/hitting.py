"""How many steps Langevin dynamics takes to the peak of a known potential, by its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.records import Config, Record
from experiments.tables import Table
from experiments.tasks import TaskLoader
from notsorandom import Euclidean, Langevin
from notsorandom.data.rows import Array, Rows
from notsorandom.spaces import Landscape, Points

N_PARTICLES, N_STEPS = 100, 4000
# The game without changes. Lengths are in units of the peak's width, the inverse standard deviation
# of the samples; the step and the temperature are then those of samples of unit deviation.
USUAL = {
    "temperature": 0.1,
    "radius": 10.0,
    "diffusion_rate": 1.0,
    "share": 0.5,
    "n_samples": 1000,
    "dimension": 2,
}
# Parameters, what they are called in the table, and the other values that are tried.
VARIED: dict[str, tuple[str, tuple[float, ...]]] = {
    "temperature": ("temperature xi", (0.01, 0.03, 0.1, 0.3, 1.0)),
    "radius": ("radius of the ball in widths of the peak, R_omega R_x", (5, 10, 20, 40)),
    "diffusion_rate": ("diffusion rate zeta", (0.125, 0.25, 0.5, 1.0)),
    "share": ("height to reach, as a share of the peak's", (0.25, 0.5, 0.75)),
    "n_samples": ("samples n", (250, 1000, 4000)),
    "dimension": ("dimension d", (1, 2, 3, 4)),
}
# Height of the peaks of the potential of the density: see `wave_labels`.
HEIGHT = 0.25


class Trace:
    """A landscape that records the heights of all points, and draws starts from all of a ball."""

    def __init__(self, landscape: Landscape, radius: float) -> None:
        self.landscape, self.radius, self.heights = landscape, radius, list[Array]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.landscape, name)

    def draw(self, n_points: int, rng: np.random.Generator, variance: float = 1.0) -> Array:
        """Draw from the uniform distribution."""
        d = self.landscape.rows.n_features
        directions = rng.standard_normal((n_points, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = self.radius * rng.random((n_points, 1)) ** (1 / d)
        return (lengths * directions).astype(self.landscape.rows.dtype)

    def move(self, points: Points, shift: Array) -> Points:
        """Move and record."""
        self.heights.append(points.height)
        return self.landscape.move(points, shift)


def hitting_configs(n_steps: int = N_STEPS) -> list[Config]:
    """Return one run for each value of each parameter, with the others as usual."""
    return [
        {"kind": "hitting", "varied": name, **USUAL, name: value, "n_steps": n_steps}
        for name, (_, values) in VARIED.items()
        for value in values
    ]


def wave_labels(X: Array, frequency: Array, rng: np.random.Generator) -> Array:
    """Return labels that are 1 with probability (1 + cos<w, x>) / 2, else -1.

    With standard normal samples the potential of their density is 1/4 at both peaks,
    exp(-|f - w|^2) times as much around them, and nearly nothing elsewhere.
    """
    return np.where(rng.random(len(X)) < (1 + np.cos(X @ frequency)) / 2, 1.0, -1.0)


def run_hitting(config: Config, load: TaskLoader) -> dict[str, Any]:
    """Return the step at which each particle first reached the height, or None."""
    rng = np.random.default_rng(0)
    d, n, radius = (config[name] for name in ("dimension", "n_samples", "radius"))
    X = rng.standard_normal((n, d)).astype(np.float32)
    frequency = np.eye(d)[0] * radius / 2
    measure = wave_labels(X, frequency, rng)[:, None].astype(np.float32) / np.float32(n)
    space = Euclidean(1.0, np.zeros(d, np.float32), max_norm=radius)
    trace = Trace(Landscape(space, Rows(X), measure, 0.0, "paired"), radius)
    Langevin(
        n_steps=config["n_steps"],
        n_particles=N_PARTICLES,
        diffusion_rate=config["diffusion_rate"],
        temperature=config["temperature"],
        noise="textbook",
    ).find(trace, 1, rng)  # type: ignore[arg-type]
    reached = np.array(trace.heights) >= np.log(config["share"] * HEIGHT)  # (n_steps, n_particles)
    first = np.where(reached.any(axis=0), reached.argmax(axis=0), -1).tolist()
    return {"steps": [None if step < 0 else step for step in first]}


def mean_steps(record: Record) -> tuple[float, float]:
    """Return the mean number of steps, with those that didn't arrive, and the share that did.

    All steps over all arrivals is the mean of an exponential distribution that is cut off.
    """
    steps, n_steps = record["outcome"]["steps"], record["config"]["n_steps"]
    n_arrived = sum(step is not None for step in steps)
    total = sum(n_steps if step is None else step for step in steps)
    return total / max(n_arrived, 1), n_arrived / len(steps)


def hitting_tables(records: Sequence[Record]) -> list[Table]:
    """Return the mean number of steps by each parameter, and the exponent of its power."""
    rows = []
    for name, (title, _) in VARIED.items():
        chosen = [record for record in records if record["config"]["varied"] == name]
        values = [float(record["config"][name]) for record in chosen]
        means = [mean_steps(record) for record in chosen]
        slope = np.polyfit(np.log(values), np.log([mean for mean, _ in means]), 1)[0]
        rows.append(
            (
                title,
                ", ".join(f"{value:g}" for value in values),
                ", ".join(f"{mean:,.0f}" for mean, _ in means),
                ", ".join(f"{share:.0%}" for _, share in means),
                f"{slope:.1f}",
            )
        )
    text = (
        f"{N_PARTICLES} particles from all over a ball. Usual values: "
        + ", ".join(f"{name} {value:g}" for name, value in USUAL.items())
        + f". Mean number of steps to a height, share of particles that reached it in {N_STEPS:,} "
        "steps, and the exponent of the fitted power."
    )
    columns = ("parameter", "values", "mean steps", "arrived", "exponent")
    return [Table("Hitting times of Langevin dynamics", text, columns, tuple(rows))]
