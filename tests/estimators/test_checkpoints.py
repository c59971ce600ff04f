"""Checkpoints: a fit that was killed continues and ends with the same model."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import notsorandom
from notsorandom import (
    Checkpoint,
    FileFormatError,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    GradientSolver,
    Langevin,
    Sphere,
)
from notsorandom.estimators import resume
from notsorandom.estimators.resume import CheckpointFile
from notsorandom.tuning import tune as tuning

QUICK = {"smoothing": 0.06, "random_state": 0}


class CrashError(Exception):
    """Stops a fit in the middle."""


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")


@pytest.fixture
def crash(monkeypatch):
    """Make the fit stop after a number of checkpoints."""

    def after(n_written):
        write, count = CheckpointFile.after_round, 0

        def crashing(self, *arguments):
            nonlocal count
            write(self, *arguments)
            count += 1
            if count == n_written:
                monkeypatch.undo()
                raise CrashError

        monkeypatch.undo()  # of an earlier crash that did not happen
        monkeypatch.setattr(CheckpointFile, "after_round", crashing)

    return after


def variants():
    quick, sphere = {"smoothing": 0.06}, Sphere(normalize=True)
    rounds = {n: GradientSolver(n_rounds=n) for n in (5, 15, 25)}
    return {
        "default": FourierClassifier(30, **quick),
        "all chosen": FourierClassifier(22),
        "not a multiple of the peaks": FourierFeatures(23, **quick),
        "paired": FourierClassifier(48, phase="paired", **quick),
        "few rounds": FourierFeatures(40, solver=rounds[5], **quick),
        "size chosen": FourierClassifier("auto", max_components=64, **quick),
        "reweighted": FourierClassifier(24, solver="reweight", C=1.0, **quick),
        "theory": FourierClassifier(
            24, solver=GradientSolver("theory"), loss="squared_hinge", **quick
        ),
        "Langevin": FourierFeatures(8, search=Langevin(n_steps=5), **quick),
        "harmonics": FourierClassifier(20, solver=rounds[15], space=sphere, **quick),
        "harmonics, size chosen": FourierFeatures(
            "auto", max_components=20, solver=rounds[25], space=sphere, **quick
        ),
        "zonal": FourierClassifier(20, space=Sphere("zonal", normalize=True), **quick),
        "regression": FourierRegressor(24, **quick),
        "columns left out": FourierClassifier(24, optional_columns=[2], **quick),
    }


@pytest.fixture
def variant(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "size chosen":
            patch.setattr(tuning, "plan_stages", lambda config, trials: [(32, 1)])
        yield request.param


ANY = {"id": "any checkpoint", "marks": pytest.mark.slow}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("crashes", [[2], pytest.param(range(1, 200), **ANY)])
@pytest.mark.parametrize("variant", variants(), indirect=True)
def test_a_crashed_fit_ends_with_the_same_model(
    variant, crashes, dtype, data, crash, tmp_path, assert_same_fit
):
    """After each of some numbers of checkpoints."""
    X, y = data[0].astype(dtype), data[1]
    if variant == "regression":
        y = np.stack([X[:, 0], np.sin(X[:, 1])], axis=1)
    if variant == "paired":
        y = np.arange(300) % 3
    undisturbed = variants()[variant].set_params(random_state=0).fit(X, y)
    model = clone(undisturbed).set_params(checkpoint=Checkpoint(tmp_path / "game", every=0))
    for n_written in crashes:
        crash(n_written)
        try:
            model = clone(model).fit(X, y)
        except CrashError:
            assert os.listdir(tmp_path) == ["game"]
        else:  # there are no more checkpoints
            assert n_written > 2
            break
        assert_same_fit(model.fit(X, y), undisturbed)
        assert os.listdir(tmp_path) == []


def interrupted(model, data, crash, tmp_path, n_written=2):
    """Give the model a checkpoint file, and stop its fit after some checkpoints."""
    model.set_params(checkpoint=Checkpoint(tmp_path / "game", every=0))
    crash(n_written)
    with pytest.raises(CrashError):
        model.fit(*data)
    return model


def read_checkpoint(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def write_checkpoint(path, arrays):
    with path.open("wb") as file:
        np.savez(file, **arrays)


def test_rounds_before_the_crash_are_not_played_again(data, crash, tmp_path):
    model = FourierFeatures(40, **QUICK)
    interrupted(model, data, crash, tmp_path, 5)
    before = read_checkpoint(tmp_path / "game")
    crash(1)
    with pytest.raises(CrashError):
        model.fit(*data)
    after = read_checkpoint(tmp_path / "game")
    n_rounds = [len(arrays["fit.state.history.seconds"]) for arrays in (before, after)]
    assert n_rounds[1] == n_rounds[0] + 1
    frequencies = "fit.state.active_set.frequencies"
    n_found = len(before[frequencies])
    np.testing.assert_array_equal(after[frequencies][:n_found], before[frequencies])


def test_without_a_seed_the_same_game_continues(data, crash, tmp_path):
    model = interrupted(FourierFeatures(12, smoothing=0.06), data, crash, tmp_path)
    first = read_checkpoint(tmp_path / "game")["fit.state.active_set.frequencies"]
    model.fit(*data)
    # The checkpoint has them in units of the samples' scale.
    found = model.frequencies_[: len(first)] * model.kernel_.space.scale
    np.testing.assert_allclose(found, first, rtol=1e-6)


def test_a_generator_is_not_drawn_from_again(data, crash, tmp_path, assert_same_fit):
    """It has advanced since the fit that crashed; the checkpoint has the seed."""
    undisturbed = FourierFeatures(12, smoothing=0.06, random_state=np.random.RandomState(0))
    model = FourierFeatures(12, smoothing=0.06, random_state=np.random.RandomState(0))
    interrupted(model, data, crash, tmp_path)
    assert_same_fit(model.fit(*data), undisturbed.fit(*data))


OTHERS = {
    "max_components": (400, "2000 and is 400"),
    "phase": ("paired", "'aligned' and is 'paired'"),
    "loss": ("squared_hinge", "'logistic' and is 'squared_hinge'"),
    "smoothing": ([0.1, 0.06], "0.06 and is [0.1, 0.06]"),
    "solver": (GradientSolver(0.2), "'auto' and is 0.2"),
    "class_weight": ({"no": 2}, "None and is {'no': 2}"),
    "linear": (True, "'auto' and is True"),
    "optional_columns": ([1], "None and is [1]"),
    "n_components": (14, "12 and is 14"),
    "C": (3, "1 and is 3"),
    "space": (Sphere(normalize=True), "'euclidean' and is Sphere"),
    "search": (Langevin(n_steps=4), "3 and is 4"),
    "random_state": (2, "0 and is 2"),
}


def test_a_checkpoint_of_another_fit_is_rejected(data, crash, tmp_path):
    """All parameters are compared, except for those that don't change the model."""
    X, y = data
    model = FourierClassifier(12, C=1.0, search=Langevin(n_steps=3), **QUICK)
    interrupted(model, data, crash, tmp_path)
    before = (tmp_path / "game").read_bytes()
    free = {"checkpoint", "warm_start", "n_jobs", "verbose"}
    assert set(OTHERS) == set(model.get_params(deep=False)) - free
    inner = {"solver": "solver__learning_rate", "search": "search__n_steps"}
    changed = [(X + 1e-9, y), (X, y[::-1]), (X, y, np.arange(1, 301))]
    cases = [
        (clone(model).set_params(**{name: value}), data, f"{inner.get(name, name)} was {words}")
        for name, (value, words) in OTHERS.items()
    ]
    cases += [
        (clone(model), other, f"{name} has changed")
        for name, other in zip(("X", "y", "sample weights"), changed, strict=True)
    ]
    parameters = model.get_params(deep=False)
    del parameters["linear"]
    features = FourierFeatures(**parameters)
    cases.append((features, data, "class was FourierClassifier"))
    for other, samples, message in cases:
        with pytest.raises(ValueError, match=r"is of another fit: .*or delete the file") as caught:
            other.fit(*samples)
        assert message in str(caught.value)
        assert (tmp_path / "game").read_bytes() == before
        assert not hasattr(other, "kernel_")
    # Equal values of another type are the same.
    model.set_params(C=1, n_components=np.int64(12)).fit(*data)


