"""The paper's experiments by name: what to run, and how to show what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from notsorandom._utils.files import write_whole
from notsorandom._utils.progress import duration
from notsorandom.display.drawing import save_figure
from notsorandom.experiments import figure1, figure2, peers, synthetic, table1
from notsorandom.experiments.pairs import perform_pair
from notsorandom.experiments.records import Config, Record, Records, matching
from notsorandom.experiments.runner import run_missing
from notsorandom.experiments.tables import Table
from notsorandom.experiments.tasks import load_task

# What a run computes, by the kind that its configuration names.
KINDS: dict[str, Callable[[Config, str | None], dict[str, Any]]] = {
    "pair": perform_pair,
    "windmill": synthetic.perform_windmill,
    "checkerboard": synthetic.perform_checkerboard,
    "evolution": figure1.perform_evolution,
    "globe": figure1.perform_globe,
    "peer": peers.perform_peer,
}


@dataclass(frozen=True)
class Options:
    """What narrows an experiment; None is its own default."""

    tasks: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    features: tuple[int, ...] | None = None
    seeds: int | None = None


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper, or beside it.

    Parameters
    ----------
    takes : set of str
        Options that it has.
    configs : callable
        From options to all runs.
    tables : callable
        From their records to tables.
    draw : callable, optional
        From records to matplotlib figures, by name.
    """

    takes: frozenset[str]
    configs: Callable[[Options], list[Config]]
    tables: Callable[[Sequence[Record]], list[Table]]
    draw: Callable[[Sequence[Record]], dict[str, Any]] | None = None


PAIR_OPTIONS = frozenset({"tasks", "methods", "features", "seeds", "data"})

EXPERIMENTS: dict[str, Experiment] = {
    "table1": Experiment(
        PAIR_OPTIONS,
        lambda options: table1.table1_configs(
            options.tasks or table1.TASKS,
            options.methods or table1.DEFAULT_METHODS,
            options.features or table1.SIZES,
            options.seeds or 3,
        ),
        table1.table1_tables,
    ),
    "figure1": Experiment(
        frozenset(),
        lambda options: figure1.figure1_configs(),
        figure1.figure1_tables,
        figure1.draw_figure1,
    ),
    "figure2": Experiment(
        PAIR_OPTIONS,
        lambda options: table1.table1_configs(
            options.tasks or ("auto-truck",),
            options.methods or figure2.DEFAULT_METHODS,
            options.features or table1.SIZES,
            options.seeds or 10,
        ),
        table1.table1_tables,
        figure2.draw_figure2,
    ),
    "windmill": Experiment(
        frozenset({"seeds"}),
        lambda options: synthetic.windmill_configs(options.seeds or 3),
        synthetic.windmill_tables,
    ),
    "checkerboard": Experiment(
        frozenset({"seeds"}),
        lambda options: synthetic.checkerboard_configs(options.seeds or 5),
        synthetic.checkerboard_tables,
    ),
    "peers": Experiment(
        frozenset({"tasks", "methods", "seeds", "data"}),
        lambda options: peers.peers_configs(
            options.tasks or peers.DEFAULT_TASKS,
            options.methods or tuple(peers.PEERS),
            options.seeds or 1,
        ),
        peers.peers_tables,
    ),
}


def perform(config: Config, data_home: str | None = None) -> dict[str, Any]:
    """Run one configuration."""
    return KINDS[config["kind"]](config, data_home)


def reproduce(
    name: str,
    folder: Path,
    options: Options,
    say: Callable[[str], Any],
    n_jobs: int = 1,
    data_home: str | None = None,
) -> None:
    """Run what is missing of an experiment, then show all of it from its records.

    Parameters
    ----------
    name : str
        Of :data:`EXPERIMENTS`.
    folder : Path
        Where records are kept; also the table, ``NAME.md``, and pictures.
    options : Options
    say : callable
        Takes the lines to be printed.
    n_jobs : int
    data_home : str, optional
    """
    experiment, records = EXPERIMENTS[name], Records(folder)
    configs = list(experiment.configs(options))
    load_early(records.missing(configs), data_home)
    run_missing(
        configs,
        records,
        partial(perform, data_home=data_home),
        n_jobs,
        size=lambda config: config.get("n_features", 1),
    )
    shown = matching(records.read(), configs)
    text = "\n\n".join(
        [*(table.markdown() for table in experiment.tables(shown)), provenance(shown)]
    )
    write_whole(folder / f"{name}.md", f"{text}\n".encode())
    say(text)
    if experiment.draw is None:
        return
    try:
        figures = experiment.draw(shown)
    except ImportError as error:
        say(f"\n{error}")
        return
    for title, figure in figures.items():
        picture = folder / f"{title}.png"
        save_figure(figure, picture)
        say(f"\n{title}: {picture.resolve()}")


def load_early(configs: Sequence[Config], data_home: str | None) -> None:
    """Load a task of each data set, so that what is missing is missed now and not in an hour."""
    tasks = {
        config["task"].startswith("mnist"): config["task"] for config in configs if "task" in config
    }
    for task in tasks.values():
        load_task(task, data_home)


def provenance(records: Sequence[Record]) -> str:
    """When, with what and on what the records were made, in a line."""
    days = sorted({record["finished"][:10] for record in records})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        for name, version in record["versions"].items():
            versions.setdefault(name, {})[version] = None
    names = ", ".join(f"{name} {' or '.join(found)}" for name, found in versions.items())
    cores = " or ".join(str(cores) for cores in sorted({record["cores"] for record in records}))
    seconds = sum(record["seconds"] for record in records)
    return f"{len(records)} runs, {duration(seconds)} in all, {when}; {cores} cores; {names}."
