"""The command ``python -m experiments``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

from experiments.registry import EXPERIMENTS, Experiment, Options, run_experiment
from experiments.report import write_run_report
from experiments.tasks import TASKS, TaskLoader, load_task

DESCRIPTION = """\
Run an experiment and show it beside the paper's results. Every fit is recorded as soon as it ends.
An interrupted run continues where it stopped, and a complete one is only shown again."""
EXAMPLES = """\
examples:
  python -m experiments table1 --tasks auto-truck --features 100 --seeds 1
  python -m experiments report notsorandom-runs -o report.html"""
DEFAULT_FOLDER = Path("notsorandom-runs")


def main(
    arguments: Sequence[str] | None = None,
    *,
    experiments: Mapping[str, Experiment] = EXPERIMENTS,
    load: TaskLoader | None = None,
) -> int:
    """Run a command and return the exit code: 0 done, 1 failed, 2 wrong arguments, 130 interrupted.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default the arguments of the process.
    experiments : dict of str to Experiment
    load : callable, optional
        Loads a task by its name, by default from the folder of the option ``--data``.
    """
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name, experiment in experiments.items():
        add_options(commands.add_parser(name, help=experiment.description), experiment)
    report = commands.add_parser("report", help="write one HTML page about the records of a folder")
    report.add_argument("folder", type=Path, help="folder of records")
    report.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("report.html"),
        help="file of the page (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    try:
        if options.command == "report":
            print(write_run_report(options.folder, options.output).resolve())
            return 0
        experiment, command = experiments[options.command], commands.choices[options.command]
        narrowed = Options(
            **{
                name: getattr(options, name)
                for name in ("tasks", "methods", "features", "seeds")
                if name in experiment.options
            }
        )
        if options.output.exists() and not options.output.is_dir():
            command.error(f"--output {options.output}: it is a file; give a folder")
        if load is None:
            load = partial(load_task, data_home=getattr(options, "data", None))
        run_experiment(options.command, experiment, options.output, narrowed, load, options.jobs)
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (OSError, ImportError, ValueError) as error:
        message = " ".join(str(error).split())
        print(f"python -m experiments {options.command}: {message}", file=sys.stderr)
        return 1


def add_options(parser: argparse.ArgumentParser, experiment: Experiment) -> None:
    """Add the options of an experiment to its parser."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=DEFAULT_FOLDER,
        help="folder of records, tables and figures (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs", type=positive_int, default=1, help="concurrent fits (default: %(default)s)"
    )
    if "tasks" in experiment.options:
        parser.add_argument(
            "--tasks",
            type=names_of(TASKS),
            help=f"comma-separated, of {', '.join(TASKS)}",
        )
    if "methods" in experiment.options:
        parser.add_argument(
            "--methods",
            type=names_of(experiment.methods),
            help=f"comma-separated, of {', '.join(experiment.methods)}",
        )
    if "features" in experiment.options:
        parser.add_argument(
            "--features", type=even_ints, help="comma-separated even numbers, such as 100,500"
        )
    if "seeds" in experiment.options:
        parser.add_argument(
            "--seeds", type=positive_int, help="number of trials, with seeds 0, 1, ..."
        )
    if "data" in experiment.options:
        parser.add_argument(
            "--data",
            help="folder of MNIST and CIFAR-10 (default: $NOTSORANDOM_DATA, else a cache folder)",
        )


def names_of(known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of comma-separated names, each of which must be known."""

    def parse(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"unknown {', '.join(map(repr, unknown))}; choose from {', '.join(known)}"
            )
        return names

    return parse


def even_ints(text: str) -> tuple[int, ...]:
    """Parse comma-separated positive even numbers."""
    numbers = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if any(number <= 0 or number % 2 for number in numbers):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not allowed: give positive even numbers, such as 100,500"
        )
    return tuple(dict.fromkeys(numbers))


def positive_int(text: str) -> int:
    """Parse a number that is at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: give a number from 1")
    return int(text)
