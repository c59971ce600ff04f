"""The commands on data files: fit, predict, evaluate, inspect, convert, report."""

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
from sklearn.datasets import dump_svmlight_file, load_iris

import notsorandom
from notsorandom.cli import main
from notsorandom.cli.scaling import fit_scaler, scale_model
from notsorandom.cli.training import TrainingTable, infer_task, split_rows
from notsorandom.display.inspection import spectrum_sentence, summarize_spectrum
from notsorandom.io import read_metadata
from notsorandom.io.tensors import write_tensors

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
    labels = (np.cos(2 * X[:, 0]) > 0.3).astype(int)
    np.savez(folder / "arrays.npz", X=X, y=labels)
    np.save(folder / "array.npy", np.column_stack([X, labels]))
    dump_svmlight_file(X, labels, str(folder / "sparse.libsvm"), zero_based=False)
    settings = ["--n-components", "20", "--smoothing", "0.06", "--quiet"]
    for data, target, name in (
        ("iris.csv", "species", "iris"),
        ("reals.parquet", "z", "reals"),
        ("arrays.npz", None, "arrays"),
        ("array.npy", "-1", "array"),
        ("sparse.libsvm", None, "sparse"),
    ):
        arguments = ["fit", str(folder / data), "-o", str(folder / f"{name}.safetensors")]
        arguments += [] if target is None else ["--target", target]
        assert main([*arguments, *settings]) == 0
    return folder


