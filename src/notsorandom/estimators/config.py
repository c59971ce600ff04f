"""The configuration of a fit: parameters are checked before anything is computed."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from notsorandom._utils.parameters import (
    MAX_NUMBER,
    check_choice,
    check_flag,
    check_number,
    resolve_named,
)
from notsorandom.game.loop import MAX_RATE, count_arguments
from notsorandom.game.losses import CLASSIFICATION_LOSSES, LOSSES, Loss
from notsorandom.game.projection import PROJECTIONS
from notsorandom.search import SEARCHES, Ascent
from notsorandom.search.base import Search
from notsorandom.spaces import SPACES, Euclidean
from notsorandom.spaces.base import Space

# Candidates of the smoothing, in units of the median distance between samples. Images and other
# data with little noise need little smoothing; where labels are mostly noise, only waves about as
# long as the data are wide remain.
SMOOTHING = (0.07, 0.02, 0.2, 0.6, 1.0)
# Spectra of the search's starts on R^d.
SPECTRA = ("gaussian", "cauchy")
# In the place of a C that is chosen, before it is; the game itself depends little on it.
AUTO_C = 1.0
# A larger smoothing leaves waves so long that float32 has no digit of them.
MAX_SMOOTHING = 1e3


class GradientSolver(BaseEstimator):
    """Solve the game by online gradient ascent of the dual, as in the paper.

    Parameters
    ----------
    learning_rate : "auto", "theory", float or callable, default="auto"
        Step size of the dual player; see :class:`notsorandom.game.GameLoop`. A callable is given
        the round, from 1, ``lambda t: t**-0.5``, and, if it requires two arguments, the theory's
        step: ``lambda t, theory: 4 * theory``. Model files don't keep callables.
    weighting : {"potential", "uniform"}, default="potential"
        Weight of each frequency in the kernel: in proportion to the amplitude of its peak, or
        equal for all plays, as in the paper. With `learning_rate="theory"` a round is one play,
        which its peaks share.
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
        names = ["auto", "theory"]
        rate, hint = self.learning_rate, "A callable of the round is allowed, too."
        if callable(rate):
            count_arguments(rate)
        else:
            check_number("learning_rate", rate, above=0, most=MAX_RATE, or_else=names, hint=hint)
        check_choice("weighting", self.weighting, ["potential", "uniform"])
        check_choice("projection", self.projection, PROJECTIONS)
        check_number("n_rounds", self.n_rounds, above=0, integer=True, or_else=["auto"])
        check_flag("reweight", self.reweight)


class EquilibriumSolver(BaseEstimator):
    """Compute the equilibrium of the game directly.

    On finite spaces such as the sphere's harmonics by a primal-dual method over all of them, to a
    relative gap of 1e-3 between the bounds of the certificate. On R^d and with zonal features by
    column generation, to 5e-3; the lower bound is proven in up to three dimensions. Both with
    ``smoothing=0`` and enough `n_components`. R^d then needs a limit of the frequencies, as in
    ``space=Euclidean(max_norm=5.0)``. All features of all samples are held in memory.

    ``history_["objective"]`` is the lower bound on the value of the game that was solved. With
    smoothing that is the smoothed game, whose value is higher than that in the certificate.
    """

    def check(self) -> None:
        """There are no parameters to check."""


SOLVERS: dict[str, Any] = {
    "gradient": GradientSolver,
    "reweight": lambda: GradientSolver(reweight=True),
    "equilibrium": EquilibriumSolver,
}


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often the state of a fit is written.

    Parameters
    ----------
    path : str or Path
        File that is written; it is removed when the fit is done.
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
    phase: str
    # Candidates that trials choose from, the usual one first; there may be only one.
    spectra: tuple[str | None, ...]  # None: the search has no spectrum
    smoothing: tuple[float, ...]
    C: tuple[float, ...] | None  # None: any
    calibrated: bool  # whether a temperature is needed
    loss_name: str
    epsilon: float | None  # None: in proportion to the targets' scale
    n_components: int  # the most, if validation samples decide when the game stops
    stops_early: bool
    warm_start: bool
    checkpoint: Checkpoint | None

    @property
    def computes_equilibrium(self) -> bool:
        """Whether the solver computes an equilibrium, of all frequencies or of those found."""
        return isinstance(self.solver, EquilibriumSolver) or bool(self.solver.reweight)

    def loss(self, C: float) -> Loss:
        """Return the loss with some `C`."""
        return LOSSES[self.loss_name](C, self.epsilon or 0.0)


