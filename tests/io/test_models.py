"""Model files: equal predictions, nothing executed, nothing partly written."""

import errno
import io
import json
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import notsorandom
from notsorandom import (
    Ascent,
    Enumerate,
    Euclidean,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    GradientSolver,
    Langevin,
    Sphere,
    load,
    save,
)
from notsorandom.io import read_metadata, read_model_file

pytestmark = pytest.mark.usefixtures("quick_trials")

SETTINGS = {"smoothing": 0.06, "C": 1.0, "random_state": 0}


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


def make_cases():
    """Return estimators and their targets; None stands for two classes."""
    three = np.arange(80) % 3
    real = np.random.default_rng(1).normal(size=(80, 2))
    sphere = Sphere(normalize=True)
    small = Sphere(normalize=True, max_degree=3)
    uniform = GradientSolver("theory", "uniform", "alternating")
    return {
        "classifier": (FourierClassifier(8, **SETTINGS), None),
        "paired": (
            FourierClassifier(8, phase="paired", search=Langevin(n_steps=3), **SETTINGS),
            None,
        ),
        "three classes": (FourierClassifier(8, class_weight={0: 2, 1: 1}, **SETTINGS), three),
        "str classes": (FourierClassifier(8, **SETTINGS), np.array(["b", "a", "cc"])[three]),
        "object classes": (
            FourierClassifier(8, **SETTINGS),
            np.array(["b", "a", "cc"], object)[three],
        ),
        "float classes": (FourierClassifier(8, **SETTINGS), three + 0.0),
        "uint8 classes": (FourierClassifier(8, **SETTINGS), three.astype(np.uint8)),
        "uint16 classes": (FourierClassifier(8, **SETTINGS), three.astype(np.uint16)),
        "bool classes": (FourierClassifier(8, **SETTINGS), three > 1),
        "logistic": (FourierClassifier(8, loss="logistic", **SETTINGS), None),
        "logistic, three classes": (FourierClassifier(8, loss="logistic", **SETTINGS), three),
        "features": (FourierFeatures(8, search=Ascent(n_steps=3), **SETTINGS), None),
        "features of real targets": (FourierFeatures(8, loss="squared", **SETTINGS), real),
        "regressor": (FourierRegressor(8, **SETTINGS), real[:, 0]),
        "regressor of a column": (FourierRegressor(8, **SETTINGS), real[:, :1]),
        "regressor of two columns": (
            FourierRegressor(8, loss="epsilon_insensitive", **SETTINGS),
            real,
        ),
        "early stopping": (FourierClassifier("auto", max_components=12, **SETTINGS), None),
        "reweighted": (FourierClassifier(12, solver="reweight", **SETTINGS), None),
        "solver": (FourierClassifier(8, solver=uniform, **SETTINGS), None),
        "all chosen": (FourierClassifier(4, random_state=0), None),
        "chosen of lists": (
            FourierRegressor(4, smoothing=[0.06, 0.2], C=np.array([1.0, 10.0]), random_state=0),
            real[:, 0],
        ),
        "centred": (FourierFeatures(8, space=Euclidean(center=np.arange(3.0)), **SETTINGS), None),
        "harmonic": (FourierClassifier(8, space=sphere, search=Enumerate(2), **SETTINGS), None),
        "zonal": (FourierClassifier(8, space=Sphere("zonal", normalize=True), **SETTINGS), None),
        "degrees": (
            FourierFeatures(9, space=Sphere("degree", 2, normalize=True), **SETTINGS),
            None,
        ),
        "equilibrium": (FourierClassifier(8, space=small, solver="equilibrium", **SETTINGS), None),
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", make_cases())
def test_a_loaded_model_equals_the_saved_one(case, dtype, data, tmp_path):
    X, y = data[0].astype(dtype), data[1]
    model, targets = make_cases()[case]
    model.fit(X, y if targets is None else targets)
    path = save(model, tmp_path / "model.safetensors", {"accuracy": 0.5})
    loaded = load(path)
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    for samples in (X, X[:1], X.astype(np.float32), X.astype(np.float64)):
        before, after = predictions(model, samples), predictions(loaded, samples)
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)
    if isinstance(model, FourierClassifier):
        assert model.classes_.dtype == loaded.classes_.dtype
        np.testing.assert_array_equal(model.predict(X), loaded.predict(X))
        assert loaded.features_.transform(X).tobytes() == model.features_.transform(X).tobytes()
    assert hasattr(loaded, "predict_proba") == (
        getattr(model, "loss", "") == "logistic" and isinstance(model, FourierClassifier)
    )
    if hasattr(loaded, "predict_proba"):
        assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    # Only arrays with one value per training sample are missing, and saving again changes nothing.
    assert set(vars(model)) - set(vars(loaded)) == {"dual_", "average_dual_"}
    again = save(loaded, tmp_path / "again.safetensors", {"accuracy": 0.5})
    assert again.read_bytes() == path.read_bytes()


