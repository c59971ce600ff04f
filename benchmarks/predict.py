"""Memory and speed of ``notsorandom predict`` on a large CSV file.

    python -m benchmarks.predict --gigabytes 5

Writes a file of that size with 50 columns of numbers, and a pipeline with 100 features of them.
Then, in turn and each in its own process, pandas only reads the file in chunks, and the command
predicts from it. Prints seconds, their ratio, and the peak memory of both.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.common import make_parser
from notsorandom import save, tabular_pipeline

COLUMNS = [f"column_{number}" for number in range(50)]
READ = """
import sys, pandas
for chunk in pandas.read_csv(sys.argv[1], chunksize=50_000):
    pass
"""


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


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        table, model = folder / "table.csv", folder / "model.skops"
        n_rows = write_table(table, options.gigabytes * 1e9)
        print(f"{table.stat().st_size / 1e9:.2f} GB, {n_rows:,} rows")
        write_model(model)
        read = [sys.executable, "-c", READ, str(table)]
        predict = [sys.executable, "-m", "notsorandom.cli", "predict", str(model), str(table)]
        predict += ["-o", str(folder / "predictions.csv")]
        for _ in range(options.repeats):
            seconds = []
            for title, command in (("pandas, reading only", read), ("predict", predict)):
                taken, megabytes = measure(command)
                seconds.append(taken)
                print(f"{title}: {taken:.1f} s, peak {megabytes:.0f} MB", flush=True)
            print(f"speed of predict relative to reading: {seconds[0] / seconds[1]:.2f}")


if __name__ == "__main__":
    main()
