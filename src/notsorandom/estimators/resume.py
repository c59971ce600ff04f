"""Continue a game: warm starts from the last fit, checkpoints after a crash."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.files import FileFormatError
from notsorandom.data.array_api import to_host
from notsorandom.estimators.checkpoint import (
    digest,
    moves_to_arrays,
    open_archive,
    read_contents,
    read_fit,
    restore_state,
    write_archive,
)
from notsorandom.estimators.config import Checkpoint
from notsorandom.estimators.steps import Start
from notsorandom.game.loop import GameLoop, Observer
from notsorandom.game.problem import Problem
from notsorandom.game.solvers import SOLVERS
from notsorandom.game.state import GameState
from notsorandom.spaces.base import ResolvedSpace
from notsorandom.spaces.view import View
from notsorandom.tuning.choice import Candidate, Choice

# Names of the data in messages.
DATA = ("X", "y", "sample weights")
# Parameters in which a longer game may differ from the one that it continues.
FREE_IN_WARM_START = (
    "n_components",
    "max_components",
    "solver__n_rounds",
    "warm_start",
    "checkpoint",
    "n_jobs",
    "random_state",
    "verbose",
)
# Parameters in which a fit may differ from the one whose checkpoint it continues. An integer
# random_state is compared; for a generator, the checkpoint has the seed that was drawn from it. A
# Dask client may be of another cluster.
FREE_IN_CHECKPOINT = ("warm_start", "checkpoint", "n_jobs", "random_state", "verbose", "client")
CHECKPOINT_FORMAT = 10


def fingerprint(problem: Problem) -> dict[str, str]:
    """Return digests of samples, targets and weights, equal for equal data."""

    def block_digests(X: Any, *parts: Any) -> tuple[str, ...]:
        X, *columns = map(to_host, (X, *parts))
        samples: tuple[Any, ...] = (X,)
        if sparse.issparse(X):
            samples = (np.array(X.shape), X.data, X.indices, X.indptr)
        return digest(*samples), digest(columns[0]), digest(*columns[1:])

    rows = problem.rows
    blocks = rows.map_blocks(block_digests, problem.targets, *rows.weight_columns)
    return {
        name: digest(np.frombuffer("".join(parts).encode(), dtype=np.uint8))
        for name, parts in zip(DATA, zip(*blocks, strict=True), strict=True)
    }


def describe_fit(estimator: Any, problem: Problem, free: Collection[str]) -> dict[str, str]:
    """Return an estimator's parameters, except the free ones, and its data, as text."""
    if isinstance(estimator.solver, str):  # the same as the object of that name
        estimator = copy.copy(estimator)
        estimator.solver = SOLVERS[estimator.solver]()
    parameters = {
        name: parameter_text(value)
        for name, value in estimator.get_params().items()
        if name not in free
    }
    return {"class": type(estimator).__name__} | parameters | fingerprint(problem)


def parameter_text(value: Any) -> str:
    """Return the value of a parameter as text, the same in every process."""
    if hasattr(value, "get_params"):  # its own parameters are listed separately
        return type(value).__qualname__
    if isinstance(value, np.ndarray):
        return f"array {digest(value)}"
    value = value.item() if isinstance(value, np.generic) else value
    return repr(value).removesuffix(".0")  # 1.0 equals 1


def describe_differences(before: dict[str, str], now: dict[str, str]) -> str:
    """Return what differs between two fits, as text; empty if nothing does."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return ", ".join(
        f"{name} has changed"
        if name in DATA
        else f"{name} was {before.get(name, 'absent')} and is {now.get(name, 'absent')}"
        for name in names
    )


def find_start(
    start: Start,
    estimator: Any,
    checkpoint: Checkpoint | None,
    problem: Problem,
    last_fit: Any,
) -> Start:
    """Return a start that continues a checkpoint or the last fit, if there is one to continue."""
    if checkpoint is not None:
        file = CheckpointFile(checkpoint, estimator, problem)
        file.read()
        seed = start.seed if file.saved is None else file.saved["seed"]
        start = replace(start, file=file, seed=seed)
    if estimator.warm_start:
        description = describe_fit(estimator, problem, FREE_IN_WARM_START)
        start = replace(start, description=description)
        if hasattr(last_fit, "_warm_start"):
            last_fit._warm_start.check(estimator, description)
            start = replace(start, warm_start=last_fit._warm_start)
    return start


@dataclass(frozen=True)
class WarmStart:
    """The state of a fit's game, for a longer game to continue from."""

    state: GameState
    view: View
    choice: Choice
    fit: dict[str, str]  # parameters and data that must be the same; see `describe_fit`
    n_components: int
    n_rounds: int

    @classmethod
    def after(
        cls, estimator: Any, start: Start, view: View, choice: Choice, state: GameState
    ) -> WarmStart:
        """Return the warm start after a fit."""
        assert start.description is not None
        if state.dual_total is None:  # on a cluster: the dual variables will be computed again
            state = replace(state, dual=None)
        return cls(
            state,
            view,
            choice,
            start.description,
            n_components=estimator.average_kernel_.n_components,
            n_rounds=len(estimator.history_["seconds"]),
        )

    def check(self, estimator: Any, description: dict[str, str]) -> None:
        """Raise ValueError if data or parameters differ; see :func:`describe_fit`."""
        differences = describe_differences(self.fit, description)
        if differences:
            raise ValueError(
                f"warm_start=True continues the game of the last fit, but {differences}: use the "
                "same data and parameters, or set warm_start=False to begin a new game."
            )
        for name, value, before in (
            ("n_components", estimator.n_components, self.n_components),
            ("n_rounds", getattr(estimator.solver, "n_rounds", "auto"), self.n_rounds),
        ):
            if isinstance(value, Integral) and value < before:
                raise ValueError(
                    f"{name}={value} is less than the {before} of the last fit, which "
                    "warm_start=True continues: give at least as many, use features_.head(), or "
                    "set warm_start=False."
                )


