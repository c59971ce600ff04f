"""The commands on data files: fit, predict, evaluate, inspect, convert, report, demo."""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from forgery import unzip
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import notsorandom
from notsorandom import FourierClassifier, FourierRegressor, __version__
from notsorandom._utils.files import write_atomic
from notsorandom.cli import commands, main
from notsorandom.cli.fit import TrainingTable, choose_task, split_rows
from notsorandom.cli.loading import score_classifier
from notsorandom.io import read_metadata
from notsorandom.io.archive import SCHEMA, pack

pytestmark = pytest.mark.usefixtures("quick_trials")

QUICK = "-o m.skops --n-components 8 --smoothing 0.06 --C 1"
FLOWERS = f"fit iris.csv --target species {QUICK}"
COMMANDS = "fit predict evaluate inspect convert report demo".split()

# Command lines, and parts of what they print. Parts that begin with "no " are not printed.
OUTPUTS = [
    ("--version", [__version__]),
    (FLOWERS, ["classification", "3 distinct texts", "effective", "30 rows are too few"]),
    (f"{FLOWERS} --holdout 0", ["nothing is known about new rows"]),
    (f"fit arrays.npz {QUICK} --space sphere", ["Degrees (number of frequencies): "]),
    (f"fit arrays.npz {QUICK} --loss squared", ["follows from --loss", "no temperature"]),
    (f"fit arrays.npz {QUICK} --loss logistic", ["temperature", "log loss"]),
    ("evaluate arrays.skops arrays.npz", ["ROC AUC", "log loss", "fitted to this file"]),
    ("evaluate hinge.skops arrays.npz", ["accuracy", "no log loss"]),
    ("evaluate sparse.skops sparse.libsvm", ["accuracy"]),
    ("evaluate reals.skops reals.parquet", ["95 % intervals", "coverage 9", "%, mean width "]),
    ("inspect iris.skops", ["FourierClassifier", "test accuracy", "species", "virginica", "petal"]),
    ("inspect iris.skops", ["C ", "temperature", "search spectrum", "test log loss"]),
    *((f"{command} --help", [f"notsorandom {command}", "example"]) for command in COMMANDS),
]


@pytest.mark.parametrize(("line", "parts"), OUTPUTS, ids=[line for line, _ in OUTPUTS])
def test_outputs(line, parts, run):
    text = run(line)
    for part in parts:
        assert (part not in text) if part.startswith("no ") else (part in text)


# Command lines with the same output.
EQUAL = [
    ("predict arrays.skops arrays.npz", "predict arrays.skops array.npy"),
    ("predict arrays.skops arrays.npz", "predict arrays.skops sparse.libsvm"),
    ("predict sparse.skops sparse.libsvm", "predict sparse.skops arrays.npz"),
]


@pytest.mark.parametrize(("first", "second"), EQUAL)
def test_formats_have_the_same_predictions(first, second, run):
    assert run(first) == run(second)
    assert run(first).count("\n") == 201


# Exit codes, command lines, and parts of the error.
ERRORS = [
    (1, "fit missing.csv --target y -o m.skops", "doesn't exist"),
    (1, "fit iris.csv -o m.skops", "Give --target, one of 'sepal'"),
    (1, "fit iris.csv --target spezies -o m.skops", "mean 'species'"),
    (1, f"{FLOWERS} --drop petall", "has no column 'petall'"),
    (1, "fit arrays.npz -o m.skops --target 9", "its target is y: leave --target"),
    (1, "fit arrays.npz -o m.skops --drop a", "has no column names"),
    (1, "fit array.npy -o m.skops", "has no target: give an .npz file"),
    (1, "fit dates.parquet --target d -o m.skops", "The target holds dates"),
    (
        1,
        f"{FLOWERS} --task regression",
        "'setosa', not a number: correct it, leave",
    ),
    (1, "fit reals.parquet --target z -o m.skops --loss hinge", "'z' has fractions, which are no"),
    (1, "predict iris.skops reals.parquet", "'sepal'"),
    (1, "predict arrays.skops iris.csv", "fitted to 3 without names"),
    (1, "predict iris.skops arrays.npz", "has no column names"),
    (1, "predict iris.csv iris.csv", "give a .skops file first, then the data"),
    (1, "predict missing.skops iris.csv", "missing.skops"),
    (1, "predict iris.skops iris.csv --keep colour", "colour"),
    (1, "predict arrays.skops arrays.npz --keep id", "no column names, but needs"),
    (1, "evaluate iris.skops reals.parquet", "'sepal'"),
    (1, "inspect missing.skops", "missing.skops"),
    (1, "inspect missing.npz", "missing.npz"),
    (1, "inspect iris.csv", "neither a model file"),
    (2, "", "required: command"),
    (2, "learn", "invalid choice"),
    (2, "fit iris.csv --target species -o m.pkl", ".skops"),
    (2, "fit iris.csv --target species -o no/m.skops", "doesn't exist"),
    (2, "fit iris.csv -o m.skops --holdout 1", "--holdout: 1 is not allowed: give 0 to 0.9"),
    (2, "fit iris.csv -o m.skops --seed -1", "--seed: -1 is not allowed: give 0 to 2147483647"),
    (2, "fit iris.csv -o m.skops --n-components 0", "n_components=0"),
    (2, "fit iris.csv -o m.skops --n-components many", "n_components='many'"),
    (2, "fit iris.csv -o m.skops --smoothing -1", "smoothing=-1"),
    (2, "fit iris.csv -o m.skops --C 0", "C=0"),
    (2, "fit iris.csv -o m.skops --linear maybe", "--linear: invalid choice"),
    (1, f"fit arrays.npz {QUICK} --solver equilibrium --linear yes", "linear=True is not allowed"),
    (2, "fit iris.csv -o m.skops --checkpoint no/f", "checkpoint='no"),
    (2, "fit a.csv -o m.skops --drop a --columns b", "not allowed with argument"),
    (2, f"{FLOWERS} --task regression --class-weight balanced", "--class-weight is not possible"),
    (2, f"{FLOWERS} --task regression --loss logistic", "loss='logistic' is not allowed"),
    (2, f"{FLOWERS} --task classification --loss squared", "loss='squared' is not allowed"),
    (2, "predict iris.skops iris.csv -o p.xlsx", ".parquet"),
    (2, "predict iris.skops iris.csv --json", "give --output"),
    (2, "predict reals.skops reals.parquet --scores", "--scores"),
    (2, "predict hinge.skops arrays.npz --proba", "has no probabilities; leave it out, or fit a"),
    (2, "predict iris.skops iris.csv --interval 0.9", "no intervals; give --set for classes, or"),
    (2, "predict hinge.skops arrays.npz --interval 0.9", "no intervals; give --set for classes"),
    (2, "predict hinge.skops arrays.npz --set 0.9", "no sets of classes; give --interval for"),
    (2, "predict reals.skops reals.parquet --set 0.9", "give --interval for numbers, or fit a"),
    (2, "predict reals.skops reals.parquet --interval 90", "it must be a finite number > 0 and <"),
    (2, "predict iris.skops iris.csv --set many", "the share='many' is not allowed"),
    (2, "convert iris.skops -o m.pkl", ".onnx"),
    (2, "report iris.skops -o p.html", "required: data"),
    (2, "demo --output picture.txt", "ends in .png"),
]