@dataclass(frozen=True)
class Choice:
    """What trials chose of a configuration's candidates.

    `temperature` is what the scores of a classifier are to be divided by for probabilities, and
    `table` what the trials found, one row per candidate. If the trials also chose the number of
    features, `sizes` are the estimator's attributes with what they found.
    """

    spectrum: str | None
    smoothing: float
    C: float
    temperature: float = 1.0
    table: dict[str, Any] | None = None
    n_components: int | None = None
    sizes: dict[str, Any] | None = None

    def apply(self, config: FitConfig) -> FitConfig:
        """Return the configuration with the search and the number of features that were chosen."""
        if self.n_components is not None:
            config = replace(config, n_components=self.n_components)
        if self.spectrum is None:
            return config
        search = Ascent() if config.search is None else copy.copy(config.search)
        assert isinstance(search, Ascent)
        search.spectrum = self.spectrum
        return replace(config, search=search)


def loss_of(estimator: Any) -> Loss:
    """Return the loss of an estimator; before a fit, with 1 in the place of a `C` to be chosen."""
    C, epsilon = estimator.C, getattr(estimator, "epsilon", 0.0)
    C = getattr(estimator, "C_", C if isinstance(C, Real) else AUTO_C)
    epsilon = getattr(estimator, "epsilon_", epsilon if isinstance(epsilon, Real) else 0.0)
    return LOSSES[estimator.loss](float(C), float(epsilon))


def configure(estimator: Any) -> FitConfig:
    """Check every parameter of an estimator and return the configuration of its fit."""
    check_choice("phase", estimator.phase, ["aligned", "paired"])
    check_choice("loss", estimator.loss, estimator._losses)
    check_flag("warm_start", estimator.warm_start)
    check_number("n_components", estimator.n_components, above=0, integer=True, or_else=["auto"])
    check_number("max_components", estimator.max_components, above=0, integer=True)
    epsilon = getattr(estimator, "epsilon", 0.0)
    check_number("epsilon", epsilon, least=0, most=MAX_NUMBER, or_else=["auto"])
    fraction = estimator.validation_fraction
    check_number("validation_fraction", fraction, above=0, below=1, or_else=["auto"])
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
        phase=estimator.phase,
        spectra=configure_spectra(space, search),
        smoothing=candidates("smoothing", estimator.smoothing, least=0, most=MAX_SMOOTHING)
        or SMOOTHING,
        C=candidates("C", estimator.C, least=1 / MAX_NUMBER, most=MAX_NUMBER),
        loss_name=estimator.loss,
        epsilon=None if epsilon == "auto" else float(epsilon),
        calibrated=estimator.loss == "logistic" and hasattr(type(estimator), "predict_proba"),
        n_components=n_components,
        stops_early=stops_early,
        warm_start=bool(estimator.warm_start),
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


def candidates(name: str, value: Any, **limits: Any) -> tuple[float, ...] | None:
    """Check a parameter that is a number or a sequence of numbers to choose from.

    Return the numbers, or None for "auto".
    """
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) == 1 and len(value) > 0:
        for each in value:
            check_number(f"a candidate of {name}", each, **limits)
        return tuple(float(each) for each in value)
    try:
        check_number(name, value, **limits)
    except ValueError as error:
        raise ValueError(
            f"{str(error)[:-1]}, a list of such numbers to choose from, or 'auto'."
        ) from None
    return (float(value),)


def configure_spectra(space: Space, search: Search | None) -> tuple[str | None, ...]:
    """Return the spectra to choose from; on R^d, the search may have one or leave it to trials."""
    search = Ascent() if search is None else search
    if not isinstance(space, Euclidean) or not isinstance(search, Ascent):
        return (None,)
    spectrum = search.spectrum
    return SPECTRA if spectrum == "auto" else (spectrum,)


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