class CheckpointFile(Observer):
    """A file that the state of a fit is written to from time to time.

    The file is a NumPy archive (`.npz`) without pickled objects.

    Attributes
    ----------
    saved : dict or None
        What the file holds, after :meth:`read`. The keys are "seed" (of the whole fit), "choice"
        (of the trials), "state" (of the game) and "observers" (list of their states).
    """

    saved: dict[str, Any] | None = None

    def __init__(self, checkpoint: Checkpoint, estimator: Any, problem: Problem) -> None:
        self.path, self.every = Path(checkpoint.path), checkpoint.every
        random_state = estimator.random_state
        self.fit = describe_fit(estimator, problem, FREE_IN_CHECKPOINT) | {
            "notsorandom": f"{version('notsorandom')} (format {CHECKPOINT_FORMAT})",
            "random_state": (
                parameter_text(random_state) if isinstance(random_state, Integral) else "any"
            ),
        }
        self._last_write = time.monotonic()

    def read(self) -> None:
        """Read the file if there is one; raise ValueError if it is of another fit."""
        if not self.path.exists():
            return
        with format_errors(self.path), open_archive(self.path) as (archive, header):
            differences = describe_differences(read_fit(header), self.fit)
            self.saved = {} if differences else read_contents(archive, header)
        if differences:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of another fit: {differences}. Use the same "
                "data and parameters to continue it, or delete the file, or give another path."
            )

    def begin(self, seed: int, choice: Choice, observers: Sequence[Observer]) -> None:
        """Set what each checkpoint holds beside the game: seed, choice, states of observers."""
        self.seed, self.choice, self.observers = seed, choice, observers

    def restore_choice(self) -> Choice:
        """Return what trials had chosen."""
        assert self.saved is not None
        with format_errors(self.path):
            saved = self.saved["choice"]
            return Choice(**saved | {"candidate": Candidate(*saved["candidate"])})

    def restore(self, space: ResolvedSpace) -> GameState:
        """Return the state of the game, with its columns where the rows are.

        The states of the observers are restored too.
        """
        assert self.saved is not None
        with format_errors(self.path):
            state = restore_state(self.saved["state"], space)
            for observer, saved in zip(self.observers, self.saved["observers"], strict=True):
                observer.set_state(saved)
        return state

    def after_round(self, game: GameLoop) -> bool:
        """Write the file if the last write was long enough ago; a failure only warns."""
        # A truncated round, or the last one, is played again after a crash.
        if game.stopped or game.truncated or game.finished:
            return False
        if time.monotonic() - self._last_write >= self.every:
            self._write(game)
            self._last_write = time.monotonic()
        return False

    def _write(self, game: GameLoop) -> None:
        state = game.current_state()
        history = {name: np.array([r[name] for r in state.history]) for name in state.history[0]}
        arrays = {"active_set": state.active_set.to_arrays(), "history": history, "space": None}
        arrays["moves"] = None
        if not game.problem.rows.is_local:  # columns as long as the data stay where they are
            arrays |= {"dual": None, "dual_total": None, "moves": moves_to_arrays(state.moves)}
        contents = {
            "fit": self.fit,
            "seed": self.seed,
            "choice": vars(self.choice),
            "state": vars(state) | arrays,
            "observers": [each.get_state() for each in self.observers],
        }
        try:
            write_archive(self.path, contents)
        except (OSError, TypeError, ValueError) as error:
            warnings.warn(
                f"The checkpoint could not be written ({error}). The fit continues, and will try "
                f"again in {self.every:g} seconds.",
                RuntimeWarning,
                stacklevel=2,
            )

    def remove(self) -> None:
        """Remove the file after the fit."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            warnings.warn(
                f"The checkpoint could not be removed ({error}): delete it, or the next fit will "
                "continue from it.",
                RuntimeWarning,
                stacklevel=2,
            )


def read_checkpoint_header(path: Path) -> dict[str, str]:
    """Return the parameters and data digests of the fit that a checkpoint belongs to."""
    with format_errors(path), open_archive(path) as (_, header):
        return read_fit(header)


@contextmanager
def format_errors(path: Path) -> Iterator[None]:
    """Raise errors of reading or checking a checkpoint as FileFormatError."""
    try:
        yield
    except (FileNotFoundError, PermissionError, MemoryError):
        raise
    except Exception as error:  # an incomplete or foreign file can raise nearly anything
        raise FileFormatError(
            f"{path} is not a checkpoint: delete it, or give another path."
        ) from error
