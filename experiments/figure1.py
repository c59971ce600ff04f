"""Figure 1 of the paper: the windmill's game, its potential, and the sphere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Rows
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.display import GameDisplay, GlobeDisplay, import_pyplot
from notsorandom.display.game import draw_potential, reach_of
from notsorandom.display.inspection import Moment, moments, spread_out
from notsorandom.estimators import FourierClassifier
from notsorandom.experiments.records import Config, Record
from notsorandom.experiments.synthetic import N_TEST, N_TRAIN, single_harmonics
from notsorandom.experiments.tables import Table
from notsorandom.kernel import LearnedKernel
from notsorandom.search import Ascent
from notsorandom.spaces import Euclidean
from notsorandom.spaces.harmonics import harmonics

# The paper looks at its landscape after so many rounds of one frequency.
LAST_ROUND = 300
# Moments that are recorded; the picture of the evolution shows every third.
N_MOMENTS = 13
# Digits of what is only looked at.
DIGITS = 5
# At C = 1 the sphere's final SVM is too soft for its sharp borders.
SPHERE_C = 100.0


def figure1_configs() -> list[Config]:
    """One game on the plane, one on the sphere."""
    return [{"kind": "evolution", "seed": 0}, {"kind": "globe", "seed": 0}]


def perform_evolution(config: Config, data_home: str | None = None) -> dict[str, Any]:
    """Play on the windmill, and keep what pictures of it need."""
    X, y = make_windmill(N_TRAIN, random_state=config["seed"])
    model = FourierClassifier(
        LAST_ROUND, search=Ascent(n_peaks=1), random_state=config["seed"]
    ).fit(X, y)
    kernel = model.kernel_
    rounds = spread_out(np.arange(1, LAST_ROUND + 1), N_MOMENTS).tolist()
    test = make_windmill(N_TEST, random_state=1000 + config["seed"])
    return {
        "test_accuracy": model.score(*test),
        "kernel": {
            "scale": float(kernel.space.scale),
            "center": listed(kernel.space.center),
            "phase": kernel.phase,
            **{
                name: listed(getattr(kernel, name))
                for name in ("frequencies", "phases", "scales", "weights")
            },
        },
        "moments": [
            {
                "round": moment.round,
                "size": moment.kernel.n_components,
                "measure": listed(moment.measure[:, 0]),
                "coef": listed(moment.coef[0]),
                "intercept": float(moment.intercept[0]),
            }
            for moment in moments(model, X, y, rounds)
        ],
    }


def perform_globe(config: Config, data_home: str | None = None) -> dict[str, Any]:
    """Play on the checkerboard, and keep the harmonics found."""
    X, y = make_checkerboard(N_TRAIN, random_state=config["seed"])
    model = single_harmonics(config["seed"]).set_params(C=SPHERE_C).fit(X, y)
    kernel = model.kernel_
    return {
        "test_accuracy": model.score(*make_checkerboard(N_TEST, random_state=1000)),
        "indices": kernel.frequencies.tolist(),
        "weights": listed(kernel.weights),
        # Of the harmonics themselves, without the kernel's scaling.
        "coef": listed(model.coef_[0] * kernel.scales * np.sqrt(kernel.weights)),
        "intercept": float(model.intercept_[0]),
    }


def listed(array: Array) -> Any:
    """An array as lists of numbers of a few digits."""
    return np.char.mod(f"%.{DIGITS}g", np.asarray(array, dtype=float)).astype(float).tolist()


def recorded_moments(record: Record) -> tuple[Array, Array, list[Moment]]:
    """The windmill of a record, and the moments of its game."""
    X, y = make_windmill(N_TRAIN, random_state=record["config"]["seed"])
    stored = record["outcome"]["kernel"]
    kernel = LearnedKernel(
        space=Euclidean(scale=stored["scale"], center=np.array(stored["center"])),
        frequencies=np.array(stored["frequencies"]),
        phases=np.array(stored["phases"]),
        scales=np.array(stored["scales"]),
        weights=np.array(stored["weights"]),
        phase=stored["phase"],
    )
    return (
        X,
        y,
        [
            Moment(
                round=moment["round"],
                measure=np.array(moment["measure"])[:, None],
                kernel=kernel.head(moment["size"]),
                coef=np.array(moment["coef"])[None],
                intercept=np.array([moment["intercept"]]),
            )
            for moment in record["outcome"]["moments"]
        ],
    )


def figure1_tables(records: Sequence[Record]) -> list[Table]:
    """What the pictures show, in a line each."""
    notes = []
    for record in records:
        outcome = record["outcome"]
        accuracy = f"{100 * outcome['test_accuracy']:.2f} % of {N_TEST:,} test samples"
        if record["config"]["kind"] == "evolution":
            notes.append(f"Windmill, {LAST_ROUND} rounds of one frequency, C = 1: {accuracy}.")
        else:
            heaviest = ", ".join(
                f"degree {degree} order {order} ({weight:.0%})"
                for weight, (order, degree) in heaviest_harmonics(outcome)
            )
            notes.append(
                f"Checkerboard, C = {SPHERE_C:.0f}: {accuracy} on {len(outcome['indices'])} "
                f"harmonics; the heaviest: {heaviest}."
            )
    return [Table("The toy problems, seen", notes=tuple(notes))]


def heaviest_harmonics(outcome: dict[str, Any]) -> list[tuple[float, list[int]]]:
    """Weights and indices of the three heaviest."""
    return sorted(zip(outcome["weights"], outcome["indices"], strict=True), reverse=True)[:3]


def draw_figure1(records: Sequence[Record]) -> dict[str, Any]:
    """The paper's three pictures."""
    figures = {}
    for record in records:
        if record["config"]["kind"] == "evolution":
            X, y, game = recorded_moments(record)
            figures["figure1-evolution"] = GameDisplay(X, y, game[::3]).plot().figure_
            figures["figure1-landscape"] = draw_landscapes(X, game[0], game[-1])
        else:
            figures["figure1-sphere"] = draw_globe(record)
    return figures


def draw_landscapes(X: Array, first: Moment, last: Moment) -> Any:
    """The potential at the start and at the end, side by side."""
    figure, axes = import_pyplot().subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    for axis, moment in zip(axes, (first, last), strict=True):
        draw_potential(axis, moment, reach_of(last), Rows(X))
        axis.set(title=f"potential at round {moment.round}", xticks=[], yticks=[], aspect="equal")
    return figure


def draw_globe(record: Record) -> Any:
    """The samples, the three heaviest harmonics, and the decision function."""
    samples = make_checkerboard(N_TRAIN, random_state=record["config"]["seed"])
    return GlobeDisplay(globe_panels(record["outcome"]), samples=samples).plot()


def globe_panels(outcome: dict[str, Any]) -> list[tuple[str, Callable[[Array], Array]]]:
    """Titles and functions of the three heaviest harmonics, and of the decision."""
    panels: list[tuple[str, Callable[[Array], Array]]] = [
        (
            f"degree {degree}, order {order}: {weight:.0%}",
            partial(combined, indices=[[order, degree]], coef=[1.0]),
        )
        for weight, (order, degree) in heaviest_harmonics(outcome)
    ]
    decision = partial(
        combined,
        indices=outcome["indices"],
        coef=outcome["coef"],
        intercept=outcome["intercept"],
    )
    return [*panels, ("decision function", decision)]


def combined(points: Array, indices: Any, coef: Any, intercept: float = 0.0) -> Array:
    """A sum of harmonics."""
    return harmonics(points, np.array(indices)) @ np.array(coef) + intercept