@pytest.mark.parametrize(("code", "line", "message"), ERRORS, ids=[line for _, line, _ in ERRORS])
def test_errors(code, line, message, run, tmp_path):
    text = run(line, code=code)
    assert message in text
    if code == 1:
        assert text.startswith(f"notsorandom {line.split()[0]}: ")
        assert text.count("\n") == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "not enough memory"),
        (OSError(28, "No space left on device"), 1, "No space left"),
    ],
)
def test_errors_inside_of_a_command(error, code, message, run, monkeypatch):
    def fail(*arguments, **parameters):
        raise error

    monkeypatch.setattr(commands, "make_windmill", fail)
    assert message in run("demo -o picture.png", code=code)


def features_of(model):
    return getattr(model, "feature_names_in_", np.empty(0)).tolist()


# Arguments after a command that fits, and what they say about the fitted model.
SETTINGS = [
    (FLOWERS, lambda m: features_of(m) == ["sepal", "breadth", "petal", "width"]),
    (f"{FLOWERS} --drop 'petal, width'", lambda m: features_of(m) == ["sepal", "breadth"]),
    (f"{FLOWERS} --columns width,sepal", lambda m: features_of(m) == ["width", "sepal"]),
    (f"{FLOWERS} --smoothing 0.1 --C 2", lambda m: (m[-1].smoothing_, m[-1].C) == (0.1, 2.0)),
    (f"{FLOWERS} --class-weight balanced", lambda m: m[-1].class_weight == "balanced"),
    (f"{FLOWERS} --numbers scores", lambda m: m[-1].feature_names_in_[0] == "sepal (score)"),
    (f"{FLOWERS} --linear yes", lambda m: m[-1].linear is m[-1].uses_linear_part_ is True),
    (f"{FLOWERS} --linear no", lambda m: m[-1].linear is m[-1].uses_linear_part_ is False),
    (f"{FLOWERS} --linear auto", lambda m: m[-1].linear == "auto"),
    (f"fit sparse.libsvm {QUICK} --linear yes", lambda m: m.kernel_.n_components == 11),
    (f"{FLOWERS} --seed 3", lambda m: m[-1].random_state == 3),
    (f"{FLOWERS} --C auto", lambda m: m[-1].C == "auto" and len(m[-1].tuning_["loss"]) > 1),
    (f"fit arrays.npz {QUICK} --task regression", lambda m: isinstance(m, FourierRegressor)),
    (f"fit arrays.npz {QUICK} --loss squared", lambda m: isinstance(m, FourierRegressor)),
    (f"fit arrays.npz {QUICK} --n-components auto", lambda m: m.n_components == "auto"),
    (f"fit arrays.npz {QUICK} --scale standard", lambda m: len(m) == 2),
    (f"fit dates.parquet --target z --columns text,d {QUICK}", lambda m: m.n_features_in_ == 2),
]


@pytest.mark.parametrize(("line", "holds"), SETTINGS, ids=[line for line, _ in SETTINGS])
def test_arguments_of_fit(line, holds, run):
    run(line)
    assert holds(notsorandom.load("m.skops"))
    assert run(f"predict m.skops {line.split()[1]}").count("\n") in (151, 201)


def test_a_model_with_a_linear_part(run, folder):
    """Its features are counted without the columns."""
    result = run(f"fit reals.parquet --target z {QUICK} --linear yes --json")
    assert (result["features"], result["linear part"]) == (8, True)
    assert run(f"fit reals.parquet --target z {QUICK} --json")["linear part"] is False
    run(f"fit reals.parquet --target z {QUICK} --linear yes")
    assert "linear part" in run("inspect m.skops")
    model, table = notsorandom.load("m.skops"), pd.read_parquet(folder / "reals.parquet")
    scores = run("evaluate m.skops reals.parquet --json")
    assert scores["R^2"] == pytest.approx(model.score(table, table["z"]))
    run("predict m.skops reals.parquet -o p.csv")
    np.testing.assert_allclose(pd.read_csv("p.csv")["z"], model.predict(table))
    run("report m.skops reals.parquet -o p.html")
    assert "a linear model of the columns plus 8 learned" in Path("p.html").read_text("utf-8")


