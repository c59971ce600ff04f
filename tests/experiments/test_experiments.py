import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial

import numpy as np
import pytest

from notsorandom import cli
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.display import import_pyplot
from notsorandom.experiments import (
    figure1,
    figure2,
    pairs,
    paper,
    peers,
    reproduce,
    synthetic,
    table1,
    tasks,
)
from notsorandom.experiments.records import RecordError, Records, latest, matching
from notsorandom.experiments.runner import limited_threads, run_missing


@pytest.fixture(autouse=True)
def _close():
    yield
    import_pyplot().close("all")


def double(config):
    if config["number"] < 0:
        raise RuntimeError("no")
    return {"twice": 2 * config["number"], "threads": os.environ.get("OMP_NUM_THREADS")}


CONFIGS = [{"kind": "test", "number": number} for number in range(5)]


class TestRecords:
    def test_what_is_written_is_read(self, tmp_path):
        records = Records(tmp_path / "run")
        assert records.read() == []
        written = [records.append(config, {"x": 1.5}, 0.25) for config in CONFIGS]
        assert records.read() == written
        assert written[0]["outcome"] == {"x": 1.5}
        assert {"numpy", "scikit-learn", "notsorandom"} <= set(written[0]["versions"])
        assert records.missing([*CONFIGS, {"kind": "test", "number": 9}]) == [
            {"kind": "test", "number": 9}
        ]
        assert records.missing([{"number": 3, "kind": "test"}]) == []  # in any order of its names

    @pytest.mark.parametrize("torn", [b'{"config": {"ki', b'{"config": {}}', b"\xff\xfe"])
    def test_a_torn_line_is_lost_and_no_other(self, tmp_path, torn):
        records = Records(tmp_path)
        first = records.append(CONFIGS[0], {}, 0.0)
        with records.path.open("ab") as file:
            file.write(torn)
        assert records.read() == [first]
        second = records.append(CONFIGS[1], {}, 0.0)
        assert records.read() == [first, second]

    def test_a_whole_line_without_its_end_is_kept(self, tmp_path):
        """As editors leave it; and so are lines that are empty."""
        records = Records(tmp_path)
        written = [records.append(config, {}, 0.0) for config in CONFIGS[:2]]
        records.path.write_bytes(b"\n\n" + records.path.read_bytes().rstrip(b"\n"))
        assert records.read() == written
        written.append(records.append(CONFIGS[2], {}, 0.0))
        assert records.read() == written

    def test_two_runs_do_not_share_a_folder(self, tmp_path):
        pytest.importorskip("fcntl")
        busy = pytest.raises(OSError, match="is being written to by another run")
        with Records(tmp_path).held(), busy:
            run_missing(CONFIGS, Records(tmp_path), double)
        run_missing(CONFIGS, Records(tmp_path), double, shown=False)

    def test_a_broken_line_is_named(self, tmp_path):
        records = Records(tmp_path)
        records.append(CONFIGS[0], {}, 0.0)
        records.path.write_bytes(b"garbage\n" + records.path.read_bytes())
        with pytest.raises(RecordError, match=r"records.jsonl, line 1 is not a record"):
            records.read()

    def test_the_latest_counts(self, tmp_path):
        records = Records(tmp_path)
        records.append(CONFIGS[0], {"x": 1}, 0.0)
        records.append(CONFIGS[1], {"x": 2}, 0.0)
        records.append(CONFIGS[0], {"x": 3}, 0.0)
        assert [record["outcome"]["x"] for record in latest(records.read())] == [3, 2]
        found = matching(records.read(), [CONFIGS[1], CONFIGS[4], CONFIGS[0]])
        assert [record["outcome"]["x"] for record in found] == [2, 3]