def test_columns_without_entries_are_compared(crash, tmp_path, rng):
    X = sparse.csr_array(np.maximum(rng.normal(size=(300, 5)), 0))
    y = np.arange(300) % 2
    model = FourierFeatures(12, **QUICK)
    interrupted(model, (X, y), crash, tmp_path)
    with pytest.raises(ValueError, match="X has changed"):
        model.fit(sparse.csr_array(sparse.hstack([X, sparse.csr_array((300, 2))])), y)


def test_path_interval_threads_and_warm_start_may_change(data, crash, tmp_path, assert_same_fit):
    undisturbed = FourierClassifier(12, **QUICK).fit(*data)
    model = FourierClassifier(12, **QUICK)
    interrupted(model, data, crash, tmp_path)
    (tmp_path / "game").rename(tmp_path / "moved")
    model.set_params(checkpoint=str(tmp_path / "moved"), warm_start=True, n_jobs=2)
    assert_same_fit(model.fit(*data), undisturbed)


@pytest.mark.parametrize("n_components", [12, 13])
def test_a_resumed_game_can_be_warm_started(n_components, data, crash, tmp_path, assert_same_fit):
    settings = {**QUICK, "warm_start": True}
    undisturbed = FourierClassifier(n_components, **settings).fit(*data)
    undisturbed.set_params(n_components=40).fit(*data)
    for n_written in (1, 2):
        model = FourierClassifier(n_components, **settings)
        interrupted(model, data, crash, tmp_path, n_written).fit(*data)
        assert_same_fit(model.set_params(n_components=40).fit(*data), undisturbed)


