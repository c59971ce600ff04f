"""Helpers of several benchmarks."""

from __future__ import annotations

import argparse
import inspect
import math
import multiprocessing
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from experiments.records import Config, Record, Records, git_source, matching
from experiments.registry import provenance
from experiments.runner import Run, limited_threads, run_missing
from experiments.tables import Table

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

Name = TypeVar("Name")

# Records of published tables.
RECORDS = Path(__file__).parents[1] / "docs" / "records"


def timed(function: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    """Return the result of a call and its seconds."""
    start = time.perf_counter()
    result = function(*args)
    return result, time.perf_counter() - start


def least_seconds(
    calls: Mapping[Name, Callable[[], Any]], repeats: int, timeout: float = inf
) -> dict[Name, float]:
    """Return the shortest of several times of each call.

    The calls alternate, so that disturbances affect all of them. No repetition starts after
    `timeout` seconds.
    """
    seconds = dict.fromkeys(calls, inf)
    start = time.perf_counter()
    for repetition in range(repeats):
        if repetition and time.perf_counter() - start > timeout:
            break
        for name, call in calls.items():
            seconds[name] = min(seconds[name], timed(call)[1])
    return seconds


def least_of_messages(target: Callable[..., None], *args: Any, timeout: float) -> dict[str, float]:
    """Run a function in a process of its own, which is ended after `timeout` seconds.

    The function gets a connection and `args`, and sends pairs of a name and a number; the least
    number of each name is returned.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(sender, *args))
    process.start()
    sender.close()  # so that the end of the process ends the messages
    least: dict[str, float] = {}
    deadline = time.perf_counter() + timeout
    try:
        while receiver.poll(max(0.0, deadline - time.perf_counter())):
            name, value = receiver.recv()
            least[name] = min(value, least.get(name, inf))
    except EOFError:
        pass
    process.kill()
    process.join()
    return least


class Worker:
    """A process that calls a function, with one BLAS thread and a limit of CPU seconds.

    Parameters
    ----------
    function : callable
        With one argument; a function that other processes can import.
    limit : int
        CPU seconds of a call, of all threads. The process is ended if a call exceeds them (but not
        on Windows), and replaced for the next call.
    """

    def __init__(self, function: Callable[[Any], Any], limit: int) -> None:
        self.function, self.limit = function, limit
        self.process: SpawnProcess | None = None

    def __call__(self, argument: Any) -> Any:
        """Return or raise what the function does; raise TimeoutError above the limit."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.connection, theirs = context.Pipe()
            self.process = context.Process(
                target=answer_calls, args=(theirs, self.function, self.limit), daemon=True
            )
            with limited_threads(1):
                self.process.start()
            theirs.close()  # so that the end of the process ends the connection
        self.connection.send(argument)
        try:
            result, error = self.connection.recv()
        except EOFError:
            self.process.join()
            code, self.process = self.process.exitcode, None
            if code is not None and -code == getattr(signal, "SIGXCPU", 0):
                raise TimeoutError(f"over the limit of {self.limit} CPU seconds") from None
            raise ChildProcessError(f"The process of {argument} ended with code {code}.") from None
        if error is not None:
            raise error
        return result


def answer_calls(connection: Connection, function: Callable[[Any], Any], limit: int) -> None:
    """Call a function with each argument received; send its result and its error, one is None."""
    with suppress(EOFError):  # the parent has ended
        while True:
            argument = connection.recv()
            reply: tuple[Any, Exception | None]
            if resource is not None:
                _, hard = resource.getrlimit(resource.RLIMIT_CPU)
                soft = math.ceil(time.process_time()) + limit
                resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
            try:
                reply = function(argument), None
            except Exception as error:
                reply = None, error
            connection.send(reply)


def peak_bytes() -> int:
    """Return the largest resident size of this process so far (not on Windows)."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@contextmanager
def busy_process() -> Iterator[None]:
    """Keep one core busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def make_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser whose description is the module's docstring."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


class Recorded(NamedTuple):
    """A part of a benchmark whose runs are recorded, in a file of the part's name.

    Parameters
    ----------
    configs : callable
        Returns the configurations of all runs.
    run : callable
        From the folder of the data and a configuration to an outcome.
    tables : callable
        From records to tables.
    """

    configs: Callable[[], list[Config]]
    run: Callable[[str | None, Config], dict[str, Any]]
    tables: Callable[[Sequence[Record]], list[Table]]


def add_record_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run_recorded`."""
    parser.add_argument(
        "-o", "--output", type=Path, default=RECORDS, help="folder of records (default: the docs')"
    )
    parser.add_argument(
        "--again", action="store_true", help="repeat runs of another version of the package"
    )


def run_recorded(
    name: str,
    configs: Sequence[Config],
    run: Run,
    tables: Callable[[Sequence[Record]], list[Table]],
    options: argparse.Namespace,
) -> None:
    """Run what `NAME.jsonl` doesn't have, each recorded when it ends, and print the tables."""
    records = Records(options.output, f"{name}.jsonl", git_source() if options.again else None)
    run_missing(configs, records, run)
    shown = matching(records.read(), configs)
    print("\n\n".join([*(table.markdown() for table in tables(shown)), provenance(shown)]))


def mean_of(records: Sequence[Record], name: str, **config: Any) -> Any:
    """Return the mean of a measurement over the runs of a configuration, NaN if there is none."""
    values = [
        record["outcome"][name]
        for record in records
        if name in record["outcome"] and config.items() <= record["config"].items()
    ]
    return np.mean(values, axis=0) if values else np.nan


def run_command(doc: str | None, commands: Mapping[str, Callable[..., None]]) -> None:
    """Run the function named on the command line; its parameters are options.

    Each parameter needs a default. Its type is the type of the default (text if that is None), and
    a tuple stands for one or more values.
    """
    parser = make_parser(doc)
    subparsers = parser.add_subparsers(dest="command", required=True)
    for command, function in commands.items():
        subparser = subparsers.add_parser(command)
        for name, parameter in inspect.signature(function).parameters.items():
            default = parameter.default
            example = default[0] if isinstance(default, tuple) else default
            subparser.add_argument(
                f"--{name}",
                nargs="+" if isinstance(default, tuple) else None,
                type=str if example is None else type(example),
                default=default,
                help="default: %(default)s",
            )
    options = vars(parser.parse_args())
    commands[options.pop("command")](**options)


def run_parts(
    doc: str | None, parts: Mapping[str, Callable[..., None] | Recorded], **settings: int
) -> None:
    """Run the parts named on the command line, by default all.

    Each that isn't recorded gets the data folder and the settings, whose defaults are given here
    and which are options on the command line.
    """
    parser = make_parser(doc)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(parts))
    parser.add_argument("--data", help="folder of the data, by default of MNIST and CIFAR-10")
    if any(isinstance(part, Recorded) for part in parts.values()):
        add_record_options(parser)
    for name, default in settings.items():
        parser.add_argument(f"--{name}", type=int, default=default, help="default: %(default)s")
    options = parser.parse_args()
    for part in options.parts:
        if part not in parts:
            parser.error(f"unknown part {part!r}: choose from {', '.join(parts)}")
    for name in options.parts or parts:
        part = parts[name]
        if isinstance(part, Recorded):
            run = partial(part.run, options.data)
            run_recorded(name, part.configs(), run, part.tables, options)
        else:
            part(options.data, **{name: getattr(options, name) for name in settings})