class TestFit:
    def test_result(self, run):
        result = run(f"fit reals.parquet --target z {QUICK} --json")
        model, metadata = notsorandom.load("m.skops")[-1], read_metadata("m.skops")
        assert (result["task"], result["rows"]) == ("regression", 200)
        assert result["bytes"] == os.path.getsize("m.skops")
        assert metadata["metrics"]["test R^2"] == result["test"]["R^2"] > 0.3
        chosen = [result[name] for name in ("loss", "C", "smoothing", "search spectrum")]
        assert chosen == ["squared", 1.0, 0.06, model.spectrum_]

    def test_held_out_rows_are_not_in_the_training_data(self, folder):
        """Errors on training and held-out rows add up to the errors of the model on all rows."""
        metadata = read_metadata(folder / "iris.skops")
        assert metadata["description"]["fit"]["holdout"] == 0.2
        model, table = notsorandom.load(folder / "iris.skops"), pd.read_csv(folder / "iris.csv")
        assert model[-1].n_samples_fit_ == 120
        metrics = [metadata["metrics"][f"{part} accuracy"] for part in ("test", "training")]
        n_wrong = np.dot(1 - np.array(metrics), [30, 120])
        assert (model.predict(table) != table["species"]).sum() == round(n_wrong)
        losses = [metadata["metrics"][f"{part} log loss"] for part in ("test", "training")]
        expected = log_loss(table["species"], model.predict_proba(table))
        assert np.dot(losses, [0.2, 0.8]) == pytest.approx(expected)

    def test_columns_with_names_are_scaled(self, run):
        """The model takes them as they are, and its waves turn with all of them."""
        share = {}
        for scale in ("standard", "none"):
            importances = run(f"{FLOWERS} --scale {scale} --json")["importances"]
            assert sum(importances.values()) == pytest.approx(1, abs=1e-3)
            share[scale] = importances["petal"]
        assert share["none"] > 0.95  # the numbers of the others are too small to turn anything
        assert share["standard"] < 0.6

    def test_the_seed_chooses_the_held_out_rows(self, run):
        coefs = []
        for seed in (3, 3, 4):
            run(f"{FLOWERS} --seed {seed}")
            coefs.append(notsorandom.load("m.skops")[-1].coef_)
        np.testing.assert_array_equal(coefs[0], coefs[1])
        assert not np.array_equal(coefs[1], coefs[2])

    @pytest.mark.parametrize(
        ("target", "is_classification"),
        [
            (["a", "b"], True),
            ([True, False], True),
            (range(20), True),
            (range(21), False),
            (np.arange(5.0), True),
            ([0.5, 1.0], False),
        ],
    )
    def test_classes_or_reals(self, target, is_classification):
        options = argparse.Namespace(task="auto", loss=None)
        assert choose_task(pd.Series(target), options)[0] == is_classification

    def test_noise_is_no_better_than_guessing(self, run, rng):
        noise = pd.DataFrame({"x": rng.normal(size=600), "y": rng.integers(2, size=600)})
        noise.to_csv("noise.csv", index=False)
        assert "not clearly better than guessing" in run(f"fit noise.csv --target y {QUICK}")

    @pytest.mark.parametrize("name", ["index.csv", "index.parquet"])
    def test_pandas_index_is_left_out(self, name, run, folder):
        table = pd.read_csv(folder / "iris.csv")
        if name == "index.csv":
            table.to_csv(name)
        else:
            table.sample(frac=1, random_state=0).to_parquet(name)
        result = run(f"fit {name} --target species {QUICK} --json")
        assert result["numbers"] == ["sepal", "breadth", "petal", "width"]

    def test_split_is_stratified(self):
        y = np.repeat(["a", "b", "c"], [50, 20, 30])
        data = TrainingTable(np.zeros((100, 2)), y, "y", True, "")
        train, held = split_rows(data, 0.2, 0)
        assert sorted([*train, *held]) == list(range(100))
        assert [(y[held] == each).sum() for each in "abc"] == [10, 4, 6]
        assert not np.array_equal(held, split_rows(data, 0.2, 1)[1])

    def test_only_row_of_a_class_is_a_training_row(self):
        y = np.array(["a"] * 30 + ["b"] * 30 + ["c", "d"])
        data = TrainingTable(np.zeros((62, 2)), y, "y", True, "")
        for seed in range(10):
            train, held = split_rows(data, 0.3, seed)
            assert set(y[train]) == set("abcd")
            assert set(y[held]) == set("ab")

    @pytest.mark.parametrize("n_rows", [2, 3])
    def test_split_of_too_few_rows(self, n_rows):
        data = TrainingTable(np.zeros((n_rows, 2)), np.arange(n_rows) / 2, "y", False, "")
        with pytest.raises(ValueError, match=r"too few of .*--holdout 0"):
            split_rows(data, 0.5, 0)

    def test_model_that_cannot_be_written_is_saved_elsewhere(self, run, tmp_path, monkeypatch):
        refuge = tmp_path / "refuge"
        refuge.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(refuge))
        written = []

        def full(path, content):
            written.append(path)
            if len(written) == 1:
                raise OSError(28, "No space left on device")
            write_atomic(path, content)

        monkeypatch.setattr("notsorandom.io.models.write_atomic", full)
        text = run(FLOWERS, code=1)
        assert "No space left on device" in text
        (kept,) = refuge.glob("*/model.skops")
        assert kept.parent.stat().st_mode & 0o077 == 0  # for its owner only
        assert f"The model is in {kept} instead" in text
        assert isinstance(notsorandom.load(kept)[-1], FourierClassifier)

    @pytest.mark.slow
    @pytest.mark.full_trials
    def test_killed_fit_continues_from_its_checkpoint(self, folder, tmp_path):
        output, game = tmp_path / "m.skops", tmp_path / "game.npz"
        arguments = ["fit", str(folder / "arrays.npz"), "-o", str(output), "--n-components", "1500"]
        arguments += ["--smoothing", "0.06", "--checkpoint", str(game)]
        often = "from notsorandom.estimators.config import Checkpoint; Checkpoint.every = 0; "
        often += "Checkpoint.__init__.__defaults__ = (0,); import sys; "
        often += "from notsorandom.cli import main; main(sys.argv[1:])"
        process = subprocess.Popen([sys.executable, "-c", often, *arguments])
        for _ in range(1200):
            if game.exists():
                break
            time.sleep(0.05)
        process.kill()
        process.wait()
        assert game.exists()
        assert not output.exists()
        assert main(arguments) == 0
        resumed = notsorandom.load(output)
        assert main(arguments[:-2]) == 0
        np.testing.assert_array_equal(resumed.coef_, notsorandom.load(output).coef_)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 7 rows."""
    monkeypatch.setattr("notsorandom.cli.loading.PREDICTED_ROWS", 7)
    monkeypatch.setattr("notsorandom.cli.loading.PREDICTED_BYTES", 100)


class TestPredict:
    @pytest.mark.parametrize("name", ["iris.csv", "reals.parquet", "arrays.npz", "sparse.libsvm"])
    def test_predictions_are_those_of_the_model(self, name, run, folder):
        stem, _, ending = name.partition(".")
        run(f"predict {stem}.skops {name} -o p.csv")
        found, model = pd.read_csv("p.csv"), notsorandom.load(folder / f"{stem}.skops")
        if ending in ("npz", "libsvm"):
            with np.load(folder / "arrays.npz") as arrays:
                X = arrays["X"]
        else:
            X = (pd.read_csv if ending == "csv" else pd.read_parquet)(folder / name)
        record = read_metadata(folder / f"{stem}.skops")["description"]["fit"]
        assert list(found) == [record["target"]]
        expected = model.predict(X)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found.iloc[:, 0], expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(found.iloc[:, 0], expected)

    def test_three_classes_with_all_columns(self, run, folder):
        result = run(
            "predict iris.skops iris.csv --scores --proba --keep sepal,width -o p.parquet --json"
        )
        assert (result["output"], result["rows"]) == ("p.parquet", 150)
        found, classes = pd.read_parquet("p.parquet"), ["setosa", "versicolor", "virginica"]
        columns = [f"{prefix}_{name}" for prefix in ("score", "proba") for name in classes]
        assert list(found) == ["sepal", "width", "species", *columns]
        X, model = pd.read_csv(folder / "iris.csv"), notsorandom.load(folder / "iris.skops")
        np.testing.assert_array_equal(found["species"], model.predict(X))
        np.testing.assert_array_equal(found.iloc[:, 3:6], model.decision_function(X))
        np.testing.assert_allclose(found.iloc[:, 6:], model.predict_proba(X), rtol=1e-12)
        assert found["sepal"].astype(float).tolist() == X["sepal"].tolist()

    def test_two_classes_have_one_score(self, run, folder):
        names, *rows = csv.reader(
            run("predict arrays.skops arrays.npz --proba --scores").splitlines()
        )
        assert names == ["y", "score_1", "proba_0", "proba_1"]
        label, score, first, second = np.array(rows, dtype=float).T
        assert len(label) == 200
        np.testing.assert_array_equal(label == 1, score > 0)
        np.testing.assert_allclose(first + second, 1)
        with np.load(folder / "arrays.npz") as arrays:
            expected = notsorandom.load(folder / "arrays.skops").predict_proba(arrays["X"])
        np.testing.assert_allclose(second, expected[:, 1])

    def test_intervals_and_sets(self, run, folder):
        run("predict reals.skops reals.parquet --interval 0.8 --keep a -o p.csv")
        found, X = pd.read_csv("p.csv"), pd.read_parquet(folder / "reals.parquet")
        assert list(found) == ["a", "z", "low", "high"]
        expected = notsorandom.load(folder / "reals.skops").predict_interval(X, 0.8)
        np.testing.assert_allclose(found[["low", "high"]], expected, rtol=1e-12)
        run("predict iris.skops iris.csv --set 0.9 --proba -o p.csv")
        found, X = pd.read_csv("p.csv"), pd.read_csv(folder / "iris.csv")
        columns = [name for name in found if name.startswith("set_")]
        assert columns == ["set_setosa", "set_versicolor", "set_virginica"]
        model = notsorandom.load(folder / "iris.skops")
        np.testing.assert_array_equal(found[columns], model.predict_set(X, 0.9))

    def test_intervals_of_several_outputs_and_names_in_use(self, run, folder):
        X = pd.read_parquet(folder / "reals.parquet")[["a", "b", "c"]].to_numpy()
        y = X[:, :2] + np.random.default_rng(1).normal(size=(200, 2))
        pipeline = make_pipeline(StandardScaler(), FourierRegressor(8, smoothing=0.06)).fit(X, y)
        notsorandom.save(pipeline, "m.skops", description={"fit": {"target": "low"}})
        np.save("X.npy", X)
        run("predict m.skops X.npy --interval 0.8 -o p.csv")
        found = pd.read_csv("p.csv")
        names = ["low_0", "low_1", "low_0_predicted", "high_0", "low_1_predicted", "high_1"]
        assert list(found) == names
        expected = pipeline[-1].predict_interval(pipeline[0].transform(X), 0.8).reshape(200, 4)
        np.testing.assert_allclose(found[names[2:]], expected, rtol=1e-12)

    def test_models_without_held_out_rows_are_refused_before_any_work(self, run, folder):
        X = np.load(folder / "array.npy")
        model = FourierRegressor(8, smoothing=0.06, calibration_size=0).fit(X, X[:, 0])
        notsorandom.save(model, "m.skops")
        text = run("predict m.skops missing.csv --interval 0.8", code=2)
        assert "--interval: predict_interval is not possible: no samples were held out" in text
        text = run("predict reals.skops missing.csv --interval 0.999", code=2)
        assert "coverage=0.999 is not possible with 32 held-out" in text

    def test_kept_column_with_the_name_of_the_target(self, run):
        lines = run("predict iris.skops iris.csv --keep species").splitlines()
        assert lines[0] == '"species","species_predicted"'
        agree = [len(set(line.split(","))) == 1 for line in lines[1:]]
        assert 0.9 < np.mean(agree) < 1

    def test_kept_columns_with_the_names_of_limits(self, run, folder):
        frame = pd.read_parquet(folder / "reals.parquet")
        kept = {"low": 1.0, "low_predicted": 2.0, "high": 3.0}
        frame.assign(**kept).to_parquet("t.parquet")
        run("predict reals.skops t.parquet --interval 0.8 --keep low,low_predicted,high -o p.csv")
        run("predict reals.skops reals.parquet --interval 0.8 -o q.csv")
        found, expected = pd.read_csv("p.csv"), pd.read_csv("q.csv")
        added = ["z", "low_predicted_predicted", "high_predicted"]
        assert list(found) == [*kept, *added]
        assert (found[list(kept)] == list(kept.values())).all(axis=None)
        np.testing.assert_array_equal(found[added], expected[["z", "low", "high"]])

    def test_kept_columns_are_copied_as_they_are(self, run, rng):
        frame = pd.DataFrame({"zip": [f"{k:05d}" for k in rng.permutation(9000)[:200]]})
        frame["y"] = np.where(frame["zip"].astype(int) > 4500, "p", "q")
        frame.to_csv("t.csv", index=False)
        run(f"fit t.csv --target y {QUICK}")
        run("predict m.skops t.csv --keep zip -o p.csv")
        assert pd.read_csv("p.csv", dtype=str)["zip"].tolist() == frame["zip"].tolist()

    def test_libsvm_indices_start_where_they_did_in_the_training_data(self, run, folder):
        """At 1, though this file has no value in its first column."""
        with np.load(folder / "arrays.npz") as arrays:
            X, y = arrays["X"].copy(), arrays["y"]
        lines = (f"{label} 2:{row[1]} 3:{row[2]}" for label, row in zip(y, X, strict=True))
        Path("counted.libsvm").write_text("\n".join(lines))
        X[:, 0] = 0
        model = notsorandom.load(folder / "sparse.skops")
        text = run("predict sparse.skops counted.libsvm").splitlines()[1:]
        assert [int(line) for line in text] == model.predict(X).tolist()
        dump_svmlight_file(X + 1, y, "zeros.libsvm", zero_based=True)
        run(f"fit zeros.libsvm {QUICK}")
        Path("fewer.libsvm").write_text("0 1:0.5 2:0.25\n")
        expected = notsorandom.load("m.skops").decision_function(np.array([[0, 0.5, 0.25]]))[0]
        found = run("predict m.skops fewer.libsvm --scores").splitlines()[1].split(",")
        assert float(found[1]) == pytest.approx(expected, rel=1e-9)

    def test_predictions_do_not_depend_on_blocks(self, run, request):
        whole = run("predict iris.skops iris.csv")
        request.getfixturevalue("small_blocks")
        assert run("predict iris.skops iris.csv") == whole

    def test_transformer_gives_features(self, run, folder):
        with np.load(folder / "arrays.npz") as arrays:
            X, y = arrays["X"], arrays["y"]
        features = notsorandom.FourierFeatures(4, smoothing=0.06).fit(X, y)
        notsorandom.save(features, "features.skops")
        run("predict features.skops arrays.npz -o f.parquet")
        np.testing.assert_array_equal(pd.read_parquet("f.parquet"), features.transform(X))
        assert "holds features" in run("evaluate features.skops arrays.npz", code=2)

    def test_input_file_is_not_overwritten(self, run, folder):
        content = (folder / "iris.csv").read_bytes()
        Path("copy.csv").write_bytes(content)
        text = run("predict iris.skops copy.csv -o copy.csv", code=2)
        assert "is an input file" in text
        assert Path("copy.csv").read_bytes() == content

    def test_error_leaves_the_old_file(self, run, folder):
        lines = (folder / "iris.csv").read_text().splitlines()
        lines[100] = lines[100].replace(lines[100].split(",")[0], "wide", 1)
        Path("bad.csv").write_text("\n".join(lines))
        Path("p.csv").write_text("old")
        text = run("predict iris.skops bad.csv -o p.csv", code=1)
        assert "'sepal'" in text
        assert "'wide'" in text
        assert Path("p.csv").read_text() == "old"
        assert sorted(os.listdir()) == ["bad.csv", "p.csv"]

    @pytest.mark.slow
    @pytest.mark.parametrize("command", ["predict", "evaluate"])
    def test_closed_pipe_and_full_disk(self, command, folder):
        arguments = [sys.executable, "-m", "notsorandom.cli", command]
        arguments += [str(folder / "iris.skops"), str(folder / "iris.csv")]
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered
        )
        process.stdout.close()
        assert process.wait() == 1
        assert process.stderr.read() == b""
        with open("/dev/full", "w") as full:
            ended = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, env=buffered)
        assert ended.returncode == 1
        assert ended.stderr.count(b"\n") == 1
        assert b"No space left" in ended.stderr

    @pytest.mark.slow
    def test_sigterm_removes_partial_output(self, folder, tmp_path):
        script = tmp_path / "slow.py"
        script.write_text(
            "import time, sys\n"
            "from notsorandom.cli import commands, main\n"
            "predict_columns = commands.predict_columns\n"
            "def slow(*rest):\n"
            "    print('begun', flush=True)\n"
            "    time.sleep(1)\n"
            "    return predict_columns(*rest)\n"
            "commands.predict_columns = slow\n"
            "sys.exit(main(sys.argv[1:]))\n"
        )
        output = tmp_path / "out"
        output.mkdir()
        arguments = [sys.executable, str(script), "predict", str(folder / "iris.skops")]
        arguments += [str(folder / "iris.csv"), "-o", str(output / "p.csv")]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"begun\n"
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
        assert os.listdir(output) == []


class SureClassifier:
    """A classifier that is sure of the sign of the only column."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)

    def predict_log_proba(self, X):
        with np.errstate(divide="ignore"):
            return np.log(np.column_stack([X[:, 0] < 0, X[:, 0] > 0]).astype(float))

    predict_proba = predict_log_proba


