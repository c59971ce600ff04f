"""Model files: how large, how long to load; and how long the library takes to import.

    python benchmarks/files.py

A model of 100 features of 512 columns, in double precision, is saved, and loaded again and again in
this process. Importing is timed in fresh processes, in turn with ``import sklearn.svm``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import notsorandom
from notsorandom import FourierClassifier

REPEATS = 15


def seconds_of(code: str) -> float:
    """Seconds that a fresh process takes to run some code."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - began


def main() -> None:
    """Run from the command line."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 512))
    y = np.where(np.cos(X[:, :20].sum(axis=1) / 4) > 0, "yes", "no")
    model = FourierClassifier(100, random_state=0, smoothing=0.06).fit(X, y)
    with TemporaryDirectory() as folder:
        path = model.save(Path(folder) / "model.safetensors")
        print(f"100 features of 512 columns: {path.stat().st_size:,} bytes")
        loads = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            loaded = notsorandom.load(path)
            loads.append(time.perf_counter() - began)
        same = np.array_equal(loaded.decision_function(X), model.decision_function(X))
        print(f"loading: {1e3 * loads[0]:.1f} ms at first, {1e3 * np.median(loads):.1f} ms later")
        print(f"the same decisions, bit for bit: {same}")
    imports: dict[str, list[float]] = {"import sklearn.svm": [], "import notsorandom": []}
    for _ in range(REPEATS):
        for code, seconds in imports.items():
            seconds.append(seconds_of(code))
    theirs, ours = (np.median(seconds) for seconds in imports.values())
    print(f"import sklearn.svm: {theirs:.2f} s; import notsorandom: {ours:.2f} s")
    print(f"ratio of the medians: {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
