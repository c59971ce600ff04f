"""Fits that survive a crash: what they end with is what they would have ended with."""

import errno
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from notsorandom import (
    Euclidean,
    FileFormatError,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    Langevin,
    Sphere,
    learning,
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

        monkeypatch.undo()  # of a crash that never came
        monkeypatch.setattr(CheckpointFile, "write_if_due", crashing)

    return after


def learned(model):
    kept = {name: value for name, value in vars(model).items() if name[-1] == "_"}
    kept |= {f"history {name}": column for name, column in kept.pop("history_").items()}
    kept |= {f"kernel {name}": part for name, part in vars(kept.pop("kernel_")).items()}
    kept |= {f"average {name}": part for name, part in vars(kept.pop("average_kernel_")).items()}
    for other in ("kernel", "average"):
        space = kept.pop(f"{other} space")
        kept |= {f"{other} space {name}": part for name, part in vars(space).items()}
    for other in ("history seconds", "features_"):
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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("setting", settings())
def test_a_fit_that_crashed_ends_as_it_would_have(setting, dtype, data, crash, tmp_path):
    """Wherever it crashes: after each of the times that the checkpoint is written."""
    X, y = data[0].astype(dtype), data[1]
    if setting == "reals":
        y = np.stack([X[:, 0], np.sin(X[:, 1])], axis=1)
    if setting == "paired":
        y = np.arange(300) % 3
    calm = settings()[setting].set_params(random_state=0).fit(X, y)
    smoothing = calm.smoothing_  # once chosen is enough
    for n_written in range(1, 200):
        model = settings()[setting].set_params(
            random_state=0, smoothing=smoothing, checkpoint=tmp_path / "game", checkpoint_every=0
        )
        crash(n_written)
        try:
            model.fit(X, y)
        except CrashError:
            pass
        else:
            break
        assert not hasattr(model, "kernel_")
        assert os.listdir(tmp_path) == ["game"]
        assert_same(model.fit(X, y), calm)
        assert os.listdir(tmp_path) == []
    assert n_written > 2


def test_the_smoothing_is_not_chosen_again(data, crash, tmp_path, monkeypatch):
    settings = {"random_state": 0, "checkpoint": tmp_path / "game", "checkpoint_every": 0}
    calm = FourierClassifier(22, random_state=0).fit(*data)
    crash(2)
    with pytest.raises(CrashError):
        FourierClassifier(22, **settings).fit(*data)
    monkeypatch.setattr(learning.Game, "choose_smoothing", None)
    assert_same(FourierClassifier(22, **settings).fit(*data), calm)


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


def test_a_generator_had_its_turn(data, crash, tmp_path):
    """It has moved on since, and is not asked again."""
    generator = np.random.RandomState(0)
    settings = {"smoothing": 0.06, "checkpoint": tmp_path / "game", "checkpoint_every": 0}
    calm = FourierFeatures(12, smoothing=0.06, random_state=np.random.RandomState(0)).fit(*data)
    model = FourierFeatures(12, random_state=generator, **settings)
    crash(2)
    with pytest.raises(CrashError):
        model.fit(*data)
    assert_same(model.fit(*data), calm)


OTHERS = {
    "n_rounds": 50,
    "phase": "paired",
    "loss": "squared_hinge",
    "smoothing": 0.07,
    "weighting": "uniform",
    "learning_rate": 0.2,
    "dynamics": "primal_dual",
    "reweight": True,
    "class_weight": "balanced",
    "early_stopping": True,
    "validation_fraction": 0.3,
    "n_iter_no_change": 9,
    "tol": 0.1,
    "n_components": 14,
    "C": 3,
    "space": "sphere",
    "search": "langevin",
    "random_state": 2,
    "n_jobs": 2,
}


def test_every_parameter_is_compared(data, crash, tmp_path):
    model = FourierClassifier(12, smoothing=0.06, random_state=0)
    model.set_params(checkpoint=tmp_path / "game", checkpoint_every=0)
    crash(2)
    with pytest.raises(CrashError):
        model.fit(*data)
    assert set(OTHERS) == set(model.get_params()) - {
        "checkpoint",
        "checkpoint_every",
        "warm_start",
        "verbose",
    }
    X, y = data[0] / np.linalg.norm(data[0], axis=1, keepdims=True), data[1]
    for name, value in OTHERS.items():
        other = clone(model).set_params(**{name: value})
        with pytest.raises(ValueError, match=f"is of another fit: .*{name} was"):
            other.fit(X if name == "space" else data[0], y)
    with pytest.raises(ValueError, match="class was FourierClassifier"):
        FourierFeatures(**model.get_params()).fit(*data)
    # What is equal is not another.
    model.set_params(C=1, n_components=np.int64(12)).fit(*data)


def test_any_number_of_jobs_may_go_on(data, crash, tmp_path):
    calm = FourierClassifier(12, smoothing=0.06, random_state=0, n_jobs=1).fit(*data)
    model = FourierClassifier(12, smoothing=0.06, random_state=0, n_jobs=1)
    model.set_params(checkpoint=tmp_path / "game", checkpoint_every=0)
    crash(2)
    with pytest.raises(CrashError):
        model.fit(*data)
    assert_same(model.set_params(n_jobs=2).fit(*data), calm)


def test_columns_without_entries_count(crash, tmp_path, rng):
    X = sparse.csr_array(np.maximum(rng.normal(size=(300, 5)), 0))
    y = np.arange(300) % 2
    model = FourierFeatures(12, smoothing=0.06, random_state=0)
    model.set_params(checkpoint=tmp_path / "game", checkpoint_every=0)
    crash(2)
    with pytest.raises(CrashError):
        model.fit(X, y)
    with pytest.raises(ValueError, match="X is other data"):
        model.fit(sparse.csr_array(sparse.hstack([X, sparse.csr_array((300, 2))])), y)


def test_what_cannot_be_kept_does_not_stop_a_fit(data, tmp_path):
    class Mine(Euclidean):
        def resolve(self, rows, rng):
            resolved = super().resolve(rows, rng)
            return Mine(resolved.scale, resolved.center)

    model = FourierFeatures(12, smoothing=0.06, random_state=0, space=Mine())
    model.set_params(checkpoint=tmp_path / "game", checkpoint_every=0)
    with pytest.warns(RuntimeWarning, match="can't be kept in a file"):
        model.fit(*data)
    assert len(model.frequencies_) == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": 2.0}, "C was 1.0, and is 2.0"),
        ({"n_components": 13}, "n_components was 12.0, and is 13.0"),
        ({"space": Sphere(normalize=True)}, "space was 'euclidean', and is Sphere"),
        ({"search": Langevin(n_steps=4)}, "search__n_steps was 3.0, and is 4.0"),
        ({"random_state": 1}, "random_state was 0.0, and is 1.0"),
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


@pytest.mark.parametrize("n_components", [12, 13])
def test_a_resumed_game_is_gone_on_with_as_an_undisturbed_one(n_components, data, crash, tmp_path):
    settings = {"smoothing": 0.06, "random_state": 0, "warm_start": True}
    calm = FourierClassifier(n_components, **settings).fit(*data)
    calm.set_params(n_components=40).fit(*data)
    for n_written in range(1, 100):
        model = FourierClassifier(n_components, checkpoint=tmp_path / "game", **settings)
        model.set_params(checkpoint_every=0)
        crash(n_written)
        try:
            model.fit(*data)
        except CrashError:
            model.fit(*data)
            assert_same(model.set_params(n_components=40).fit(*data), calm)
        else:
            break
    assert n_written > 2


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


def test_a_file_that_cannot_be_removed_does_not_cost_the_fit(data, tmp_path, monkeypatch):
    def refuse(path, missing_ok=False):
        raise PermissionError(errno.EACCES, "Permission denied")

    model = FourierFeatures(12, smoothing=0.06, checkpoint=tmp_path / "game", checkpoint_every=99)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.warns(RuntimeWarning, match="could not be removed"):
        model.fit(*data)
    assert len(model.frequencies_) == 12


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
