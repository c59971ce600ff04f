"""Fits that survive a crash: what they end with is what they would have ended with."""

import errno
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from notsorandom import (
    FileFormatError,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    Langevin,
    Sphere,
)
from notsorandom.estimators import checkpoints
from notsorandom.estimators.checkpoints import CheckpointFile

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from fuzz import put_together, taken_apart
from kills import kill_and_compare


class CrashError(Exception):
    """What stops a fit in the middle."""


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")


@pytest.fixture
def crash(monkeypatch):
    """Make the fit stop after so many checkpoints were written."""

    def after(n_written):
        write, count = CheckpointFile.write_if_due, 0

        def crashing(self, saved):
            nonlocal count
            write(self, saved)
            count += 1
            if count == n_written:
                monkeypatch.undo()
                raise CrashError

        monkeypatch.setattr(CheckpointFile, "write_if_due", crashing)

    return after


def learned(model):
    kept = {name: value for name, value in vars(model).items() if name[-1] == "_"}
    kept |= {f"history {name}": column for name, column in kept.pop("history_").items()}
    kept |= {f"kernel {name}": part for name, part in vars(kept.pop("kernel_")).items()}
    for other in ("history seconds", "features_", "average_kernel_", "kernel space"):
        kept.pop(other, None)
    return kept


def assert_same(model, other):
    one, two = learned(model), learned(other)
    assert set(one) == set(two)
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)


def settings():
    quick = {"smoothing": 0.06}
    sphere = Sphere(normalize=True)
    return {
        "plain": FourierClassifier(30, **quick),
        "smoothing chosen": FourierClassifier(22),
        "not a multiple of the peaks": FourierFeatures(23, **quick),
        "paired": FourierClassifier(48, phase="paired", **quick),
        "of many rounds": FourierFeatures(40, n_rounds=5, **quick),
        "stopping": FourierClassifier("auto", **quick),
        "stopping soon": FourierFeatures(60, early_stopping=True, n_iter_no_change=1, **quick),
        "reweighted": FourierClassifier(24, reweight=True, **quick),
        "theory": FourierClassifier(24, learning_rate="theory", loss="squared_hinge", **quick),
        "Langevin": FourierFeatures(8, search=Langevin(n_steps=5), **quick),
        "harmonics": FourierClassifier(20, n_rounds=15, space=sphere, **quick),
        "harmonics stopping": FourierFeatures(
            20, n_rounds=25, space=sphere, early_stopping=True, **quick
        ),
        "zonal": FourierClassifier(20, space=Sphere("zonal", normalize=True), **quick),
        "reals": FourierRegressor(24, **quick),
    }


