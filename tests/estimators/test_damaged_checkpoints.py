"""Damaged checkpoints, and killed fits: an error that says what to do, or the same model."""

import inspect
import io
import json
import os
import subprocess
import sys
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

from notsorandom import (
    Checkpoint,
    FileFormatError,
    FourierClassifier,
    FourierFeatures,
    GradientSolver,
    Sphere,
)
from notsorandom.datasets import make_windmill
from notsorandom.estimators.resume import CheckpointFile, read_checkpoint_header
from notsorandom.tuning import tune as tuning

pytestmark = pytest.mark.usefixtures("quick_trials")

QUICK = {"smoothing": 0.06, "C": 1.0, "random_state": 0}
MODELS = {
    "chosen": FourierClassifier(22, random_state=0),
    "size chosen": FourierClassifier("auto", max_components=40, **QUICK),
    "paired": FourierFeatures(24, phase="paired", **QUICK),
    "harmonics": FourierFeatures(
        20, space=Sphere(normalize=True), solver=GradientSolver(n_rounds=15), **QUICK
    ),
    "zonal": FourierFeatures(20, space=Sphere("zonal", normalize=True), **QUICK),
}
VALUES = [None, True, -1, 0, 3, 1e300, float("nan"), "x", [], [1], {}, 2**70, -(2**70)]


class CrashError(Exception):
    """Stops a fit in the middle."""


@pytest.fixture(params=MODELS)
def case(request, tmp_path):
    """Return a model, its data, and its checkpoint after a crash."""
    rng, model, path = np.random.default_rng(0), MODELS[request.param], tmp_path / "game"
    X = rng.normal(size=(100, 3))
    data = X, np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")
    model = model.set_params(checkpoint=Checkpoint(path, every=0))
    write, count = CheckpointFile.after_round, 0

    def crash(self, *arguments):
        nonlocal count
        write(self, *arguments)
        count += 1
        if count == 2:
            raise CrashError

    with pytest.MonkeyPatch.context() as patch:
        if request.param == "size chosen":
            patch.setattr(tuning, "plan_stages", lambda config, trials: [(32, 1)])
        with patch.context() as crashing:
            crashing.setattr(CheckpointFile, "after_round", crash)
            with pytest.raises(CrashError):
                model.fit(*data)
        model.set_params(checkpoint=Checkpoint(path, every=3600))
        yield model, data, path


def read(path):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(arrays.pop("header").tobytes()), arrays


def write(path, header, arrays):
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, header=text, **arrays)


def is_refused(model, data):
    """Fit from the checkpoint; return whether it was refused."""
    message = ""
    try:
        model.fit(*data)
    except FileFormatError as error:
        message = str(error)
    assert message == "" or "delete it, or give another path" in message
    return bool(message)


