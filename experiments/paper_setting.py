"""The paper's own setting: Langevin dynamics, pairs, the theory's steps, on all of its problems."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments import paper
from experiments.records import Config, Record
from experiments.svm import fit_svm
from experiments.synthetic import N_TEST, N_TRAIN
from experiments.tables import Table
from experiments.tasks import TASKS, Task, TaskLoader
from notsorandom import Enumerate, FourierFeatures, GradientSolver, Langevin
from notsorandom.datasets import make_checkerboard, make_windmill

# A game of 5000 features of a task takes most of an hour of one core, so only two tasks have it.
LARGE_TASKS, SMALL_SIZES = ("auto-truck", "mnist-4-9"), paper.SIZES[:2]
# Figure 2 has ten trials of this task, here with the theory's steps.
TRIALS = {("auto-truck", 1): 10}
# The synthetic problems, and the numbers of features shown. The paper has 1000 and 100 rounds.
MAKERS: dict[str, Callable[..., Any]] = {
    "windmill": make_windmill,
    "checkerboard": make_checkerboard,
}
SYNTHETIC = {"windmill": (100, 500, 1000, 2000), "checkerboard": (20, 50, 100)}
# The paper's accuracies, by problem and size.
PAPER: dict[str, dict[int, float]] = {
    "windmill": {2000: paper.WINDMILL["ours"]},
    "checkerboard": {100: paper.CHECKERBOARD["ours"]},
} | {task: dict(zip(paper.SIZES, paper.TABLE1[task]["ours"], strict=True)) for task in TASKS}
# Multiples of the theory's steps. The paper's were longer than these; it doesn't say how much.
STEPS, TASK_STEPS = (1, 10, 100), (1, 10)
# How the SVM at C = 1 gets the features. The paper concatenates them as they are.
SCALES = {"unit": "k(x, x) = 1", "raw": "k(x, x) = T"}


def paper_setting(
    n_features: int, seed: int, n_peaks: int = 10, steps: float = 1
) -> FourierFeatures:
    """Return the paper's own setting (Algorithms 1 to 3, Appendix A.1).

    Langevin dynamics on the potential itself, the highest of distinct points per round, cosine
    and sine of each frequency, rounds of equal weights, a multiple of the step sizes of the regret
    bound, and alternating projections.
    """
    return FourierFeatures(
        n_features,
        loss="hinge",
        C=1.0,
        smoothing=0,
        search=Langevin(n_peaks=n_peaks),
        phase="paired",
        solver=GradientSolver(step_size(steps), weighting="uniform", projection="alternating"),
        random_state=seed,
    )


def sphere_setting(n_rounds: int, seed: int, steps: float) -> FourierFeatures:
    """Return its adaptation to the sphere: the highest of the first 1024 harmonics, merged."""
    setting = paper_setting(n_rounds, seed, steps=steps)
    return setting.set_params(
        space="sphere",
        search=Enumerate(n_peaks=1),
        phase="aligned",
        solver__n_rounds=n_rounds,
    )


def step_size(multiple: float) -> Any:
    """Return the learning rate that is a multiple of the theory's."""
    return "theory" if multiple == 1 else lambda t, theory: multiple * theory


def paper_setting_configs(
    tasks: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    n_seeds: int | None = None,
) -> list[Config]:
    """Return one game per problem, multiple of the steps and seed, the quick ones first."""
    games = [
        *((name, SYNTHETIC[name], STEPS) for name in SYNTHETIC if tasks is None),
        *(
            (task, sizes or SMALL_SIZES, TASK_STEPS if task in LARGE_TASKS else (1,))
            for task in tasks or TASKS
        ),
        *((task, paper.SIZES[2:], (1,)) for task in LARGE_TASKS if not (tasks or sizes)),
    ]
    return [
        {
            "kind": "paper-setting",
            "problem": problem,
            "sizes": list(chosen),
            "steps": multiple,
            "seed": seed,
        }
        for problem, chosen, multiples in games
        for multiple in multiples
        for seed in range(
            n_seeds or (TRIALS.get((problem, multiple), 1) if chosen == SMALL_SIZES else 1)
        )
    ]


