"""The experiments by name: what to run, and how to show the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from experiments import (
    convergence,
    figure1,
    figure2,
    hitting,
    pairs,
    paper,
    paper_setting,
    peers,
    potential,
    search_gap,
    synthetic,
    table1,
)
from experiments.records import Config, Record, Records, matching
from experiments.runner import run_missing
from experiments.tables import Table
from experiments.tasks import TASKS, TaskLoader
from notsorandom._utils.files import write_atomic
from notsorandom._utils.progress import format_seconds
from notsorandom.display.figures import save_figure


class Run(Protocol):
    """From a configuration and a function that loads tasks to the outcome of a run."""

    def __call__(self, config: Config, load: TaskLoader) -> dict[str, Any]:
        """Return the outcome."""


@dataclass(frozen=True)
class Options:
    """Restrictions of an experiment; None is the experiment's default."""

    tasks: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    features: tuple[int, ...] | None = None
    seeds: int | None = None


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper, or related to it.

    Parameters
    ----------
    description : str
    options : frozenset of str
        Names of the options that apply to it.
    configs : callable
        From options to the configurations of all runs.
    run : callable
        Computes the outcome of a configuration. Other processes import it by name.
    tables : callable
        From records to tables.
    draw : callable, optional
        From records to matplotlib figures, by name.
    methods : tuple of str
        Allowed values of the option ``methods``.
    """

    description: str
    options: frozenset[str]
    configs: Callable[[Options], list[Config]]
    run: Run
    tables: Callable[[Sequence[Record]], list[Table]]
    draw: Callable[[Sequence[Record]], dict[str, Any]] | None = None
    methods: tuple[str, ...] = ()


PAIR_OPTIONS = frozenset({"tasks", "methods", "features", "seeds", "data"})

EXPERIMENTS: dict[str, Experiment] = {
    "table1": Experiment(
        "eight pairs of classes of MNIST and CIFAR-10, by method and number of features",
        PAIR_OPTIONS,
        lambda options: table1.table1_configs(
            options.tasks or TASKS,
            options.methods or table1.DEFAULT_METHODS,
            options.features or paper.SIZES,
            options.seeds or 3,
        ),
        pairs.run_pair,
        table1.table1_tables,
        methods=tuple(pairs.METHODS),
    ),
    "figure1": Experiment(
        "the game on the windmill, its potential in rounds 1 and 300, and the sphere",
        frozenset(),
        lambda options: figure1.figure1_configs(),
        figure1.run_figure1,
        figure1.figure1_tables,
        figure1.draw_figure1,
    ),
    "figure2": Experiment(
        "accuracy by number of features, with standard deviations over 10 trials",
        PAIR_OPTIONS,
        lambda options: table1.table1_configs(
            options.tasks or ("auto-truck",),
            options.methods or figure2.DEFAULT_METHODS,
            options.features or paper.SIZES,
            options.seeds or 10,
        ),
        pairs.run_pair,
        table1.table1_tables,
        figure2.draw_figure2,
        methods=tuple(pairs.METHODS),
    ),
    "windmill": Experiment(
        "the synthetic problem on the plane, against exact SVMs",
        frozenset({"seeds"}),
        lambda options: synthetic.synthetic_configs("windmill", options.seeds or 3),
        synthetic.run_synthetic,
        synthetic.windmill_tables,
    ),
    "checkerboard": Experiment(
        "the synthetic problem on the sphere, against exact SVMs",
        frozenset({"seeds"}),
        lambda options: synthetic.synthetic_configs("checkerboard", options.seeds or 5),
        synthetic.run_synthetic,
        synthetic.checkerboard_tables,
    ),
    "paper-setting": Experiment(
        "all problems in the paper's own setting, with multiples of the theory's steps",
        PAIR_OPTIONS - {"methods"},
        lambda options: paper_setting.paper_setting_configs(
            options.tasks, options.features, options.seeds
        ),
        paper_setting.run_paper_setting,
        paper_setting.paper_setting_tables,
    ),
    "convergence": Experiment(
        "gap against iterations of four solvers of a finite game, beside their theory",
        frozenset(),
        lambda options: convergence.convergence_configs(),
        convergence.run_convergence,
        convergence.convergence_tables,
        convergence.draw_convergence,
    ),
    "search-gap": Experiment(
        "how far the peaks of three searches are below the highest known, and their time",
        frozenset(),
        lambda options: search_gap.search_gap_configs(),
        search_gap.run_search_gap,
        search_gap.search_gap_tables,
    ),
    "hitting": Experiment(
        "steps of Langevin dynamics to the peak of a known potential, by its parameters",
        frozenset(),
        lambda options: hitting.hitting_configs(),
        hitting.run_hitting,
        hitting.hitting_tables,
    ),
    "potential": Experiment(
        "the potential of samples beside that of their density, by number of samples",
        frozenset(),
        lambda options: potential.potential_configs(),
        potential.run_potential,
        potential.potential_tables,
        potential.draw_potential,
    ),
    "peers": Experiment(
        "other classifiers: accuracy, seconds, bytes",
        frozenset({"tasks", "methods", "seeds", "data"}),
        lambda options: peers.peers_configs(
            options.tasks or peers.DEFAULT_TASKS,
            options.methods or tuple(peers.PEERS),
            options.seeds or 1,
        ),
        peers.run_peer,
        peers.peers_tables,
        methods=tuple(peers.PEERS),
    ),
}


def run_experiment(
    name: str,
    experiment: Experiment,
    folder: Path,
    options: Options,
    load: TaskLoader,
    n_jobs: int = 1,
    output: Callable[[str], Any] = print,
) -> None:
    """Run what has no record yet, then show the whole experiment from its records.

    Parameters
    ----------
    name : str
        The table is written to the file ``NAME.md``.
    experiment : Experiment
    folder : Path
        Folder of the records, the table and the figures.
    options : Options
    load : callable
        Loads a task by its name.
    n_jobs : int
        Number of concurrent runs.
    output : callable
        Receives the text.
    """
    records = Records(folder)
    configs = list(experiment.configs(options))
    check_data(records.missing(configs), load)
    run_missing(
        configs,
        records,
        partial(experiment.run, load=load),
        n_jobs,
        size=work,
    )
    shown = matching(records.read(), configs)
    text = "\n\n".join(
        [*(table.markdown() for table in experiment.tables(shown)), provenance(shown)]
    )
    write_atomic(folder / f"{name}.md", f"{text}\n".encode())
    output(text)
    if experiment.draw is None:
        return
    try:
        figures = experiment.draw(shown)
    except ImportError as error:
        output(f"\n{error}")
        return
    for title, figure in figures.items():
        picture = folder / f"{title}.png"
        save_figure(figure, picture)
        output(f"\n{title}: {picture.resolve()}")


def work(config: Config) -> int:
    """Return the approximate amount of work of a run: its number of features, if it has one."""
    return max(config.get("sizes", ()), default=config.get("n_features", 1))


def check_data(configs: Sequence[Config], load: TaskLoader) -> None:
    """Load one task of each data set, so that missing data raise an error before the first run."""
    tasks = {
        task.startswith("mnist"): task
        for config in configs
        if (task := config.get("task", config.get("problem"))) in TASKS
    }
    for task in tasks.values():
        load(task)


def provenance(records: Sequence[Record]) -> str:
    """Return one line about when the records were made, on how many cores, with which versions.

    What only some records name is left out: it says nothing about the others.
    """
    days = sorted({record["finished"][:10] for record in records})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        for name, version in record["versions"].items():
            versions.setdefault(name, {})[version] = None
    known = [name for name in versions if all(name in record["versions"] for record in records)]
    names = ", ".join(f"{name} {' or '.join(versions[name])}" for name in known)
    cores = " or ".join(str(cores) for cores in sorted({record["cores"] for record in records}))
    seconds = sum(record["seconds"] for record in records)
    return f"{len(records)} runs, {format_seconds(seconds)} in all, {when}; {cores} cores; {names}."