def test_what_was_chosen_is_in_the_file(data, tmp_path):
    X, y = data
    model = FourierClassifier(8, loss="logistic", **SETTINGS).fit(X, y)
    model.C_, model.spectrum_, model.temperature_ = 0.3, "cauchy", 1.7
    model.tuning_ = {
        "spectrum": np.array(["gaussian", "cauchy", "cauchy"]),
        "smoothing": np.array([0.03, 0.06, 0.1]),
        "C": np.array([1.0, 0.3, 1e3]),
        "loss": np.array([0.4, 0.1, 0.3]),
        "standard_error": np.array([0.1, 0.05, np.nan]),
    }
    loaded = load(save(model, tmp_path / "model.safetensors"))
    for name in ("C_", "spectrum_", "temperature_"):
        assert getattr(loaded, name) == getattr(model, name)
        assert type(getattr(loaded, name)) is type(getattr(model, name))
    assert list(loaded.tuning_) == list(model.tuning_)
    for name, column in model.tuning_.items():
        assert loaded.tuning_[name].dtype == column.dtype
        np.testing.assert_array_equal(loaded.tuning_[name], column)
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    model.spectrum_ = model.tuning_ = None
    loaded = load(save(model, tmp_path / "model.safetensors"))
    assert loaded.spectrum_ is None
    assert loaded.tuning_ is None


@pytest.mark.parametrize("case", ["early stopping", "zonal", "regressor of two columns"])
def test_a_loaded_model_has_the_same_certificate(case, data, tmp_path):
    X, y = data
    model, targets = make_cases()[case]
    y = y if targets is None else targets
    loaded = load(save(model.fit(X, y), tmp_path / "model.safetensors"))
    uppers = [each.certificate(X, y, max_evaluations=1000).upper for each in (model, loaded)]
    assert uppers[0] == uppers[1]


def test_feature_names_generators_and_paths(data, tmp_path):
    X, y = pd.DataFrame(data[0], columns=["a", "b", "ü"]), data[1]
    model = FourierClassifier(8, random_state=np.random.RandomState(0), smoothing=0.06).fit(X, y)
    model.set_params(checkpoint=tmp_path / "here")
    loaded = load(save(model, tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X.rename(columns={"a": "z"}))
    assert loaded.random_state is None
    assert loaded.checkpoint is None
    assert str(tmp_path).encode() not in (tmp_path / "model.safetensors").read_bytes()


def test_sample_weights_are_not_in_the_file(data, tmp_path):
    X, y = data
    model = FourierClassifier(8, **SETTINGS).fit(X, y, sample_weight=np.arange(1.0, 81))
    loaded = load(save(model, tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match="weights, which model files don't keep"):
        loaded.certificate(X, y)


def test_frequencies_are_stored_in_single_precision_and_once(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 256))
    model = FourierClassifier(50, **SETTINGS).fit(X, np.cos(X[:, 0]) > 0.5)
    assert model.frequencies_.dtype == np.float64
    path = save(model, tmp_path / "model.safetensors")
    assert path.stat().st_size < 1.5 * 4 * model.frequencies_.size


def test_metadata(data, tmp_path):
    X = pd.DataFrame(data[0], columns=["a", "b", "c"])
    model = FourierClassifier(8, **SETTINGS).fit(X, data[1])
    description = {"fit": {"rows": 80, "scaled": False}}
    path = save(model, tmp_path / "model.safetensors", {"held-out accuracy": 0.75}, description)
    metadata = read_metadata(path)
    assert metadata["class"] == "FourierClassifier"
    assert metadata["library"] == notsorandom.__version__
    assert metadata["metrics"] == {"held-out accuracy": 0.75}
    assert metadata["description"] == description
    assert metadata["parameters"]["n_components"] == 8
    file = read_model_file(path)
    assert file.metadata == metadata
    assert file.attribute("classes_").tolist() == ["no", "yes"]
    assert file.attribute("feature_names_in_").tolist() == ["a", "b", "c"]
    assert file.attribute("n_outputs_") is None
    np.testing.assert_array_equal(file.arrays["kernel.frequencies"], model.frequencies_)


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [("model.bin", ValueError, "ends in .safetensors"), ("no/model.safetensors", OSError, "no")],
)
def test_bad_paths(path, error, message, data, tmp_path):
    model = FourierFeatures(4, **SETTINGS).fit(*data)
    with pytest.raises(error, match=message):
        save(model, tmp_path / path)


