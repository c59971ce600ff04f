"""Figure 1 of the paper: the game on the windmill, its potential, and the sphere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.chosen import chosen_settings, describe_choices
from experiments.records import Config, Record
from experiments.synthetic import N_TEST, N_TRAIN, our_svm, single_harmonics
from experiments.tables import Table
from experiments.tasks import TaskLoader
from notsorandom import Ascent, Euclidean, FourierClassifier, LearnedKernel
from notsorandom.data.rows import Array
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.display import GameDisplay, GlobeDisplay, import_pyplot
from notsorandom.display.images import draw_potential, frequency_limit
from notsorandom.display.inspection import GameSnapshot, geometric_subset, take_snapshots
from notsorandom.spaces.harmonics import harmonics

# The paper draws its potential after this many rounds of one frequency.
N_ROUNDS = 300
# Snapshots in a record; the figure of the evolution shows every third.
N_SNAPSHOTS = 13
# Significant digits of recorded numbers; enough for pictures.
DIGITS = 5
# At C = 1 the final SVM on the sphere is too soft for the sharp borders.
SPHERE_C = 100.0

Function = Callable[[Array], Array]


def figure1_configs(
    n_train: int = N_TRAIN, n_test: int = N_TEST, n_rounds: int = N_ROUNDS
) -> list[Config]:
    """Return one game on the plane and one on the sphere."""
    sizes = {"seed": 0, "n_train": n_train, "n_test": n_test}
    return [
        {"kind": "evolution", **sizes, "n_rounds": n_rounds},
        {"kind": "globe", **sizes},
    ]


def run_figure1(config: Config, load: TaskLoader, smoothing: Any = "auto") -> dict[str, Any]:
    """Play one of the two games."""
    run = run_evolution if config["kind"] == "evolution" else run_globe
    return run(config, smoothing)


def run_evolution(config: Config, smoothing: Any) -> dict[str, Any]:
    """Play on the windmill; return the kernel and snapshots of the game."""
    X, y = make_windmill(config["n_train"], random_state=config["seed"])
    model = our_svm(
        config["n_rounds"], config["seed"], search=Ascent(n_peaks=1), smoothing=smoothing
    ).fit(X, y)
    kernel = model.kernel_
    rounds = geometric_subset(np.arange(1, config["n_rounds"] + 1), N_SNAPSHOTS).tolist()
    test = make_windmill(config["n_test"], random_state=1000 + config["seed"])
    return {
        "test_accuracy": model.score(*test),
        "chosen": chosen_settings(model),
        "kernel": {
            "scale": float(kernel.space.scale),
            "center": to_list(kernel.space.center),
            "phase": kernel.phase,
            **{
                name: to_list(getattr(kernel, name))
                for name in ("frequencies", "phases", "scales", "weights")
            },
        },
        "snapshots": [
            {
                "round": snapshot.round,
                "size": snapshot.kernel.n_components,
                "measure": to_list(snapshot.measure[:, 0]),
                "coef": to_list(snapshot.coef[0]),
                "intercept": float(snapshot.intercept[0]),
            }
            for snapshot in take_snapshots(model, X, y, rounds)
        ],
    }


def run_globe(config: Config, smoothing: Any) -> dict[str, Any]:
    """Play on the checkerboard; return the harmonics and the decision function."""
    X, y = make_checkerboard(config["n_train"], random_state=config["seed"])
    model = single_harmonics(config["seed"]).set_params(C=SPHERE_C, smoothing=smoothing)
    model.fit(X, y)
    kernel = model.kernel_
    return {
        "test_accuracy": model.score(*make_checkerboard(config["n_test"], random_state=1000)),
        "chosen": chosen_settings(model),
        "indices": kernel.frequencies.tolist(),
        "weights": to_list(kernel.weights),
        "coef": to_list(harmonic_coefficients(model)),
        "intercept": float(model.intercept_[0]),
    }


def harmonic_coefficients(model: FourierClassifier) -> Array:
    """Return the decision function's coefficients of the unscaled harmonics."""
    return model.coef_[0] * model.kernel_.scales * np.sqrt(model.kernel_.weights)


def to_list(array: Array) -> Any:
    """Return an array as lists of rounded numbers."""
    return np.char.mod(f"%.{DIGITS}g", np.asarray(array, dtype=float)).astype(float).tolist()