class TestEvaluate:
    def test_classification_metrics(self, run, folder, small_blocks):
        result = run("evaluate iris.skops iris.csv --json")
        table, model = pd.read_csv(folder / "iris.csv"), notsorandom.load(folder / "iris.skops")
        predicted, y = model.predict(table), table["species"]
        assert result["accuracy"] == np.mean(predicted == y)
        assert result["accuracy of guessing the largest class"] == pytest.approx(1 / 3)
        expected = log_loss(y, model.predict_proba(table))
        assert result["log loss"] == pytest.approx(expected, rel=1e-9)
        probabilities = model.predict_proba(table)
        expected = roc_auc_score(y, probabilities, multi_class="ovr", average="macro")
        assert result["ROC AUC"] == pytest.approx(expected)
        expected = average_precision_score(pd.get_dummies(y), probabilities, average="macro")
        assert result["average precision"] == pytest.approx(expected)
        for name in model.classes_:
            scores = result[f"class {name}"]
            assert scores["recall"] == np.mean(predicted[y == name] == name)
            assert scores["precision"] == np.mean(y[predicted == name] == name)

    @pytest.mark.parametrize("name", ["arrays", "hinge"])
    def test_ranks_of_two_classes(self, name, run, folder, small_blocks, monkeypatch):
        result = run(f"evaluate {name}.skops arrays.npz --json")
        model, data = notsorandom.load(folder / f"{name}.skops"), np.load(folder / "arrays.npz")
        scores, y = model.decision_function(data["X"]), data["y"]
        assert result["ROC AUC"] == pytest.approx(roc_auc_score(y, scores))
        assert result["average precision"] == pytest.approx(average_precision_score(y, scores))
        # Rows of one class have none, nor have more rows than can be kept.
        np.savez("one.npz", X=data["X"][y == 1], y=y[y == 1])
        assert run(f"evaluate {name}.skops one.npz --json")["ROC AUC"] is None
        monkeypatch.setattr("notsorandom.cli.loading.MAX_RANKED", 199)
        assert "ROC AUC" not in run(f"evaluate {name}.skops arrays.npz --json")

    def test_ranks_with_probabilities_of_zero(self):
        """Their logarithms are infinite: they rank last."""
        scores = score_classifier(
            SureClassifier(), [(np.array([[-1.0], [2], [1], [-2]]), [0, 1, 1, 0])]
        )
        assert scores["ROC AUC"] == scores["average precision"] == 1

    def test_ranks_of_classes_that_occur(self, run, folder):
        """A class without rows is left out of the mean."""
        table = pd.read_csv(folder / "iris.csv").query("species != 'virginica'")
        table.to_csv("two.csv", index=False)
        result, model = run("evaluate iris.skops two.csv --json"), folder / "iris.skops"
        probabilities, y = notsorandom.load(model).predict_proba(table), table["species"]
        expected = [
            roc_auc_score(y == name, probabilities[:, k])
            for k, name in enumerate(["setosa", "versicolor"])
        ]
        assert result["ROC AUC"] == pytest.approx(np.mean(expected))

    def test_intervals(self, run, folder, small_blocks, rng):
        """As many as the held-out rows allow."""
        result = run("evaluate reals.skops reals.parquet --json")
        table = pd.read_parquet(folder / "reals.parquet")
        model, z = notsorandom.load(folder / "reals.skops"), table["z"].to_numpy()
        encoded = model[:-1].transform(table)
        for percent in (50, 80, 90, 95):
            low, high = model[-1].predict_interval(encoded, percent / 100).T
            found = result[f"{percent} % intervals"]
            assert found["coverage"] == pytest.approx(np.mean((low <= z) & (z <= high)))
            assert found["mean width"] == pytest.approx(np.mean(high - low))
        X = rng.normal(size=(40, 2))
        for size, levels in ((4, ["50 %", "80 %"]), (0, [])):
            settings = {"C": 1.0, "smoothing": 0.06, "calibration_size": size}
            few = FourierRegressor(8, **settings).fit(X, X[:, 0])
            notsorandom.save(few, "few.skops")
            np.savez("few.npz", X=X, y=X[:, 0])
            found = run("evaluate few.skops few.npz --json")
            names = [name for name in found if name.endswith(" intervals")]
            assert names == [f"{level} intervals" for level in levels]

    def test_regression_metrics(self, run, folder, small_blocks, rng):
        """The standard error of R^2 is close to the bootstrap's."""
        result = run("evaluate reals.skops reals.parquet --json")
        table = pd.read_parquet(folder / "reals.parquet")
        model, z = notsorandom.load(folder / "reals.skops"), table["z"].to_numpy()
        errors = model.predict(table) - z
        assert result["R^2"] == pytest.approx(model.score(table, z))
        assert result["root mean squared error"] == pytest.approx(np.sqrt(np.mean(errors**2)))
        assert result["mean absolute error"] == pytest.approx(np.mean(np.abs(errors)))
        samples = rng.integers(len(z), size=(2000, len(z)))
        scores = 1 - np.mean(errors[samples] ** 2, axis=1) / z[samples].var(axis=1)
        assert result["standard error of R^2"] == pytest.approx(scores.std(), rel=0.15)

    def test_float16_target(self, run, rng):
        """Sums in float16 would overflow."""
        X = rng.normal(size=(400, 2))
        y = (300 * X[:, 0]).astype(np.float16)
        np.savez("half.npz", X=X, y=y)
        run(f"fit half.npz {QUICK} --task regression")
        expected = notsorandom.load("m.skops").score(X, y.astype(float))
        found = run("evaluate m.skops half.npz --json")["R^2"]
        assert found == pytest.approx(expected, abs=1e-6)

    def test_unknown_classes(self, run, folder):
        Path("bad.csv").write_text((folder / "iris.csv").read_text().replace("virginica", "rosa"))
        text = run("evaluate iris.skops bad.csv", code=1)
        assert "the target in row 101 of the data is 'rosa', not one of the model's classes" in text

    def test_rows_without_target_are_left_out(self, run, folder, small_blocks):
        """Also if all rows of a block are."""
        table = pd.read_csv(folder / "iris.csv")
        known = table.index >= 20
        known[::10] = False
        table.assign(species=table["species"].where(known)).to_csv("gaps.csv", index=False)
        assert run("evaluate iris.skops gaps.csv --json")["rows"] == 117
        result = run(f"fit gaps.csv --target species {QUICK} --json")
        assert (result["rows"], result["rows without target, left out"]) == (117, 33)
        table.assign(species=None).to_csv("gaps.csv", index=False)
        text = run("evaluate iris.skops gaps.csv", code=1)
        assert "the target 'species' is empty: give another --target" in text

    def test_numbers_with_decimal_commas(self, run, folder):
        table = pd.read_parquet(folder / "reals.parquet")
        table.to_csv("d.csv", sep=";", decimal=",", index=False)
        plain = run("evaluate reals.skops reals.parquet --json")
        found = run("evaluate reals.skops d.csv --json")
        assert found["R^2"] == pytest.approx(plain["R^2"])