def run_paper_setting(config: Config, load: TaskLoader) -> dict[str, Any]:
    """Play the game of the largest size; return the accuracies of each size, its first features.

    The steps don't depend on the number of rounds, so a smaller size is the beginning of a larger
    one. On the sphere harmonics that are found again are merged: each size is its own game there.
    """
    problem, sizes, seed = config["problem"], config["sizes"], config["seed"]
    task = draw_problem(config) if problem in MAKERS else load(problem)
    start = time.perf_counter()
    if problem == "checkerboard":
        models = [sphere_setting(size, seed, config["steps"]) for size in sizes]
        models = [model.fit(task.X, task.y) for model in models]
    else:
        model = paper_setting(max(sizes), seed, 1 if problem in MAKERS else 10, config["steps"])
        model.set_params(**config.get("parameters", {})).fit(task.X, task.y)
        models = [model.head(size) for size in sizes]
    seconds = time.perf_counter() - start
    cells = []
    for size, model in zip(sizes, models, strict=True):
        n_plays = size if problem == "checkerboard" else size // 2
        for name, scale in (("unit", 1.0), ("raw", n_plays**0.5)):
            train, test = (scale * model.transform(part) for part in (task.X, task.X_test))
            predict = fit_svm(train, task.y)
            cells.append(
                {
                    "size": size,
                    "scale": name,
                    "n_kept": int(model.kernel_.n_waves),
                    "test_accuracy": float(np.mean(predict(test) == task.y_test)),
                    "train_accuracy": float(np.mean(predict(train) == task.y)),
                }
            )
    return {"cells": cells, "fit_seconds": round(seconds, 1)}


def draw_problem(config: Config) -> Task:
    """Return samples of a synthetic problem, drawn by the seed."""
    make, seed = MAKERS[config["problem"]], config["seed"]
    X, y = make(config.get("n_train", N_TRAIN), random_state=seed)
    X_test, y_test = make(config.get("n_test", N_TEST), random_state=1000 + seed)
    classes = np.unique(y)
    return Task(X, np.searchsorted(classes, y), X_test, np.searchsorted(classes, y_test))


def paper_setting_tables(records: Sequence[Record]) -> list[Table]:
    """Return one table of the eight tasks, and one of each synthetic problem."""
    problems = dict.fromkeys(record["config"]["problem"] for record in records)
    tasks = [name for name in TASKS if name in problems]
    groups = [tasks, *([name] for name in SYNTHETIC if name in problems)]
    return [setting_table(records, group) for group in groups if group]


def setting_table(records: Sequence[Record], problems: Sequence[str]) -> Table:
    """Return mean accuracies by size, one row per problem, multiple of the steps and scale."""
    cells: dict[tuple[str, int, str], dict[int, list[dict[str, Any]]]] = {
        (problem, multiple, scale): {}
        for problem in problems
        for multiple in STEPS
        for scale in SCALES
    }
    for record in records:
        config = record["config"]
        for cell in record["outcome"]["cells"] if config["problem"] in problems else []:
            row = cells[config["problem"], config["steps"], cell["scale"]]
            row.setdefault(cell["size"], []).append(cell)
    sizes = sorted({size for row in cells.values() for size in row})
    rows = tuple(
        (
            problem,
            f"{multiple} x",
            SCALES[scale],
            *(setting_cell(problem, size, row.get(size, [])) for size in sizes),
        )
        for (problem, multiple, scale), row in cells.items()
        if row
    )
    title = "The eight tasks" if problems[0] in TASKS else f"The {problems[0]}"
    unit = "T" if problems[0] == "checkerboard" else "m"
    return Table(
        f"{title}, in the paper's own setting",
        "Test accuracy in percent, the paper's in brackets. Steps: multiples of the theory's. 500 "
        "particles, one seed, or the mean and standard deviation of 10. Searches of more than 128 "
        "columns are in 128 principal directions.",
        ("problem", "steps", "features", *(f"{unit} = {size}" for size in sizes)),
        rows,
    )


def setting_cell(problem: str, size: int, cells: Sequence[dict[str, Any]]) -> str:
    """Return the mean accuracy, and the paper's in brackets; on the sphere also the harmonics."""
    if not cells:
        return "-"
    accuracies = [100 * cell["test_accuracy"] for cell in cells]
    text = f"{np.mean(accuracies):.2f}"
    if len(cells) > 1:
        text += f" ± {np.std(accuracies, ddof=1):.2f}"
    if problem == "checkerboard":
        text += f" with {np.mean([cell['n_kept'] for cell in cells]):.0f} harmonics"
    theirs = PAPER[problem].get(size)
    return text if theirs is None else f"{text} ({theirs:.2f})"
