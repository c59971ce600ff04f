"""Learning from samples that are not in memory.

    python examples/large.py [picture.png] [millions of rows]

The readings of a sensor come in blocks, as from a log or a database. The fit writes them to a
temporary file and reads that in passes, so they are never all in memory. The picture shows the
memory of the fit over time, and the size of the samples.
"""

import sys
import threading
import time
import tracemalloc

import numpy as np
from matplotlib import pyplot

from notsorandom import FourierClassifier

N_COLUMNS = 20


def readings(n_rows, rng, block_rows=50_000):
    """Yield blocks of samples and their labels."""
    for start in range(0, n_rows, block_rows):
        X = rng.standard_normal((min(block_rows, n_rows - start), N_COLUMNS), dtype=np.float32)
        beats = np.cos(2 * X[:, 0] + X[:, 1]) + 0.3 * rng.standard_normal(len(X))
        yield X, np.where(beats > 0, "on", "off")


def main():
    """Fit, and draw the memory that it takes."""
    picture = sys.argv[1] if len(sys.argv) > 1 else "large.png"
    n_rows = int(1e6 * float(sys.argv[2])) if len(sys.argv) > 2 else 1_000_000
    rng = np.random.default_rng(0)
    X_test, y_test = next(readings(10_000, rng))
    trace, done = [], threading.Event()

    def watch():
        start = time.perf_counter()
        while not done.wait(0.05):
            held, _ = tracemalloc.get_traced_memory()
            trace.append((time.perf_counter() - start, held / 1e6))

    tracemalloc.start()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        model = FourierClassifier(40, n_jobs=-1, random_state=0).fit(readings(n_rows, rng))
    finally:
        done.set()
        watcher.join()
    megabytes = n_rows * N_COLUMNS * 4 / 1e6
    print(f"{n_rows:,} samples, {megabytes:.0f} MB")
    print(f"peak memory of the fit: {max(held for _, held in trace):.0f} MB")
    print(
        f"test accuracy: {model.score(X_test, y_test):.3f}; duality gap: {model.duality_gap_:.0e}"
    )

    figure, axes = pyplot.subplots(figsize=(7, 3.5))
    axes.plot(*zip(*trace, strict=True), label="memory of the fit")
    axes.axhline(megabytes, color="grey", linestyle="--", label="size of the samples")
    axes.set(xlabel="seconds", ylabel="MB", ylim=(0, None))
    axes.legend()
    figure.tight_layout()
    figure.savefig(picture)
    print(f"memory over time: {picture}")


if __name__ == "__main__":
    main()
