"""Losses, probabilities and chosen parameters on the command line."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import notsorandom
from notsorandom.cli import main

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'notsorandom[all]'")

QUICK = ["--n-components", "12", "--smoothing", "0.06", "--C", "3", "--quiet"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data of three classes and of two, and models with probabilities and without."""
    folder = tmp_path_factory.mktemp("probabilities")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    wave = np.cos(2 * frame["a"]) + 0.3 * rng.normal(size=200)
    frame["three"] = np.array(["low", "middle", "high"])[np.digitize(wave, [-0.3, 0.5])]
    frame["two"] = (wave > 0).astype(int)
    frame["real"] = wave
    frame.to_csv(folder / "data.csv", index=False)
    for target, loss in (("three", "logistic"), ("two", "logistic"), ("two", "hinge")):
        drop = ",".join({"three", "two", "real"} - {target})
        output = str(folder / f"{target}-{loss}.skops")
        arguments = ["fit", str(folder / "data.csv"), "--target", target, "--drop", drop]
        assert main([*arguments, "--loss", loss, "-o", output, *QUICK]) == 0
    return folder


def load(folder, name):
    """Return a model, its samples and the table."""
    model, table = notsorandom.load(folder / name), pd.read_csv(folder / "data.csv")
    return model, table[["a", "b"]], table


class TestPredict:
    def test_a_column_for_each_class(self, run, folder, tmp_path):
        output = tmp_path / "p.parquet"
        run("predict", "three-logistic.skops", "data.csv", "--proba", "-o", str(output))
        found = pd.read_parquet(output)
        assert list(found) == ["three", "proba_high", "proba_low", "proba_middle"]
        model, X, _ = load(folder, "three-logistic.skops")
        np.testing.assert_array_equal(found["three"], model.predict(X))
        np.testing.assert_allclose(found.iloc[:, 1:], model.predict_proba(X), rtol=1e-12)

    def test_two_classes_with_scores(self, run, folder):
        text = run("predict", "two-logistic.skops", "data.csv", "--proba", "--scores")
        names, *rows = csv.reader(text.splitlines())
        assert names == ["two", "score_1", "proba_0", "proba_1"]
        label, score, first, second = np.array(rows, dtype=float).T
        np.testing.assert_array_equal(label == 1, score > 0)
        np.testing.assert_array_equal(label == 1, second > 0.5)
        np.testing.assert_allclose(first + second, 1)
        model, X, _ = load(folder, "two-logistic.skops")
        np.testing.assert_allclose(second, model.predict_proba(X)[:, 1])

    def test_models_without_probabilities(self, run):
        text = run("predict", "two-hinge.skops", "data.csv", "--proba", code=2)
        assert "has no probabilities" in text
        assert "--loss logistic" in text


class TestEvaluate:
    @pytest.mark.parametrize("target", ["two", "three"])
    def test_log_loss(self, target, run, folder, monkeypatch):
        monkeypatch.setattr("notsorandom.cli.loading.PREDICTED_ROWS", 7)
        monkeypatch.setattr("notsorandom.cli.loading.PREDICTED_BYTES", 100)
        name = f"{target}-logistic.skops"
        result = json.loads(run("evaluate", name, "data.csv", "--json"))
        model, X, table = load(folder, name)
        expected = log_loss(table[target], model.predict_proba(X))
        assert result["log loss"] == pytest.approx(expected, rel=1e-9)
        assert result["accuracy"] == model.score(X, table[target])

    def test_without_probabilities(self, run):
        assert "log loss" not in run("evaluate", "two-hinge.skops", "data.csv")


class TestFit:
    def test_result_and_metrics(self, run, folder, tmp_path):
        output = tmp_path / "m.skops"
        arguments = ["fit", "data.csv", "--target", "two", "--drop", "three,real", "--json"]
        result = json.loads(run(*arguments, "--loss", "logistic", "-o", str(output), *QUICK))
        model, X, table = load(folder, output)
        chosen = [result[name] for name in ("loss", "C", "smoothing", "temperature")]
        assert chosen == ["logistic", 3.0, 0.06, model[-1].temperature_]
        assert result["search spectrum"] == model[-1].spectrum_
        losses = [result["training"]["log loss"], result["test"]["log loss"]]
        total = np.dot(losses, [160, 40]) / 200
        assert total == pytest.approx(log_loss(table["two"], model.predict_proba(X)))
        text = run("inspect", str(output))
        for part in ("C ", "temperature", "search spectrum", "test log loss"):
            assert part in text

    def test_parameters_are_chosen(self, run, folder, tmp_path):
        output = tmp_path / "m.skops"
        arguments = ["fit", "data.csv", "--target", "two", "--drop", "three,real", "--json"]
        arguments += ["--n-components", "8", "--C", "auto", "-o", str(output)]
        result = json.loads(run(*arguments))
        model = notsorandom.load(output)[-1]
        assert model.C == "auto"
        assert result["C"] == model.C_ > 0
        assert len(model.tuning_["loss"]) > 1

    def test_the_loss_decides_the_task(self, run, tmp_path):
        output = str(tmp_path / "m.skops")
        arguments = ["fit", "data.csv", "--target", "two", "--drop", "three,real", "-o", output]
        text = run(*arguments, *QUICK, "--loss", "squared")
        assert "follows from --loss" in text
        assert "temperature" not in text
        assert isinstance(notsorandom.load(output)[-1], notsorandom.FourierRegressor)

    @pytest.mark.parametrize(
        ("task", "loss"), [("regression", "logistic"), ("classification", "squared")]
    )
    def test_a_loss_of_the_other_task(self, task, loss, run, tmp_path):
        output = str(tmp_path / "m.skops")
        arguments = ["fit", "data.csv", "--target", "two", "-o", output, "--task", task]
        assert f"loss='{loss}' is not allowed" in run(*arguments, "--loss", loss, code=2)


def test_the_page_has_a_calibration_curve(run, tmp_path):
    output = tmp_path / "page.html"
    run("report", "two-logistic.skops", "data.csv", "-o", str(output))
    assert "Probabilities of the test rows" in output.read_text()