class TestFit:
    def test_result_as_text(self, run, folder, tmp_path):
        output = tmp_path / "m.safetensors"
        text = run(
            "fit", "iris.csv", "--target", "species", "-o", str(output), "--smoothing", "0.1"
        )
        for part in ("classification", "3 distinct strings", "held-out accuracy", "effective"):
            assert part in text
        model = notsorandom.load(output)
        assert list(model.feature_names_in_) == ["sepal", "breadth", "petal", "width"]
        assert model.smoothing_ == 0.1

    def test_result_as_json(self, run, tmp_path):
        output = tmp_path / "m.safetensors"
        arguments = ["--target", "z", "-o", str(output), "--smoothing", "0.06", "--json"]
        result = json.loads(run("fit", "reals.parquet", *arguments))
        assert result["task"] == "regression"
        assert result["rows"] == 200
        assert result["bytes"] == output.stat().st_size
        metrics = read_metadata(output)["metrics"]
        assert metrics["held-out R^2"] == result["held-out R^2"] > 0.6

    def test_held_out_rows_are_not_in_the_training_data(self, folder, run):
        """Errors on training and held-out rows add up to those of the saved model on all rows."""
        about, metrics = (
            read_metadata(folder / "iris.safetensors")[key] for key in ("description", "metrics")
        )
        assert about["fit"]["holdout"] == 0.2
        model = notsorandom.load(folder / "iris.safetensors")
        assert model.n_samples_fit_ == 120
        table = pd.read_csv(folder / "iris.csv")
        right = model.predict(table[model.feature_names_in_]) == table["species"]
        wrong = (1 - metrics["held-out accuracy"]) * 30 + (1 - metrics["training accuracy"]) * 120
        assert (~right).sum() == round(wrong)

    def test_test_file(self, run, folder, tmp_path):
        output = tmp_path / "m.safetensors"
        arguments = ["fit", "iris.csv", "--target", "species", "-o", str(output), "--json"]
        arguments += ["--smoothing", "0.1"]
        result = json.loads(run(*arguments, "--test", str(folder / "iris.csv")))
        assert result["test accuracy"] == result["training accuracy"]
        assert notsorandom.load(output).n_samples_fit_ == 150

    def test_columns_with_names_are_scaled(self, run, folder, tmp_path):
        """The model takes them as they are, and its waves turn with all of them."""
        assert read_metadata(folder / "iris.safetensors")["description"]["fit"]["scaled"] is True
        assert read_metadata(folder / "arrays.safetensors")["description"]["fit"]["scaled"] is False
        share = {}
        for scale in ("standard", "none"):
            output = str(tmp_path / f"{scale}.safetensors")
            arguments = ["fit", "iris.csv", "--target", "species", "-o", output, "--json"]
            result = json.loads(run(*arguments, "--scale", scale, "--smoothing", "0.06"))
            columns = result["spectrum"]["columns"]
            assert sum(columns.values()) == pytest.approx(1, abs=1e-3)
            share[scale] = columns["petal"]
        assert share["none"] > 0.95  # the numbers of the others are too small to turn anything
        assert share["standard"] < 0.6

    def test_classes_or_reals(self):
        for target, is_classification in (
            (np.array(["a", "b"]), True),
            (np.array([True, False]), True),
            (np.arange(20), True),
            (np.arange(21), False),
            (np.arange(5.0), True),
            (np.array([0.5, 1.0]), False),
        ):
            assert infer_task(target)[0] is is_classification

    def test_task_can_be_given(self, run, tmp_path):
        output = str(tmp_path / "m.safetensors")
        arguments = ["fit", "array.npy", "--target", "3", "-o", output, "--smoothing", "0.06"]
        run(*arguments, "--task", "regression")
        assert isinstance(notsorandom.load(output), notsorandom.FourierRegressor)
        arguments += ["--task", "regression", "--class-weight", "balanced"]
        assert "--class-weight" in run(*arguments, code=2)

    def test_drop_columns(self, run, tmp_path):
        output = str(tmp_path / "m.safetensors")
        arguments = ["fit", "iris.csv", "--target", "species", "-o", output, "--smoothing", "0.1"]
        run(*arguments, "--drop", "petal, width")
        assert notsorandom.load(output).feature_names_in_.tolist() == ["sepal", "breadth"]
        assert "has no column 'petall'" in run(*arguments, "--drop", "petall", code=1)

    def test_sphere(self, run, tmp_path):
        output = str(tmp_path / "m.safetensors")
        arguments = ["fit", "arrays.npz", "-o", output, "--space", "sphere", "--n-components", "8"]
        text = run(*arguments, "--smoothing", "0.06")
        assert "Degrees (number of frequencies): " in text

    @pytest.mark.slow
    @pytest.mark.full_trials
    def test_killed_fit_continues_from_its_checkpoint(self, folder, tmp_path):
        output, game = tmp_path / "m.safetensors", tmp_path / "game.safetensors"
        arguments = ["fit", str(folder / "arrays.npz"), "-o", str(output), "--n-components", "1500"]
        arguments += ["--smoothing", "0.06", "--checkpoint", str(game), "--checkpoint-every", "0"]
        process = subprocess.Popen([sys.executable, "-m", "notsorandom.cli", *arguments])
        for _ in range(1200):
            if game.exists():
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert game.exists()
        assert not output.exists()
        assert main(arguments) == 0
        resumed = notsorandom.load(output)
        assert main(arguments[:-4]) == 0
        np.testing.assert_array_equal(resumed.coef_, notsorandom.load(output).coef_)

    def test_model_that_cannot_be_written_is_saved_elsewhere(self, run, tmp_path, monkeypatch):
        refuge = tmp_path / "refuge"
        refuge.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(refuge))
        written = []

        def full(path, *rest):
            written.append(path)
            if len(written) == 1:
                raise OSError(28, "No space left on device")
            write_tensors(path, *rest)

        monkeypatch.setattr("notsorandom.io.models.write_tensors", full)
        output = str(tmp_path / "m.safetensors")
        arguments = ["fit", "iris.csv", "--target", "species", "-o", output, "--smoothing", "0.1"]
        text = run(*arguments, code=1)
        assert "No space left on device" in text
        (kept,) = refuge.iterdir()
        assert f"The model is in {kept} instead" in text
        assert isinstance(notsorandom.load(kept), notsorandom.FourierClassifier)

    def test_flags_are_the_parameters_of_the_estimator(self, run, tmp_path):
        output = tmp_path / "m.safetensors"
        arguments = ["fit", "iris.csv", "--target", "species", "-o", str(output), "--json"]
        arguments += ["--n-components", "12", "--smoothing", "0.1"]
        run(*arguments, "--C", "2", "--class-weight", "balanced", "--seed", "3")
        model = notsorandom.load(output)
        expected = {"C": 2.0, "class_weight": "balanced", "random_state": 3, "n_components": 12}
        assert model.get_params().items() >= expected.items()
        first = notsorandom.load(output).coef_
        run(*arguments, "--C", "2", "--class-weight", "balanced", "--seed", "4")
        assert not np.array_equal(notsorandom.load(output).coef_, first)  # other held-out rows

    def test_split_is_stratified(self):
        y = np.repeat(["a", "b", "c"], [50, 20, 30])
        data = TrainingTable(np.zeros((100, 2)), y, None, "y", True, "")
        train, held = split_rows(data, 0.2, 0)
        assert sorted([*train, *held]) == list(range(100))
        assert [(y[held] == each).sum() for each in "abc"] == [10, 4, 6]
        assert not np.array_equal(held, split_rows(data, 0.2, 1)[1])

    def test_only_row_of_a_class_is_a_training_row(self):
        y = np.array(["a"] * 30 + ["b"] * 30 + ["c", "d"])
        data = TrainingTable(np.zeros((62, 2)), y, None, "y", True, "")
        for seed in range(10):
            train, held = split_rows(data, 0.3, seed)
            assert set(y[train]) == set("abcd")
            assert set(y[held]) == set("ab")

    @pytest.mark.parametrize("n_rows", [2, 3])
    def test_split_of_too_few_rows(self, n_rows):
        data = TrainingTable(np.zeros((n_rows, 2)), np.arange(n_rows) / 2, None, "y", False, "")
        with pytest.raises(ValueError, match=r"too few of .*--holdout 0"):
            split_rows(data, 0.5, 0)

    def test_test_file_is_read_before_the_fit(self, run, tmp_path, monkeypatch):
        monkeypatch.setattr("notsorandom.cli.fit.fit_scaled", None)
        arguments = [
            "fit",
            "iris.csv",
            "--target",
            "species",
            "-o",
            str(tmp_path / "m.safetensors"),
        ]
        assert "doesn't exist" in run(*arguments, "--test", "nowhere.csv", code=1)
        assert "species" in run(*arguments, "--test", "reals.parquet", code=1)

    def test_unknown_classes_in_the_test_file(self, run, folder, tmp_path):
        other = tmp_path / "other.csv"
        other.write_text((folder / "iris.csv").read_text().replace("virginica", "rosa"))
        arguments = [
            "fit",
            "iris.csv",
            "--target",
            "species",
            "-o",
            str(tmp_path / "m.safetensors"),
        ]
        assert "'rosa', but the classes of the model are" in run(
            *arguments, "--test", str(other), code=1
        )

    def test_pandas_index_is_rejected(self, run, folder, tmp_path):
        table = pd.read_csv(folder / "iris.csv")
        table.to_csv(tmp_path / "index.csv")
        table.sample(frac=1, random_state=0).to_parquet(tmp_path / "index.parquet")
        for name in ("index.csv", "index.parquet"):
            arguments = ["fit", str(tmp_path / name), "--target", "species"]
            text = run(*arguments, "-o", str(tmp_path / "m.safetensors"), code=1)
            assert "index" in text

    def test_constant_column_has_no_effect(self, run, folder, tmp_path):
        """Even if it is large, such as a time stamp, or has another value later."""
        table = pd.read_csv(folder / "iris.csv")
        accuracy = []
        for constant in (None, 1.7e18):
            data, output = tmp_path / "d.csv", tmp_path / "m.safetensors"
            (table if constant is None else table.assign(time=constant)).to_csv(data, index=False)
            arguments = ["fit", str(data), "--target", "species", "-o", str(output), "--json"]
            result = json.loads(run(*arguments, "--smoothing", "0.1", "--n-components", "20"))
            accuracy.append(result["training accuracy"])
        assert result["spectrum"]["columns"]["time"] == 0
        assert abs(accuracy[1] - accuracy[0]) < 0.03
        table.assign(time=5.0).to_csv(data, index=False)
        later = json.loads(run("evaluate", str(output), str(data), "--json"))
        assert later["accuracy"] > 0.9


