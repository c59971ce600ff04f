"""Checkpointed fits killed at random times must end with the same model as undisturbed fits.

    python -m benchmarks.kills --kills 50

Each fit is run once undisturbed. Then it is repeatedly started in a new process, killed (SIGKILL)
at a random time, and run again. The resulting model must be equal to the undisturbed one, bit for
bit. Most kills come after the first checkpoint, every fifth also before it. Prints the rounds in
the checkpoints of the killed fits. Every other fit has three classes and n_components="auto".
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import notsorandom
from benchmarks.common import make_parser
from notsorandom import Checkpoint, FourierClassifier
from notsorandom.datasets import make_windmill

CHECKPOINT, MODEL = "game.npz", "model.skops"


def fit(folder: Path, auto: bool, n_components: int, checkpointed: bool) -> None:
    """Fit one of two models and save it."""
    X, y = make_windmill(2000, random_state=0)
    model = FourierClassifier(n_components, random_state=0)
    if auto:
        y = y + 2 * (X[:, 0] > 0.3)
        model.set_params(n_components="auto", max_components=n_components // 3)
    if checkpointed:
        model.set_params(checkpoint=Checkpoint(folder / CHECKPOINT, every=0.02))
    notsorandom.save(model.fit(X, y), folder / MODEL)


def learned(folder: Path) -> dict[str, Any]:
    """Return everything that a fit learned, except for its times."""
    model = notsorandom.load(folder / MODEL)
    parts = {name: getattr(model, name) for name in ("frequencies_", "phases_", "coef_")}
    parts |= {"weights": model.kernel_.weights}
    parts |= {name: np.array(getattr(model, name)) for name in ("smoothing_", "C_", "temperature_")}
    parts |= {name: column for name, column in model.history_.items() if name != "seconds"}
    return parts


def count_rounds(path: Path) -> int:
    """Return the number of rounds in a checkpoint; 0 if there is none."""
    if not path.exists():
        return 0
    with np.load(path) as archive:
        return len(archive["fit.state.history.seconds"])


def kill_and_compare(n_kills: int, n_components: int, output: Callable[[str], None]) -> None:
    """Raise AssertionError unless every killed fit ends with the model of an undisturbed fit."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["notsorandom", "notsorandom.datasets"])
    rng = np.random.default_rng(0)
    with TemporaryDirectory() as name:
        expected, seconds = {}, {}
        for auto in (False, True):
            folder = Path(name) / f"undisturbed-{auto}"
            folder.mkdir()
            start_fit(context, folder, auto, n_components, False).join()
            expected[auto] = learned(folder)
            seconds[auto] = notsorandom.load(folder / MODEL).history_["seconds"][-1]
        n_rounds: list[int] = []
        attempts = 0
        while len(n_rounds) < n_kills:
            attempts += 1
            auto, folder = attempts % 2 == 1, Path(name) / str(attempts)
            folder.mkdir()
            process = start_fit(context, folder, auto, n_components, True)
            while attempts % 5 and process.is_alive() and not (folder / CHECKPOINT).exists():
                time.sleep(0.001)
            process.join(rng.uniform(0, seconds[auto]))
            if not process.is_alive():
                continue  # it ended before the kill
            process.kill()
            process.join()
            n_rounds.append(count_rounds(folder / CHECKPOINT))
            process = start_fit(context, folder, auto, n_components, True)
            process.join()
            assert process.exitcode == 0, f"a fit ended with exit code {process.exitcode}"
            after = learned(folder)
            for part, values in expected[auto].items():
                np.testing.assert_array_equal(after[part], values, err_msg=f"{attempts}: {part}")
            # A kill may leave the temporary file of a write, which is removed after a day.
            files = [file for file in os.listdir(folder) if not file.endswith(".part")]
            assert files == [MODEL], files
        output(f"undisturbed games: {seconds[False]:.1f} s and {seconds[True]:.1f} s")
        output(f"rounds in the checkpoints of the killed fits: {n_rounds}")
        output(f"{n_kills} fits killed and run again, all equal to the undisturbed fits")


def start_fit(context: Any, folder: Path, auto: bool, n_components: int, checkpointed: bool) -> Any:
    """Start a process that fits."""
    process = context.Process(target=fit, args=(folder, auto, n_components, checkpointed))
    process.start()
    return process


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--features", type=int, default=400)
    options = parser.parse_args()
    kill_and_compare(options.kills, options.features, print)


if __name__ == "__main__":
    main()
