"""Fitted models as files: the same predictions, nothing executed, nothing half-written."""

import errno
import io
import itertools
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import skops.io
from sklearn.exceptions import NotFittedError

import notsorandom
from notsorandom import (
    Ascent,
    Enumerate,
    Euclidean,
    FileFormatError,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    Langevin,
    Sphere,
)
from notsorandom._utils.files import whole_file, write_whole
from notsorandom.io.layout import KIND
from notsorandom.io.tensors import TensorFile, write_tensors

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from fuzz import WAYS, fuzz, put_together, taken_apart

QUICK = {"smoothing": 0.06, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")


def predictions(model, X):
    if isinstance(model, FourierFeatures):
        return model.transform(X)
    if isinstance(model, FourierClassifier):
        return model.decision_function(X)
    return model.predict(X)


def kinds():
    three = np.arange(80) % 3
    reals = np.random.default_rng(1).normal(size=(80, 2))
    return {
        "classifier": (FourierClassifier(8, **QUICK), None),
        "paired": (FourierClassifier(8, phase="paired", search=Langevin(n_steps=3), **QUICK), None),
        "three classes": (FourierClassifier(8, class_weight={0: 2, 1: 1}, **QUICK), three),
        "three names": (FourierClassifier(8, **QUICK), np.array(["b", "a", "cc"])[three]),
        "objects": (FourierClassifier(8, **QUICK), np.array(["b", "a", "cc"], object)[three]),
        "floats": (FourierClassifier(8, **QUICK), three + 0.0),
        "bytes": (FourierClassifier(8, **QUICK), three.astype(np.uint8)),
        "booleans": (FourierClassifier(8, **QUICK), three > 1),
        "features": (FourierFeatures(8, search=Ascent(n_steps=3), **QUICK), None),
        "features of reals": (FourierFeatures(8, loss="squared", **QUICK), reals),
        "regressor": (FourierRegressor(8, **QUICK), reals[:, 0]),
        "regressor of a column": (FourierRegressor(8, **QUICK), reals[:, :1]),
        "regressor of two": (FourierRegressor(8, loss="epsilon_insensitive", **QUICK), reals),
        "stopped": (FourierClassifier(12, early_stopping=True, **QUICK), None),
        "reweighted": (FourierClassifier(12, reweight=True, **QUICK), None),
        "centred": (FourierFeatures(8, space=Euclidean(center=np.arange(3.0)), **QUICK), None),
        "harmonic": (
            FourierClassifier(8, space=Sphere(normalize=True), search=Enumerate(2), **QUICK),
            None,
        ),
        "zonal": (FourierClassifier(8, space=Sphere("zonal", normalize=True), **QUICK), None),
        "degrees": (FourierFeatures(9, space=Sphere("degree", 2, normalize=True), **QUICK), None),
        "equilibrium": (
            FourierClassifier(
                8, space=Sphere(normalize=True, max_degree=3), dynamics="primal_dual", **QUICK
            ),
            None,
        ),
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", kinds())
def test_a_loaded_model_is_the_saved_one(kind, dtype, data, tmp_path):
    X, y = data[0].astype(dtype), data[1]
    model, targets = kinds()[kind]
    targets = y if targets is None else targets
    model.fit(X, targets)
    path = model.save(tmp_path / "model.safetensors", {"accuracy": 0.5})
    loaded = notsorandom.load(path)
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    for given in (X, X[:1], X.astype(np.float32), X.astype(np.float64)):
        before, after = predictions(model, given), predictions(loaded, given)
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)
    if isinstance(model, FourierClassifier):
        assert model.classes_.dtype == loaded.classes_.dtype
        np.testing.assert_array_equal(model.predict(X), loaded.predict(X))
        assert loaded.features_.transform(X).tobytes() == model.features_.transform(X).tobytes()
    # All but what is as long as the data is there, and another file of it is the same file.
    assert set(vars(model)) - set(vars(loaded)) == {"dual_", "average_dual_"}
    again = loaded.save(tmp_path / "again.safetensors", {"accuracy": 0.5})
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", ["stopped", "reweighted", "zonal", "regressor of two"])
def test_a_loaded_model_can_be_asked_what_a_model_can(kind, data, tmp_path):
    X, y = data
    model, targets = kinds()[kind]
    y = y if targets is None else targets
    loaded = notsorandom.load(model.fit(X, y).save(tmp_path / "model.safetensors"))
    assert loaded.certificate(X, y).upper == model.certificate(X, y).upper
    pages = [each.report(tmp_path / "report.html", X, y).read_text() for each in (model, loaded)]
    assert pages[0] == pages[1]


def test_names_of_columns_and_wide_numbers(data, tmp_path):
    X, y = pd.DataFrame(data[0], columns=["a", "b", "ü"]), data[1]
    model = FourierClassifier(8, random_state=np.random.RandomState(0), smoothing=0.06).fit(X, y)
    model.set_params(checkpoint=tmp_path / "here")
    loaded = notsorandom.load(model.save(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X.rename(columns={"a": "z"}))
    assert loaded.random_state is None
    assert loaded.checkpoint is None
    assert str(tmp_path).encode() not in (tmp_path / "model.safetensors").read_bytes()


def test_weights_of_samples_are_not_in_the_file(data, tmp_path):
    X, y = data
    weights = np.arange(1.0, 81)
    model = FourierClassifier(8, **QUICK).fit(X, y, sample_weight=weights)
    loaded = notsorandom.load(model.save(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match="weights, which files of models don't keep"):
        loaded.certificate(X, y)


def test_a_model_is_small_and_its_memory_bounded(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 512))
    y = np.cos(X[:, 0]) > 0.5
    path = FourierClassifier(100, **QUICK).fit(X, y).save(tmp_path / "model.safetensors")
    size = path.stat().st_size
    assert size <= 300_000
    notsorandom.load(path)  # whatever is imported on the way
    tracemalloc.start()
    notsorandom.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * size + 2**17


def test_other_programs_read_it(data, tmp_path):
    X, y = data
    model = FourierClassifier(8, **QUICK).fit(X, y)
    path = model.save(tmp_path / "model.safetensors", {"held-out accuracy": 0.75})
    arrays = safetensors.numpy.load_file(path)
    np.testing.assert_array_equal(arrays["kernel.frequencies"], model.frequencies_)
    np.testing.assert_array_equal(arrays["coef_"], model.coef_)
    with safetensors.safe_open(path, "np") as file:
        told = json.loads(file.metadata()[KIND])
    assert told["class"] == "FourierClassifier"
    assert told["library"] == notsorandom.__version__
    assert told["metrics"] == {"held-out accuracy": 0.75}
    assert told["parameters"]["n_components"] == 8
    # The fingerprint is that of the data.
    other = FourierClassifier(8, **QUICK).fit(X, y).save(tmp_path / "other.safetensors")
    changed = FourierClassifier(8, **QUICK).fit(X + 1, y).save(tmp_path / "changed.safetensors")
    prints = [fingerprint_in(each) for each in (path, other, changed)]
    assert prints[0] == prints[1]
    assert prints[0]["X"] != prints[2]["X"]
    assert prints[0]["y"] == prints[2]["y"]


def fingerprint_in(path):
    with TensorFile(path) as file:
        return dict(file.told(KIND)["learned"]["_fingerprint"]["pairs"])


def test_it_reads_what_others_write_in_order_only(tmp_path, rng):
    """A file of arrays alone, by another program, is read up to its missing digest."""
    path = tmp_path / "arrays.safetensors"
    safetensors.numpy.save_file({"a": rng.normal(size=3)}, path)
    with pytest.raises(FileFormatError, match="digest"):
        TensorFile(path)


class TestTensors:
    def test_arrays_come_back(self, tmp_path, rng):
        arrays = {
            "doubles": rng.normal(size=(3, 4)),
            "turned": rng.normal(size=(3, 4)).T,
            "singles": rng.normal(size=5).astype(np.float32),
            "whole": np.arange(7),
            "short": np.arange(7, dtype=np.int32),
            "bytes": np.frombuffer(b"abc", np.uint8),
            "flags": np.array([True, False]),
            "one": np.array(2.5),
            "none": np.empty((0, 3)),
        }
        path = tmp_path / "arrays.safetensors"
        write_tensors(path, arrays, {"about": "these"})
        elsewhere = safetensors.numpy.load_file(path)
        with TensorFile(path) as file:
            assert file.metadata == {"about": "these"}
            for name, array in arrays.items():
                found = file.read(name)
                assert found.dtype == array.dtype
                assert found.shape == array.shape
                np.testing.assert_array_equal(found, array)
                np.testing.assert_array_equal(elsewhere[name], array)

    def test_too_much_to_say(self, tmp_path):
        with pytest.raises(ValueError, match="header of"):
            write_tensors(tmp_path / "a.safetensors", {}, {"long": "x" * 2**20})
        assert os.listdir(tmp_path) == []

    def test_not_a_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            notsorandom.load(tmp_path / "missing.safetensors")
        os.mkfifo(tmp_path / "pipe")
        for other in (tmp_path, tmp_path / "pipe", "/dev/zero"):
            with pytest.raises(FileFormatError, match="ordinary file"):
                notsorandom.load(other)


class TestDamage:
    def test_files_of_all_kinds_of_damage(self):
        counts = fuzz(210)
        for way in WAYS:
            assert counts[f"{way.__name__}, refused"] > 0
        assert sum(counts.values()) == 210
        assert counts["flipped, sound"] == 0

    @pytest.fixture
    def parts(self, data, tmp_path):
        model = FourierClassifier(8, early_stopping=True, **QUICK)
        path = model.fit(*data).save(tmp_path / "model.safetensors")
        header, content = taken_apart(path.read_bytes())
        told = json.loads(header["__metadata__"][KIND])

        def refused(match, told=told):
            header["__metadata__"][KIND] = json.dumps(told)
            path.write_bytes(put_together(header, content))
            with pytest.raises(FileFormatError, match=match) as caught:
                notsorandom.load(path)
            assert str(path) in str(caught.value)
            assert "take another copy" in str(caught.value)

        return told, refused

    @pytest.mark.parametrize(
        ("place", "value", "message"),
        [
            (("format",), True, "can't be understood"),
            (("class",), "SVC", "no sound model"),
            (("phase",), "none", "the phase"),
            (("space",), None, "no sound model"),
            (("parameters", "C"), -1, "C=-1 is not allowed"),
            (("parameters", "checkpoint"), "/tmp/elsewhere", "checkpoint"),
            (("parameters", "random_state"), "clock", "random_state"),
            (("parameters", "more"), 1, "its parameters"),
            (("learned", "n_features_in_"), 3.0, "number of columns"),
            (("learned", "n_features_in_"), 4, "number of columns"),
            (("learned", "n_samples_fit_"), 0, "number of samples"),
            (("learned", "n_samples_fit_"), 10**12, "no sound model|samples held out"),
            (("learned", "status_"), "done", "the status"),
            (("learned", "smoothing_"), -1, "the smoothing"),
            (("learned", "smoothing_"), 1, "the smoothing"),
            (("learned", "_weighted"), None, "weights"),
            (("learned", "_fingerprint"), {"pairs": [["X", 1]]}, "the fingerprint"),
            (("learned", "history_"), {"pairs": []}, "the history"),
            (("learned", "duality_gap_"), "small", "the duality gap"),
            (("learned", "coef_", "dtype"), "i8", "can't have been"),
            (("learned", "coef_", "dtype"), "O", "would be of the type"),
            (("space", "parameters", "scale"), 0, "no sound model"),
            (("space", "parameters", "center"), "mean", "no sound model"),
            (("space", "object"), "Sphere", "unknown, or was another"),
            (("metrics",), None, None),
        ],
    )
    def test_one_thing_that_is_wrong(self, place, value, message, parts):
        told, refused = parts
        inner = told
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        if message is not None:
            refused(message)

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("kernel.frequencies", np.nan, "the frequencies"),
            ("kernel.weights", -1.0, "the weights"),
            ("kernel.weights", 1.0, "the weights"),
            ("kernel.scales", np.inf, "the scales"),
            ("kernel.phases", np.nan, "the phases"),
            ("coef_", np.nan, "the coefficients"),
            ("intercept_", np.inf, "the coefficients"),
        ],
    )
    def test_one_number_that_is_wrong(self, name, value, message, data, tmp_path):
        path = FourierClassifier(8, **QUICK).fit(*data).save(tmp_path / "model.safetensors")
        with TensorFile(path) as file:
            arrays = {each: file.read(each) for each in file.entries}
            metadata = file.metadata
        arrays[name].flat[0] = value
        write_tensors(path, arrays, metadata)
        with pytest.raises(FileFormatError, match=message):
            notsorandom.load(path)

    @pytest.mark.parametrize(
        ("space", "wrong"),
        [
            *itertools.product(["harmonic", "zonal"], ["degree", "order", "harmonics"]),
            ("zonal", "phase"),
        ],
    )
    def test_frequencies_that_are_none(self, space, wrong, data, tmp_path):
        """A degree out of the space's would take forever to compute."""
        sphere = Sphere(space, normalize=True)
        model = FourierClassifier(8, space=sphere, **QUICK).fit(*data)
        path = model.save(tmp_path / "model.safetensors")
        with TensorFile(path) as file:
            told = file.told(KIND)
            arrays = {each: file.read(each) for each in file.entries}
        if wrong == "degree":
            arrays["kernel.frequencies"][0, -1] = 10**6
        elif wrong == "order":
            arrays["kernel.frequencies"][0] = [3, 1, 0][: arrays["kernel.frequencies"].shape[1]]
        elif wrong == "phase":
            told["phase"] = "paired"
        else:
            told["space"]["parameters"] |= {"max_degree": 2**14, "max_harmonics": 10**9}
        write_tensors(path, arrays, {KIND: json.dumps(told)})
        with pytest.raises(FileFormatError, match=r"the frequencies|degree|harmonics|phase"):
            notsorandom.load(path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: text.replace('"dtype"', '"dtype":"F32","dtype"', 1),
            lambda text: text.replace('"data_offsets":[0,', '"data_offsets":[8,', 1),
            lambda text: text.replace('"F64"', '"F16"', 1),
            lambda text: text[:-1] + ',"more":' + "[" * 70000 + "]" * 70000 + "}",
        ],
        ids=["said twice", "a hole", "unknown type", "many parts"],
    )
    def test_headers_that_lie(self, change, data, tmp_path):
        path = FourierClassifier(8, **QUICK).fit(*data).save(tmp_path / "model.safetensors")
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        text = change(content[8 : 8 + length].decode().rstrip()).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
        with pytest.raises(FileFormatError, match=r"JSON|at \[|unknown type|too many parts"):
            notsorandom.load(path)

    def test_texts_that_are_too_many(self, data, tmp_path):
        X = pd.DataFrame(data[0], columns=["a", "b", "c"])
        path = FourierClassifier(8, **QUICK).fit(X, data[1]).save(tmp_path / "model.safetensors")
        with TensorFile(path) as file:
            arrays = {each: file.read(each) for each in file.entries}
            metadata = file.metadata
        arrays["feature_names_in_"] = np.frombuffer(b"[" + b"{}," * 10**6 + b"{}]", np.uint8)
        write_tensors(path, arrays, metadata)
        with pytest.raises(FileFormatError, match="too many texts"):
            notsorandom.load(path)

    def test_a_later_format(self, parts):
        told, refused = parts
        told["format"] = 2
        refused("update the library")

    def test_an_array_taken_twice(self, parts):
        told, refused = parts
        told["kernel"]["scales"] = told["kernel"]["weights"]
        refused("no array 'kernel.weights' left")

    def test_an_object_that_is_not_listed(self, parts):
        told, refused = parts
        told["space"] = {"object": "Popen", "parameters": {}}
        refused("'Popen' that is unknown")

    def test_a_pickle_is_not_opened(self, tmp_path):
        class Payload:
            def __reduce__(self):
                return os.mkdir, (str(tmp_path / "executed"),)

        path = tmp_path / "model.safetensors"
        path.write_bytes(pickle.dumps(Payload()))
        with pytest.raises(FileFormatError):
            notsorandom.load(path)
        assert not (tmp_path / "executed").exists()

    def test_loading_needs_no_pickle(self, data, tmp_path, monkeypatch):
        path = FourierClassifier(8, **QUICK).fit(*data).save(tmp_path / "model.safetensors")

        def never(*args, **kwargs):
            raise AssertionError("a pickle was opened")

        for name in ("load", "loads", "Unpickler"):
            monkeypatch.setattr(pickle, name, never)
        assert isinstance(notsorandom.load(path), FourierClassifier)


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [("model.bin", ValueError, "ends in .safetensors"), ("no/model.safetensors", OSError, "no")],
)
def test_bad_paths(path, error, message, data, tmp_path):
    model = FourierFeatures(4, **QUICK).fit(*data)
    with pytest.raises(error, match=message):
        model.save(tmp_path / path)


