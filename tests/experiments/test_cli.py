import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from experiments import figure1, peers, synthetic
from experiments.cli import main
from experiments.pairs import METHODS
from experiments.records import Records
from experiments.registry import EXPERIMENTS
from experiments.tasks import Task
from notsorandom.display import import_pyplot

ROOT = Path(__file__).parent.parent.parent
SIZES = {"n_train": 150, "n_test": 300}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import_pyplot().close("all")


def load_small(name):
    """Return a task without images: three columns, two shifted classes."""
    rng = np.random.default_rng(len(name))
    X, X_test = rng.standard_normal((2, 120, 3)).astype(np.float32)
    y = np.arange(120) % 2
    X[:, 0] += 2 * y
    X_test[:, 0] += 2 * y
    return Task(X, y, X_test, y)


def small_synthetic(problem, methods):
    return replace(
        EXPERIMENTS[problem],
        configs=lambda options: synthetic.synthetic_configs(
            problem, options.seeds, methods, **SIZES
        ),
    )


SMALL = {
    "windmill": small_synthetic(
        "windmill", ["RBF SVM, median bandwidth, C = 1", "ours, m = 100, C = 1"]
    ),
    "checkerboard": small_synthetic(
        "checkerboard", ["arc-cosine SVM of degree 0, C = 1", "ours, default search, C = 1"]
    ),
    "figure1": replace(
        EXPERIMENTS["figure1"],
        configs=lambda options: figure1.figure1_configs(**SIZES, n_rounds=12),
        run=partial(figure1.run_figure1, smoothing=0.06),
    ),
    "peers": replace(
        EXPERIMENTS["peers"],
        run=partial(
            peers.run_peer,
            peers={
                name: replace(peer, sizes=peer.sizes if name == "svc" else (10, 20))
                for name, peer in peers.PEERS.items()
            },
        ),
    ),
}
small_main = partial(main, experiments=EXPERIMENTS | SMALL, load=load_small)


@pytest.mark.parametrize(
    "methods",
    [
        ["rbf"],
        pytest.param(
            ["rbf", "laplacian", "lkrf", "ours", "ours-default", "paper"], marks=pytest.mark.slow
        ),
    ],
)
def test_table1(methods, tmp_path, capsys):
    folder = tmp_path / "run"
    command = ["table1", "--tasks", "auto-truck", "--methods", ",".join(methods), "-o", str(folder)]
    assert small_main([*command, "--features", "10,20", "--seeds", "2"]) == 0
    shown = capsys.readouterr()
    ours = [method for method in methods if METHODS[method].paper == "ours"]
    assert shown.out.count("| auto-truck |") == len(methods) + len(ours)
    assert f"{4 * len(methods)} of {4 * len(methods)} runs" in shown.err
    assert (folder / "table1.md").read_text() == shown.out
    records = Records(folder).read()
    for method in methods:
        outcomes = [r["outcome"] for r in records if r["config"]["method"] == method]
        assert np.mean([outcome["test_accuracy"] for outcome in outcomes]) > 0.75
        assert [outcome["n_kept"] for outcome in outcomes] == [10, 10, 20, 20]
        assert all(("chosen" in outcome) == (method in ours) for outcome in outcomes)
        if method in ("ours", "paper"):  # for the SVM that all features get
            assert {outcome["chosen"]["C"] for outcome in outcomes} == {1.0}
    # The second time nothing is fitted, and the same is shown.
    assert small_main([*command, "--features", "10,20", "--seeds", "2"]) == 0
    assert capsys.readouterr().out == shown.out
    assert Records(folder).read() == records
    # A part is shown from the same records; a size that is given twice counts once.
    assert small_main([*command, "--features", "10,10", "--seeds", "2"]) == 0
    part = capsys.readouterr().out
    assert "m = 20" not in part
    assert "mean over seeds (2)" in part


def test_figure2(tmp_path, capsys):
    command = ["figure2", "--features", "10,20", "--seeds", "2", "--methods", "rbf"]
    assert small_main([*command, "-o", str(tmp_path)]) == 0
    assert "figure2-auto-truck" in capsys.readouterr().out
    assert (tmp_path / "figure2-auto-truck.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["windmill", "checkerboard"])
def test_synthetic_problems(name, tmp_path, capsys):
    assert small_main([name, "--seeds", "1", "-o", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert len(re.findall(r"C = 1 +\|", shown)) == 2
    assert "150 training and 300 test samples" in shown
    assert "The paper:" in shown


@pytest.mark.slow
def test_figure1(tmp_path, capsys):
    assert small_main(["figure1", "-o", str(tmp_path)]) == 0
    for part in ("evolution", "landscape", "sphere"):
        assert (tmp_path / f"figure1-{part}.png").read_bytes().startswith(b"\x89PNG")
    assert "Windmill, 12 rounds" in capsys.readouterr().out


def test_figures_without_matplotlib_name_the_extra(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    command = ["figure2", "--features", "10", "--seeds", "1", "--methods", "rbf"]
    assert small_main([*command, "-o", str(tmp_path)]) == 0
    assert "notsorandom[plot]" in capsys.readouterr().out


@pytest.mark.slow
def test_peers(tmp_path, capsys):
    assert small_main(["peers", "--tasks", "auto-truck", "-o", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    for size in ("small", "best"):
        assert len(re.findall(rf", {size} +\|", shown)) == len(peers.PEERS)
    for record in Records(tmp_path).read():
        outcome = record["outcome"]
        assert outcome["bytes"] > 500
        assert outcome["predict_microseconds"] > 0
        # Ten hidden units and 120 samples are too few for a network.
        assert outcome["test_accuracy"] > (0.3 if record["config"]["method"] == "mlp" else 0.6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: command"),
        (["table9"], "invalid choice: 'table9'"),
        (["table1", "--tasks", "cat-dog"], "--tasks: unknown 'cat-dog'; choose from mnist"),
        (["table1", "--methods", "svc"], "--methods: unknown 'svc'; choose from rbf"),
        (["peers", "--methods", "rbf"], "--methods: unknown 'rbf'; choose from ours, svc"),
        (["windmill", "--tasks", "auto-truck"], "unrecognized arguments: --tasks"),
        (["figure1", "--seeds", "3"], "unrecognized arguments: --seeds"),
        (["table1", "--methods", "paper", "--features", "1000"], "there is nothing to run"),
        (["table1", "--features", "100,5"], "give positive even numbers"),
        (["table1", "--features", "many"], "give positive even numbers"),
        (["table1", "--seeds", "0"], "--seeds: '0' is not allowed"),
        (["table1", "--jobs", "-1"], "--jobs"),
    ],
)
def test_wrong_arguments_are_rejected(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_output_must_be_a_folder(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit):
        main(["table1", "-o", str(tmp_path / "file")])
    assert "it is a file; give a folder" in capsys.readouterr().err


def test_missing_data_stop_the_experiment_before_the_first_run(tmp_path, capsys):
    def load(task):
        raise FileNotFoundError("no such data set")

    assert main(["table1", "-o", str(tmp_path / "run")], load=load) == 1
    assert "python -m experiments table1: no such data set" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_interrupt_has_exit_code_130(tmp_path):
    def load(task):
        raise KeyboardInterrupt

    assert main(["table1", "-o", str(tmp_path / "run")], load=load) == 130


@pytest.mark.slow
def test_the_module_lists_all_experiments():
    command = [sys.executable, "-m", "experiments", "--help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert all(f"  {name}" in shown for name in (*EXPERIMENTS, "report"))
