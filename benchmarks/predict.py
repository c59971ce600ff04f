"""Memory and speed of ``notsorandom predict`` on a large CSV.

    python benchmarks/predict.py --gigabytes 5

Makes a file of so many gigabytes, 50 columns of numbers, and a model of 100 features of them. Then
in turn, each in a process of its own: pandas reads the file in chunks and does nothing with them,
and the command predicts from it. Prints seconds, their ratio, and the peak memory of both.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from notsorandom import FourierClassifier

N_COLUMNS = 50
READ = """
import sys, pandas
for chunk in pandas.read_csv(sys.argv[1], chunksize=50_000):
    pass
"""


def write_table(path: Path, n_bytes: float) -> int:
    """Write a CSV of so many bytes; return how many rows it has."""
    rng = np.random.default_rng(0)
    names = ",".join(f"column_{number}" for number in range(N_COLUMNS))
    # The same rows over and over: how numbers are read doesn't depend on which they are.
    lines = [",".join(f"{value:.8f}" for value in row) for row in rng.normal(size=(20_000, 50))]
    block = ("\n".join(lines) + "\n").encode()
    n_blocks = max(1, round(n_bytes / len(block)))
    with path.open("wb") as file:
        file.write(names.encode() + b"\n")
        for _ in range(n_blocks):
            file.write(block)
    return n_blocks * len(lines)


def model_of_columns(path: Path) -> None:
    """Fit a small model to such columns, and save it."""
    import pandas as pd

    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        rng.normal(size=(2000, N_COLUMNS)), columns=[f"column_{k}" for k in range(N_COLUMNS)]
    )
    y = np.where(np.cos(X["column_0"] + X["column_1"]) > 0, "yes", "no")
    FourierClassifier(100, random_state=0).fit(X, y).save(path)


def measured(command: list[str]) -> tuple[float, float]:
    """Seconds and megabytes that a command takes."""
    began = time.perf_counter()
    process = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        table, model = folder / "table.csv", folder / "model.safetensors"
        n_rows = write_table(table, options.gigabytes * 1e9)
        print(f"{table.stat().st_size / 1e9:.2f} GB, {n_rows:,} rows")
        model_of_columns(model)
        read = [sys.executable, "-c", READ, str(table)]
        predict = [sys.executable, "-m", "notsorandom", "predict", str(model), str(table)]
        predict += ["-o", str(folder / "predictions.csv")]
        for _ in range(options.repeats):
            for title, command in (("pandas reads", read), ("predict", predict)):
                seconds, megabytes = measured(command)
                print(f"{title}: {seconds:.1f} s, {megabytes:.0f} MB at most", flush=True)
                if command is read:
                    reading = seconds
            print(f"speed of predict over that of reading: {reading / seconds:.2f}")


if __name__ == "__main__":
    main()
