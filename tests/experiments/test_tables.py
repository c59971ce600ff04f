import re
from pathlib import Path

import numpy as np
import pytest

from experiments import convergence, figure2, paper, registry, table1, tasks
from experiments.pairs import METHODS, pair_config
from notsorandom import FourierClassifier, FourierFeatures, GradientSolver, Langevin, game
from notsorandom.display import import_pyplot


@pytest.fixture
def pair_records():
    """Make records of one task at two sizes; the two seeds are one percent apart."""

    def make(**accuracies):
        return [
            {
                "config": pair_config("auto-truck", method, size, seed),
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

    return make


def test_the_paper_claims_to_exceed_both_baselines_everywhere():
    """A check of the transcription."""
    assert set(paper.TABLE1) == set(tasks.TASKS)
    for methods in paper.TABLE1.values():
        assert set(methods) == {"rbf", "lkrf", "ours"}
        assert all(len(values) == len(paper.SIZES) for values in methods.values())
        assert (np.array(methods["ours"]) > np.maximum(methods["rbf"], methods["lkrf"])).all()


def test_the_papers_setting_is_limited_to_few_features():
    configs = table1.table1_configs(["auto-truck"], ["rbf", "paper"], [100, 1000], 2)
    assert pair_config("auto-truck", "rbf", 1000, 1) in configs
    assert pair_config("auto-truck", "paper", 100, 0) in configs
    assert pair_config("auto-truck", "paper", 1000, 0) not in configs
    assert len(configs) == 6


def test_table1_has_means_and_a_comparison(pair_records):
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
        "ours: above the paper's in 1 of 2 cells, and in 1 of the 2 with m <= 500." in table.notes
    )
    lines = table.markdown().splitlines()
    assert "| auto-truck | LKRF   | 71.00 (71.89)     | 70.00 (77.33)     |" in lines


def test_what_ours_chose_is_shown_beside_the_accuracies(pair_records):
    records = pair_records(rbf=(70.0, 90.0), ours=(88.0, 85.0))
    assert len(table1.table1_tables(records)) == 1
    for record in records:
        config = record["config"]
        if config["method"] == "ours":
            spectrum = "cauchy" if config["n_features"] == 500 and config["seed"] else "gaussian"
            chosen = {"spectrum": spectrum, "smoothing": 0.07, "C": 0.31 + config["seed"]}
            record["outcome"]["chosen"] = chosen
    _, table = table1.table1_tables(records)
    assert table.headers == ("task", "method", "m = 100", "m = 500")
    assert table.rows == (
        (
            "auto-truck",
            "ours",
            "gaussian, smoothing 0.07, C = 0.31 to 1.3",
            "cauchy or gaussian, smoothing 0.07, C = 0.31 to 1.3",
        ),
    )


def test_provenance(pair_records):
    records = pair_records(ours=(88.0, 85.0))
    records[0]["versions"] |= {"commit": "abc"}
    text = registry.provenance(records)
    assert text == "4 runs, 4min in all, 2020-01-01 to 2020-01-02; 2 cores; numpy 9."


def test_figure2_draws_means_over_trials(pair_records):
    records = pair_records(rbf=(70.0, 90.0), ours=(88.0, 85.0))
    sizes, accuracies = figure2.accuracies_by_size(records, "auto-truck")
    assert sizes.tolist() == [100, 500]
    np.testing.assert_allclose(accuracies["ours"], [[0.875, 0.845], [0.885, 0.855]])
    (figure,) = figure2.draw_figure2(records).values()
    first, _ = figure.axes[0].containers
    np.testing.assert_allclose(first.lines[0].get_ydata(), [70, 90])
    import_pyplot().close("all")


@pytest.mark.parametrize("place", ["docs/method.md", "FourierFeatures", "notsorandom.game"])
def test_the_paper_setting_has_one_definition(place):
    """Wherever the setting is shown, it is what the experiment runs."""
    documents = {"FourierFeatures": FourierFeatures.__doc__, "notsorandom.game": game.__doc__}
    text = documents.get(place) or (Path(__file__).parents[2] / place).read_text()
    (shown,) = re.findall(r"paper's own\s+setting.*?(Fourier\w+\(\n.*?\n *\)\n)", text, re.DOTALL)
    parts = (FourierClassifier, FourierFeatures, GradientSolver, Langevin)
    model = eval(shown, {part.__name__: part for part in parts})
    model.set_params(n_components=100, random_state=3)
    wanted = METHODS["paper"].make(100, 3).get_params()
    assert {name: repr(wanted[name]) for name in model.get_params()} == {
        name: repr(value) for name, value in model.get_params().items()
    }


@pytest.mark.parametrize("method", convergence.METHODS)
def test_convergence(method):
    """Gaps of all methods are within the bounds of their theory."""
    config = {"kind": "convergence", "method": method, "n_steps": 100}
    outcome = convergence.run_convergence(config, None)
    gaps, bounds = np.array(outcome["gaps"]), np.array(outcome["bounds"])
    assert (gaps >= 0).all()
    assert gaps[-1] < gaps[0]
    assert outcome["n_steps"][-1] == 100
    assert (gaps <= bounds).all()
    records = [{"config": config, "outcome": outcome}]
    (table,) = convergence.convergence_tables(records)
    assert convergence.METHODS[method] in table.markdown()
    assert list(convergence.draw_convergence(records)) == ["convergence"]