class TestPredict:
    @pytest.mark.parametrize("name", ["iris.csv", "reals.parquet", "arrays.npz", "sparse.libsvm"])
    def test_predictions_are_those_of_the_model(self, name, run, folder, tmp_path):
        stem = name.split(".")[0]
        output = tmp_path / "predictions.csv"
        run("predict", f"{stem}.safetensors", name, "-o", str(output))
        found = pd.read_csv(output)
        model = notsorandom.load(folder / f"{stem}.safetensors")
        if name.endswith("z") or name.endswith("m"):
            with np.load(folder / "arrays.npz") as arrays:
                X = arrays["X"]
        else:
            table = pd.read_csv if name.endswith("csv") else pd.read_parquet
            X = table(folder / name)[model.feature_names_in_]
        description = read_metadata(folder / f"{stem}.safetensors")["description"]
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
            "iris.safetensors",
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
        model = notsorandom.load(folder / "iris.safetensors")
        X = table[model.feature_names_in_]
        np.testing.assert_array_equal(found.iloc[:, 3:], model.decision_function(X))
        np.testing.assert_array_equal(found["species"], model.predict(X))
        assert found["sepal"].astype(float).tolist() == table["sepal"].tolist()

    def test_kept_column_with_the_name_of_the_target(self, run, tmp_path):
        lines = run("predict", "iris.safetensors", "iris.csv", "--keep", "species").splitlines()
        assert lines[0] == "species,species_predicted"
        agree = [len(set(line.split(","))) == 1 for line in lines[1:]]
        assert 0.9 < np.mean(agree) < 1

    def test_target_given_by_number_has_no_name(self, run, folder, tmp_path):
        np.save(tmp_path / "x.npy", np.load(folder / "array.npy")[:, :-1])
        assert run("predict", "array.safetensors", str(tmp_path / "x.npy")).startswith("prediction")

    def test_libsvm_indices_start_where_they_did_in_the_training_data(self, run, folder, tmp_path):
        """At 1, though this file has no value in its first column."""
        with np.load(folder / "arrays.npz") as arrays:
            X, y = arrays["X"].copy(), arrays["y"]
        counted = tmp_path / "counted.libsvm"
        text = "\n".join(f"{y[i]} 2:{X[i, 1]!r} 3:{X[i, 2]!r}" for i in range(len(y)))
        counted.write_text(text.replace("np.float64(", "").replace(")", ""))
        X[:, 0] = 0
        model = notsorandom.load(folder / "sparse.safetensors")
        text = run("predict", "sparse.safetensors", str(counted)).splitlines()[1:]
        assert [int(line) for line in text] == model.predict(X).tolist()
        zero_based = tmp_path / "zero.safetensors"
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
        text = run("predict", "iris.safetensors", str(copy), "-o", str(copy), code=2)
        assert "is an input file" in text
        assert copy.read_bytes() == (folder / "iris.csv").read_bytes()

    def test_two_classes_have_one_score_column(self, run):
        lines = list(
            csv.reader(run("predict", "arrays.safetensors", "arrays.npz", "--scores").splitlines())
        )
        assert lines[0] == ["y", "score_1"]
        assert len(lines) == 201
        assert all((label == "1") == (float(score) > 0) for label, score in lines[1:])

    def test_predictions_do_not_depend_on_blocks(self, run, folder, monkeypatch):
        whole = run("predict", "iris.safetensors", "iris.csv")
        monkeypatch.setattr("notsorandom.data.tables.base.BLOCK_BYTES", 100)
        assert run("predict", "iris.safetensors", "iris.csv") == whole

    def test_transformer_gives_features(self, run, folder, tmp_path):
        path = tmp_path / "features.safetensors"
        with np.load(folder / "arrays.npz") as arrays:
            X, y = arrays["X"], arrays["y"]
        features = notsorandom.FourierFeatures(4, smoothing=0.06).fit(X, y)
        notsorandom.save(features, path)
        output = tmp_path / "f.npy"
        run("predict", str(path), "arrays.npz", "-o", str(output))
        np.testing.assert_array_equal(np.load(output), features.transform(X))

    def test_json_needs_an_output_file(self, run, tmp_path):
        output = tmp_path / "p.csv"
        result = json.loads(
            run("predict", "iris.safetensors", "iris.csv", "--json", "-o", str(output))
        )
        assert result["rows"] == 150
        assert "give --output" in run("predict", "iris.safetensors", "iris.csv", "--json", code=2)

    def test_error_leaves_the_old_file(self, run, folder, tmp_path):
        bad, output = tmp_path / "bad.csv", tmp_path / "p.csv"
        lines = (folder / "iris.csv").read_text().splitlines()
        lines[100] = lines[100].replace(lines[100].split(",")[0], "wide", 1)
        bad.write_text("\n".join(lines))
        output.write_text("old")
        text = run("predict", "iris.safetensors", str(bad), "-o", str(output), code=1)
        assert "'sepal'" in text
        assert "'wide'" in text
        assert output.read_text() == "old"
        assert sorted(os.listdir(tmp_path)) == ["bad.csv", "p.csv"]

    @pytest.mark.slow
    @pytest.mark.parametrize("command", ["predict", "evaluate"])
    def test_closed_pipe_and_full_disk(self, command, folder):
        arguments = [sys.executable, "-m", "notsorandom.cli", command]
        arguments += [str(folder / "iris.safetensors"), str(folder / "iris.csv")]
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
            "from notsorandom.cli import main, predict\n"
            "predict_columns = predict.predict_columns\n"
            "def slow(*rest):\n"
            "    print('begun', flush=True)\n"
            "    time.sleep(1)\n"
            "    return predict_columns(*rest)\n"
            "predict.predict_columns = slow\n"
            "sys.exit(main(sys.argv[1:]))\n"
        )
        output = tmp_path / "out"
        output.mkdir()
        arguments = [sys.executable, str(script), "predict", str(folder / "iris.safetensors")]
        arguments += [str(folder / "iris.csv"), "-o", str(output / "p.csv")]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"begun\n"
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
        assert os.listdir(output) == []