class TestRunner:
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_it_runs_what_is_missing(self, tmp_path, n_jobs, capsys):
        records = Records(tmp_path)
        records.append(CONFIGS[2], {"twice": "known"}, 0.0)
        run_missing(CONFIGS, records, double, n_jobs)
        found = matching(records.read(), CONFIGS)
        assert [record["outcome"]["twice"] for record in found] == [0, 2, "known", 6, 8]
        if n_jobs == 2:
            share = str(max(1, os.cpu_count() // 2))
            assert {record["outcome"].get("threads", share) for record in found} == {share}
        shown = capsys.readouterr().err
        assert "4 of 4 runs" in shown
        assert "left" in shown
        run_missing(CONFIGS, records, partial(pytest.fail, "ran again"), n_jobs)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_a_failure_is_raised_and_what_was_done_is_kept(self, tmp_path, n_jobs):
        records = Records(tmp_path)
        configs = [*CONFIGS, {"kind": "test", "number": -1}, {"kind": "test", "number": 7}]
        with pytest.raises(RuntimeError, match="no") as raised:
            run_missing(configs, records, double, n_jobs, shown=False)
        assert "'number': -1" in raised.value.__notes__[0]
        if n_jobs == 1:
            assert records.missing(configs) == configs[5:]

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has other interrupts")
    def test_an_interrupt_stops_at_once_and_keeps_what_is_done(self, tmp_path, n_jobs):
        process = subprocess.Popen(
            slow_command(tmp_path, n_jobs, seconds=1.0),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        records, deadline = Records(tmp_path), time.monotonic() + 60
        while len(records.read()) < 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        process.wait(timeout=30)
        assert time.monotonic() - began < 5
        assert process.returncode != 0
        assert 1 <= len(records.read()) < 4
        workers = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
        assert not any(map(running, workers))

    def test_a_worker_that_is_killed_is_said(self, tmp_path):
        with pytest.raises(ChildProcessError, match="give fewer --jobs"):
            run_missing(CONFIGS, Records(tmp_path), die, 2, shown=False)

    def test_the_environment_is_left_as_it_was(self, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "7")
        monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
        with limited_threads(3):
            assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "3"
        assert os.environ["OMP_NUM_THREADS"] == "7"
        assert "MKL_NUM_THREADS" not in os.environ

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
    def test_a_kill_loses_only_what_is_under_way(self, tmp_path, n_jobs):
        command = slow_command(tmp_path, n_jobs, seconds=0.3)
        records = Records(tmp_path)
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while len(records.read()) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = records.read()
        assert 2 <= len(before) < 6
        workers = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
        while any(map(running, workers)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(running, workers))  # nobody goes on alone
        with records.path.open("ab") as file:
            file.write(b'{"config"')  # the worst moment for a kill
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        after = records.read()
        assert after[: len(before)] == before
        assert sorted(record["config"]["number"] for record in after) == list(range(6))


def die(config):
    os._exit(9)


def slow_command(folder, n_jobs, seconds):
    """The command of a program that works off six slow runs."""
    script = folder / "script.py"
    script.write_text(
        textwrap.dedent(f"""
        import os, sys, time
        from pathlib import Path
        from notsorandom.experiments.records import Records
        from notsorandom.experiments.runner import run_missing

        def perform(config):
            (Path(sys.argv[1]) / f"pid-{{os.getpid()}}").touch()
            time.sleep({seconds})
            return {{}}

        if __name__ == "__main__":
            configs = [{{"number": number}} for number in range(6)]
            run_missing(configs, Records(Path(sys.argv[1])), perform, int(sys.argv[2]))
        """)
    )
    return [sys.executable, str(script), str(folder), str(n_jobs)]


def running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return (
        "Z"
        not in subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True
        ).stdout
    )


def pair_records(**accuracies):
    """Records of one task at two sizes, two seeds a percent apart."""
    return [
        {
            "config": pairs.pair_config("auto-truck", method, size, seed),
            "outcome": {"test_accuracy": (value + seed - 0.5) / 100},
            "seconds": 60.0,
            "finished": f"2020-01-0{seed + 1}T00:00:00+00:00",
            "versions": {"numpy": "9"},
            "cores": 2,
        }
        for method, values in accuracies.items()
        for size, value in zip((100, 500), values, strict=True)
        for seed in range(2)
    ]


class TestTable1:
    def test_the_papers_figures_are_the_papers(self):
        assert set(paper.TABLE1) == set(tasks.TASKS)
        for methods in paper.TABLE1.values():
            assert set(methods) == {"rbf", "lkrf", "ours"}
            assert all(len(values) == len(paper.SIZES) for values in methods.values())
            # Its claim: better than both baselines everywhere.
            assert (np.array(methods["ours"]) > np.maximum(methods["rbf"], methods["lkrf"])).all()

    def test_the_runs(self):
        configs = table1.table1_configs(["auto-truck"], ["rbf", "paper"], [100, 1000], 2)
        assert pairs.pair_config("auto-truck", "rbf", 1000, 1) in configs
        assert pairs.pair_config("auto-truck", "paper", 100, 0) in configs
        # The paper's own setting is too slow for many features.
        assert pairs.pair_config("auto-truck", "paper", 1000, 0) not in configs
        assert len(configs) == 6

    def test_means_winners_and_score(self):
        (table,) = table1.table1_tables(
            pair_records(rbf=(70.0, 90.0), ours=(88.0, 85.0), lkrf=(71.0, 70.0))
        )
        assert table.headers == ("task", "method", "m = 100", "m = 500")
        assert table.rows == (
            ("auto-truck", "RBF-RF", "70.00 (69.70)", "**90.00** (75.75)"),
            ("auto-truck", "LKRF", "71.00 (71.89)", "70.00 (77.33)"),
            ("auto-truck", "ours", "**88.00** (84.80)", "85.00 (85.90)"),
        )
        assert "RBF-RF: within 2 points of the paper's in 1 of 2 cells." in table.notes
        assert "LKRF: within 2 points of the paper's in 1 of 2 cells." in table.notes
        assert (
            "ours: above the paper's in 1 of 2 cells, and in 1 of the 2 with m <= 500."
            in table.notes
        )
        lines = table.markdown().splitlines()
        assert "| auto-truck | LKRF   | 71.00 (71.89)     | 70.00 (77.33)     |" in lines

    def test_provenance(self):
        text = reproduce.provenance(pair_records(ours=(88.0, 85.0)))
        assert text == "4 runs, 4min in all, 2020-01-01 to 2020-01-02; 2 cores; numpy 9."

    def test_figure_2_has_a_bar_of_the_trials_spread(self):
        records = pair_records(rbf=(70.0, 90.0), ours=(88.0, 85.0))
        sizes, accuracies = figure2.accuracies_by_size(records, "auto-truck")
        assert sizes.tolist() == [100, 500]
        np.testing.assert_allclose(accuracies["ours"], [[0.875, 0.845], [0.885, 0.855]])
        (figure,) = figure2.draw_figure2(records).values()
        first, _ = figure.axes[0].containers
        np.testing.assert_allclose(first.lines[0].get_ydata(), [70, 90])


@pytest.fixture
def small_tasks(monkeypatch):
    """Tasks without images: three columns, classes a shift apart."""

    def load_task(task, data_home=None):
        rng = np.random.default_rng(len(task))
        X, X_test = rng.standard_normal((2, 120, 3)).astype(np.float32)
        y = y_test = np.arange(120) % 2
        X[:, 0] += 2 * y
        X_test[:, 0] += 2 * y
        return tasks.Task(X, y, X_test, y_test)

    for module in (pairs, peers, reproduce):
        monkeypatch.setattr(module, "load_task", load_task)


@pytest.fixture
def small_toys(monkeypatch):
    monkeypatch.setattr(synthetic, "N_TRAIN", 150)
    monkeypatch.setattr(synthetic, "N_TEST", 300)
    monkeypatch.setattr(figure1, "N_TRAIN", 150)
    monkeypatch.setattr(figure1, "N_TEST", 300)
    monkeypatch.setattr(figure1, "LAST_ROUND", 12)
    for name in ("WINDMILL", "CHECKERBOARD"):
        models = getattr(synthetic, name)
        chosen = [key for key in models if "C = 1" in key and "1000" not in key]
        monkeypatch.setattr(synthetic, name, {key: models[key] for key in chosen})


@pytest.mark.usefixtures("short_trials")
class TestCommand:
    def test_table1(self, small_tasks, tmp_path, capsys, monkeypatch):
        command = ["reproduce", "table1", "--tasks", "auto-truck", "--features", "10,20"]
        command += ["--seeds", "2", "--methods", "rbf,lkrf,ours,paper", "-o", str(tmp_path / "run")]
        assert cli.main(command) == 0
        shown = capsys.readouterr()
        assert shown.out.count("| auto-truck |") == 4
        assert "16 of 16 runs" in shown.err
        assert (tmp_path / "run" / "table1.md").read_text() == shown.out
        records = Records(tmp_path / "run").read()
        assert len(records) == 16
        ours = [r for r in records if r["config"]["method"] == "ours"]
        assert np.mean([record["outcome"]["test_accuracy"] for record in ours]) > 0.75
        assert [record["outcome"]["n_kept"] for record in ours] == [10, 10, 20, 20]
        # Once more: nothing is fitted, and the same is shown.
        monkeypatch.setitem(reproduce.KINDS, "pair", partial(pytest.fail, "fitted again"))
        assert cli.main(command) == 0
        assert capsys.readouterr().out == shown.out
        # Less of it is shown from the same records, once each.
        assert cli.main([*command[:4], "--features", "10,10", *command[6:]]) == 0
        less = capsys.readouterr().out
        assert "m = 20" not in less
        assert "mean over seeds (2)" in less

    def test_figure2(self, small_tasks, tmp_path, capsys):
        command = ["reproduce", "figure2", "--features", "10,20", "--seeds", "2"]
        assert cli.main([*command, "-o", str(tmp_path)]) == 0
        assert "figure2-auto-truck" in capsys.readouterr().out
        assert (tmp_path / "figure2-auto-truck.png").read_bytes().startswith(b"\x89PNG")

    def test_toys(self, small_toys, tmp_path, capsys):
        for name, expected in (("windmill", 2), ("checkerboard", 6)):
            assert cli.main(["reproduce", name, "--seeds", "1", "-o", str(tmp_path)]) == 0
            shown = capsys.readouterr().out
            assert len(re.findall(r"C = 1 +\|", shown)) == expected
            assert "The paper:" in shown

    def test_figure1(self, small_toys, tmp_path, capsys):
        assert cli.main(["reproduce", "figure1", "-o", str(tmp_path)]) == 0
        for part in ("evolution", "landscape", "sphere"):
            assert (tmp_path / f"figure1-{part}.png").read_bytes().startswith(b"\x89PNG")
        assert "Windmill, 12 rounds" in capsys.readouterr().out

    def test_figures_without_matplotlib_name_the_extra(
        self, small_toys, tmp_path, capsys, monkeypatch
    ):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        assert cli.main(["reproduce", "figure1", "-o", str(tmp_path)]) == 0
        assert "notsorandom[plot]" in capsys.readouterr().out

    def test_peers(self, small_tasks, tmp_path, capsys, monkeypatch):
        smaller = {
            name: peers.Peer(peer.title, peer.make, peer.sizes if name == "svc" else (10, 20))
            for name, peer in peers.PEERS.items()
        }
        monkeypatch.setattr(peers, "PEERS", smaller)
        command = ["reproduce", "peers", "--tasks", "auto-truck", "-o", str(tmp_path)]
        assert cli.main(command) == 0
        shown = capsys.readouterr().out
        for size in ("small", "best"):
            assert len(re.findall(rf", {size} +\|", shown)) == len(peers.PEERS)
        for record in Records(tmp_path).read():
            outcome = record["outcome"]
            assert outcome["bytes"] > 500
            assert outcome["predict_microseconds"] > 0
            # Ten hidden units and a hundred samples are too few for a network.
            assert outcome["test_accuracy"] > (0.3 if record["config"]["method"] == "mlp" else 0.6)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["table9"], "unknown experiment 'table9': choose from table1"),
            (["table1", "--tasks", "cat-dog"], "--tasks: unknown 'cat-dog'; choose from mnist"),
            (["table1", "--methods", "svc"], "--methods: unknown 'svc'; choose from rbf"),
            (["peers", "--methods", "rbf"], "--methods: unknown 'rbf'; choose from ours, svc"),
            (["windmill", "--tasks", "auto-truck"], "--tasks doesn't narrow windmill, which takes"),
            (["figure1", "--seeds", "3"], "--seeds doesn't narrow figure1, which takes none"),
            (["peers", "--features", "10"], "--features doesn't narrow peers"),
            (["table1", "--methods", "paper", "--features", "1000"], "has nothing to run"),
            (["table1", "--features", "100,5"], "give even numbers of features"),
            (["table1", "--features", "many"], "give even numbers of features"),
            (["table1", "--seeds", "0"], "--seeds 0: it must be at least 1"),
            (["table1", "--jobs", "-1"], "--jobs -1: it must be at least 1"),
        ],
    )
    def test_arguments_are_checked_first(self, arguments, message, capsys, tmp_path):
        folder = tmp_path / "run"
        with pytest.raises(SystemExit) as stop:
            cli.main(["reproduce", *arguments, "-o", str(folder)])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err
        assert not folder.exists()

    def test_a_file_is_not_a_folder(self, tmp_path, capsys):
        (tmp_path / "file").touch()
        with pytest.raises(SystemExit):
            cli.main(["reproduce", "table1", "-o", str(tmp_path / "file")])
        assert "must be a folder, but is a file" in capsys.readouterr().err

    def test_missing_data_are_missed_at_once(self, tmp_path, capsys, monkeypatch):
        def fetch(data_home):
            raise FileNotFoundError("no files in the cellar")

        monkeypatch.setattr(tasks, "fetch_mnist", fetch)
        tasks.load_task.cache_clear()
        assert cli.main(["reproduce", "table1", "-o", str(tmp_path / "run")]) == 1
        assert "notsorandom reproduce: no files in the cellar" in capsys.readouterr().err
        assert not (tmp_path / "run").exists()

    def test_every_experiment_is_in_the_help(self, capsys):
        with pytest.raises(SystemExit):
            cli.main(["reproduce", "--help"])
        shown = capsys.readouterr().out
        assert all(f"  {name} " in shown for name in reproduce.EXPERIMENTS)


