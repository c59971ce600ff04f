"""
Large data: samples that are not in memory
==========================================

The readings of a sensor come in blocks, as from a log or a database. The fit writes them to a
temporary file and reads that in passes, so they are never all in memory, and nor are their
features. (Up to 256 MB they would be, which is faster.)
"""

import threading
import time
import tracemalloc

import numpy as np
from matplotlib import pyplot

from notsorandom import FourierClassifier

N_ROWS, N_COLUMNS = 1_000_000, 80


def readings(n_rows, rng, block_rows=50_000):
    """Yield blocks of samples and their labels."""
    for start in range(0, n_rows, block_rows):
        X = rng.standard_normal((min(block_rows, n_rows - start), N_COLUMNS), dtype=np.float32)
        beats = np.cos(2 * X[:, 0] + X[:, 1]) + 0.3 * rng.standard_normal(len(X))
        yield X, np.where(beats > 0, "on", "off")


# %%
# Fit, while a thread watches the memory
# --------------------------------------

rng = np.random.default_rng(0)
X_test, y_test = next(readings(10_000, rng))
trace, done = [], threading.Event()


def watch():
    """Note the memory that Python holds, twenty times a second."""
    start = time.perf_counter()
    while not done.wait(0.05):
        held, _ = tracemalloc.get_traced_memory()
        trace.append((time.perf_counter() - start, held / 1e6))


tracemalloc.start()
watcher = threading.Thread(target=watch)
watcher.start()
try:
    model = FourierClassifier(80, random_state=0).fit(readings(N_ROWS, rng))
finally:
    done.set()
    watcher.join()
    tracemalloc.stop()

megabytes = N_ROWS * N_COLUMNS * 4 / 1e6
print(f"{N_ROWS:,} samples, {megabytes:.0f} MB")
print(f"peak memory of the fit: {max(held for _, held in trace):.0f} MB")
print(f"test accuracy: {model.score(X_test, y_test):.3f}; duality gap: {model.duality_gap_:.0e}")

# %%
# Memory over time, beside the size of the samples
# ------------------------------------------------

figure, axes = pyplot.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(*zip(*trace, strict=True), label="memory of the fit")
axes.axhline(megabytes, color="grey", linestyle="--", label="size of the samples")
axes.set(xlabel="seconds", ylabel="MB", ylim=(0, None))
axes.legend()
pyplot.show()
