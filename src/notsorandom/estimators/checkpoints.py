"""A fit that survives a crash: its game, in a file."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import notsorandom
from notsorandom._utils.files import remove_parts
from notsorandom.estimators.identity import differences, identity_of, in_words
from notsorandom.game import Checkpoint

# Of the files.
FORMAT = 1
KIND = "notsorandom.checkpoint"
# A fit may differ in these from the one whose checkpoint it goes on with. A random_state that is a
# number is compared; one that isn't had its turn then. A client is of another cluster.
FREE_PARAMETERS = (
    "warm_start",
    "checkpoint",
    "checkpoint_every",
    "random_state",
    "verbose",
    "client",
)


class Saved(NamedTuple):
    """What a checkpoint file holds.

    Parameters
    ----------
    seed : int
        Of the whole fit.
    smoothing : float
    game : Checkpoint
        The start of the round that is next.
    validation : dict or None
        What was seen on samples held out until then.
    """

    seed: int
    smoothing: float
    game: Checkpoint
    validation: dict[str, Any] | None


class CheckpointFile:
    """The file that a fit's game is kept in from time to time.

    Parameters
    ----------
    estimator : estimator
        Which knows its data already.
    """

    def __init__(self, estimator: Any) -> None:
        self.path = Path(estimator.checkpoint).resolve()
        self.every = float(estimator.checkpoint_every)
        self.identity = identity_of(estimator, FREE_PARAMETERS) | {
            # Another may play another game.
            "notsorandom": f"{notsorandom.__version__} (format {FORMAT})",
            "random_state": seed_in_words(estimator.random_state),
        }
        self._written = time.monotonic()

    def read(self) -> Saved | None:
        """What is there to go on from, if anything; raise ValueError if it is of another fit."""
        from notsorandom.io.packing import Unpacker
        from notsorandom.io.tensors import FileFormatError, TensorFile

        if not self.path.exists():
            return None
        with TensorFile(self.path) as file:
            try:
                told = file.told(KIND)
                other = differences(told["identity"], self.identity)
                if not other:
                    seed, smoothing, game, validation = Unpacker(file).unpack(told["state"])
                    return Saved(seed, smoothing, Checkpoint.from_state(game), validation)
            except FileFormatError:
                raise
            # Whatever is missing, or of the wrong kind.
            except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
                raise self._refused() from error
        raise ValueError(
            f"checkpoint={str(self.path)!r} is of another fit: {other}. Fit as then to go on with "
            "it, or delete the file, or give another, to begin anew."
        )

    def checked(self, saved: Saved, shape: tuple[int, ...]) -> Checkpoint:
        """Where the game goes on from, if its dual variables are of that shape."""
        game = saved.game
        sound = (
            type(saved.smoothing) is float
            and game.dual.shape == game.dual_total.shape == shape
            and type(game.plays) is int
            and type(game.flat) is bool
            and len(game.found) > 0
        )
        if not sound:
            raise self._refused()
        return game

    def _refused(self) -> Exception:
        from notsorandom.io.tensors import FileFormatError

        return FileFormatError(f"{self.path} is not a checkpoint: delete it, or give another path.")

    def write_if_due(self, saved: Callable[[], Saved]) -> None:
        """Write the file if the last time is long enough ago; a fit never dies of it."""
        if time.monotonic() - self._written < self.every:
            return
        from notsorandom.io.packing import Packer
        from notsorandom.io.tensors import write_tensors

        packer = Packer()
        seed, smoothing, game, validation = saved()
        try:
            state = packer.pack([seed, smoothing, game.state(), validation], "state")
            told = {"identity": self.identity, "state": state}
            write_tensors(self.path, packer.arrays, {KIND: json.dumps(told)})
        except (OSError, TypeError, ValueError) as error:  # no room, or nothing to be kept
            warnings.warn(
                f"The checkpoint could not be written ({error}). The fit goes on, and it will be "
                f"tried again in {self.every:g} seconds.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._written = time.monotonic()

    def done(self) -> None:
        """Remove the file: there is nothing left to go on with."""
        try:
            self.path.unlink(missing_ok=True)
            remove_parts(self.path)
        except OSError as error:
            warnings.warn(
                f"The checkpoint could not be removed ({error}): delete it, or the next fit will "
                "take it up.",
                RuntimeWarning,
                stacklevel=2,
            )


def seed_in_words(random_state: Any) -> str:
    """A seed, if it is one; a generator, or none, is what it was when the first fit began."""
    return in_words(random_state) if isinstance(random_state, Integral) else "any"
