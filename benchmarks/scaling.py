"""Seconds and memory of a fit by number of rows, columns, features and classes.

    python -m benchmarks.scaling --plot docs/scaling.png

The numbers change one at a time; the last fit has 10^7 rows of 50 columns from a file of 2 GB.
Each fit runs in its own process, whose memory is measured from outside: the peak of its anonymous
memory beyond the data. Pages of a mapped file don't count.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import add_record_options, make_parser, mean_of, run_recorded, timed
from experiments.records import Config, Record, Records, matching
from experiments.tables import Table
from notsorandom import FourierClassifier
from notsorandom.data.rows import Array

DEFAULTS = {"rows": 100_000, "columns": 100, "features": 100, "classes": 2, "jobs": 2}
# Each sweep changes one of the defaults.
SWEEPS: dict[str, list[int]] = {
    "rows": [31_250, 62_500, 125_000, 250_000, 500_000, 1_000_000],
    "columns": [25, 50, 100, 200, 400],
    "features": [25, 50, 100, 200, 400],
    "classes": [2, 3, 5, 10],
    "jobs": [1, 2],
}
# Comparisons of `benchmarks.dask_fit`: rows, columns and rows per chunk.
DASK_SIZES = {
    "xgboost": (400_000, 50, 106_496),
    "million": (1_000_000, 100, 253_952),
    "ten-million": (10_000_000, 50, 655_360),
}


def make_labels(X: Array, n_classes: int, rng: np.random.Generator) -> Array:
    """Return classes that depend on a wave of the samples, with noise."""
    angles = X[:, :3] @ np.array([[2.0], [1.0], [1.0]], dtype=np.float32)
    values = angles[:, 0] + 0.3 * rng.standard_normal(len(X), dtype=np.float32)
    return (np.floor(values / np.pi * n_classes) % n_classes).astype(np.int8)


def write_samples(path: Path, n_rows: int, n_columns: int) -> None:
    """Write a file of samples and one of their labels, in blocks."""
    rng = np.random.default_rng(0)
    with (path / "X").open("wb") as samples, (path / "y").open("wb") as targets:
        for start in range(0, n_rows, 100_000):
            size = (min(100_000, n_rows - start), n_columns)
            X = rng.standard_normal(size, dtype=np.float32)
            samples.write(X.tobytes())
            targets.write(make_labels(X, 2, rng).tobytes())


def run_fit(case: dict[str, Any]) -> None:
    """Make the data, wait for a line on standard input, fit, and print the seconds."""
    n_rows, n_columns = case["rows"], case["columns"]
    if "folder" in case:
        X: Array = np.memmap(
            Path(case["folder"]) / "X", dtype=np.float32, shape=(n_rows, n_columns), mode="r"
        )
        y: Array = np.fromfile(Path(case["folder"]) / "y", dtype=np.int8)
    else:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
        y = make_labels(X, case["classes"], rng)
    model = FourierClassifier(case["features"], random_state=0, n_jobs=case["jobs"])
    print("ready", flush=True)
    sys.stdin.readline()
    _, seconds = timed(model.fit, X, y)
    print(json.dumps({"seconds": seconds, "gap": model.duality_gap_}), flush=True)


def anonymous_bytes(process: int) -> int:
    """Return the resident anonymous memory of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds of a fit and its peak memory beyond the data."""
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.scaling", "--case", json.dumps(case)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    before = peak = anonymous_bytes(child.pid)
    child.stdin.write("go\n")
    child.stdin.flush()
    while child.poll() is None:
        try:
            peak = max(peak, anonymous_bytes(child.pid))
        except (OSError, IndexError):  # the process has ended
            break
        time.sleep(0.005)
    outcome = json.loads(child.stdout.readline())
    child.wait()
    data = 0 if "folder" in case else case["rows"] * (4 * case["columns"] + 1)
    return outcome | {"above_data": peak - data, "above_start": peak - before}


def published_configs() -> list[Config]:
    """Return the fits of the picture, each number changed from its default, and one from a file."""
    cases = [DEFAULTS | {name: value} for name, values in SWEEPS.items() for value in values]
    cases.append(DEFAULTS | {"rows": 10_000_000, "columns": 50, "mapped": True})
    unique = list({str(case): case for case in cases}.values())
    return [{"kind": "scaling", **case} for case in unique]


def run(config: Config) -> dict[str, Any]:
    """Return the measurements of a fit, for the largest data from a memory-mapped file."""
    if "mapped" not in config:
        return measure(config)
    with tempfile.TemporaryDirectory() as folder:
        write_samples(Path(folder), config["rows"], config["columns"])
        return measure(config | {"folder": folder})


def make_tables(records: Sequence[Record]) -> list[Table]:
    """Return seconds and memory of all fits, and sentences about some."""
    rows = [
        (
            *(f"{record['config'][name]:,}" for name in DEFAULTS),
            f"{record['outcome']['seconds']:.1f}",
            f"{record['outcome']['above_data'] / 1e6:.0f}",
            f"{record['outcome']['above_start'] / 1e6:.0f}",
        )
        for record in records
    ]
    headers = (*DEFAULTS, "seconds", "MB above the data", "MB above the start of the fit")
    tables = [Table("Fits", "", headers, tuple(rows))]

    def mean(name: str, **changes: Any) -> float:
        return mean_of(records, name, **DEFAULTS | changes)

    notes = (
        f"8 times the rows, 1,000,000 of 100 columns, take "
        f"{mean('seconds', rows=1_000_000) / mean('seconds', rows=125_000):.1f} times the seconds "
        f"and {mean('above_data', rows=1_000_000) / mean('above_data', rows=125_000):.2f} times "
        "the memory beside the samples.",
        f"10,000,000 rows of 50 columns, 2 GB, from a memory map take "
        f"{mean_of(records, 'seconds', mapped=True):.0f} s, and "
        f"{mean_of(records, 'above_start', mapped=True) / 1e6:.0f} MB more than before the fit.",
        f"Two threads are {mean('seconds', jobs=1) / mean('seconds'):.2f} times as fast as one, "
        "with 100,000 rows of 100 columns.",
    )
    return [*tables, Table("Sentences", notes=tuple(note for note in notes if "nan" not in note))]


def dask_configs() -> list[Config]:
    """Return the comparisons of `benchmarks.dask_fit`: rows, columns and rows per chunk."""
    return [
        {"kind": "dask", "case": case, "rows": rows, "columns": columns, "chunk": chunk}
        for case, (rows, columns, chunk) in DASK_SIZES.items()
    ]


def dask_tables(records: Sequence[Record]) -> list[Table]:
    """Return seconds in memory and on workers."""
    rows, notes = [], []
    for record in records:
        config, outcome = record["config"], record["outcome"]
        seconds, processor = outcome["seconds"], outcome["processor"]
        size = f"{config['rows']:,} x {config['columns']}"
        for title, local, workers in (
            ("XGBoost, 100 trees", "XGBoost, two threads", "XGBoost, two workers"),
            ("this library", "two threads in memory", "two workers"),
        ):
            if workers in seconds:
                cells = [
                    f"{seconds[each]:.1f} ({processor[each]:.1f})" for each in (local, workers)
                ]
                ratio = seconds[workers] / seconds[local]
                rows.append((f"{title}, {size}", *cells, f"{ratio:.2f}"))
        extra = (
            f"; one worker takes {seconds['one worker'] / seconds['two workers']:.2f} times as long"
            if "one worker" in seconds
            else ""
        )
        notes.append(
            f"{size}: {outcome['tasks']:,} tasks and {outcome['waits']} waits; frequencies differ "
            f"by at most {outcome['difference']:.1g} from those in memory{extra}."
        )
    headers = ("", "two threads in memory", "two workers of one thread", "ratio")
    caption = "Least seconds of a fit with 100 features, and in brackets its processor time."
    return [Table("Fits", caption, headers, tuple(rows), tuple(notes))]


def plot(records: Sequence[Record], target: Path) -> None:
    """Draw seconds and memory by each number, on logarithmic axes."""
    import matplotlib.pyplot as plt

    sweeps = {name: values for name, values in SWEEPS.items() if name != "jobs"}
    figure, axes = plt.subplots(2, len(sweeps), figsize=(12, 5), sharey="row", sharex="col")
    for (name, values), (above, below) in zip(sweeps.items(), axes.T, strict=True):
        seconds, memory = (
            np.array([mean_of(records, key, **DEFAULTS | {name: each}) for each in values])
            for key in ("seconds", "above_data")
        )
        above.loglog(values, seconds, "o-")
        line = seconds[-1] * np.array(values) / values[-1]
        above.loglog(values, line, "--", color="grey", label="linear")
        below.semilogx(values, memory / 1e6, "o-")
        below.set_xlabel(name)
        below.set_xticks(values, [f"{value:,}" for value in values], rotation=30)
        below.minorticks_off()
    axes[0, 0].set_yticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    axes[0, 0].minorticks_off()
    axes[0, 0].set_ylim(bottom=0.4)
    axes[1, 0].set_ylim(0, 300)
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("MB above the data")
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(target, dpi=100)


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--case", type=json.loads, help="one fit, for the process that measures it")
    parser.add_argument("--rows", type=int, default=10_000_000, help="leave out larger fits")
    parser.add_argument("--plot", type=Path, help="draw the records to this file")
    add_record_options(parser)
    options = parser.parse_args()
    if options.case:
        run_fit(options.case)
        return
    configs = [config for config in published_configs() if config["rows"] <= options.rows]
    run_recorded("scaling", configs, run, make_tables, options)
    if options.plot:
        plot(matching(Records(options.output, "scaling.jsonl").read(), configs), options.plot)


if __name__ == "__main__":
    main()