class TestEvaluate:
    def test_classification_metrics(self, run, folder):
        result = json.loads(run("evaluate", "iris.safetensors", "iris.csv", "--json"))
        table = pd.read_csv(folder / "iris.csv")
        model = notsorandom.load(folder / "iris.safetensors")
        text = model.predict(table[model.feature_names_in_])
        assert result["accuracy"] == np.mean(text == table["species"])
        for name in model.classes_:
            of_class = table["species"] == name
            assert result[f"class {name}"]["recall"] == np.mean(text[of_class] == name)
            assert result[f"class {name}"]["precision"] == np.mean(of_class[text == name])

    def test_regression_metrics(self, run, folder, monkeypatch):
        monkeypatch.setattr("notsorandom.data.tables.base.BLOCK_BYTES", 1000)  # in several blocks
        result = json.loads(run("evaluate", "reals.safetensors", "reals.parquet", "--json"))
        table = pd.read_parquet(folder / "reals.parquet")
        model = notsorandom.load(folder / "reals.safetensors")
        X, z = table[["a", "b", "c"]], table["z"]
        errors = model.predict(X) - z
        assert result["R^2"] == pytest.approx(model.score(X, z))
        assert result["root mean squared error"] == pytest.approx(np.sqrt(np.mean(errors**2)))
        assert result["mean absolute error"] == pytest.approx(np.mean(np.abs(errors)))

    def test_default_target(self, run):
        for name in ("arrays.npz", "sparse.libsvm", "array.npy"):
            assert "accuracy" in run("evaluate", f"{name.split('.')[0]}.safetensors", name)

    def test_float16_target(self, run, folder, tmp_path):
        """Sums in float16 would overflow."""
        path = tmp_path / "half.npz"
        X = np.random.default_rng(0).normal(size=(400, 2))
        np.savez(path, X=X, y=(300 * X[:, 0]).astype(np.float16))
        output = str(tmp_path / "m.safetensors")
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
        text = run("evaluate", "iris.safetensors", str(bad), code=1)
        assert "the class in row 101 of the data is 'rosa', but the classes" in text