class TestInspect:
    def test_model_of_a_table(self, run):
        result = run("inspect iris.skops --json")
        assert result["model"] == "TableCleaner -> ColumnTransformer -> FourierClassifier"
        assert result["numbers"] == ["sepal", "breadth", "petal", "width"]

    def test_control_characters_are_escaped(self, run, folder, tmp_path, capsys):
        model = notsorandom.load(folder / "arrays.skops")
        notsorandom.save(model, "m.skops", description={"\x1b[2J": "\x1b]0;x\x07"})
        text = run("inspect m.skops")
        assert "\\x1b[2J" in text
        assert not {"\x1b", "\x07"} & set(text)
        # Warnings of scikit-learn have the version that a file says it was written by.
        parts = unzip((folder / "iris.skops").read_bytes())
        schema, version = parts[SCHEMA].decode(), json.dumps(json.dumps(sklearn.__version__))
        assert version in schema
        parts[SCHEMA] = schema.replace(version, json.dumps(json.dumps("\x1b[2J"))).encode()
        Path("m.skops").write_bytes(pack(parts))
        assert main(["inspect", "m.skops"]) == 0
        text = capsys.readouterr().err
        assert "notsorandom inspect: Trying to unpickle estimator" in text
        assert "\\x1b[2J" in text
        assert "\x1b" not in text

    def test_checkpoint(self, run, folder, monkeypatch):
        monkeypatch.setattr(
            "notsorandom.estimators.resume.CheckpointFile.remove", lambda self: None
        )
        checkpoint = notsorandom.Checkpoint("game.npz", every=0)
        model = notsorandom.FourierFeatures(8, smoothing=0.06, checkpoint=checkpoint)
        with np.load(folder / "arrays.npz") as arrays:
            model.fit(arrays["X"], arrays["y"])
        text = run("inspect game.npz")
        assert "checkpoint" in text
        assert "n_components" in text