def test_what_cannot_be_saved(data, tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(NotFittedError):
        FourierFeatures().save(path)

    class Mine(Ascent):
        pass

    with pytest.raises(TypeError, match=r"search=Mine.*Use pickle or joblib"):
        FourierFeatures(4, search=Mine(), **QUICK).fit(*data).save(path)

    class Own(FourierFeatures):
        pass

    with pytest.raises(TypeError, match="Own can't be saved"):
        Own(4, **QUICK).fit(*data).save(path)
    model = FourierFeatures(4, **QUICK).fit(*data)
    for metrics in ({"a": "b"}, {1: 0.5}, {"a": np.nan}, [1]):
        with pytest.raises(ValueError, match="metrics"):
            model.save(path, metrics)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("estimator", "change"),
    [
        (FourierClassifier, {"C": -1}),
        (FourierClassifier, {"space": Sphere(basis="none")}),
        (FourierFeatures, {"loss": "squared"}),
    ],
)
def test_parameters_that_were_changed_are_noticed_at_once(estimator, change, data, tmp_path):
    """Not when the file is loaded, and the model is gone."""
    model = estimator(4, **QUICK).fit(*data).set_params(**change)
    with pytest.raises(ValueError, match="fit it again"):
        model.save(tmp_path / "model.safetensors")
    assert os.listdir(tmp_path) == []