def test_a_warm_start_can_be_resumed(data, crash, tmp_path, assert_same_fit):
    """The second fit crashes, and another estimator continues it."""
    settings = {**QUICK, "warm_start": True}
    at_once = FourierClassifier(30, **settings).fit(*data)
    model = FourierClassifier(10, **settings).fit(*data).set_params(n_components=30)
    interrupted(model, data, crash, tmp_path)
    fresh = FourierClassifier(30, checkpoint=tmp_path / "game", **settings)
    assert_same_fit(fresh.fit(*data), at_once)


def test_another_version_is_rejected(data, crash, tmp_path):
    path = tmp_path / "game"
    model = FourierFeatures(12, **QUICK)
    interrupted(model, data, crash, tmp_path)
    arrays = read_checkpoint(path)
    header = json.loads(bytes(arrays["header"]))
    header["fit"]["notsorandom"] = "9.9"
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    write_checkpoint(path, arrays)
    with pytest.raises(ValueError, match=r"notsorandom was 9\.9 and is"):
        model.fit(*data)


def test_foreign_and_incomplete_files_are_rejected(data, crash, tmp_path):
    """Changed contents are tested in test_damaged_checkpoints."""
    path = tmp_path / "game"
    model = FourierFeatures(12, **QUICK)
    interrupted(model, data, crash, tmp_path)
    saved = notsorandom.save(
        clone(model).set_params(checkpoint=None).fit(*data), tmp_path / "x.skops"
    )
    arrays, complete = read_checkpoint(path), path.read_bytes()
    write_checkpoint(path, {name: arrays[name] for name in arrays if name != "fit.state.dual"})
    incomplete = path.read_bytes()
    for content in (b"a,b\n1,2\n" * 10, saved.read_bytes(), complete[:-8], incomplete):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match="is not a checkpoint: delete it"):
            model.fit(*data)
        assert not hasattr(model, "kernel_")


def test_a_full_disk_does_not_stop_a_fit(data, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    model = FourierFeatures(12, **QUICK)
    undisturbed = model.fit(*data).frequencies_
    model.set_params(checkpoint=Checkpoint(tmp_path / "game", every=0))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RuntimeWarning, match=r"No space left on device.*The fit continues"):
        model.fit(*data)
    np.testing.assert_array_equal(model.frequencies_, undisturbed)
    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_removed_only_warns(data, tmp_path, monkeypatch):
    def refuse(path, missing_ok=False):
        raise PermissionError(errno.EACCES, "Permission denied")

    model = FourierFeatures(12, smoothing=0.06, checkpoint=tmp_path / "game")
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.warns(RuntimeWarning, match="could not be removed"):
        model.fit(*data)
    assert len(model.frequencies_) == 12


def test_nothing_is_written_in_a_round_that_is_stopped(data, tmp_path, monkeypatch):
    """After the fit's end there is nothing to continue; the checkpoint is the last observer."""
    written = []

    def stop(self, game):
        game.stopped = len(game.history) == 3
        return write(self, game)

    write = CheckpointFile.after_round
    monkeypatch.setattr(CheckpointFile, "after_round", stop)
    monkeypatch.setattr(resume, "write_archive", lambda *_: written.append("archive"))
    model = FourierFeatures(40, checkpoint=Checkpoint(tmp_path / "game", every=0), **QUICK)
    assert model.fit(*data).status_ == "stopped"
    assert len(model.history_["seconds"]) == 3
    assert len(written) == 2


def test_nothing_is_written_before_the_interval_has_passed(data, tmp_path, monkeypatch):
    def fail(path, contents):
        raise AssertionError("written")

    monkeypatch.setattr(resume, "write_archive", fail)
    model = FourierFeatures(12, **QUICK)
    model.set_params(checkpoint=Checkpoint(tmp_path / "game", every=3600)).fit(*data)
    with pytest.raises(AssertionError, match="written"):
        model.set_params(checkpoint=Checkpoint(tmp_path / "game", every=0)).fit(*data)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"checkpoint": 3}, "checkpoint=3 is not allowed"),
        ({"checkpoint": "no/such/folder/file"}, "a file in an existing folder"),
        ({"checkpoint": "."}, "it must be a file"),
        ({"checkpoint": Checkpoint("x", every=-1)}, "Checkpoint.every=-1 is not allowed"),
    ],
)
def test_invalid_checkpoints(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        FourierFeatures(**parameters).fit(*data)