@pytest.mark.parametrize("name", ["arrays", "iris"])
def test_convert(name, run, folder):
    hint = "needs skl2onnx and onnxruntime: pip install 'notsorandom[all]'"
    pytest.importorskip("skl2onnx", reason=hint)
    onnxruntime = pytest.importorskip("onnxruntime", reason=hint)
    result = run(f"convert {name}.skops -o m.onnx --json")
    assert result == {"output": "m.onnx", "bytes": os.path.getsize("m.onnx")}
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    if name == "arrays":
        with np.load(folder / "arrays.npz") as arrays:
            X = arrays["X"]
        (decision,) = session.run(["decision"], {"X": X.astype(np.float32)})
        model = notsorandom.load(folder / "arrays.skops")
        np.testing.assert_allclose(decision, model.decision_function(X), atol=1e-4)


class TestReport:
    def test_page_of_a_model(self, run, folder):
        assert run("report iris.skops iris.csv -o page.html --json") == {
            "page": str(Path("page.html").resolve())
        }
        held = read_metadata(folder / "iris.skops")["metrics"]["test accuracy"]
        page = Path("page.html").read_text()
        assert f"test accuracy</dt><dd>{100 * held:.2f} %" in page
        assert "Predicts species (3 classes) from 4 columns." in page
        assert "Learned from 120 rows, tested on 30 others." in page
        assert "<h1>iris, a model of iris.csv</h1>" in page
        assert "Bounds on the value of the game" not in page
        run("report iris.skops iris.csv -o page.html --research --quiet")
        assert "Bounds on the value of the game" in Path("page.html").read_text()

    @pytest.mark.slow
    def test_pages_of_two_classes_and_of_integers(self, run, rng):
        run("report arrays.skops arrays.npz -o page.html")
        assert "Probabilities of the test rows" in Path("page.html").read_text()
        table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
        table["count"] = (100 * table["a"]).astype(int)
        table.to_csv("d.csv", index=False)
        assert "regression" in run(f"fit d.csv --target count {QUICK}")
        run("report m.skops d.csv -o p.html")

    @pytest.mark.parametrize("change", ["order", "label", "cell", "length"])
    def test_changed_data_is_rejected(self, change, run, folder):
        table = pd.read_csv(folder / "iris.csv")
        if change == "order":
            table = table.sample(frac=1, random_state=0)
        elif change == "length":
            table = table[:60]
        elif change == "label":
            table.loc[3, "species"] = "virginica"
        else:
            table.loc[3, "sepal"] += 0.1
        table.to_csv("other.csv", index=False)
        assert "is not the file that" in run("report iris.skops other.csv -o p.html", code=1)