def test_the_kernel_keeps_the_phase_it_was_learned_with(data, tmp_path):
    X, y = data
    model = FourierClassifier(8, **QUICK).fit(X, y).set_params(phase="paired")
    loaded = notsorandom.load(model.save(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


class TestWholeFiles:
    def test_a_full_disk_leaves_the_old_file_and_the_model(self, data, tmp_path):
        """The disk is as full as a limit on files' sizes makes it."""
        X, y = data
        path = FourierClassifier(4, **QUICK).fit(X, y).save(tmp_path / "model.safetensors")
        before = path.read_bytes()
        model = FourierClassifier(60, **QUICK).fit(X, y)
        expected = model.decision_function(X)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
        try:
            with pytest.raises(OSError, match=os.strerror(errno.EFBIG)) as caught:
                model.save(path)
            assert "Make room" in str(caught.value)
            assert str(path) in str(caught.value)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["model.safetensors"]
        np.testing.assert_array_equal(model.decision_function(X), expected)
        np.testing.assert_array_equal(
            notsorandom.load(model.save(path)).decision_function(X), expected
        )

    def test_who_may_read_it_stays_the_same(self, tmp_path):
        path = tmp_path / "file"
        write_whole(path, b"old")
        path.chmod(0o600)
        write_whole(path, b"new")
        assert path.stat().st_mode & 0o777 == 0o600

    def test_a_link_stays_a_link(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "file")
        write_whole(tmp_path / "link", b"new")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "file").read_bytes() == b"new"

    def test_what_killed_writers_left_is_removed(self, tmp_path):
        """But not what one that lives is writing, nor what belongs to a file of a longer name."""
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        names = [f".file.{gone.pid}-1.part", f".file.{os.getpid()}-1.part"]
        names += [f".file.more.{gone.pid}-1.part"]
        for name in names:
            (tmp_path / name).touch()
        write_whole(tmp_path / "file", b"new")
        assert sorted(os.listdir(tmp_path)) == sorted([*names[1:], "file"])

    def test_an_interruption_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "file"
        write_whole(path, b"old")

        def interrupted():
            with whole_file(path) as file:
                file.write(b"new")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["file"]

    def test_it_is_on_the_disk_before_it_has_its_name(self, tmp_path, monkeypatch):
        steps = []
        fsync, replace = os.fsync, Path.replace
        monkeypatch.setattr(os, "fsync", lambda file: (steps.append("fsync"), fsync(file)))
        monkeypatch.setattr(
            Path, "replace", lambda path, to: (steps.append("rename"), replace(path, to))
        )
        write_whole(tmp_path / "file", b"new")
        assert steps == ["fsync", "rename", "fsync"]


class TestElsewhere:
    @pytest.mark.parametrize("kind", ["classifier", "regressor", "features", "harmonic", "zonal"])
    def test_skops_needs_to_trust_nothing_else(self, kind, data):
        X, y = data
        model, targets = kinds()[kind]
        model.set_params(warm_start=True).fit(X, y if targets is None else targets)
        content = skops.io.dumps(model)
        assert set(skops.io.get_untrusted_types(data=content)) <= set(notsorandom.SKOPS_TYPES)
        loaded = skops.io.loads(content, trusted=list(notsorandom.SKOPS_TYPES))
        np.testing.assert_array_equal(predictions(loaded, X), predictions(model, X))

    def test_joblib_and_pickle(self, data):
        X, y = data
        model = FourierClassifier(8, **QUICK).fit(X, y)
        file = io.BytesIO()
        joblib.dump(model, file)
        file.seek(0)
        for copy in (joblib.load(file), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(predictions(copy, X), predictions(model, X))
            assert set(vars(copy)) == set(vars(model))


def test_importing_is_quick():
    """Next to scikit-learn's own SVMs: by the modules it pulls in, since time is noisy."""
    code = "import sys, {}; print(len(sys.modules))"
    counts = [
        int(subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True).stdout)
        for name in ("sklearn.svm", "notsorandom")
    ]
    assert counts[1] < 1.3 * counts[0]
