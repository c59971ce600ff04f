"""Configuration of a fit: parameters are checked before anything is computed."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom._utils.parameters import (
    MAX_NUMBER,
    check_choice,
    check_flag,
    check_number,
    resolve_named,
)
from notsorandom.data.checks import format_names
from notsorandom.data.rows import Array
from notsorandom.game.losses import Loss, QuantileLoss
from notsorandom.game.problem import Problem
from notsorandom.game.solvers import SOLVERS, Solver
from notsorandom.search import SEARCHES, Ascent
from notsorandom.search.base import Search
from notsorandom.spaces import SPACES, Euclidean
from notsorandom.spaces.base import Space
from notsorandom.tuning.choice import Candidate, FitConfig

# Candidates of the smoothing, in units of the median distance between samples. Images and other
# data with little noise need little smoothing; where labels are mostly noise, only waves about as
# long as the data are wide remain.
# Cauchy noise shifts a few samples very far, so that less of it is needed. The usual spectrum and
# smoothing come first. A Gaussian smoothing of 1 was chosen in one of 92 fits on validation rows of
# tables (benchmarks/tables.py), and is no candidate.
SMOOTHING = {"cauchy": (0.02, 0.005, 0.07, 0.2, 0.002), "gaussian": (0.07, 0.02, 0.2, 0.6)}
# A larger smoothing leaves waves so long that float32 has no digit of them.
MAX_SMOOTHING = 1e3
# Of a frequency's entry in float32, and of a machine's memory where it is not known.
BYTES_PER_NUMBER, UNKNOWN_MEMORY = 4, 2**40


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


def configure(estimator: Any) -> FitConfig:
    """Check every parameter of an estimator and return the configuration of its fit."""
    check_simple_parameters(estimator)
    loss, epsilon = resolve_loss(estimator)
    space = resolve_named("space", estimator.space, SPACES, Space)
    search = None
    if not (isinstance(estimator.search, str) and estimator.search == "auto"):
        search = resolve_named("search", estimator.search, SEARCHES, Search, extra=["auto"])
    size = estimator.n_components if isinstance(estimator.n_components, str) else "given"
    config = FitConfig(
        space=space,
        search=search,
        solver=resolve_named("solver", estimator.solver, SOLVERS, Solver),
        phase=estimator.phase,
        loss=loss,
        epsilon=epsilon,
        candidates=configure_candidates(space, search, estimator.smoothing),
        C=candidates("C", estimator.C, least=1 / MAX_NUMBER, most=MAX_NUMBER),
        calibrated=loss.gives_probabilities and hasattr(type(estimator), "predict_proba"),
        n_components=int(estimator.n_components if size == "given" else estimator.max_components),
        size=size,
        warm_start=bool(estimator.warm_start),
    )
    config = replace(config, calibration_size=resolve_calibration(estimator, config))
    check_combinations(estimator, config)
    return config


def check_simple_parameters(estimator: Any) -> None:
    """Raise ValueError if a number, a flag or a word of the parameters is not allowed."""
    check_choice("phase", estimator.phase, ["aligned", "paired"])
    check_flag("warm_start", estimator.warm_start)
    if not isinstance(estimator.linear, (bool, np.bool_)):
        check_choice("linear", estimator.linear, ["auto"], other="True, False")
    n_components = estimator.n_components
    check_number("n_components", n_components, above=0, integer=True, or_else=["auto"])
    check_number("max_components", estimator.max_components, above=0, integer=True)
    check_pattern("optional_columns", estimator.optional_columns)
    check_n_jobs(estimator.n_jobs)
    configure_checkpoint(estimator.checkpoint)
    if not isinstance(estimator.verbose, bool):
        check_number("verbose", estimator.verbose, least=0, integer=True)


def resolve_loss(estimator: Any) -> tuple[Loss, float | None]:
    """Return the loss with ``C = 1``, and its `epsilon`, or None if that is to be chosen."""
    loss, epsilon = estimator.loss, getattr(estimator, "epsilon", 0.0)
    check_number("epsilon", epsilon, least=0, most=MAX_NUMBER, or_else=["auto"])
    check_number("quantile", estimator.quantile, above=0, below=1)
    epsilon = None if isinstance(epsilon, str) else float(epsilon)
    factories = {name: partial(estimator._losses.get, name) for name in estimator._losses}
    resolved: Loss = resolve_named("loss", loss, factories, Loss)
    if not isinstance(loss, str):
        check_kind_of_loss(estimator, resolved)
        return resolved, getattr(resolved, "epsilon", 0.0)
    if loss == "epsilon_insensitive" and epsilon is not None:
        resolved = replace(resolved, epsilon=epsilon)  # type: ignore[call-arg]
    if loss == "quantile":
        resolved = QuantileLoss(quantile=float(estimator.quantile))
    return resolved, epsilon


def resolve_calibration(estimator: Any, config: FitConfig) -> int | None:
    """Return the number of rows that the game is not played on; None for the usual number."""
    size = estimator.calibration_size
    check_number("calibration_size", size, least=0, integer=True, or_else=["auto"])
    is_squared = config.loss.is_squared_error
    if isinstance(size, str):
        return None if is_squared and not config.solver.computes_equilibrium else 0
    if size and not is_squared:
        raise ValueError(
            f"calibration_size={size} is not allowed with loss={estimator.loss!r}: intervals are "
            "for loss='squared'. Use 0 or 'auto'."
        )
    return int(size)


def check_kind_of_loss(estimator: Any, loss: Loss) -> None:
    """Raise ValueError if a loss is of class labels where real targets are needed, or reversed."""
    allowed = {each.one_sided for each in estimator._losses.values()}
    if loss.one_sided not in allowed:
        kind = "class labels" if loss.one_sided else "real targets"
        raise ValueError(
            f"loss={loss!r} is not allowed: it is a loss of {kind}, which "
            f"{type(estimator).__name__} doesn't take. Give a loss with "
            f"one_sided={not loss.one_sided}."
        )


def fitted_loss(estimator: Any) -> Loss:
    """Return the loss of a fitted estimator."""
    loss, _ = resolve_loss(estimator)
    if isinstance(estimator.loss, str) and estimator.loss == "epsilon_insensitive":
        loss = replace(loss, epsilon=estimator.epsilon_)  # type: ignore[call-arg]
    return loss.times(estimator.C_)


def check_combinations(estimator: Any, config: FitConfig) -> None:
    """Raise ValueError if parameters exclude each other."""
    n_columns = config.space.n_columns(config.phase)
    if config.n_components % n_columns:
        name = "n_components" if config.size == "given" else "max_components"
        raise ValueError(
            f"{name}={config.n_components} is not allowed with phase={config.phase!r}: each "
            f"frequency gives {n_columns} features, so it must be a multiple of {n_columns}."
        )
    is_batched = isinstance(config.space, Euclidean) and config.space.has_batched_trials
    if estimator.optional_columns is not None and not is_batched:
        raise ValueError(
            f"optional_columns is not allowed with space={estimator.space!r}: trials can leave "
            "columns out on R^d only, without a limit of the frequencies."
        )
    class_weight = getattr(estimator, "class_weight", None)
    if class_weight is not None and not config.loss.one_sided:
        raise ValueError(
            f"class_weight={class_weight!r} is not allowed with loss={estimator.loss!r}, which has "
            "no classes: use sample_weight in fit."
        )


def check_memory(config: FitConfig, n_features: int) -> None:
    """Raise ValueError if the frequencies alone don't fit into the machine's memory."""
    each = max(1, BYTES_PER_NUMBER * n_features // config.space.n_columns(config.phase))
    memory = UNKNOWN_MEMORY
    if hasattr(os, "sysconf"):  # not on Windows
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if config.size == "given" and config.n_components * each > memory:
        raise ValueError(
            f"n_components={config.n_components} is not allowed with {n_features} columns: its "
            f"frequencies take {config.n_components * each:,} bytes, but the machine has "
            f"{memory:,}. Give at most {memory // each}, or fewer: features need memory too."
        )


def choose_linear(estimator: Any, config: FitConfig, problem: Problem) -> bool | None:
    """Return whether the kernel has a linear part; None if trials choose.

    They choose it where they choose the smoothing too.
    """
    is_given = not isinstance(estimator.linear, str)
    if is_given and not estimator.linear:
        return False
    from notsorandom.tuning.linear_part import why_not_linear  # needed by fits only

    reason = why_not_linear(problem.rows, config.loss)
    if config.solver.computes_equilibrium:
        reason = f"solver={estimator.solver!r} solves a game of waves alone"
    if is_given and reason:
        raise ValueError(f"linear=True is not allowed: {reason}. Use 'auto' or False.")
    if is_given:
        return True
    has_trials = len({each.smoothing for each in config.candidates}) > 1
    return False if reason or not has_trials else None


def check_pattern(name: str, value: Any) -> None:
    """Raise ValueError if the value is text that is no regular expression."""
    try:
        re.compile(value if isinstance(value, str) else "")
    except re.error as error:
        raise ValueError(
            f"{name}={value!r} is not allowed: it is no regular expression ({error}). Use "
            "re.escape for text with special characters."
        ) from None


def find_optional_columns(columns: Any, n_features: int, names: Any) -> Array | None:
    """Return a mask of the optional columns; None if there are none.

    Parameters
    ----------
    columns : str, array-like of int or str, or None
        The parameter `optional_columns`.
    n_features : int
    names : array-like of str or None
        The names of the columns, if they have any.
    """
    if columns is None:
        return None
    is_pattern, given = isinstance(columns, str), np.asarray(columns)
    if not is_pattern and (given.ndim != 1 or (given.size and given.dtype.kind not in "iUO")):
        raise ValueError(
            f"optional_columns={columns!r} is not allowed: it must be a list of column numbers or "
            "names, a regular expression that finds names, or None."
        )
    if given.dtype.kind in "UO" and names is None:
        raise ValueError(
            f"optional_columns={columns!r} is not allowed for columns without names: give X as a "
            "data frame, or the numbers of the columns."
        )
    if is_pattern:
        columns = [number for number, name in enumerate(names) if re.search(columns, name)]
    has_names = given.dtype.kind in "UO" and not is_pattern
    known = list(names) if has_names else list(range(n_features))
    present = set(known)
    unknown = [each for each in columns if each not in present]
    if unknown:
        raise ValueError(
            f"optional_columns has {unknown[0]!r}, which is no column of X: it has {n_features} "
            f"columns, {format_names([str(each) for each in known])}."
        )
    optional = np.isin(known, columns)
    if optional.all():
        raise ValueError(
            f"optional_columns may not have all {n_features} columns of X: at least one must be "
            "left if they are left out."
        )
    return optional if optional.any() else None


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


def configure_candidates(
    space: Space, search: Search | None, smoothing: Any
) -> tuple[Candidate, ...]:
    """Return pairs of spectrum and smoothing to choose from.

    On R^d, the search may have a spectrum or leave it to the trials.
    """
    given = candidates("smoothing", smoothing, least=0, most=MAX_SMOOTHING)
    search = Ascent() if search is None else search
    if type(space) is not Euclidean or not isinstance(search, Ascent):
        # Trial games on other spaces, also on those that derive from R^d, have no spectrum.
        return tuple(Candidate(None, value) for value in given or SMOOTHING["gaussian"])
    spectra = SMOOTHING if search.spectrum == "auto" else (search.spectrum,)
    return tuple(
        Candidate(spectrum, value) for spectrum in spectra for value in given or SMOOTHING[spectrum]
    )


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