class TestDemo:
    @pytest.fixture
    def result(self, monkeypatch, run):
        """The result of the demo with few samples and features."""
        sizes = {"DEMO_SIZES": (4, 8, 20), "LEARNED_SIZE": 8, "N_TRAIN": 300, "N_TEST": 500}
        for name, value in sizes.items():
            monkeypatch.setattr(commands, name, value)
        return lambda: run("demo --json -o picture.png")

    def test_compares_accuracies_and_draws_a_picture(self, result):
        result, picture = result(), Path("picture.png").resolve()
        assert result["picture"] == str(picture)
        for size in (4, 8):
            scores = result[f"{size} features"]
            assert 0.4 < scores["random accuracy"] < scores["learned accuracy"] < 1
        assert set(result["20 features"]) == {"random accuracy"}  # more than are learned
        assert picture.read_bytes().startswith(b"\x89PNG")

    def test_without_matplotlib_names_the_extra(self, result, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        assert "notsorandom[plot]" in result()["picture"]


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.1, 0.3, 0.6, 1.0])
def test_interrupted_while_it_starts(delay, folder):
    """Without a traceback, also before the imports are done."""
    command = [sys.executable, "-m", "notsorandom.cli", "fit", str(folder / "iris.csv")]
    command += ["--target", "species", "-o", str(folder / "interrupted.skops")]
    command += ["--n-components", "2000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode in (130, -signal.SIGINT)
    assert error in (b"interrupted\n", b"")


@pytest.fixture(scope="module")
def table():
    """Categories, gaps, dates, an identifier and booleans, in German."""
    rng = np.random.default_rng(0)
    n = 400
    days = pd.Series(rng.choice(pd.date_range("2020-01-01", periods=700), n))
    table = pd.DataFrame(
        {
            "Kunde": [f"K{k:04d}" for k in rng.permutation(n)],
            "Umsatz": np.exp(rng.normal(3, 1, n)).round(2),
            "Alter": rng.normal(40, 10, n).round(1),
            "aktiv": rng.choice(["True", "false", "TRUE"], n),
            "Stadt": rng.choice(["Köln", "Bonn", "Mainz", ""], n),
            "seit": days.dt.strftime("%d.%m.%Y"),
        }
    )
    table.loc[::19, "Alter"] = np.nan
    known = (table["Alter"].fillna(0) > 40) ^ (table["Stadt"] == "Bonn")
    return table.assign(Art=np.where(known, "gut", "schlecht"))


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_messy_file_to_predictions(encoding, table, run):
    """Semicolons, decimal commas, and any encoding."""
    style = {"sep": ";", "decimal": ",", "index": False, "encoding": encoding}
    table.to_csv("d.csv", **style)
    table.drop(columns="Art").to_csv("new.csv", **style)
    result = run(
        "fit d.csv --target Art -o m.skops --n-components 60 --smoothing 0.06 --C 10 --json"
    )
    assert "decimal commas" in result["file read as"]
    assert result["numbers"] == ["Umsatz", "Alter"]
    assert result["categories"] == ["Stadt"]
    assert result["booleans"] == ["aktiv"]
    assert result["dates"] == ["seit"]
    assert result["left out"] == ["Kunde (all values differ)"]
    assert result["test"]["accuracy"] > 0.85
    run("predict m.skops new.csv --proba --keep Kunde -o p.csv")
    found = pd.read_csv("p.csv")
    assert found["Kunde"].tolist() == table["Kunde"].tolist()
    expected = notsorandom.load("m.skops").predict_proba(table)
    np.testing.assert_allclose(found[["proba_gut", "proba_schlecht"]], expected, atol=1e-6)
    assert run("evaluate m.skops d.csv --json")["accuracy"] > 0.9


@pytest.mark.parametrize(
    ("y", "ending", "classes"),
    [
        (["TRUE", "False", "true", ""] * 30, "csv", ["False", "True"]),
        (["k", "m", "", "NA"] * 40, "parquet", ["k", "m"]),
        ([f"c{k % 30:02d}" for k in range(60)], "csv", [f"c{k:02d}" for k in range(30)]),
    ],
    ids=["booleans with gaps", "missing text of typed columns", "two rows of each class"],
)
def test_classes_of_doubtful_targets(y, ending, classes, run, rng):
    frame = pd.DataFrame(rng.normal(size=(len(y), 2)), columns=["a", "b"]).assign(y=y)
    frame.to_csv("t.csv", index=False) if ending == "csv" else frame.to_parquet("t.parquet")
    run(f"fit t.{ending} --target y {QUICK}")
    run(f"evaluate m.skops t.{ending}")
    assert notsorandom.load("m.skops").classes_.tolist() == classes


@pytest.mark.slow
@pytest.mark.parametrize("numbers", ["raw", "both"])
def test_time_is_linear_in_the_number_of_columns(numbers, rng, tmp_path):
    """From a CSV file to predictions, with the same number of features."""
    seconds = []
    for n_columns in (100, 5_000, 20_000):
        X = rng.normal(size=(60, n_columns))
        frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(n_columns)])
        data, model = tmp_path / "wide.csv", tmp_path / "m.skops"
        frame.assign(label=np.where(X[:, 0] > 0, "yes", "no")).to_csv(data, index=False)
        start = time.process_time()
        options = ["--target", "label", "--numbers", numbers, "--n-components", "50", "-o"]
        options += [str(model), "--quiet"]
        assert main(["fit", str(data), *options]) == 0
        assert main(["predict", str(model), str(data), "-o", str(tmp_path / "p.csv")]) == 0
        seconds.append(time.process_time() - start)
    assert seconds[2] < 5.5 * seconds[1], seconds


