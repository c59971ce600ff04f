"""The commands on data files: fit, predict, evaluate, inspect, convert, report."""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import dump_svmlight_file, load_iris

import notsorandom
from benchmarks.forgery import unzip
from notsorandom._utils.files import write_atomic
from notsorandom.cli import main
from notsorandom.cli.fit import TrainingTable, choose_task, split_rows
from notsorandom.io import read_metadata
from notsorandom.io.archive import SCHEMA, pack

pytestmark = pytest.mark.usefixtures("quick_trials")

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'notsorandom[all]'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data files, and models fitted to them by the command ``fit``."""
    folder = tmp_path_factory.mktemp("commands")
    rng = np.random.default_rng(0)
    flowers = load_iris(as_frame=True)
    frame = flowers.data.set_axis(["sepal", "breadth", "petal", "width"], axis=1)
    frame["petal"] *= 1000  # units of their own
    frame.insert(2, "species", flowers.target_names[flowers.target])
    frame.to_csv(folder / "iris.csv", index=False)
    X = rng.normal(size=(200, 3))
    reals = pd.DataFrame(X, columns=["a", "b", "c"]).assign(z=np.sin(2 * X[:, 0]) + X[:, 1])
    reals.to_parquet(folder / "reals.parquet", index=False)
    dates = reals.assign(d=pd.date_range("2020-01-01", periods=200), text=X[:, 0].astype(str))
    dates.to_parquet(folder / "dates.parquet", index=False)
    labels = (np.cos(2 * X[:, 0]) > 0.3).astype(int)
    np.savez(folder / "arrays.npz", X=X, y=labels)
    np.save(folder / "array.npy", X)
    dump_svmlight_file(X, labels, str(folder / "sparse.libsvm"), zero_based=False)
    settings = ["--n-components", "20", "--smoothing", "0.06", "--quiet"]
    for data, target, name in (
        ("iris.csv", "species", "iris"),
        ("reals.parquet", "z", "reals"),
        ("arrays.npz", None, "arrays"),
        ("sparse.libsvm", None, "sparse"),
    ):
        arguments = ["fit", str(folder / data), "-o", str(folder / f"{name}.skops")]
        arguments += [] if target is None else ["--target", target]
        assert main([*arguments, *settings]) == 0
    return folder


class TestFit:
    def test_result_as_text(self, run, folder, tmp_path):
        output = tmp_path / "m.skops"
        text = run(
            "fit", "iris.csv", "--target", "species", "-o", str(output), "--smoothing", "0.1"
        )
        for part in ("classification", "3 distinct texts", "test", "effective"):
            assert part in text
        model = notsorandom.load(output)
        assert model.feature_names_in_.tolist() == ["sepal", "breadth", "petal", "width"]
        assert model[-1].smoothing_ == 0.1

    def test_result_as_json(self, run, tmp_path):
        output = tmp_path / "m.skops"
        arguments = ["--target", "z", "-o", str(output), "--smoothing", "0.06", "--json"]
        result = json.loads(run("fit", "reals.parquet", *arguments))
        assert result["task"] == "regression"
        assert result["rows"] == 200
        assert result["bytes"] == output.stat().st_size
        metrics = read_metadata(output)["metrics"]
        assert metrics["test R^2"] == result["test"]["R^2"] > 0.6

    def test_held_out_rows_are_not_in_the_training_data(self, folder, run):
        """Errors on training and held-out rows add up to those of the saved model on all rows."""
        about, metrics = (
            read_metadata(folder / "iris.skops")[key] for key in ("description", "metrics")
        )
        assert about["fit"]["holdout"] == 0.2
        model = notsorandom.load(folder / "iris.skops")
        assert model[-1].n_samples_fit_ == 120
        table = pd.read_csv(folder / "iris.csv")
        right = model.predict(table) == table["species"]
        wrong = (1 - metrics["test accuracy"]) * 30 + (1 - metrics["training accuracy"]) * 120
        assert (~right).sum() == round(wrong)

    def test_columns_with_names_are_scaled(self, run, folder, tmp_path):
        """The model takes them as they are, and its waves turn with all of them."""
        share = {}
        for scale in ("standard", "none"):
            output = str(tmp_path / f"{scale}.skops")
            arguments = ["fit", "iris.csv", "--target", "species", "-o", output, "--json"]
            result = json.loads(run(*arguments, "--scale", scale, "--smoothing", "0.06"))
            assert sum(result["importances"].values()) == pytest.approx(1, abs=1e-3)
            share[scale] = result["importances"]["petal"]
        assert share["none"] > 0.95  # the numbers of the others are too small to turn anything
        assert share["standard"] < 0.6

    def test_classes_or_reals(self):
        options = argparse.Namespace(task="auto", loss=None)
        for target, is_classification in (
            (["a", "b"], True),
            ([True, False], True),
            (range(20), True),
            (range(21), False),
            (np.arange(5.0), True),
            ([0.5, 1.0], False),
        ):
            assert choose_task(pd.Series(target), options)[0] == is_classification

    def test_task_can_be_given(self, run, tmp_path):
        output = str(tmp_path / "m.skops")
        arguments = ["fit", "arrays.npz", "-o", output, "--smoothing", "0.06"]
        run(*arguments, "--task", "regression")
        assert isinstance(notsorandom.load(output), notsorandom.FourierRegressor)
        arguments += ["--task", "regression", "--class-weight", "balanced"]
        assert "--class-weight" in run(*arguments, code=2)

    def test_drop_columns(self, run, tmp_path):
        output = str(tmp_path / "m.skops")
        arguments = ["fit", "iris.csv", "--target", "species", "-o", output, "--smoothing", "0.1"]
        run(*arguments, "--drop", "petal, width")
        assert notsorandom.load(output).feature_names_in_.tolist() == ["sepal", "breadth"]
        run(*arguments, "--columns", "width,sepal")
        assert notsorandom.load(output).feature_names_in_.tolist() == ["width", "sepal"]
        assert "has no column 'petall'" in run(*arguments, "--drop", "petall", code=1)

    def test_sphere(self, run, tmp_path):
        output = str(tmp_path / "m.skops")
        arguments = ["fit", "arrays.npz", "-o", output, "--space", "sphere", "--n-components", "8"]
        text = run(*arguments, "--smoothing", "0.06")
        assert "Degrees (number of frequencies): " in text

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
        output = str(tmp_path / "m.skops")
        arguments = ["fit", "iris.csv", "--target", "species", "-o", output, "--smoothing", "0.1"]
        text = run(*arguments, code=1)
        assert "No space left on device" in text
        (kept,) = refuge.glob("*/model.skops")
        assert kept.parent.stat().st_mode & 0o077 == 0  # for its owner only
        assert f"The model is in {kept} instead" in text
        assert isinstance(notsorandom.load(kept)[-1], notsorandom.FourierClassifier)

    def test_flags_are_the_parameters_of_the_estimator(self, run, tmp_path):
        output = tmp_path / "m.skops"
        arguments = ["fit", "iris.csv", "--target", "species", "-o", str(output), "--json"]
        arguments += ["--n-components", "12", "--smoothing", "0.1"]
        run(*arguments, "--C", "2", "--class-weight", "balanced", "--seed", "3")
        model = notsorandom.load(output)[-1]
        expected = {"C": 2.0, "class_weight": "balanced", "random_state": 3, "n_components": 12}
        assert model.get_params().items() >= expected.items()
        first = model.coef_
        run(*arguments, "--C", "2", "--class-weight", "balanced", "--seed", "4")
        assert not np.array_equal(notsorandom.load(output)[-1].coef_, first)  # other held-out rows

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

    @pytest.mark.parametrize("name", ["index.csv", "index.parquet"])
    def test_pandas_index_is_left_out(self, name, run, folder, tmp_path):
        table = pd.read_csv(folder / "iris.csv")
        if name == "index.csv":
            table.to_csv(tmp_path / name)
        else:
            table.sample(frac=1, random_state=0).to_parquet(tmp_path / name)
        output = tmp_path / "m.skops"
        arguments = ["fit", str(tmp_path / name), "--target", "species", "-o", str(output)]
        run(*arguments, "--smoothing", "0.1", "--n-components", "8")
        names = notsorandom.load(output)[-1].feature_names_in_.tolist()
        assert [name.split()[0] for name in names] == ["sepal", "breadth", "petal", "width"]

    def test_rows_without_target_are_left_out(self, run, folder, tmp_path):
        table = pd.read_csv(folder / "iris.csv")
        table.loc[::10, "species"] = None
        table.to_csv(tmp_path / "d.csv", index=False)
        arguments = ["fit", str(tmp_path / "d.csv"), "--target", "species", "--json"]
        result = json.loads(run(*arguments, "-o", str(tmp_path / "m.skops"), "--C", "1"))
        assert result["rows"] == 135
        assert result["rows without target, left out"] == 15

    def test_cautions(self, run, folder, tmp_path):
        output = str(tmp_path / "m.skops")
        arguments = ["fit", "iris.csv", "--target", "species", "-o", output, "--C", "1"]
        assert "30 rows are too few" in run(*arguments)
        assert "nothing is known about new rows" in run(*arguments, "--holdout", "0")
        rng = np.random.default_rng(0)
        noise = pd.DataFrame({"x": rng.normal(size=600), "y": rng.integers(2, size=600)})
        noise.to_csv(tmp_path / "noise.csv", index=False)
        arguments = ["fit", str(tmp_path / "noise.csv"), "--target", "y", "-o", output, "--C", "1"]
        assert "not clearly better than guessing" in run(*arguments)

    def test_scores_beside_guessing(self, run, folder, tmp_path):
        """The standard error of R^2 is that of the bootstrap."""
        output = tmp_path / "m.skops"
        arguments = ["fit", "reals.parquet", "--target", "z", "-o", str(output), "--json"]
        result = json.loads(run(*arguments, "--smoothing", "0.06", "--holdout", "0"))
        model, table = notsorandom.load(output), pd.read_parquet(folder / "reals.parquet")
        rng = np.random.default_rng(0)
        scores = [
            model.score(sample, sample["z"])
            for sample in (table.sample(frac=1, replace=True, random_state=rng) for _ in range(400))
        ]
        assert result["training"]["standard error of R^2"] == pytest.approx(np.std(scores), rel=0.3)
        labels = json.loads(run("evaluate", "iris.skops", "iris.csv", "--json"))
        assert labels["accuracy of guessing the largest class"] == pytest.approx(1 / 3)


class TestPredict:
    @pytest.mark.parametrize("name", ["iris.csv", "reals.parquet", "arrays.npz", "sparse.libsvm"])
    def test_predictions_are_those_of_the_model(self, name, run, folder, tmp_path):
        stem = name.split(".")[0]
        output = tmp_path / "predictions.csv"
        run("predict", f"{stem}.skops", name, "-o", str(output))
        found = pd.read_csv(output)
        model = notsorandom.load(folder / f"{stem}.skops")
        if name.endswith("z") or name.endswith("m"):
            with np.load(folder / "arrays.npz") as arrays:
                X = arrays["X"]
        else:
            table = pd.read_csv if name.endswith("csv") else pd.read_parquet
            X = table(folder / name)
        description = read_metadata(folder / f"{stem}.skops")["description"]
        assert list(found) == [description["fit"]["target"]]
        expected = model.predict(X)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found.iloc[:, 0], expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(found.iloc[:, 0], expected)

    def test_scores_and_columns_to_keep(self, run, folder, tmp_path):
        output = tmp_path / "p.parquet"
        run(
            "predict",
            "iris.skops",
            "iris.csv",
            "--scores",
            "--keep",
            "sepal,width",
            "-o",
            str(output),
        )
        found = pd.read_parquet(output)
        assert list(found) == [
            "sepal",
            "width",
            "species",
            "score_setosa",
            "score_versicolor",
            "score_virginica",
        ]
        table = pd.read_csv(folder / "iris.csv")
        model = notsorandom.load(folder / "iris.skops")
        X = table
        np.testing.assert_array_equal(found.iloc[:, 3:], model.decision_function(X))
        np.testing.assert_array_equal(found["species"], model.predict(X))
        assert found["sepal"].astype(float).tolist() == table["sepal"].tolist()

    def test_kept_column_with_the_name_of_the_target(self, run, tmp_path):
        lines = run("predict", "iris.skops", "iris.csv", "--keep", "species").splitlines()
        assert lines[0] == '"species","species_predicted"'
        agree = [len(set(line.split(","))) == 1 for line in lines[1:]]
        assert 0.9 < np.mean(agree) < 1

    def test_libsvm_indices_start_where_they_did_in_the_training_data(self, run, folder, tmp_path):
        """At 1, though this file has no value in its first column."""
        with np.load(folder / "arrays.npz") as arrays:
            X, y = arrays["X"].copy(), arrays["y"]
        counted = tmp_path / "counted.libsvm"
        text = "\n".join(f"{y[i]} 2:{X[i, 1]!r} 3:{X[i, 2]!r}" for i in range(len(y)))
        counted.write_text(text.replace("np.float64(", "").replace(")", ""))
        X[:, 0] = 0
        model = notsorandom.load(folder / "sparse.skops")
        text = run("predict", "sparse.skops", str(counted)).splitlines()[1:]
        assert [int(line) for line in text] == model.predict(X).tolist()
        zero_based = tmp_path / "zero.skops"
        zeros = tmp_path / "zeros.libsvm"
        dump_svmlight_file(X + 1, y, str(zeros), zero_based=True)
        run("fit", str(zeros), "-o", str(zero_based), "--smoothing", "0.06", "--n-components", "8")
        fewer = tmp_path / "fewer.libsvm"
        fewer.write_text("0 1:0.5 2:0.25\n")
        model = notsorandom.load(zero_based)
        expected = model.decision_function(np.array([[0, 0.5, 0.25]]))[0]
        found = run("predict", str(zero_based), str(fewer), "--scores").splitlines()[1].split(",")
        assert float(found[1]) == pytest.approx(expected, rel=1e-9)

    def test_input_file_is_not_overwritten(self, run, folder, tmp_path):
        copy = tmp_path / "copy.csv"
        copy.write_bytes((folder / "iris.csv").read_bytes())
        text = run("predict", "iris.skops", str(copy), "-o", str(copy), code=2)
        assert "is an input file" in text
        assert copy.read_bytes() == (folder / "iris.csv").read_bytes()

    def test_two_classes_have_one_score_column(self, run):
        lines = list(
            csv.reader(run("predict", "arrays.skops", "arrays.npz", "--scores").splitlines())
        )
        assert lines[0] == ["y", "score_1"]
        assert len(lines) == 201
        assert all((label == "1") == (float(score) > 0) for label, score in lines[1:])

    def test_predictions_do_not_depend_on_blocks(self, run, folder, monkeypatch):
        whole = run("predict", "iris.skops", "iris.csv")
        monkeypatch.setattr("notsorandom.cli.loading.PREDICTED_ROWS", 7)
        monkeypatch.setattr("notsorandom.cli.loading.PREDICTED_BYTES", 100)
        assert run("predict", "iris.skops", "iris.csv") == whole

    def test_transformer_gives_features(self, run, folder, tmp_path):
        path = tmp_path / "features.skops"
        with np.load(folder / "arrays.npz") as arrays:
            X, y = arrays["X"], arrays["y"]
        features = notsorandom.FourierFeatures(4, smoothing=0.06).fit(X, y)
        notsorandom.save(features, path)
        output = tmp_path / "f.parquet"
        run("predict", str(path), "arrays.npz", "-o", str(output))
        np.testing.assert_array_equal(pd.read_parquet(output), features.transform(X))

    def test_number_of_features_that_was_chosen(self, run, tmp_path):
        output = str(tmp_path / "m.skops")
        arguments = ["fit", "arrays.npz", "-o", output, "--smoothing", "0.06", "--C", "1"]
        run(*arguments, "--n-components", "auto")
        assert run("predict", output, "arrays.npz").count("\n") == 201

    def test_text_that_is_numbers_in_a_typed_file(self, run, folder, tmp_path):
        output = str(tmp_path / "m.skops")
        arguments = ["fit", "dates.parquet", "--target", "z", "-o", output, "--columns", "text,d"]
        run(*arguments, "--smoothing", "0.06", "--C", "1", "--n-components", "8")
        assert run("predict", output, "dates.parquet").count("\n") == 201

    def test_arrays_for_a_model_of_libsvm_and_back(self, run):
        assert run("predict", "sparse.skops", "arrays.npz").count("\n") == 201
        assert run("predict", "arrays.skops", "sparse.libsvm").count("\n") == 201

    def test_arrays_without_target(self, run):
        lines = run("predict", "arrays.skops", "array.npy")
        assert lines == run("predict", "arrays.skops", "arrays.npz")

    def test_json_needs_an_output_file(self, run, tmp_path):
        output = tmp_path / "p.csv"
        result = json.loads(run("predict", "iris.skops", "iris.csv", "--json", "-o", str(output)))
        assert result["rows"] == 150
        assert "give --output" in run("predict", "iris.skops", "iris.csv", "--json", code=2)

    def test_error_leaves_the_old_file(self, run, folder, tmp_path):
        bad, output = tmp_path / "bad.csv", tmp_path / "p.csv"
        lines = (folder / "iris.csv").read_text().splitlines()
        lines[100] = lines[100].replace(lines[100].split(",")[0], "wide", 1)
        bad.write_text("\n".join(lines))
        output.write_text("old")
        text = run("predict", "iris.skops", str(bad), "-o", str(output), code=1)
        assert "'sepal'" in text
        assert "'wide'" in text
        assert output.read_text() == "old"
        assert sorted(os.listdir(tmp_path)) == ["bad.csv", "p.csv"]

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


class TestEvaluate:
    def test_classification_metrics(self, run, folder):
        result = json.loads(run("evaluate", "iris.skops", "iris.csv", "--json"))
        table = pd.read_csv(folder / "iris.csv")
        model = notsorandom.load(folder / "iris.skops")
        text = model.predict(table)
        assert result["accuracy"] == np.mean(text == table["species"])
        for name in model.classes_:
            of_class = table["species"] == name
            assert result[f"class {name}"]["recall"] == np.mean(text[of_class] == name)
            assert result[f"class {name}"]["precision"] == np.mean(of_class[text == name])

    def test_regression_metrics(self, run, folder, monkeypatch):
        monkeypatch.setattr("notsorandom.cli.loading.PREDICTED_ROWS", 7)
        monkeypatch.setattr("notsorandom.cli.loading.PREDICTED_BYTES", 100)
        result = json.loads(run("evaluate", "reals.skops", "reals.parquet", "--json"))
        table = pd.read_parquet(folder / "reals.parquet")
        model = notsorandom.load(folder / "reals.skops")
        X, z = table[["a", "b", "c"]], table["z"]
        errors = model.predict(X) - z
        assert result["R^2"] == pytest.approx(model.score(X, z))
        assert result["root mean squared error"] == pytest.approx(np.sqrt(np.mean(errors**2)))
        assert result["mean absolute error"] == pytest.approx(np.mean(np.abs(errors)))
        spread = (z - z.mean()) ** 2  # the delta method, from all rows at once
        parts = (errors**2 - (1 - result["R^2"]) * spread) / spread.mean()
        expected = pytest.approx(parts.std(ddof=0) / np.sqrt(len(z)))
        assert result["standard error of R^2"] == expected

    def test_default_target(self, run):
        for name in ("arrays.npz", "sparse.libsvm"):
            assert "accuracy" in run("evaluate", f"{name.split('.')[0]}.skops", name)

    def test_float16_target(self, run, folder, tmp_path):
        """Sums in float16 would overflow."""
        path = tmp_path / "half.npz"
        X = np.random.default_rng(0).normal(size=(400, 2))
        np.savez(path, X=X, y=(300 * X[:, 0]).astype(np.float16))
        output = str(tmp_path / "m.skops")
        run(
            "fit",
            str(path),
            "-o",
            output,
            "--smoothing",
            "0.5",
            "--task",
            "regression",
            "--n-components",
            "20",
        )
        result = json.loads(run("evaluate", output, str(path), "--json"))
        y = (300 * X[:, 0]).astype(np.float16).astype(float)
        assert result["R^2"] == pytest.approx(notsorandom.load(output).score(X, y), abs=1e-6)

    def test_unknown_classes(self, run, folder, tmp_path):
        bad = tmp_path / "bad.csv"
        bad.write_text((folder / "iris.csv").read_text().replace("virginica", "rosa"))
        text = run("evaluate", "iris.skops", str(bad), code=1)
        assert (
            "the target in row 101 of the data is 'rosa', not one of the model's classes, 'se"
            in text
        )

    def test_rows_without_target_are_left_out(self, run, folder, tmp_path):
        table = pd.read_csv(folder / "iris.csv")
        table.loc[::5, "species"] = None
        table.to_csv(tmp_path / "gaps.csv", index=False)
        assert (
            json.loads(run("evaluate", "iris.skops", str(tmp_path / "gaps.csv"), "--json"))["rows"]
            == 120
        )

    def test_whole_blocks_without_target(self, run, folder, tmp_path, monkeypatch):
        monkeypatch.setattr("notsorandom.cli.loading.PREDICTED_ROWS", 7)
        monkeypatch.setattr("notsorandom.cli.loading.PREDICTED_BYTES", 100)
        table = pd.read_csv(folder / "iris.csv")
        path = tmp_path / "gaps.csv"
        table.assign(species=table["species"].where(table.index >= 20)).to_csv(path, index=False)
        assert json.loads(run("evaluate", "iris.skops", str(path), "--json"))["rows"] == 130
        table.assign(species=None).to_csv(path, index=False)
        text = run("evaluate", "iris.skops", str(path), code=1)
        assert "the target 'species' is empty: give another --target" in text

    def test_numbers_with_decimal_commas(self, run, folder, tmp_path):
        table = pd.read_parquet(folder / "reals.parquet")
        table.to_csv(tmp_path / "d.csv", sep=";", decimal=",", index=False)
        plain = json.loads(run("evaluate", "reals.skops", "reals.parquet", "--json"))
        found = json.loads(run("evaluate", "reals.skops", str(tmp_path / "d.csv"), "--json"))
        assert found["R^2"] == pytest.approx(plain["R^2"])


class TestInspect:
    def test_model(self, run, folder):
        text = run("inspect", "iris.skops")
        for part in ("FourierClassifier", "test accuracy", "species", "virginica", "petal"):
            assert part in text
        result = json.loads(run("inspect", "iris.skops", "--json"))
        assert result["model"] == "TableCleaner -> ColumnTransformer -> FourierClassifier"
        assert result["numbers"] == ["sepal", "breadth", "petal", "width"]

    def test_control_characters_are_escaped(self, run, folder, tmp_path):
        with np.load(folder / "arrays.npz") as arrays:
            model = notsorandom.FourierFeatures(4, smoothing=0.06).fit(arrays["X"], arrays["y"])
        path = notsorandom.save(
            model, tmp_path / "m.skops", description={"\x1b[2J": "\x1b]0;x\x07"}
        )
        text = run("inspect", str(path))
        assert "\\x1b[2J" in text
        assert "\x1b" not in text
        assert "\x07" not in text

    def test_control_characters_in_warnings(self, folder, tmp_path, capsys):
        """Those of scikit-learn have the version that a file says it was written by."""
        parts = unzip((folder / "iris.skops").read_bytes())
        schema, version = parts[SCHEMA].decode(), json.dumps(json.dumps(sklearn.__version__))
        assert version in schema
        parts[SCHEMA] = schema.replace(version, json.dumps(json.dumps("\x1b[2J"))).encode()
        path = tmp_path / "m.skops"
        path.write_bytes(pack(parts))
        assert main(["inspect", str(path)]) == 0
        text = capsys.readouterr().err
        assert "notsorandom inspect: Trying to unpickle estimator" in text
        assert "\\x1b[2J" in text
        assert "\x1b" not in text

    def test_checkpoint(self, run, folder, tmp_path, monkeypatch):
        path = tmp_path / "game.npz"
        monkeypatch.setattr(
            "notsorandom.estimators.resume.CheckpointFile.remove", lambda self: None
        )
        checkpoint = notsorandom.Checkpoint(path, every=0)
        model = notsorandom.FourierFeatures(8, smoothing=0.06, checkpoint=checkpoint)
        with np.load(folder / "arrays.npz") as arrays:
            model.fit(arrays["X"], arrays["y"])
        text = run("inspect", str(path))
        assert "checkpoint" in text
        assert "n_components" in text

    def test_other_file(self, run, folder):
        assert "neither a model file" in run("inspect", "iris.csv", code=1)


class TestConvert:
    def test_to_onnx(self, run, folder, tmp_path):
        pytest.importorskip("skl2onnx", reason="needs skl2onnx: pip install 'notsorandom[all]'")
        onnxruntime = pytest.importorskip(
            "onnxruntime", reason="needs onnxruntime: pip install 'notsorandom[all]'"
        )
        output = tmp_path / "m.onnx"
        run("convert", "arrays.skops", "-o", str(output))
        with np.load(folder / "arrays.npz") as arrays:
            X = arrays["X"]
        session = onnxruntime.InferenceSession(output, providers=["CPUExecutionProvider"])
        (labels, decision) = session.run(["label", "decision"], {"X": X.astype(np.float32)})
        model = notsorandom.load(folder / "arrays.skops")
        np.testing.assert_allclose(decision, model.decision_function(X), atol=1e-4)
        assert (labels == model.predict(X)).mean() > 0.99

    def test_whole_pipeline(self, run, folder, tmp_path):
        pytest.importorskip("skl2onnx", reason="needs skl2onnx: pip install 'notsorandom[all]'")
        output = tmp_path / "m.onnx"
        result = json.loads(run("convert", "iris.skops", "-o", str(output), "--json"))
        assert result == {"output": str(output), "bytes": output.stat().st_size}


class TestReport:
    @pytest.mark.slow
    def test_page_of_a_model(self, run, folder, tmp_path):
        output = tmp_path / "page.html"
        result = run("report", "iris.skops", "iris.csv", "-o", str(output), "--json")
        assert json.loads(result) == {"page": str(output)}
        held = read_metadata(folder / "iris.skops")["metrics"]["test accuracy"]
        page = output.read_text()
        assert f"test accuracy</dt><dd>{100 * held:.2f} %" in page
        assert "Predicts species (3 classes) from 4 columns." in page
        assert "Learned from 120 rows, tested on 30 others." in page
        assert "<h1>iris, a model of iris.csv</h1>" in page

    @pytest.mark.parametrize("change", ["order", "label", "cell"])
    def test_changed_data_is_rejected(self, change, run, folder, tmp_path):
        table = pd.read_csv(folder / "iris.csv")
        if change == "order":
            table = table.sample(frac=1, random_state=0)
        elif change == "label":
            table.loc[3, "species"] = "virginica"
        else:
            table.loc[3, "sepal"] += 0.1
        path = tmp_path / "other.csv"
        table.to_csv(path, index=False)
        text = run("report", "iris.skops", str(path), "-o", str(tmp_path / "p.html"), code=1)
        assert "is not the file that" in text

    @pytest.mark.slow
    def test_regression_target_of_integers(self, run, tmp_path):
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
        table["count"] = (100 * table["a"]).astype(int)
        table.to_csv(tmp_path / "d.csv", index=False)
        output = str(tmp_path / "m.skops")
        arguments = ["fit", str(tmp_path / "d.csv"), "--target", "count", "-o", output]
        assert "regression" in run(*arguments, "--smoothing", "0.5", "--n-components", "8")
        page = str(tmp_path / "p.html")
        run("report", output, str(tmp_path / "d.csv"), "-o", page)

    def test_other_data_is_rejected(self, run, folder, tmp_path):
        short = tmp_path / "short.csv"
        lines = (folder / "iris.csv").read_text().splitlines()
        short.write_text("\n".join(lines[:60]))
        output = str(tmp_path / "page.html")
        assert "is not the file that" in run(
            "report", "iris.skops", str(short), "-o", output, code=1
        )
        assert "required: data" in run("report", "iris.skops", "-o", output, code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "missing.csv", "--target", "y", "-o", "m.skops"], "doesn't exist"),
        (["fit", "iris.csv", "-o", "m.skops"], "Give --target, one of 'sepal'"),
        (["fit", "iris.csv", "--target", "spezies", "-o", "m.skops"], "mean 'species'"),
        (
            ["fit", "arrays.npz", "-o", "m.skops", "--target", "9"],
            "its target is y: leave --target",
        ),
        (["fit", "array.npy", "-o", "m.skops"], "has no target: give an .npz file"),
        (["fit", "dates.parquet", "--target", "d", "-o", "m.skops"], "The target holds dates"),
        (
            ["fit", "iris.csv", "--target", "species", "-o", "m.skops", "--task", "regression"],
            "'setosa', not a number: correct it, leave the row out, or give --task classification",
        ),
        (
            ["fit", "reals.parquet", "--target", "z", "-o", "m.skops", "--loss", "logistic"],
            "'z' has fractions, which are no classes: give --task regression",
        ),
        (["predict", "iris.skops", "reals.parquet"], "'sepal'"),
        (["predict", "arrays.skops", "iris.csv"], "fitted to 3 without names"),
        (["predict", "iris.skops", "arrays.npz"], "has no column names"),
        (["predict", "iris.csv", "iris.csv"], "give a .skops file first, then the data"),
        (["fit", "arrays.npz", "-o", "m.skops", "--drop", "a"], "has no column names"),
        (["predict", "missing.skops", "iris.csv"], "missing.skops"),
        (["predict", "iris.skops", "iris.csv", "--keep", "colour"], "colour"),
        (["predict", "arrays.skops", "arrays.npz", "--keep", "id"], "no column names, but needs"),
        (["evaluate", "iris.skops", "reals.parquet"], "'sepal'"),
        (["inspect", "missing.skops"], "missing.skops"),
        (["inspect", "missing.npz"], "missing.npz"),
    ],
)
def test_errors_have_one_line(arguments, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = run(*arguments, code=1)
    assert message in text
    assert text.startswith(f"notsorandom {arguments[0]}: ")
    assert text.count("\n") == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "iris.csv", "--target", "species", "-o", "m.pkl"], ".skops"),
        (["fit", "iris.csv", "--target", "species", "-o", "no/m.skops"], "doesn't exist"),
        (
            ["fit", "iris.csv", "-o", "m.skops", "--holdout", "1"],
            "--holdout: 1 is not allowed: give 0 to 0.9",
        ),
        (["fit", "iris.csv", "-o", "m.skops", "--seed", "-1"], "--seed: -1 is not allowed"),
        (["fit", "iris.csv", "-o", "m.skops", "--n-components", "0"], "n_components=0"),
        (
            ["fit", "iris.csv", "-o", "m.skops", "--n-components", "many"],
            "n_components='many'",
        ),
        (["fit", "iris.csv", "-o", "m.skops", "--smoothing", "-1"], "smoothing=-1"),
        (["fit", "iris.csv", "-o", "m.skops", "--C", "0"], "C=0"),
        (["fit", "iris.csv", "-o", "m.skops", "--checkpoint", "no/f"], "checkpoint='no"),
        (
            ["fit", "a.csv", "-o", "m.skops", "--drop", "a", "--columns", "b"],
            "not allowed with argument",
        ),
        (["predict", "iris.skops", "iris.csv", "-o", "p.xlsx"], ".parquet"),
        (["predict", "reals.skops", "reals.parquet", "--scores"], "--scores"),
        (["convert", "iris.skops", "-o", "m.pkl"], ".onnx"),
    ],
)
def test_wrong_arguments_exit_with_2(arguments, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in run(*arguments, code=2)


@pytest.mark.parametrize("command", "fit predict evaluate inspect convert report demo".split())
def test_help_has_an_example(command, run):
    text = run(command, "--help")
    assert f"notsorandom {command}" in text
    assert command == "demo" or "example" in text


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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_messy_file_to_predictions(encoding, table, run, tmp_path):
    """Semicolons, decimal commas, and any encoding."""
    data, new, output = (tmp_path / name for name in ("d.csv", "new.csv", "p.csv"))
    style = {"sep": ";", "decimal": ",", "index": False, "encoding": encoding}
    table.to_csv(data, **style)
    table.drop(columns="Art").to_csv(new, **style)
    model = str(tmp_path / "m.skops")
    arguments = ["fit", str(data), "--target", "Art", "-o", model, "--n-components", "60"]
    result = json.loads(run(*arguments, "--smoothing", "0.06", "--C", "10", "--json"))
    assert "decimal commas" in result["file read as"]
    assert result["numbers"] == ["Umsatz", "Alter"]
    assert result["categories"] == ["Stadt"]
    assert result["booleans"] == ["aktiv"]
    assert result["dates"] == ["seit"]
    assert result["left out"] == ["Kunde (all values differ)"]
    assert result["test"]["accuracy"] > 0.85
    run("predict", model, str(new), "--proba", "--keep", "Kunde", "-o", str(output))
    found = pd.read_csv(output)
    assert found["Kunde"].tolist() == table["Kunde"].tolist()
    expected = notsorandom.load(model).predict_proba(table)
    np.testing.assert_allclose(found[["proba_gut", "proba_schlecht"]], expected, atol=1e-6)
    result = json.loads(run("evaluate", model, str(data), "--json"))
    assert result["accuracy"] > 0.9
    assert "fitted to this file" in result["caution"]


class TestDoubtfulTargets:
    """Files in which the target is not what it seems."""

    SETTINGS = (
        "--target",
        "y",
        "--n-components",
        "5",
        "--C",
        "1",
        "--smoothing",
        "0.06",
        "--quiet",
    )

    def fit(self, run, tmp_path, y, ending="csv"):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(len(y), 2)), columns=["a", "b"]).assign(y=y)
        data, model = tmp_path / f"t.{ending}", tmp_path / "m.skops"
        frame.to_csv(data, index=False) if ending == "csv" else frame.to_parquet(data)
        run("fit", str(data), "-o", str(model), *self.SETTINGS)
        run("evaluate", str(model), str(data))
        return notsorandom.load(model).classes_.tolist()

    def test_booleans_with_gaps(self, run, tmp_path):
        y = ["TRUE", "False", "true", ""] * 30
        assert self.fit(run, tmp_path, y) == ["False", "True"]

    def test_missing_text_of_typed_columns(self, run, tmp_path):
        y = ["k", "m", "", "NA"] * 40
        assert self.fit(run, tmp_path, y, "parquet") == ["k", "m"]

    def test_every_class_has_a_training_row(self, run, tmp_path):
        y = [f"c{k % 30:02d}" for k in range(60)]
        assert self.fit(run, tmp_path, y) == sorted(set(y))

    def test_kept_columns_are_copied_as_they_are(self, run, tmp_path):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"zip": [f"{k:05d}" for k in rng.permutation(9000)[:200]]})
        frame["y"] = np.where(frame["zip"].astype(int) > 4500, "p", "q")
        frame.to_csv(tmp_path / "t.csv", index=False)
        model, output = str(tmp_path / "m.skops"), str(tmp_path / "p.csv")
        run("fit", str(tmp_path / "t.csv"), "-o", model, *self.SETTINGS)
        run("predict", model, str(tmp_path / "t.csv"), "--keep", "zip", "-o", output)
        assert pd.read_csv(output, dtype=str)["zip"].tolist() == frame["zip"].tolist()