class TestInspect:
    def test_model(self, run, folder):
        text = run("inspect", "iris.safetensors")
        for part in ("FourierClassifier", "held-out accuracy", "species", "spectrum", "petal"):
            assert part in text
        result = json.loads(run("inspect", "iris.safetensors", "--json"))
        assert result["arrays"]["kernel.frequencies"] == [20, 4]
        assert result["class"] == "FourierClassifier"

    def test_model_is_not_restored(self, run, folder, monkeypatch):
        monkeypatch.setattr("notsorandom.io.models.restore", None)
        assert "FourierClassifier" in run("inspect", "iris.safetensors")

    def test_checkpoint(self, run, folder, tmp_path, monkeypatch):
        path = tmp_path / "game.safetensors"
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
        assert "can't be read" in run("inspect", "iris.csv", code=1)


class TestConvert:
    def test_to_onnx(self, run, folder, tmp_path):
        pytest.importorskip("onnx", reason="needs onnx: pip install 'notsorandom[all]'")
        onnxruntime = pytest.importorskip(
            "onnxruntime", reason="needs onnxruntime: pip install 'notsorandom[all]'"
        )
        output = tmp_path / "m.onnx"
        run("convert", "arrays.safetensors", "-o", str(output))
        with np.load(folder / "arrays.npz") as arrays:
            X = arrays["X"]
        session = onnxruntime.InferenceSession(output, providers=["CPUExecutionProvider"])
        (labels, decision) = session.run(["label", "decision"], {"X": X.astype(np.float32)})
        model = notsorandom.load(folder / "arrays.safetensors")
        np.testing.assert_allclose(decision, model.decision_function(X), atol=1e-4)
        assert (labels == model.predict(X)).mean() > 0.99

    def test_to_npz(self, run, folder, tmp_path):
        output = tmp_path / "m.npz"
        result = json.loads(run("convert", "iris.safetensors", "-o", str(output), "--json"))
        assert result == {"output": str(output), "bytes": output.stat().st_size}
        with np.load(output, allow_pickle=False) as arrays:
            model = notsorandom.load(folder / "iris.safetensors")
            np.testing.assert_array_equal(arrays["coef_"], model.coef_)
            assert json.loads(str(arrays["metadata"]))["class"] == "FourierClassifier"