def places(value, path=()):
    """Yield the place of every value in nested dicts and lists."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield (*path, key)
        if isinstance(value[key], (dict, list)):
            yield from places(value[key], (*path, key))


def change(header, place, value):
    """Return a copy with another value at a place; without it for ``...``."""
    header = json.loads(json.dumps(header))
    part = header
    for key in place[:-1]:
        part = part[key]
    if value is ...:
        del part[place[-1]]
    else:
        part[place[-1]] = value
    return header


def damaged_arrays(array, rng):
    """Yield arrays that are not what the array should be, and some that could be."""
    for dtype in ("f2", "f4", "f8", "c8", "i8", "i1", "?", "M8[s]", "U3", "S2"):
        if array.dtype.kind != "U" or dtype in ("U3", "S2"):
            with np.errstate(all="ignore"):
                yield array.astype(dtype)
    yield from (array[1:], array[:0], array[None], np.array(3.0), array[..., None], array.T)
    yield np.asfortranarray(array)
    yield np.resize(array, 7)
    if array.dtype.kind in "if":
        for value in (-1, 0, 5, 1e18, np.nan, np.inf):
            if array.dtype.kind == "f" or abs(value) < np.inf:
                damaged = array.copy()
                damaged.flat[rng.integers(array.size)] = value
                yield damaged
                yield np.full_like(array, value)


N_DAMAGED = pytest.mark.parametrize("n_damaged", [40, pytest.param(1000, marks=pytest.mark.slow)])


@N_DAMAGED
def test_any_value_of_the_header(case, n_damaged):
    model, data, path = case
    header, arrays = read(path)
    rng = np.random.default_rng(0)
    inner = [place for place in places(header) if place[0] != "fit"]
    changes = [(place, value) for place in inner for value in (*VALUES, ...)]
    changes += [((name, "other"), 1) for name in ("state", "choice")]
    for number in rng.permutation(len(changes))[:n_damaged]:
        damaged = change(header, *changes[number])
        write(path, damaged, arrays)
        assert json.dumps(damaged) == json.dumps(header) or is_refused(model, data)


@N_DAMAGED
def test_any_array(case, n_damaged):
    model, data, path = case
    header, arrays = read(path)
    rng = np.random.default_rng(0)
    names = [name for name in arrays if name != "digest"]
    changes = [(name, each) for name in names for each in damaged_arrays(arrays[name], rng)]
    for number in rng.permutation(len(changes))[:n_damaged]:
        name, array = changes[number]
        write(path, header, arrays | {name: array})
        is_same = array.dtype == arrays[name].dtype and np.array_equal(
            array, arrays[name], equal_nan=array.dtype.kind == "f"
        )
        assert is_same or is_refused(model, data)
    name = next(iter(arrays))
    write(path, header, arrays | {"other": arrays[name]})
    assert is_refused(model, data)


@N_DAMAGED
@pytest.mark.parametrize("case", ["size chosen"], indirect=True)
def test_any_byte(case, n_damaged):
    model, data, path = case
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    assert not is_refused(model, data)
    expected = model.coef_
    for number in range(n_damaged):
        content = bytearray(whole)
        where = int(rng.integers(len(whole)))
        if number % 3 == 0:
            del content[where:]
        elif number % 3 == 1:
            content[where] ^= 1 << int(rng.integers(8))
        else:
            content[where : where + 8] = rng.bytes(8)
        path.write_bytes(content)
        # Some bytes of the zip format mean nothing, such as dates.
        assert is_refused(model, data) or np.array_equal(model.coef_, expected)
    path.write_bytes(whole[: len(whole) // 2])
    assert is_refused(model, data)


def peak_bytes(function, *arguments):
    """Return the most memory that a call allocates, and what it returns."""
    tracemalloc.start()
    try:
        result = function(*arguments)
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def array_header(shape):
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


@pytest.mark.parametrize("case", ["chosen"], indirect=True)
@pytest.mark.parametrize("bomb", ["compressed", "shape", "header", "nested"])
def test_bombs_are_refused_without_memory(case, bomb, monkeypatch):
    model, data, path = case
    header, arrays = read(path)
    dual, text = "fit.state.dual.npy", json.dumps(header)
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    method = zipfile.ZIP_DEFLATED if bomb in ("compressed", "header") else zipfile.ZIP_STORED
    if bomb == "compressed":
        contents[dual] = array_header((10**8,)) + bytes(8 * 10**8 // 10)
    elif bomb == "shape":
        contents[dual] = array_header((10**14, 1))
    elif bomb == "header":
        contents["header.npy"] += bytes(10**8)
    else:
        contents["header.npy"] = array_bytes("[" * 10**6)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    del contents, text, arrays
    peak, refused = peak_bytes(is_refused, model, data)
    assert refused
    assert peak < 5e7
    if bomb in ("compressed", "header", "nested"):
        peak, _ = peak_bytes(pytest.raises, FileFormatError, read_checkpoint_header, path)
        assert peak < 5e7


def array_bytes(text):
    file = io.BytesIO()
    np.save(file, np.frombuffer(text.encode(), dtype=np.uint8))
    return file.getvalue()


@pytest.mark.parametrize("case", ["chosen"], indirect=True)
def test_the_header_can_be_read_alone(case, tmp_path):
    path = case[-1]
    fit = read_checkpoint_header(path)
    assert fit["class"] == "FourierClassifier"
    assert fit["n_components"] == "22"
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(FileFormatError, match="is not a checkpoint: delete it"):
        read_checkpoint_header(path)
    with pytest.raises(FileNotFoundError):
        read_checkpoint_header(tmp_path / "missing")


def fit_windmill(auto, checkpoint=None):
    X, y = make_windmill(1000, random_state=0)
    model = FourierClassifier(200, random_state=0, checkpoint=checkpoint)
    if auto:
        y = y + 2 * (X[:, 0] > 0.3)
        model.set_params(n_components="auto", max_components=80)
    return model.fit(X, y)


@pytest.mark.slow
@pytest.mark.full_trials
@pytest.mark.parametrize("auto", [False, True])
def test_a_fit_killed_at_any_moment_ends_with_the_same_model(auto, tmp_path):
    """The first kill may come before the first checkpoint, the others come after it."""
    begin = time.perf_counter()
    expected = fit_windmill(auto)
    seconds, path, rng = time.perf_counter() - begin, tmp_path / "game", np.random.default_rng(0)
    imports = "from notsorandom import *\nfrom notsorandom.datasets import make_windmill\n"
    call = f"print(flush=True)\nfit_windmill({auto}, Checkpoint({str(path)!r}, every=0.02))"
    code = f"{imports}{inspect.getsource(fit_windmill)}{call}"
    for number in range(4):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"\n"
        while number and process.poll() is None and not path.exists():
            time.sleep(0.001)
        time.sleep(rng.uniform(0, seconds / 2))
        process.kill()
        process.communicate()
        model = fit_windmill(auto, Checkpoint(path, every=0.02))
        for name in ("frequencies_", "phases_", "coef_", "C_", "smoothing_", "temperature_"):
            np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))
        # A kill may leave the temporary file of a write, which is removed after a day.
        assert [name for name in os.listdir(tmp_path) if not name.endswith(".part")] == []
