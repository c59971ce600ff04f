"""Checkpointed fits killed at random moments: every one must end as if nothing had happened.

    python benchmarks/kills.py --kills 50

A fit is run once undisturbed. Then, again and again, it is started in a process of its own and
killed (SIGKILL) at a random moment: of the whole fit, or mostly of its game, which begins some time
before there is a checkpoint. It is run once more, and the model that it then ends with must be the
undisturbed one, bit for bit. Prints how many rounds the killed fits had left behind them. Every
other fit holds samples out to stop by, and has three classes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import notsorandom
from notsorandom import FourierClassifier
from notsorandom.datasets import make_windmill
from notsorandom.io.tensors import TensorFile

CHECKPOINT = "game.safetensors"


def fit(folder: Path, way: int, n_components: int, checkpointed: bool) -> None:
    """Fit one of two models, and save it."""
    X, y = make_windmill(2000, random_state=0)
    model = FourierClassifier(n_components, random_state=0, checkpoint_every=0.02)
    if way:
        y = y + 2 * (X[:, 0] > 0.3)
        model.set_params(n_components=n_components // 3, early_stopping=True, n_iter_no_change=50)
    if checkpointed:
        model.set_params(checkpoint=folder / CHECKPOINT)
    model.fit(X, y).save(folder / "model.safetensors")


def learned(folder: Path) -> dict[str, Any]:
    """All that a fit learned, but for its seconds."""
    model = notsorandom.load(folder / "model.safetensors")
    parts = {name: getattr(model, name) for name in ("frequencies_", "phases_", "coef_")}
    parts |= {"weights": model.kernel_.weights, "smoothing": np.array(model.smoothing_)}
    parts |= {name: column for name, column in model.history_.items() if name != "seconds"}
    return parts


def rounds_in(path: Path) -> int:
    """Rounds of the game in a checkpoint; none if it isn't there."""
    if not path.exists():
        return 0
    with TensorFile(path) as file:
        return max(
            entry.shape[0] for name, entry in file.entries.items() if ".history.plays" in name
        )


def kill_and_compare(n_kills: int, n_components: int, tell: Callable[[str], None]) -> None:
    """Raise AssertionError unless every fit that was killed ends as it would have."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["notsorandom", "notsorandom.datasets"])
    rng = np.random.default_rng(0)
    with TemporaryDirectory() as name:
        calm, seconds = {}, {}
        for way in (0, 1):
            folder = Path(name) / f"calm{way}"
            folder.mkdir()
            started(context, folder, way, n_components, False).join()
            calm[way] = learned(folder)
            seconds[way] = notsorandom.load(folder / "model.safetensors").history_["seconds"][-1]
        left: list[int] = []
        attempts = 0
        while len(left) < n_kills:
            attempts += 1
            way, folder = attempts % 2, Path(name) / str(attempts)
            folder.mkdir()
            process = started(context, folder, way, n_components, True)
            while attempts % 5 and process.is_alive() and not (folder / CHECKPOINT).exists():
                time.sleep(0.001)
            process.join(rng.uniform(0, seconds[way]))
            if not process.is_alive():
                continue  # it was done before
            process.kill()
            process.join()
            left.append(rounds_in(folder / CHECKPOINT))
            process = started(context, folder, way, n_components, True)
            process.join()
            assert process.exitcode == 0, f"a fit ended with {process.exitcode}"
            after = learned(folder)
            for part, values in calm[way].items():
                np.testing.assert_array_equal(after[part], values, err_msg=f"{attempts}: {part}")
            files = sorted(os.listdir(folder))
            assert files == ["model.safetensors"], files
        tell(f"undisturbed games: {seconds[0]:.1f} s and {seconds[1]:.1f} s")
        tell(f"rounds in the files of the killed: {left}")
        tell(f"{n_kills} fits killed and run again, each the same model as undisturbed")


def started(context: Any, folder: Path, way: int, n_components: int, checkpointed: bool) -> Any:
    """A process that fits."""
    process = context.Process(target=fit, args=(folder, way, n_components, checkpointed))
    process.start()
    return process


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--features", type=int, default=400)
    options = parser.parse_args()
    kill_and_compare(options.kills, options.features, print)


if __name__ == "__main__":
    main()
