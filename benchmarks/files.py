"""Size and loading time of model files, and import time of the library.

    python -m benchmarks.files

A model of 100 features of 512 columns, in double precision, is saved, and loaded repeatedly in this
process. Imports, and a load with all that it imports, are timed in new processes, alternating with
``import sklearn.svm``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import notsorandom
from benchmarks.common import make_parser, timed
from notsorandom import FourierClassifier


def run_code(code: str) -> None:
    """Run code in a new process."""
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = range(parser.parse_args().repeats)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 512))
    y = np.where(np.cos(X[:, :20].sum(axis=1) / 4) > 0, "yes", "no")
    model = FourierClassifier(100, random_state=0).fit(X, y)
    with TemporaryDirectory() as folder:
        path = notsorandom.save(model, Path(folder) / "model.skops")
        print(f"100 features of 512 columns: {path.stat().st_size:,} bytes")
        loads = [timed(notsorandom.load, path)[1] for _ in repeats]
        loaded = notsorandom.load(path)
        first = min(
            timed(run_code, f"import notsorandom; notsorandom.load({str(path)!r})")[1]
            for _ in range(3)
        )
    equal = np.array_equal(loaded.decision_function(X), model.decision_function(X))
    print(f"loading: {first:.2f} s in a new process, {1e3 * np.median(loads):.1f} ms later")
    print(f"equal decision values: {equal}")
    imports: dict[str, list[float]] = {"import sklearn.svm": [], "import notsorandom": []}
    for _ in repeats:
        for code, seconds in imports.items():
            seconds.append(timed(run_code, code)[1])
    theirs, ours = (np.median(seconds) for seconds in imports.values())
    print(f"import sklearn.svm: {theirs:.2f} s; import notsorandom: {ours:.2f} s")
    print(f"ratio of the medians: {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