def test_what_cannot_be_saved(data, tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(NotFittedError):
        save(FourierFeatures(), path)

    class OtherSearch(Ascent):
        pass

    with pytest.raises(TypeError, match=r"search=OtherSearch.*Use pickle or joblib"):
        save(FourierFeatures(4, search=OtherSearch(), **SETTINGS).fit(*data), path)

    class OtherFeatures(FourierFeatures):
        pass

    with pytest.raises(TypeError, match="OtherFeatures can't be saved"):
        save(OtherFeatures(4, **SETTINGS).fit(*data), path)
    model = FourierFeatures(4, **SETTINGS).fit(*data)
    for metrics in ({"a": "b"}, {1: 0.5}, {"a": np.nan}, [1]):
        with pytest.raises(ValueError, match="metrics"):
            save(model, path, metrics)
    for description in ({"a": object()}, 5):
        with pytest.raises(ValueError, match="JSON"):
            save(model, path, description=description)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("estimator", "change"),
    [
        (FourierClassifier, {"C": -1}),
        (FourierClassifier, {"space": Sphere(basis="none")}),
        (FourierFeatures, {"loss": "squared"}),
    ],
)
def test_parameters_changed_after_the_fit_are_an_error_when_saving(
    estimator, change, data, tmp_path
):
    """Not when loading, when the model is gone."""
    model = estimator(4, **SETTINGS).fit(*data).set_params(**change)
    with pytest.raises(ValueError, match="fit it again"):
        save(model, tmp_path / "model.safetensors")
    assert os.listdir(tmp_path) == []


def test_the_kernel_keeps_its_phase(data, tmp_path):
    X, y = data
    model = FourierClassifier(8, **SETTINGS).fit(X, y).set_params(phase="paired")
    loaded = load(save(model, tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_a_failed_write_leaves_the_old_file(data, tmp_path, monkeypatch):
    X, y = data
    path = save(FourierClassifier(4, **SETTINGS).fit(X, y), tmp_path / "model.safetensors")
    before = path.read_bytes()
    model = FourierClassifier(8, **SETTINGS).fit(X, y)

    def full_disk(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as caught:
            save(model, path)
    assert "an earlier file is unchanged" in str(caught.value)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.safetensors"]
    np.testing.assert_array_equal(
        load(save(model, path)).decision_function(X), model.decision_function(X)
    )


class TestOtherPrograms:
    def test_safetensors_reads_the_file(self, data, tmp_path):
        safetensors = pytest.importorskip(
            "safetensors", reason="needs safetensors: pip install 'notsorandom[all]'"
        )
        model = FourierClassifier(8, **SETTINGS).fit(*data)
        path = save(model, tmp_path / "model.safetensors")
        with safetensors.safe_open(path, "np") as file:
            metadata = json.loads(file.metadata()["notsorandom.model"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        assert metadata == read_metadata(path)
        np.testing.assert_array_equal(arrays["kernel.frequencies"], model.frequencies_)
        np.testing.assert_array_equal(arrays["coef_"], model.coef_)

    @pytest.mark.parametrize("case", ["classifier", "regressor", "features", "harmonic", "zonal"])
    def test_skops_types_are_complete(self, case, data):
        skops = pytest.importorskip("skops.io", reason="needs skops: pip install notsorandom[all]")
        X, y = data
        model, targets = make_cases()[case]
        model.set_params(warm_start=True, solver=GradientSolver())
        model.fit(X, y if targets is None else targets)
        content = skops.dumps(model)
        assert set(skops.get_untrusted_types(data=content)) <= set(notsorandom.SKOPS_TYPES)
        loaded = skops.loads(content, trusted=list(notsorandom.SKOPS_TYPES))
        np.testing.assert_array_equal(predictions(loaded, X), predictions(model, X))

    def test_joblib_and_pickle(self, data):
        X, y = data
        model = FourierClassifier(8, **SETTINGS).fit(X, y)
        file = io.BytesIO()
        joblib.dump(model, file)
        file.seek(0)
        for copy in (joblib.load(file), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(predictions(copy, X), predictions(model, X))
            assert set(vars(copy)) == set(vars(model))


@pytest.mark.slow
def test_the_import_loads_few_modules():
    """Compared to scikit-learn's own SVMs, by the number of modules, since time is noisy."""
    code = "import sys, {}; print(len(sys.modules))"
    counts = [
        int(subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True).stdout)
        for name in ("sklearn.svm", "notsorandom")
    ]
    assert counts[1] < 1.3 * counts[0]
