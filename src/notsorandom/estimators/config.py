"""What an estimator was asked for, checked before any work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from notsorandom._utils.parameters import check_choice, check_flag, check_number, named_object
from notsorandom.estimators.training import DYNAMICS, WEIGHTINGS, Game
from notsorandom.game import LOSSES, MARGIN_LOSSES, Loss
from notsorandom.search import SEARCHES
from notsorandom.spaces import SPACES

# With n_components="auto", there are never more than this.
MOST_COMPONENTS = 2000


def stops_early(estimator: Any) -> bool:
    """Whether the game is watched on samples held out."""
    return bool(estimator.early_stopping or estimator.n_components == "auto")


def most_components(estimator: Any) -> int:
    """The number of features that a game ends at."""
    number = estimator.n_components
    return MOST_COMPONENTS if number == "auto" else int(number)


def loss_of(estimator: Any) -> Loss:
    """The loss of an estimator's model."""
    return LOSSES[estimator.loss](float(estimator.C), float(estimator.epsilon))


def configured_game(estimator: Any) -> Game:
    """Check every parameter, and put the game together."""
    check_choice("phase", estimator.phase, ["aligned", "paired"])
    check_choice("loss", estimator.loss, estimator._losses)
    check_choice("weighting", estimator.weighting, WEIGHTINGS)
    check_choice("dynamics", estimator.dynamics, DYNAMICS)
    for name in ("reweight", "early_stopping", "warm_start"):
        check_flag(name, getattr(estimator, name))
    check_number("n_components", estimator.n_components, above=0, integer=True, or_else=["auto"])
    check_number("n_rounds", estimator.n_rounds, above=0, integer=True, or_else=["auto"])
    check_number("C", estimator.C, above=0)
    check_number("epsilon", estimator.epsilon, least=0)
    check_number("smoothing", estimator.smoothing, least=0, or_else=["auto"])
    check_number("learning_rate", estimator.learning_rate, above=0, or_else=["auto", "theory"])
    check_number("validation_fraction", estimator.validation_fraction, above=0, below=1)
    check_number("n_iter_no_change", estimator.n_iter_no_change, above=0, integer=True)
    check_number("tol", estimator.tol, least=0)
    if estimator.n_jobs is not None:
        check_number("n_jobs", estimator.n_jobs, least=-(2**15), integer=True)
        if estimator.n_jobs == 0:
            raise ValueError("n_jobs=0 is not allowed: it must be None, an int > 0, or -1 for all.")
    check_number("checkpoint_every", estimator.checkpoint_every, least=0)
    check_checkpoint(estimator.checkpoint)
    if not isinstance(estimator.verbose, bool):
        check_number("verbose", estimator.verbose, least=0, integer=True)
    space = named_object("space", estimator.space, SPACES, needs=["check", "prepare", "resolve"])
    search = named_object("search", estimator.search, SEARCHES, needs=["check", "find"])
    n_columns = space.n_columns(estimator.phase)
    if most_components(estimator) % n_columns:
        raise ValueError(
            f"n_components={estimator.n_components} is not allowed with phase={estimator.phase!r}: "
            f"each frequency gives {n_columns} features, so it must be a multiple of {n_columns}."
        )
    if stops_early(estimator) and (estimator.warm_start or estimator.dynamics == "primal_dual"):
        other = "warm_start=True" if estimator.warm_start else "dynamics='primal_dual'"
        raise ValueError(
            f"early_stopping={estimator.early_stopping} with "
            f"n_components={estimator.n_components!r} is not allowed with {other}: give "
            "n_components a number and early_stopping=False, or leave the other out."
        )
    if estimator.class_weight is not None and estimator.loss not in MARGIN_LOSSES:
        raise ValueError(
            f"class_weight={estimator.class_weight!r} is not allowed with "
            f"loss={estimator.loss!r}, which has no classes: use sample_weight in fit."
        )
    return Game(
        space=space,
        search=search,
        loss=loss_of(estimator),
        phase=estimator.phase,
        weighting=estimator.weighting,
        learning_rate=estimator.learning_rate,
        dynamics=estimator.dynamics,
        reweight=estimator.reweight,
    )


def check_checkpoint(path: Any) -> None:
    """Raise ValueError unless it is None, or a file that can be written."""
    if path is None:
        return
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(
            f"checkpoint={path!r} is not allowed: it must be None or the path of a file."
        )
    folder = Path(path).resolve().parent
    if Path(path).is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(
            f"checkpoint={str(path)!r} is not allowed: it must be a file, in a folder that is "
            "there and can be written to."
        )