@pytest.mark.parametrize("n_written", [1, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("setting", settings())
def test_a_fit_that_crashed_ends_as_it_would_have(setting, dtype, n_written, data, crash, tmp_path):
    X, y = data[0].astype(dtype), data[1]
    model = settings()[setting].set_params(random_state=0)
    if setting == "reals":
        y = np.stack([X[:, 0], np.sin(X[:, 1])], axis=1)
    if setting == "paired":
        y = np.arange(300) % 3
    calm = model.fit(X, y)
    model = settings()[setting].set_params(
        random_state=0, checkpoint=tmp_path / "game", checkpoint_every=0
    )
    crash(n_written)
    with pytest.raises(CrashError):
        model.fit(X, y)
    assert not hasattr(model, "kernel_")
    assert os.listdir(tmp_path) == ["game"]
    assert_same(model.fit(X, y), calm)
    assert os.listdir(tmp_path) == []


def test_it_goes_on_from_where_it_was(data, crash, tmp_path, monkeypatch):
    """The rounds before are not played again."""
    model = FourierFeatures(40, smoothing=0.06, random_state=0)
    model.set_params(checkpoint=tmp_path / "game", checkpoint_every=0)
    crash(5)
    with pytest.raises(CrashError):
        model.fit(*data)
    rounds = []
    write = CheckpointFile.write_if_due
    monkeypatch.setattr(
        CheckpointFile,
        "write_if_due",
        lambda self, saved: (rounds.append(len(saved().game.history)), write(self, saved)),
    )
    model.fit(*data)
    assert rounds[0] == 6


def test_any_seed_will_do_if_none_was_asked_for(data, crash, tmp_path):
    model = FourierFeatures(12, smoothing=0.06, checkpoint=tmp_path / "game", checkpoint_every=0)
    crash(2)
    with pytest.raises(CrashError):
        model.fit(*data)
    first = checkpoints.TensorFile(tmp_path / "game").read("state.2.found.frequencies")
    model.fit(*data)
    np.testing.assert_array_equal(model.frequencies_[: len(first)], first)


def test_a_generator_is_compared_by_its_seed(data, crash, tmp_path):
    def model(seed):
        return FourierFeatures(
            12,
            smoothing=0.06,
            checkpoint=tmp_path / "game",
            checkpoint_every=0,
            random_state=np.random.RandomState(seed),
        )

    crash(2)
    with pytest.raises(CrashError):
        model(0).fit(*data)
    with pytest.raises(ValueError, match="random_state was seed"):
        model(1).fit(*data)
    model(0).fit(*data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": 2.0}, "C was 1.0, and is 2.0"),
        ({"n_components": 13}, "n_components was 12, and is 13"),
        ({"space": Sphere(normalize=True)}, "space was 'euclidean', and is Sphere"),
        ({"search": Langevin(n_steps=4)}, "search__n_steps was 3, and is 4"),
        ({"random_state": 1}, "random_state was seed"),
        ({"class_weight": {"no": 2}}, "class_weight was None, and is {'no': 2}"),
        ("X", "X is other data"),
        ("y", "y is other data"),
        ("weights", "sample weights is other data"),
    ],
)
def test_another_fit_is_refused(change, message, data, crash, tmp_path):
    X, y = data
    model = FourierClassifier(12, smoothing=0.06, random_state=0, search=Langevin(n_steps=3))
    model.set_params(checkpoint=tmp_path / "game", checkpoint_every=0)
    crash(2)
    with pytest.raises(CrashError):
        model.fit(X, y)
    before = (tmp_path / "game").read_bytes()
    weights = None
    if change == "X":
        X = X + 1e-9
    elif change == "y":
        y = y[::-1]
    elif change == "weights":
        weights = np.arange(1, 301)
    else:
        model.set_params(**change)
    with pytest.raises(ValueError, match=r"is of another fit: .*or delete the file") as caught:
        model.fit(X, y, sample_weight=weights)
    assert message in str(caught.value)
    assert (tmp_path / "game").read_bytes() == before
    assert not hasattr(model, "kernel_")


def test_what_may_change(data, crash, tmp_path):
    model = FourierClassifier(12, smoothing=0.06, random_state=0)
    calm = FourierClassifier(12, smoothing=0.06, random_state=0).fit(*data)
    model.set_params(checkpoint=tmp_path / "game", checkpoint_every=0)
    crash(2)
    with pytest.raises(CrashError):
        model.fit(*data)
    (tmp_path / "game").rename(tmp_path / "moved")
    model.set_params(checkpoint=str(tmp_path / "moved"), checkpoint_every=9, warm_start=True)
    assert_same(model.fit(*data), calm)


def test_a_longer_game_is_gone_on_with_too(data, crash, tmp_path):
    """With warm_start: the second fit crashes, and is taken up in another process."""
    settings = {"smoothing": 0.06, "random_state": 0, "warm_start": True}
    at_once = FourierClassifier(30, **settings).fit(*data)
    model = FourierClassifier(10, **settings).fit(*data)
    model.set_params(n_components=30, checkpoint=tmp_path / "game", checkpoint_every=0)
    crash(2)
    with pytest.raises(CrashError):
        model.fit(*data)
    fresh = FourierClassifier(30, checkpoint=tmp_path / "game", **settings)
    assert_same(fresh.fit(*data), at_once)


def test_another_version_is_refused(data, crash, tmp_path, monkeypatch):
    model = FourierFeatures(12, smoothing=0.06, random_state=0)
    model.set_params(checkpoint=tmp_path / "game", checkpoint_every=0)
    crash(2)
    with pytest.raises(CrashError):
        model.fit(*data)
    monkeypatch.setattr("notsorandom.__version__", "9.9")
    with pytest.raises(ValueError, match=r"notsorandom was .*, and is 9\.9"):
        model.fit(*data)


def test_damaged_and_other_files_are_refused(data, crash, tmp_path):
    path = tmp_path / "game.safetensors"
    model = FourierFeatures(12, smoothing=0.06, random_state=0)
    model.set_params(checkpoint=path, checkpoint_every=0)
    path.write_bytes(b"a,b\n1,2\n" * 10)
    with pytest.raises(FileFormatError, match="can't be read"):
        model.fit(*data)
    FourierFeatures(12, smoothing=0.06).fit(*data).save(path)
    with pytest.raises(FileFormatError, match="is not a checkpoint: delete it"):
        model.fit(*data)
    path.unlink()
    crash(2)
    with pytest.raises(CrashError):
        model.fit(*data)
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    with pytest.raises(FileFormatError, match="can't be read"):
        model.fit(*data)
    header, content = taken_apart(whole)
    told = json.loads(header["__metadata__"][checkpoints.KIND])
    told["state"] = [1, 2]
    header["__metadata__"][checkpoints.KIND] = json.dumps(told)
    path.write_bytes(put_together(header, content))
    with pytest.raises(FileFormatError, match="is not a checkpoint: delete it"):
        model.fit(*data)


def test_a_full_disk_does_not_stop_a_fit(data, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    model = FourierFeatures(12, smoothing=0.06, random_state=0)
    calm = model.fit(*data).frequencies_
    model.set_params(checkpoint=tmp_path / "game", checkpoint_every=0)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RuntimeWarning, match=r"No space left on device.*The fit goes on"):
        model.fit(*data)
    np.testing.assert_array_equal(model.frequencies_, calm)
    assert os.listdir(tmp_path) == []


def test_it_is_written_as_often_as_asked_for(data, tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(checkpoints, "write_tensors", lambda *args: written.append(args))
    clock = iter(range(1000))
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: next(clock))
    model = FourierFeatures(40, smoothing=0.06, random_state=0, checkpoint=tmp_path / "game")
    counts = []
    for seconds in (0, 4, 2000):
        written.clear()
        model.set_params(checkpoint_every=seconds).fit(*data)
        counts.append(len(written))
    assert counts[0] > 2 * counts[1] > 0
    assert counts[2] == 0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"checkpoint": 3}, "checkpoint=3 is not allowed"),
        ({"checkpoint": "no/such/folder/file"}, "in a folder that is there"),
        ({"checkpoint": "."}, "it must be a file"),
        ({"checkpoint_every": -1}, "checkpoint_every=-1 is not allowed"),
    ],
)
def test_bad_parameters(bad, message, data):
    with pytest.raises(ValueError, match=message):
        FourierFeatures(**bad).fit(*data)


def test_killed_fits(capsys):
    """Really killed, a few times; ``benchmarks/kills.py`` does so fifty times."""
    kill_and_compare(4, 120, print)
    assert "4 fits killed" in capsys.readouterr().out