class TestTasks:
    def test_two_classes_of_images(self, monkeypatch):
        rng = np.random.default_rng(0)
        digits = rng.integers(0, 256, size=(40, 784)).astype(np.uint8)
        labels = np.arange(40) % 10
        monkeypatch.setattr(tasks, "fetch_mnist", lambda home: (digits, labels, digits, labels))
        tasks.load_task.cache_clear()
        task = tasks.load_task("mnist-4-9")
        assert task.X.dtype == np.float32
        np.testing.assert_array_equal(task.y, [0, 1] * 4)
        np.testing.assert_allclose(task.X[1], digits[9] / 255, rtol=1e-6)
        images = rng.integers(0, 256, size=(20, 32, 32, 3)).astype(np.uint8)
        kinds = np.arange(20) % 10
        monkeypatch.setattr(tasks, "fetch_cifar10", lambda home: (images, kinds, images, kinds))
        monkeypatch.setattr(tasks, "hog", lambda part, home: part[:, 0, 0].astype(np.float32))
        task = tasks.load_task("auto-truck")
        np.testing.assert_array_equal(task.y, [0, 1, 0, 1])
        np.testing.assert_array_equal(task.X[1], images[9, 0, 0])
        tasks.load_task.cache_clear()


@pytest.mark.usefixtures("short_trials")
def test_recorded_games_are_the_games(small_toys):
    """What is drawn from records is what the models said, to the digits that are kept."""
    config = {"kind": "evolution", "seed": 0}
    outcome = json.loads(json.dumps(figure1.perform_evolution(config)))
    X, y, game = figure1.recorded_moments({"config": config, "outcome": outcome})
    np.testing.assert_array_equal(X, make_windmill(150, random_state=0)[0])
    assert game[-1].round == 12 == len(game[-1].kernel.weights)
    right = (game[-1].decision(X)[:, 0] > 0) == y
    assert right.mean() > 0.9
    test, y_test = make_windmill(300, random_state=1000)
    accuracy = np.mean((game[-1].decision(test)[:, 0] > 0) == y_test)
    assert abs(accuracy - outcome["test_accuracy"]) <= 1 / 300


def test_a_recorded_globe_is_the_decision():
    X, y = make_checkerboard(150, random_state=0)
    model = synthetic.single_harmonics(0).set_params(C=figure1.SPHERE_C, smoothing=0.06).fit(X, y)
    kernel = model.kernel_
    coef = model.coef_[0] * kernel.scales * np.sqrt(kernel.weights)
    ours = figure1.combined(X, kernel.frequencies, coef, model.intercept_[0])
    np.testing.assert_allclose(ours, model.decision_function(X), atol=1e-8)