def recorded_game(record: Record) -> tuple[Array, Array, list[GameSnapshot]]:
    """Return the samples, labels and snapshots of a recorded game."""
    config, outcome = record["config"], record["outcome"]
    X, y = make_windmill(config["n_train"], random_state=config["seed"])
    stored = outcome["kernel"]
    kernel = LearnedKernel(
        space=Euclidean(scale=stored["scale"], center=np.array(stored["center"])),
        frequencies=np.array(stored["frequencies"]),
        phases=np.array(stored["phases"]),
        scales=np.array(stored["scales"]),
        weights=np.array(stored["weights"]),
        phase=stored["phase"],
    )
    snapshots = [
        GameSnapshot(
            round=snapshot["round"],
            measure=np.array(snapshot["measure"])[:, None],
            kernel=kernel.head(snapshot["size"]),
            coef=np.array(snapshot["coef"])[None],
            intercept=np.array([snapshot["intercept"]]),
        )
        for snapshot in outcome["snapshots"]
    ]
    return X, y, snapshots


def figure1_tables(records: Sequence[Record]) -> list[Table]:
    """Return one note per figure."""
    notes = []
    for record in records:
        config, outcome = record["config"], record["outcome"]
        accuracy = f"{100 * outcome['test_accuracy']:.2f} % of {config['n_test']:,} test samples"
        choices = describe_choices([outcome])
        if config["kind"] == "evolution":
            notes.append(
                f"Windmill, {config['n_rounds']} rounds of one frequency; {choices}: {accuracy}."
            )
        else:
            heaviest = ", ".join(
                f"degree {degree} order {order} ({weight:.0%})"
                for weight, (order, degree) in heaviest_harmonics(outcome)
            )
            notes.append(
                f"Checkerboard; {choices}: {accuracy} on {len(outcome['indices'])} harmonics; the "
                f"heaviest: {heaviest}."
            )
    return [Table("Figure 1: the synthetic problems", notes=tuple(notes))]


def heaviest_harmonics(outcome: dict[str, Any]) -> list[tuple[float, list[int]]]:
    """Return weights and indices of the three heaviest harmonics."""
    return sorted(zip(outcome["weights"], outcome["indices"], strict=True), reverse=True)[:3]


def draw_figure1(records: Sequence[Record]) -> dict[str, Any]:
    """Draw the evolution of the game, the potential, and the sphere."""
    figures = {}
    for record in records:
        if record["config"]["kind"] == "evolution":
            X, y, game = recorded_game(record)
            figures["figure1-evolution"] = GameDisplay(X, y, game[::3]).plot().figure_
            figures["figure1-landscape"] = draw_potentials(X, game[0], game[-1])
        else:
            config = record["config"]
            samples = make_checkerboard(config["n_train"], random_state=config["seed"])
            display = GlobeDisplay(globe_panels(record["outcome"]), samples=samples).plot()
            figures["figure1-sphere"] = display.figure_
    return figures


def draw_potentials(X: Array, first: GameSnapshot, last: GameSnapshot) -> Any:
    """Draw the potential in the first and in the last round, side by side."""
    figure, axes = import_pyplot().subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    for axis, snapshot in zip(axes, (first, last), strict=True):
        draw_potential(axis, snapshot, X, frequency_limit(last))
        axis.set(title=f"potential at round {snapshot.round}", xticks=[], yticks=[], aspect="equal")
    return figure


def globe_panels(outcome: dict[str, Any]) -> list[tuple[str, Function]]:
    """Return titles and functions of the heaviest harmonics and of the decision function."""
    panels: list[tuple[str, Function]] = [
        (
            f"degree {degree}, order {order}: {weight:.0%}",
            partial(sum_harmonics, indices=[[order, degree]], coef=[1.0]),
        )
        for weight, (order, degree) in heaviest_harmonics(outcome)
    ]
    decision = partial(
        sum_harmonics,
        indices=outcome["indices"],
        coef=outcome["coef"],
        intercept=outcome["intercept"],
    )
    return [*panels, ("decision function", decision)]


def sum_harmonics(points: Array, indices: Any, coef: Any, intercept: float = 0.0) -> Array:
    """Return a linear combination of harmonics at points."""
    return harmonics(points, np.array(indices)) @ np.array(coef) + intercept
