"""Seconds and memory of a fit by number of rows, columns, features and classes.

    python -m benchmarks.scaling rows        10^5 and 10^6 rows of 100 columns: time and memory
    python -m benchmarks.scaling mapped      10^7 rows of 50 columns from a file of 2 GB
    python -m benchmarks.scaling all --json docs/scaling.json
    python -m benchmarks.scaling plot docs/scaling.json docs/scaling.png

Each fit runs in its own process, whose memory is measured from outside: the peak of its anonymous
memory beyond the data. Pages of a mapped file don't count.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import make_parser, timed
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


def measure(**changes: Any) -> dict[str, Any]:
    """Return the seconds of a fit and its peak memory beyond the data."""
    case = DEFAULTS | changes
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.scaling", "run", json.dumps(case)],
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
    case.pop("folder", None)
    return case | outcome | {"above_data": peak - data, "above_start": peak - before}


def describe(case: dict[str, Any]) -> str:
    """Return one line about a fit."""
    return (
        f"{case['rows']:>10,} rows x {case['columns']:>3} columns, {case['features']:>3} features, "
        f"{case['classes']:>2} classes, {case['jobs']} jobs: {case['seconds']:7.1f} s, "
        f"{case['above_data'] / 1e6:6.0f} MB above the data, "
        f"{case['above_start'] / 1e6:5.0f} MB above the start of the fit"
    )


def compare_rows(n_rows: int) -> None:
    """Print time and memory at `n_rows` and at a tenth of it."""
    few, many = measure(rows=n_rows // 10), measure(rows=n_rows)
    print(describe(few), describe(many), sep="\n")
    print(
        f"time grows by a factor of {many['seconds'] / few['seconds']:.1f}, memory above the "
        f"data by {100 * (many['above_data'] / few['above_data'] - 1):.0f} %"
    )


def fit_mapped(n_rows: int) -> None:
    """Print time and memory of a fit from a memory-mapped file."""
    with tempfile.TemporaryDirectory() as folder:
        write_samples(Path(folder), n_rows, 50)
        print(describe(measure(rows=n_rows, columns=50, folder=folder)))


def run_sweeps(path: Path) -> None:
    """Run all sweeps and write them to a JSON file."""
    sweeps: dict[str, list[dict[str, Any]]] = {}
    for name, values in SWEEPS.items():
        sweeps[name] = []
        for value in values:
            sweeps[name].append(measure(**{name: value}))
            print(describe(sweeps[name][-1]), flush=True)
    path.write_text(json.dumps(sweeps, indent=1) + "\n")


def plot(source: Path, target: Path) -> None:
    """Draw seconds and memory by each number, on logarithmic axes."""
    import matplotlib.pyplot as plt

    sweeps = json.loads(source.read_text())
    sweeps.pop("jobs")
    figure, axes = plt.subplots(2, len(sweeps), figsize=(12, 5), sharey="row", sharex="col")
    for (name, cases), (above, below) in zip(sweeps.items(), axes.T, strict=True):
        values = np.array([case[name] for case in cases])
        seconds = np.array([case["seconds"] for case in cases])
        above.loglog(values, seconds, "o-")
        line = seconds[-1] * values / values[-1]
        above.loglog(values, line, "--", color="grey", label="linear")
        below.semilogx(values, [case["above_data"] / 1e6 for case in cases], "o-")
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
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run").add_argument("case", type=json.loads)
    commands.add_parser("rows").add_argument("--rows", type=int, default=1_000_000)
    commands.add_parser("mapped").add_argument("--rows", type=int, default=10_000_000)
    commands.add_parser("all").add_argument("--json", type=Path, required=True)
    drawing = commands.add_parser("plot")
    drawing.add_argument("source", type=Path)
    drawing.add_argument("target", type=Path)
    options = parser.parse_args()
    if options.command == "run":
        run_fit(options.case)
    elif options.command == "rows":
        compare_rows(options.rows)
    elif options.command == "mapped":
        fit_mapped(options.rows)
    elif options.command == "all":
        run_sweeps(options.json)
    else:
        plot(options.source, options.target)


if __name__ == "__main__":
    main()
