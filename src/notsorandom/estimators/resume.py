"""Continue a game: warm starts from the last fit, checkpoints after a crash."""

from __future__ import annotations

import copy
import hashlib
import json
import time
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.files import FileFormatError, open_atomic, remove_partial_files
from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array
from notsorandom.estimators.config import SOLVERS, Checkpoint, Choice
from notsorandom.estimators.early_stopping import EarlyStopping
from notsorandom.estimators.training import Preparation
from notsorandom.game.dual import DualProblem
from notsorandom.game.loop import GameLoop
from notsorandom.game.result import ActiveSet, GameState
from notsorandom.spaces.base import ResolvedSpace

# Names of the data in messages.
DATA = ("X", "y", "sample weights")
# Parameters in which a longer game may differ from the one that it continues.
FREE_IN_WARM_START = (
    "n_components",
    "max_components",
    "solver__n_rounds",
    "validation_fraction",
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
CHECKPOINT_FORMAT = 5


def fingerprint(problem: DualProblem) -> dict[str, str]:
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


def digest(*arrays: Any) -> str:
    """Return a cryptographic digest of some arrays, their types and shapes."""
    content = hashlib.blake2b(digest_size=16)
    for array in arrays:
        content.update(f"{array.dtype.str}{array.shape}".encode())
        for start in range(0, len(array), 4096):  # copies only a few rows at a time
            content.update(np.ascontiguousarray(array[start : start + 4096]).data)
    return content.hexdigest()


def describe_fit(estimator: Any, problem: DualProblem, free: Collection[str]) -> dict[str, str]:
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
    return repr(float(value) if type(value) is int else value)  # 1 equals 1.0


def describe_differences(before: dict[str, str], now: dict[str, str]) -> str:
    """Return what differs between two fits, as text; empty if nothing does."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return ", ".join(
        f"{name} has changed"
        if name in DATA
        else f"{name} was {before.get(name, 'absent')} and is {now.get(name, 'absent')}"
        for name in names
    )


@dataclass(frozen=True)
class WarmStart:
    """The state of a fit's game, for a longer game to continue from."""

    state: GameState
    preparation: Preparation
    fit: dict[str, str]  # parameters and data that must be the same; see `describe_fit`
    n_components: int
    n_rounds: int

    @classmethod
    def after(
        cls, estimator: Any, problem: DualProblem, preparation: Preparation, state: GameState
    ) -> WarmStart:
        """Return the warm start after a fit to a problem as it was given."""
        return cls(
            state,
            preparation,
            describe_fit(estimator, problem, FREE_IN_WARM_START),
            n_components=estimator.average_kernel_.n_components,
            n_rounds=len(estimator.history_["seconds"]),
        )

    def check(self, estimator: Any, problem: DualProblem) -> WarmStart:
        """Return this warm start; raise ValueError if data or parameters differ."""
        now = describe_fit(estimator, problem, FREE_IN_WARM_START)
        differences = describe_differences(self.fit, now)
        if differences:
            raise ValueError(
                f"warm_start=True continues the game of the last fit, but {differences}: use the "
                "same data and parameters, or set warm_start=False to begin a new game."
            )
        n_rounds: Any = getattr(estimator.solver, "n_rounds", "auto")
        for name, value, before in (
            ("n_components", estimator.n_components, self.n_components),
            ("n_rounds", n_rounds, self.n_rounds),
        ):
            if value != "auto" and value < before:
                raise ValueError(
                    f"{name}={value} is less than the {before} of the last fit, which "
                    "warm_start=True continues: give at least as many, use features_.head(), or "
                    "set warm_start=False."
                )
        return self


class CheckpointFile:
    """A file that the state of a fit is written to from time to time.

    The file is a NumPy archive (`.npz`) without pickled objects.
    """

    def __init__(self, checkpoint: Checkpoint, estimator: Any, problem: DualProblem) -> None:
        self.path, self.every = Path(checkpoint.path), checkpoint.every
        random_state = estimator.random_state
        self.fit = describe_fit(estimator, problem, FREE_IN_CHECKPOINT) | {
            "notsorandom": f"{version('notsorandom')} (format {CHECKPOINT_FORMAT})",
            "random_state": (
                parameter_text(random_state) if isinstance(random_state, Integral) else "any"
            ),
        }
        self._last_write = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """Return what the file holds, or None; raise ValueError if it is of another fit.

        The keys are "seed" (of the whole fit), "choice" (of the trials), "state" (of the game)
        and "stopping" (state of early stopping, or None).
        """
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                contents: dict[str, Any] = json.loads(
                    bytes(archive["header"]),
                    object_hook=lambda part: archive[part["array"]] if "array" in part else part,
                )
            differences = describe_differences(contents["fit"], self.fit)
            np.random.default_rng(contents["seed"])
        except (PermissionError, MemoryError):
            raise
        except Exception as error:  # an incomplete or foreign file can raise nearly anything
            raise self._format_error() from error
        if differences:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of another fit: {differences}. Use the same "
                "data and parameters to continue it, or delete the file, or give another path."
            )
        return contents

    def _format_error(self) -> FileFormatError:
        return FileFormatError(f"{self.path} is not a checkpoint: delete it, or give another path.")

    def restore(
        self,
        saved: dict[str, Any],
        space: ResolvedSpace,
        problem: DualProblem,
        stopping: EarlyStopping | None,
    ) -> GameState:
        """Return the state of the game, with its columns where the rows are.

        The state of early stopping is restored too.
        """
        try:
            parts, arrays = saved["state"], saved["state"]["active_set"]
            active_set = ActiveSet.from_arrays(space.kind == "finite", arrays)
            state = GameState(**(parts | {"space": space, "active_set": active_set}))
            np.random.default_rng(0).bit_generator.state = state.random_state
            if stopping is not None:
                stopping.set_state(saved["stopping"], space)
            valid = (
                all(
                    column.shape == tuple(problem.targets.shape) and column.dtype == problem.dtype
                    for column in (state.dual, state.dual_total)
                )
                and len(active_set) > 0
                and all(len(array) == len(active_set) for array in arrays.values())
                and space.n_features(arrays["frequencies"]) == problem.rows.n_features
                and isinstance(state.n_plays, int)
                and isinstance(state.flat, bool)
            )
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise self._format_error() from error
        if not valid:
            raise self._format_error()
        return state.map_columns(problem.rows.from_host)

    def restore_choice(self, saved: dict[str, Any]) -> Choice:
        """Return what trials had chosen."""
        try:
            choice = Choice(**saved["choice"])
            numbers = choice.smoothing, choice.C, choice.temperature
            valid = all(isinstance(number, float) and number >= 0 for number in numbers)
        except (LookupError, TypeError) as error:
            raise self._format_error() from error
        if not valid:
            raise self._format_error()
        return choice

    def write_if_due(
        self, seed: int, choice: Choice, loop: GameLoop, stopping: EarlyStopping | None
    ) -> None:
        """Write the file if the last write was long enough ago; a failure only warns."""
        if time.monotonic() - self._last_write < self.every:
            return
        state = loop.current_state().map_columns(loop.problem.rows.to_host)
        arrays = {"space": None, "active_set": state.active_set.to_arrays()}
        contents = {
            "seed": seed,
            "choice": vars(choice),
            "state": vars(state) | arrays,
            "stopping": None if stopping is None else stopping.get_state(),
        }
        try:
            self._write(contents)
        except (OSError, TypeError, ValueError) as error:
            warnings.warn(
                f"The checkpoint could not be written ({error}). The fit continues, and will try "
                f"again in {self.every:g} seconds.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._last_write = time.monotonic()

    def _write(self, contents: dict[str, Any]) -> None:
        arrays: dict[str, Array] = {}
        header = {"fit": self.fit} | extract_arrays(contents, "fit", arrays)
        text = json.dumps(header, default=lambda number: number.item())
        arrays["header"] = np.frombuffer(text.encode(), dtype=np.uint8)
        with open_atomic(self.path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    def remove(self) -> None:
        """Remove the file after the fit."""
        try:
            self.path.unlink(missing_ok=True)
            remove_partial_files(self.path)
        except OSError as error:
            warnings.warn(
                f"The checkpoint could not be removed ({error}): delete it, or the next fit will "
                "continue from it.",
                RuntimeWarning,
                stacklevel=2,
            )


def extract_arrays(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """Move the arrays of nested dicts to `arrays`; dicts with their names take their places."""
    if isinstance(value, dict):
        return {key: extract_arrays(part, f"{name}.{key}", arrays) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    return value
