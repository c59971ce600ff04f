"""Model files and the command line: size, loading, imports, and prediction from a large file.

    python -m benchmarks.service files
    python -m benchmarks.service predict --gigabytes 5

files    A model of 100 features of 512 columns, in float64, is saved, and loaded repeatedly in this
         process. Imports, and a load with all that it imports, are timed in new processes,
         alternating with ``import sklearn.svm``.
predict  Memory and speed of ``notsorandom predict``. Writes a CSV file of that size with 50 columns
         of numbers, and a pipeline with 100 features of them. Then, in turn and each in its own
         process, pandas only reads the file in chunks, and the command predicts from it. Prints
         seconds, their ratio, and the peak memory of both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import notsorandom
from benchmarks.common import run_command, timed
from notsorandom import FourierClassifier, save, tabular_pipeline

COLUMNS = [f"column_{number}" for number in range(50)]
READ = """
import sys, pandas
for chunk in pandas.read_csv(sys.argv[1], chunksize=50_000):
    pass
"""


def run_code(code: str) -> None:
    """Run code in a new process."""
    subprocess.run([sys.executable, "-c", code], check=True)


def measure_files(repeats: int = 15) -> None:
    """Print the size of a file, and the seconds of loads and imports."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 512))
    y = np.where(np.cos(X[:, :20].sum(axis=1) / 4) > 0, "yes", "no")
    model = FourierClassifier(100, random_state=0).fit(X, y)
    with TemporaryDirectory() as folder:
        path = save(model, Path(folder) / "model.skops")
        print(f"100 features of 512 columns: {path.stat().st_size:,} bytes")
        loads = [timed(notsorandom.load, path)[1] for _ in range(repeats)]
        loaded = notsorandom.load(path)
        first = min(
            timed(run_code, f"import notsorandom; notsorandom.load({str(path)!r})")[1]
            for _ in range(3)
        )
    equal = np.array_equal(loaded.decision_function(X), model.decision_function(X))
    print(f"loading: {first:.2f} s in a new process, {1e3 * np.median(loads):.1f} ms later")
    print(f"equal decision values: {equal}")
    imports: dict[str, list[float]] = {"import sklearn.svm": [], "import notsorandom": []}
    for _ in range(repeats):
        for code, seconds in imports.items():
            seconds.append(timed(run_code, code)[1])
    theirs, ours = (np.median(seconds) for seconds in imports.values())
    print(f"import sklearn.svm: {theirs:.2f} s; import notsorandom: {ours:.2f} s")
    print(f"ratio of the medians: {ours / theirs:.2f}")


def write_table(path: Path, n_bytes: float) -> int:
    """Write a CSV file of about `n_bytes`; return its number of rows."""
    rng = np.random.default_rng(0)
    # The same rows repeatedly: the speed of reading doesn't depend on the values.
    values = rng.normal(size=(20_000, len(COLUMNS)))
    lines = [",".join(f"{value:.8f}" for value in row) for row in values]
    block = ("\n".join(lines) + "\n").encode()
    n_blocks = max(1, round(n_bytes / len(block)))
    with path.open("wb") as file:
        file.write(",".join(COLUMNS).encode() + b"\n")
        for _ in range(n_blocks):
            file.write(block)
    return n_blocks * len(lines)


def write_model(path: Path) -> None:
    """Fit a small model to such columns and save it."""
    import pandas as pd

    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(2000, len(COLUMNS))), columns=COLUMNS)
    y = np.where(np.cos(X["column_0"] + X["column_1"]) > 0, "yes", "no")
    save(tabular_pipeline("classifier", random_state=0).fit(X, y), path)


def measure(command: list[str]) -> tuple[float, float]:
    """Return seconds and peak megabytes of a command."""
    start = time.perf_counter()
    process = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        code = os.waitstatus_to_exitcode(status)
        raise SystemExit(f"{' '.join(command)} ended with exit code {code}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def compare_reading(gigabytes: float = 0.5, repeats: int = 1) -> None:
    """Print seconds and peak memory of reading a file, and of predicting from it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        table, model = folder / "table.csv", folder / "model.skops"
        n_rows = write_table(table, gigabytes * 1e9)
        print(f"{table.stat().st_size / 1e9:.2f} GB, {n_rows:,} rows")
        write_model(model)
        read = [sys.executable, "-c", READ, str(table)]
        predict = [sys.executable, "-m", "notsorandom.cli", "predict", str(model), str(table)]
        predict += ["-o", str(folder / "predictions.csv")]
        for _ in range(repeats):
            seconds = []
            for title, command in (("pandas, reading only", read), ("predict", predict)):
                taken, megabytes = measure(command)
                seconds.append(taken)
                print(f"{title}: {taken:.1f} s, peak {megabytes:.0f} MB", flush=True)
            print(f"speed of predict relative to reading: {seconds[0] / seconds[1]:.2f}")


if __name__ == "__main__":
    run_command(__doc__, {"files": measure_files, "predict": compare_reading})
