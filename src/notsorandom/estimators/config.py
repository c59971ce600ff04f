"""The configuration of a fit: parameters are checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from notsorandom._utils.parameters import check_choice, check_flag, check_number, resolve_named
from notsorandom.game.losses import CLASSIFICATION_LOSSES, LOSSES, Loss
from notsorandom.game.projection import PROJECTIONS
from notsorandom.search import SEARCHES
from notsorandom.search.base import Search
from notsorandom.spaces import SPACES
from notsorandom.spaces.base import Space


class GradientSolver(BaseEstimator):
    """Solve the game by online gradient ascent of the dual, as in the paper.

    Parameters
    ----------
    learning_rate : "auto", "theory" or float, default="auto"
        Step size of the dual player; see :class:`notsorandom.game.GameLoop`.
    weighting : {"potential", "uniform"}, default="potential"
        Weight of each frequency in the kernel: in proportion to the amplitude of its peak, or
        equal, as in the paper.
    projection : {"exact", "alternating"}, default="exact"
        Projection of the dual player's steps; ``"alternating"`` is the paper's Algorithm 3.
    n_rounds : int or "auto", default="auto"
        Most rounds of the game; ``"auto"`` is `n_components`. It matters where a frequency can be
        found again, as on the sphere's harmonics.
    reweight : bool, default=False
        After the game, weight the frequencies so that the margin is largest and drop those without
        weight. A larger margin isn't always a better accuracy.
    """

    def __init__(
        self,
        learning_rate: Any = "auto",
        weighting: str = "potential",
        projection: str = "exact",
        n_rounds: Any = "auto",
        reweight: bool = False,
    ) -> None:
        self.learning_rate = learning_rate
        self.weighting = weighting
        self.projection = projection
        self.n_rounds = n_rounds
        self.reweight = reweight

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        check_number("learning_rate", self.learning_rate, above=0, or_else=["auto", "theory"])
        check_choice("weighting", self.weighting, ["potential", "uniform"])
        check_choice("projection", self.projection, PROJECTIONS)
        check_number("n_rounds", self.n_rounds, above=0, integer=True, or_else=["auto"])
        check_flag("reweight", self.reweight)


class EquilibriumSolver(BaseEstimator):
    """Compute the equilibrium of the game directly, by a primal-dual method.

    For finite spaces such as the sphere's harmonics. It reaches a relative gap of 1e-3 between the
    bounds of the certificate (with ``smoothing=0`` and enough `n_components`), and holds all
    harmonics of all samples in memory.
    """

    def check(self) -> None:
        """There are no parameters to check."""


SOLVERS: dict[str, Any] = {
    "gradient": GradientSolver,
    "reweight": lambda: GradientSolver(reweight=True),
    "equilibrium": EquilibriumSolver,
}


class AutoSmoothing(BaseEstimator):
    """Choose the smoothing by short games on a part of the training data.

    Up to 1024 samples: 4-fold cross-validation. Above: one split of at most `max_rows` rows.

    Parameters
    ----------
    candidates : sequence of float, default=(0.07, 0.02, 0.2, 0.6, 1.0)
        In units of the median distance between samples, the usual one first. Images and other data
        with little noise need little smoothing; where labels are mostly noise, only waves about as
        long as the data are wide remain.
    n_components : int, default=32
        Frequencies, or rounds, of each game. Independent of the estimator's own `n_components`, so
        that a longer fit chooses the same smoothing.
    max_rows : int, default=2048
        More rows make the comparison slower, but not much sharper.
    """

    def __init__(
        self,
        candidates: Sequence[float] = (0.07, 0.02, 0.2, 0.6, 1.0),
        n_components: int = 32,
        max_rows: int = 2048,
    ) -> None:
        self.candidates = candidates
        self.n_components = n_components
        self.max_rows = max_rows

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        candidates: Any = self.candidates
        if isinstance(candidates, str) or np.ndim(candidates) != 1 or len(candidates) == 0:
            raise ValueError(
                f"candidates={candidates!r} is not allowed: it must be a non-empty sequence of "
                "numbers."
            )
        for candidate in candidates:
            check_number("candidates", candidate, least=0)
        check_number("n_components", self.n_components, above=0, integer=True)
        check_number("max_rows", self.max_rows, least=16, integer=True)


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often the state of a fit is written.

    Parameters
    ----------
    path : str or Path
    every : float, default=60.0
        Seconds between two writes.
    """

    path: Any
    every: float = 60.0


@dataclass(frozen=True)
class FitConfig:
    """The checked configuration of a fit."""

    space: Space
    search: Search | None  # None: one that suits the space
    solver: GradientSolver | EquilibriumSolver
    loss: Loss
    phase: str
    smoothing: float | AutoSmoothing
    n_components: int  # the most, if validation samples decide when the game stops
    stops_early: bool
    checkpoint: Checkpoint | None