class TestReport:
    @pytest.mark.slow
    def test_page_of_a_model(self, run, folder, tmp_path):
        output = tmp_path / "page.html"
        result = run("report", "iris.safetensors", "iris.csv", "-o", str(output), "--json")
        assert json.loads(result) == {"page": str(output)}
        held = read_metadata(folder / "iris.safetensors")["metrics"]["held-out accuracy"]
        page = output.read_text()
        assert f"test accuracy</dt><dd>{held:.2%}" in page
        assert "training samples</dt><dd>120" in page

    def test_page_with_test_file(self, run, folder, tmp_path):
        output = tmp_path / "page.html"
        run(
            "report",
            "reals.safetensors",
            "reals.parquet",
            "--test",
            "reals.parquet",
            "-o",
            str(output),
        )
        assert "test R^2" in output.read_text()

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
        text = run("report", "iris.safetensors", str(path), "-o", str(tmp_path / "p.html"), code=1)
        assert "is not the data that" in text

    @pytest.mark.slow
    def test_regression_target_of_integers(self, run, tmp_path):
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
        table["count"] = (100 * table["a"]).astype(int)
        table.to_csv(tmp_path / "d.csv", index=False)
        output = str(tmp_path / "m.safetensors")
        arguments = ["fit", str(tmp_path / "d.csv"), "--target", "count", "-o", output]
        assert "regression" in run(*arguments, "--smoothing", "0.5", "--n-components", "8")
        page = str(tmp_path / "p.html")
        run("report", output, str(tmp_path / "d.csv"), "-o", page)

    def test_other_data_is_rejected(self, run, folder, tmp_path):
        short = tmp_path / "short.csv"
        lines = (folder / "iris.csv").read_text().splitlines()
        short.write_text("\n".join(lines[:60]))
        output = str(tmp_path / "page.html")
        assert "is not the data that" in run(
            "report", "iris.safetensors", str(short), "-o", output, code=1
        )
        assert "required: data" in run("report", "iris.safetensors", "-o", output, code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "missing.csv", "--target", "y", "-o", "m.safetensors"], "doesn't exist"),
        (["fit", "iris.csv", "-o", "m.safetensors"], "target column is not given"),
        (["fit", "iris.csv", "--target", "spezies", "-o", "m.safetensors"], "'species'"),
        (
            ["fit", "iris.csv", "--target", "width", "-o", "m.safetensors"],
            "In column 'species': Row #2",
        ),
        (["predict", "iris.safetensors", "reals.parquet"], "sepal"),
        (["predict", "arrays.safetensors", "array.npy"], "fitted with 3"),
        (["predict", "iris.csv", "iris.csv"], "give a .safetensors file first, then the data"),
        (["fit", "arrays.npz", "-o", "m.safetensors", "--drop", "a"], "has no column names"),
        (["predict", "missing.safetensors", "iris.csv"], "missing.safetensors"),
        (["predict", "iris.safetensors", "iris.csv", "--keep", "colour"], "colour"),
        (["evaluate", "iris.safetensors", "reals.parquet"], "target column is not given"),
        (["inspect", "missing.safetensors"], "missing.safetensors"),
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
        (["fit", "iris.csv", "--target", "species", "-o", "m.pkl"], ".safetensors"),
        (["fit", "iris.csv", "--target", "species", "-o", "no/m.safetensors"], "doesn't exist"),
        (["fit", "iris.csv", "-o", "m.safetensors", "--holdout", "1"], "--holdout 1.0"),
        (["fit", "iris.csv", "-o", "m.safetensors", "--seed", "-1"], "--seed -1"),
        (["fit", "iris.csv", "-o", "m.safetensors", "--n-components", "0"], "n_components=0"),
        (
            ["fit", "iris.csv", "-o", "m.safetensors", "--n-components", "many"],
            "n_components='many'",
        ),
        (["fit", "iris.csv", "-o", "m.safetensors", "--smoothing", "-1"], "smoothing=-1"),
        (["fit", "iris.csv", "-o", "m.safetensors", "--C", "0"], "C=0"),
        (["fit", "iris.csv", "-o", "m.safetensors", "--solver", "equilibrium"], "--space sphere"),
        (["fit", "iris.csv", "-o", "m.safetensors", "--checkpoint", "no/f"], "checkpoint='no"),
        (
            [
                "fit",
                "a.csv",
                "-o",
                "m.safetensors",
                "--checkpoint",
                "c",
                "--checkpoint-every",
                "-1",
            ],
            "every=-1",
        ),
        (
            ["fit", "a.npz", "-o", "m.safetensors", "--space", "sphere", "--scale", "standard"],
            "--scale standard",
        ),
        (["predict", "iris.safetensors", "iris.csv", "-o", "p.xlsx"], ".parquet"),
        (["predict", "reals.safetensors", "reals.parquet", "--scores"], "--scores"),
        (["convert", "iris.safetensors", "-o", "m.pkl"], ".onnx"),
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