def test_formulas_are_text_in_predictions(tmp_path):
    """A spreadsheet would compute labels and copied columns that begin with =, +, - or @."""
    table = pd.DataFrame(
        {"a": np.sin(np.arange(40.0)), "=id": ["=1+1", "-2.5", "@x", "plain"] * 10}
    )
    table["label"] = np.where(table["a"] < 0, "=HYPERLINK(1)", "+b")
    table.to_csv(tmp_path / "data.csv", index=False)
    model = str(tmp_path / "model.skops")
    arguments = [str(tmp_path / "data.csv"), "--target", "label", "-o", model, "--columns", "a"]
    assert main(["fit", *arguments, "--n-components", "4", "--quiet"]) == 0
    for options, quote in (([], "'"), (["--formulas"], "")):
        for kind in ("csv", "parquet"):
            out = tmp_path / f"out.{kind}"
            keep = ["--keep", "=id", "--quiet", "-o", str(out), *options]
            assert main(["predict", model, str(tmp_path / "data.csv"), *keep]) == 0
            found = pd.read_csv(out, dtype=str) if kind == "csv" else pd.read_parquet(out)
            mark = quote if kind == "csv" else ""
            assert found.columns.tolist() == [f"{mark}=id", "label"]
            assert found.iloc[:4, 0].tolist() == [f"{mark}=1+1", "-2.5", f"{mark}@x", "plain"]
            assert set(found["label"]) == {f"{mark}=HYPERLINK(1)", f"{mark}+b"}