def loss_of(estimator: Any) -> Loss:
    """Return the loss of an estimator."""
    epsilon = getattr(estimator, "epsilon", 0.0)
    return LOSSES[estimator.loss](float(estimator.C), float(epsilon))


def configure(estimator: Any) -> FitConfig:
    """Check every parameter of an estimator and return the configuration of its fit."""
    check_choice("phase", estimator.phase, ["aligned", "paired"])
    check_choice("loss", estimator.loss, estimator._losses)
    check_flag("warm_start", estimator.warm_start)
    check_number("n_components", estimator.n_components, above=0, integer=True, or_else=["auto"])
    check_number("max_components", estimator.max_components, above=0, integer=True)
    check_number("C", estimator.C, above=0)
    check_number("epsilon", getattr(estimator, "epsilon", 0.0), least=0)
    check_number("validation_fraction", estimator.validation_fraction, above=0, below=1)
    check_n_jobs(estimator.n_jobs)
    if not isinstance(estimator.verbose, bool):
        check_number("verbose", estimator.verbose, least=0, integer=True)
    space = resolve_named("space", estimator.space, SPACES, Space)
    search = None
    if estimator.search != "auto":
        search = resolve_named("search", estimator.search, SEARCHES, Search, extra=["auto"])
    solver = resolve_named("solver", estimator.solver, SOLVERS, (GradientSolver, EquilibriumSolver))
    stops_early = isinstance(estimator.n_components, str)
    n_components = int(estimator.max_components if stops_early else estimator.n_components)
    config = FitConfig(
        space=space,
        search=search,
        solver=solver,
        loss=loss_of(estimator),
        phase=estimator.phase,
        smoothing=configure_smoothing(estimator.smoothing),
        n_components=n_components,
        stops_early=stops_early,
        checkpoint=configure_checkpoint(estimator.checkpoint),
    )
    check_combinations(estimator, config)
    return config


def check_combinations(estimator: Any, config: FitConfig) -> None:
    """Raise ValueError if parameters exclude each other."""
    n_columns = config.space.n_columns(config.phase)
    if config.n_components % n_columns:
        name = "max_components" if config.stops_early else "n_components"
        raise ValueError(
            f"{name}={config.n_components} is not allowed with phase={config.phase!r}: each "
            f"frequency gives {n_columns} features, so it must be a multiple of {n_columns}."
        )
    is_equilibrium = isinstance(config.solver, EquilibriumSolver)
    if config.stops_early and (estimator.warm_start or is_equilibrium):
        other = "warm_start=True" if estimator.warm_start else "solver='equilibrium'"
        raise ValueError(
            f"n_components='auto' is not allowed with {other}: give n_components a number, or "
            f"leave out {other.split('=')[0]}."
        )
    class_weight = getattr(estimator, "class_weight", None)
    if class_weight is not None and estimator.loss not in CLASSIFICATION_LOSSES:
        raise ValueError(
            f"class_weight={class_weight!r} is not allowed with loss={estimator.loss!r}, which has "
            "no classes: use sample_weight in fit."
        )


def configure_smoothing(smoothing: Any) -> float | AutoSmoothing:
    """Check the smoothing; return it as a number, or as the search for one."""
    if isinstance(smoothing, AutoSmoothing):
        smoothing.check()
        return clone(smoothing)
    if smoothing == "auto":
        return AutoSmoothing()
    try:
        check_number("smoothing", smoothing, least=0)
    except ValueError as error:
        raise ValueError(f"{str(error)[:-1]}, 'auto', or an AutoSmoothing.") from None
    return float(smoothing)


def check_n_jobs(n_jobs: Any) -> None:
    """Raise ValueError unless it is None or an int other than 0."""
    is_int = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_int or n_jobs == 0):
        raise ValueError(
            f"n_jobs={n_jobs!r} is not allowed: it must be None, an int > 0, or -1 for all cores."
        )


def configure_checkpoint(checkpoint: Any) -> Checkpoint | None:
    """Check that the checkpoint is None or a file that can be written."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    path = checkpoint.path
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(
            f"checkpoint={path!r} is not allowed: it must be None, the path of a file, or a "
            "Checkpoint."
        )
    check_number("Checkpoint.every", checkpoint.every, least=0)
    folder = Path(path).resolve().parent
    if Path(path).is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(
            f"checkpoint={str(path)!r} is not allowed: it must be a file in an existing folder "
            "that can be written to."
        )
    return Checkpoint(Path(path).resolve(), float(checkpoint.every))