def test_unscaled_model_has_the_same_predictions(folder):
    table = pd.read_csv(folder / "iris.csv")
    X, y = table.drop(columns="species").to_numpy(), table["species"]
    scaler = fit_scaler(X)
    model = notsorandom.FourierClassifier(20, smoothing=0.06, random_state=0)
    model.fit(scaler.transform(X), y)
    expected = model.decision_function(scaler.transform(X))
    plain = scale_model(model, scaler, inverse=True)
    np.testing.assert_allclose(plain.decision_function(X), expected, atol=1e-5)
    back = scale_model(plain, scaler)
    np.testing.assert_allclose(back.decision_function(scaler.transform(X)), expected, atol=1e-5)
    np.testing.assert_allclose(back.kernel_.space.center, model.kernel_.space.center, atol=1e-12)


def test_spectrum_names_the_column_that_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1, 10, 100]
    y = np.cos(3 * X[:, 1] / 10) > 0
    scaler = fit_scaler(X)
    model = notsorandom.FourierClassifier(8, smoothing=0.06, random_state=0)
    model = scale_model(model.fit(scaler.transform(X), y), scaler, inverse=True)
    summary = summarize_spectrum(model.kernel_, scaler.scale_, ["one", "two", "three"])
    assert next(iter(summary["columns"])) == "two"
    assert summary["columns"]["two"] > 0.45
    assert 1 <= summary["effective_number"] <= 8
    assert "drive them: two" in spectrum_sentence(summary)
