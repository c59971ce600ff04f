"""What grows with what: seconds and memory of a fit, by rows, columns, features and classes.

    python benchmarks/scaling.py rows        10^5 and 10^6 rows of 100 columns: time and memory
    python benchmarks/scaling.py mapped      10^7 rows of 50 columns from a file of 2 GB
    python benchmarks/scaling.py everything --json docs/scaling.json
    python benchmarks/scaling.py plot docs/scaling.json docs/scaling.png

Each fit is a process of its own, whose memory is read from outside: what it holds beyond the data
(and, of a file, beyond the pages that the system may take back), at its most.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom import FourierClassifier
from notsorandom.data.rows import Array

USUAL = {"rows": 100_000, "columns": 100, "features": 100, "classes": 2, "jobs": 2}
# One number is changed at a time.
SWEEPS: dict[str, list[int]] = {
    "rows": [31_250, 62_500, 125_000, 250_000, 500_000, 1_000_000],
    "columns": [25, 50, 100, 200, 400],
    "features": [25, 50, 100, 200, 400],
    "classes": [2, 3, 5, 10],
    "jobs": [1, 2],
}


def labels(X: Array, n_classes: int, rng: np.random.Generator) -> Array:
    """Classes that a few waves of the samples tell, and some noise."""
    angles = X[:, :3] @ np.array([[2.0], [1.0], [1.0]], dtype=np.float32)
    values = angles[:, 0] + 0.3 * rng.standard_normal(len(X), dtype=np.float32)
    return (np.floor(values / np.pi * n_classes) % n_classes).astype(np.int8)


def write_samples(path: Path, n_rows: int, n_columns: int) -> None:
    """A file of samples, and one of their labels, written by the block."""
    rng = np.random.default_rng(0)
    with (path / "X").open("wb") as samples, (path / "y").open("wb") as targets:
        for start in range(0, n_rows, 100_000):
            size = (min(100_000, n_rows - start), n_columns)
            X = rng.standard_normal(size, dtype=np.float32)
            samples.write(X.tobytes())
            targets.write(labels(X, 2, rng).tobytes())


def run(case: dict[str, Any]) -> None:
    """In a process of its own: make the data, say so, fit, and say how long it took."""
    n_rows, n_columns = case["rows"], case["columns"]
    if "folder" in case:
        X: Array = np.memmap(
            Path(case["folder"]) / "X", dtype=np.float32, shape=(n_rows, n_columns), mode="r"
        )
        y: Array = np.fromfile(Path(case["folder"]) / "y", dtype=np.int8)
    else:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
        y = labels(X, case["classes"], rng)
    model = FourierClassifier(case["features"], random_state=0, n_jobs=case["jobs"])
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "gap": model.duality_gap_}), flush=True)


def held(process: int) -> int:
    """Bytes that a process holds for itself."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


def measure(**changes: Any) -> dict[str, Any]:
    """Seconds of a fit, and the bytes beyond the data at its most."""
    case = USUAL | changes
    child = subprocess.Popen(
        [sys.executable, __file__, "run", json.dumps(case)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    before = most = held(child.pid)
    child.stdin.write("go\n")
    child.stdin.flush()
    while child.poll() is None:
        try:
            most = max(most, held(child.pid))
        except (OSError, IndexError):  # it has just ended
            break
        time.sleep(0.005)
    outcome = json.loads(child.stdout.readline())
    child.wait()
    data = 0 if "folder" in case else case["rows"] * (4 * case["columns"] + 1)
    case.pop("folder", None)
    return case | outcome | {"above_data": most - data, "above_start": most - before}


def told(case: dict[str, Any]) -> str:
    """A line about a fit."""
    return (
        f"{case['rows']:>10,} rows x {case['columns']:>3} columns, {case['features']:>3} features, "
        f"{case['classes']:>2} classes, {case['jobs']} jobs: {case['seconds']:7.1f} s, "
        f"{case['above_data'] / 1e6:6.0f} MB above the data, "
        f"{case['above_start'] / 1e6:5.0f} MB more than before the fit"
    )


def by_rows() -> None:
    """Time and memory at 10^5 and 10^6 rows."""
    few, many = (measure(rows=n_rows) for n_rows in (100_000, 1_000_000))
    print(told(few), told(many), sep="\n")
    print(
        f"time grows by {many['seconds'] / few['seconds']:.1f}, memory above the data by "
        f"{100 * (many['above_data'] / few['above_data'] - 1):.0f} %"
    )


def mapped(n_rows: int) -> None:
    """A fit from a file."""
    with tempfile.TemporaryDirectory() as folder:
        write_samples(Path(folder), n_rows, 50)
        print(told(measure(rows=n_rows, columns=50, folder=folder)))


def everything(path: Path) -> None:
    """All sweeps, into a file."""
    sweeps: dict[str, list[dict[str, Any]]] = {}
    for name, values in SWEEPS.items():
        sweeps[name] = []
        for value in values:
            sweeps[name].append(measure(**{name: value}))
            print(told(sweeps[name][-1]), flush=True)
    path.write_text(json.dumps(sweeps, indent=1) + "\n")


def plot(source: Path, target: Path) -> None:
    """Seconds and memory by each number, on scales where what is linear is a line of slope one."""
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
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run").add_argument("case", type=json.loads)
    commands.add_parser("rows")
    commands.add_parser("mapped").add_argument("--rows", type=int, default=10_000_000)
    commands.add_parser("everything").add_argument("--json", type=Path, required=True)
    drawing = commands.add_parser("plot")
    drawing.add_argument("source", type=Path)
    drawing.add_argument("target", type=Path)
    options = parser.parse_args()
    if options.command == "run":
        run(options.case)
    elif options.command == "rows":
        by_rows()
    elif options.command == "mapped":
        mapped(options.rows)
    elif options.command == "everything":
        everything(options.json)
    else:
        plot(options.source, options.target)


if __name__ == "__main__":
    main()
