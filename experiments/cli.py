"""``notsorandom demo`` and ``notsorandom reproduce``."""

from __future__ import annotations

import argparse
from pathlib import Path

from notsorandom.cli.arguments import Commands, check_file, names, numbers

EXPERIMENTS_HELP = """\
experiments:
  table1        eight pairs of classes of MNIST and CIFAR-10, by method and number of features
  figure1       the windmill's game, its potential at the start and at round 300, the sphere
  figure2       accuracy by number of features, with standard deviations over 10 trials
  windmill      the toy problem on the plane, against exact SVMs
  checkerboard  the toy problem on the sphere, against exact SVMs
  peers         other ways to a classifier: accuracy, seconds, bytes

example: notsorandom reproduce table1 --tasks auto-truck --features 100 --seeds 1"""
# Kinds of picture that every installation of matplotlib can write.
PICTURES = (".png", ".pdf", ".svg")


def add_demo(commands: Commands) -> None:
    """Describe ``notsorandom demo``."""
    demo = commands.add_parser(
        "demo",
        help="learn the windmill: a table against random features, and a picture of the game",
        description="Learn the windmill data, print learned against random features at 20, 100 "
        "and 500 of them, and draw the game. Takes less than a minute.",
    )
    demo.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("notsorandom-demo.png"),
        help="where the picture goes (default: %(default)s)",
    )
    demo.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    demo.set_defaults(run=run_demo)


def run_demo(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Check the arguments, then run the demo."""
    check_file(parser, options.output, PICTURES)
    if not 0 <= options.seed < 2**31:
        parser.error(f"--seed {options.seed}: it must be from 0 to {2**31 - 1}")

    from notsorandom.experiments import demo

    demo.run_demo(options.output, print, options.seed)
    return 0


def add_reproduce(commands: Commands) -> None:
    """Describe ``notsorandom reproduce``."""
    reproduce = commands.add_parser(
        "reproduce",
        help="run the paper's experiments: tables and figures, ours and the paper's",
        description="Run an experiment of the paper and show it beside the paper's figures. Every\n"
        "fit is recorded as soon as it ends; a run that was interrupted goes on where it\n"
        "stopped, and one that is complete is only shown.",
        epilog=EXPERIMENTS_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reproduce.add_argument("what", metavar="experiment", help="one of those below")
    reproduce.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("notsorandom-runs"),
        help="folder of records, tables and pictures (default: %(default)s)",
    )
    reproduce.add_argument("--tasks", help="comma-separated, such as mnist-4-9,auto-truck")
    reproduce.add_argument(
        "--methods", help="comma-separated, of rbf, lkrf, lkrf-strong, ours and paper; or peers"
    )
    reproduce.add_argument("--features", help="comma-separated numbers, such as 100,500")
    reproduce.add_argument("--seeds", type=int, help="trials, with seeds 0, 1, ...")
    reproduce.add_argument(
        "--jobs", type=int, default=1, help="fits at a time (default: %(default)s)"
    )
    reproduce.add_argument(
        "--data",
        help="folder of MNIST and CIFAR-10 (default: $NOTSORANDOM_DATA, else a cache folder)",
    )
    reproduce.set_defaults(run=run_reproduce)


def run_reproduce(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Check the arguments, then run the experiment."""
    from notsorandom.experiments.pairs import METHODS
    from notsorandom.experiments.peers import PEERS
    from notsorandom.experiments.reproduce import EXPERIMENTS, Options, reproduce
    from notsorandom.experiments.tasks import TASKS

    if options.what not in EXPERIMENTS:
        parser.error(f"unknown experiment {options.what!r}: choose from {', '.join(EXPERIMENTS)}")
    takes = EXPERIMENTS[options.what].takes
    for name in ("tasks", "methods", "features", "seeds", "data"):
        if getattr(options, name) is not None and name not in takes:
            allowed = ", ".join(f"--{each}" for each in sorted(takes)) or "none of these"
            parser.error(f"--{name} doesn't narrow {options.what}, which takes {allowed}")
    known = PEERS if options.what == "peers" else METHODS
    narrowed = Options(
        tasks=names(parser, "--tasks", options.tasks, TASKS),
        methods=names(parser, "--methods", options.methods, known),
        features=numbers(parser, "--features", options.features),
        seeds=options.seeds,
    )
    for flag, value in (("--seeds", options.seeds), ("--jobs", options.jobs)):
        if value is not None and value < 1:
            parser.error(f"{flag} {value}: it must be at least 1")
    if options.output.exists() and not options.output.is_dir():
        parser.error(f"--output {options.output}: it must be a folder, but is a file")
    if not EXPERIMENTS[options.what].configs(narrowed):
        parser.error(
            f"--methods {options.methods} has nothing to run at --features {options.features}: the "
            "paper's own setting takes hours beyond 500; give fewer"
        )
    reproduce(options.what, options.output, narrowed, print, options.jobs, options.data)
    return 0
