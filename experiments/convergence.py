"""Four ways to the equilibrium of a finite game: gap against iterations, beside the theory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.excessive_gap import excessive_gap
from experiments.records import Config, Record
from experiments.tables import Table
from experiments.tasks import TaskLoader
from notsorandom import Enumerate, Sphere
from notsorandom.data.rows import Array, Rows
from notsorandom.datasets import make_checkerboard
from notsorandom.display import import_pyplot
from notsorandom.game import LOSSES, GameLoop, Problem, find_equilibrium
from notsorandom.game.certificate import regret_bound
from notsorandom.game.equilibrium import CHECK_EVERY, SAFETY, limit_balance, operator_norm
from notsorandom.linear.newton import solve_task
from notsorandom.spaces.harmonics import harmonic_indices, harmonics

N_SAMPLES, MAX_DEGREE, C = 200, 8, 1.0
N_STEPS, N_POINTS = 10_000, 25
# Multiples of the theory's steps that are played too.
MULTIPLE = 100.0
METHODS = {
    "ascent": "online gradient ascent, hinge: 1 / sqrt(T)",
    "ascent-multiple": f"online gradient ascent, hinge, {MULTIPLE:g} times the theory's steps",
    "ascent-squared": "online gradient ascent, squared hinge: log(T) / T",
    "excessive-gap": "excessive gap technique, hinge: 1 / T",
    "primal-dual": "primal-dual hybrid gradient with restarts, hinge: 1 / T",
}


def convergence_configs(n_steps: int = N_STEPS) -> list[Config]:
    """Return one run per method."""
    return [{"kind": "convergence", "method": method, "n_steps": n_steps} for method in METHODS]


def run_convergence(config: Config, load: TaskLoader) -> dict[str, Any]:
    """Return numbers of iterations, gaps and theoretical bounds, as shares of the value."""
    X, y = make_checkerboard(N_SAMPLES, random_state=0)
    name = "squared_hinge" if config["method"] == "ascent-squared" else "hinge"
    loss = LOSSES[name].times(C)
    problem = Problem(loss, np.where(y == 1, 1.0, -1.0)[:, None], Rows(X))
    indices = harmonic_indices(3, MAX_DEGREE)
    features, groups = harmonics(X, indices), np.arange(len(indices))
    value = find_equilibrium(features, groups, problem, 1e-6).upper
    steps = np.unique(np.geomspace(1, config["n_steps"], N_POINTS).astype(int))
    if config["method"] == "excessive-gap":
        records = list(excessive_gap(features, groups, problem, set(steps.tolist())))
        rows = [(each.n_steps, each.upper - each.lower, each.theory) for each in records]
    elif config["method"] == "primal-dual":
        shares: list[float] = []
        find_equilibrium(features, groups, problem, 1e-6, config["n_steps"], shares.append)
        checks = [CHECK_EVERY * (number + 1) for number in range(len(shares))]
        constant = ergodic_constant(features, problem)
        # The gap is a share of the upper bound.
        rows = [
            (check, share * value / (1 - share) if share < 1 else math.inf, constant / check)
            for check, share in zip(checks, shares, strict=True)
        ]
    else:
        rows = play(problem, config["method"], set(steps.tolist()))
    return {
        "value": value,
        "n_steps": [int(row[0]) for row in rows],
        "gaps": [float(row[1]) / value for row in rows],
        "bounds": [float(row[2]) / value for row in rows],
    }


def ergodic_constant(features: Array, problem: Problem) -> float:
    r"""Return T times the bound on the gap of the average of T primal-dual steps.

    Steps of sizes :math:`\tau` and :math:`\sigma` are proximal point steps in the norm
    :math:`|x|^2 / \tau + |y|^2 / \sigma - 2 \langle K x, y \rangle`. The saddle gap of the average
    is at most :math:`(D_1 / \sqrt\tau + D_2 / \sqrt\sigma)^2 / (2 T)` over sets of points that are
    within :math:`D_1` and :math:`D_2` of the start (Chambolle and Pock, Math. Program. 159, 2016).
    It is proven without restarts.
    """
    loss, start = problem.loss, problem.start_factor * problem.targets
    norm = operator_norm(features) / SAFETY
    balance = limit_balance(1 / float(np.linalg.norm(start)))
    # The zero model's objective is C n. A better one has no larger norm than this, and an intercept
    # that is larger than all its scores by more than 1 isn't better than one of exactly 1 more.
    radius = math.sqrt(2 * loss.upper * len(start))
    intercept = 1 + radius * float(np.abs(features).max())
    size1 = math.hypot(radius, intercept)
    size2 = float(np.linalg.norm(np.maximum(np.abs(start), loss.upper - np.abs(start))))
    return 0.5 * norm * (size1 / math.sqrt(balance) + size2 * math.sqrt(balance)) ** 2


def play(problem: Problem, method: str, steps: set[int]) -> list[tuple[int, float, float]]:
    """Play the game of the paper; return rounds, gaps and bounds on the regret."""
    rng, factor = np.random.default_rng(0), MULTIPLE if method == "ascent-multiple" else 1.0
    space = Sphere("harmonic", max_degree=MAX_DEGREE).resolve(problem.rows, rng)
    loop = GameLoop(
        problem,
        space=space,
        search=Enumerate(n_peaks=1),
        n_frequencies=(MAX_DEGREE + 1) ** 2 + 1,  # never reached
        n_rounds=max(steps),
        rng=rng,
        smoothing=0.0,
        learning_rate=lambda round_, theory: factor * theory,
    )
    rows = []
    while loop.play_round() is not None:
        if len(loop.history) not in steps:
            continue
        result = loop.result()
        upper = solve_task(result.kernel().features_of(problem.rows), problem, 1e-6).primal_value
        dual = result.average_dual
        assert dual is not None  # it is only on clusters
        supremum = space.supremum(problem.rows, dual, "aligned", MAX_DEGREE, 0.0, 0.0, 10_000)
        lower = problem.stats(dual).best_scaled_objective(supremum.bound)
        bound = regret_bound(
            problem, loop.kernel_bound, result.history["plays"], result.history["step"]
        )
        rows.append((len(loop.history), upper - lower, bound))
    return rows


def convergence_tables(records: Sequence[Record]) -> list[Table]:
    """Return the gaps at the end, and the slopes."""
    rows = []
    for record in records:
        outcome = record["outcome"]
        steps, gaps = np.array(outcome["n_steps"]), np.array(outcome["gaps"])
        late = np.isfinite(gaps) & (gaps > 0) & (steps >= steps[-1] / 30)
        slope = np.polyfit(np.log(steps[late]), np.log(gaps[late]), 1)[0] if late.sum() > 1 else 0
        bound = outcome["bounds"][-1]
        rows.append(
            (
                METHODS[record["config"]["method"]],
                f"{steps[-1]:,}",
                f"{gaps[-1]:.1e}",
                "" if math.isnan(bound) else f"{bound:.1e}",
                f"{slope:.2f}",
            )
        )
    text = (
        f"Checkerboard, {N_SAMPLES} samples, {(MAX_DEGREE + 1) ** 2} harmonics, C = {C:g}. Gaps "
        "between the bounds as shares of the value; slopes over the last factor of 30."
    )
    columns = ("method", "iterations", "gap", "bound of the theory", "slope")
    return [Table("Convergence to the equilibrium", text, columns, tuple(rows))]


def draw_convergence(records: Sequence[Record]) -> dict[str, Any]:
    """Draw gaps as lines and the theory's bounds as dashed lines of the same colour."""
    figure, axis = import_pyplot().subplots(figsize=(7.5, 6), layout="constrained")
    for number, record in enumerate(records):
        outcome, color = record["outcome"], f"C{number}"
        label = METHODS[record["config"]["method"]]
        axis.plot(outcome["n_steps"], outcome["gaps"], color=color, label=label)
        axis.plot(outcome["n_steps"], outcome["bounds"], color=color, ls="--", lw=0.8)
    axis.set(xscale="log", yscale="log", xlabel="iterations", ylabel="gap / value of the game")
    title = "solid: certified gap; dashed: bound of the theory (without restarts)"
    figure.legend(fontsize="small", title=title, loc="outside lower center")
    return {"convergence": figure}
