"""The experiments on the paper's theory: gaps of searches, hitting times, concentration."""

import numpy as np
import pytest
from scipy import integrate

from experiments import hitting, potential, search_gap
from notsorandom.display import import_pyplot


def run_all(run, configs):
    return [{"config": config, "outcome": run(config, None)} for config in configs]


def test_search_gaps():
    """The default search misses peaks of random labels, and the thorough one takes longer."""
    configs = search_gap.search_gap_configs(n_rounds=2, n_seeds=1)
    config = next(one for one in configs if (one["labels"], one["dimension"]) == ("random", 2))
    outcome = search_gap.run_search_gap(config, None)
    for name, part in outcome.items():
        shares = np.array(part["shares"])
        assert ((shares >= 0) & (shares < 1)).all()
        assert (part["term"] > 0) == (shares.max() > 0), name
    assert max(outcome["ascent"]["shares"]) > 0.1 > max(outcome["thorough"]["shares"])
    assert outcome["thorough"]["cpu_seconds"] > 5 * outcome["ascent"]["cpu_seconds"]
    records = [{"config": each, "outcome": outcome} for each in configs]
    (table,) = search_gap.search_gap_tables(records)
    assert len(table.rows) == len(search_gap.SETTINGS) * len(search_gap.SEARCHES)


def test_hitting_times_fall_with_the_temperature_and_rise_with_the_radius():
    varied = {"temperature": [0.1, 1.0], "radius": [5, 10]}
    configs = [
        {"kind": "hitting", "varied": name, **hitting.USUAL, name: value, "n_steps": 200}
        for name, values in varied.items()
        for value in values
    ]
    records = run_all(hitting.run_hitting, configs)
    cold, hot, near, far = (hitting.mean_steps(record)[0] for record in records)
    assert cold > 1.5 * hot
    assert far > 1.5 * near
    whole = [{**one, "config": each} for one in records[:1] for each in hitting.hitting_configs()]
    (table,) = hitting.hitting_tables(whole)
    assert len(table.rows) == len(hitting.VARIED)


def test_mean_steps_count_those_that_did_not_arrive():
    record = {"config": {"n_steps": 10}, "outcome": {"steps": [2, 4, None, None]}}
    assert hitting.mean_steps(record) == (13.0, 0.5)


@pytest.mark.parametrize("frequency", [(0.7, -0.4), (3.0, 2.0)])
def test_ideal_potential_is_the_squared_transform_of_the_densities(frequency):
    frequency, half = np.array(frequency), potential.HALF_WIDTH

    def transform(label):
        def part(function):
            return integrate.dblquad(
                lambda b, a: function(frequency @ (np.array([a, b]) + label * potential.CENTER)),
                *(-half, half, -half, half),
            )[0] / (2 * half) ** 2  # fmt: skip

        return part(np.cos) + 1j * part(np.sin)

    expected = abs(transform(1) / 2 - transform(-1) / 2) ** 2
    np.testing.assert_allclose(potential.ideal_potential(frequency[None]), expected, rtol=1e-6)


def test_deviations_fall_like_the_root_of_the_samples_within_the_theorem():
    records = run_all(potential.run_potential, potential.potential_configs((100, 2500), 10))
    small, large = (np.mean(record["outcome"]["deviations"]) for record in records)
    assert 3 < small / large < 8  # 5 times, on average
    for record in records:
        n = record["config"]["n_samples"]
        assert max(record["outcome"]["deviations"]) < potential.theorem(n)
    (table,) = potential.potential_tables(records)
    assert "Slope" in table.notes[0]
    assert list(potential.draw_potential(records)) == ["potential"]
    import_pyplot().close("all")
