"""Samples as torch tensors: how long fit and transform take, beside NumPy arrays of the same.

    python benchmarks/devices.py [--device cuda] [--dtype float64]

Both have one thread on a CPU. In turn they fit features to the same samples and make the features
of all of them; told are seconds, their ratio, and how far what was learned is from NumPy's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from notsorandom import FourierFeatures
from notsorandom.data.array_api import on_host


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a function takes, and what it returns."""
    began = time.perf_counter()
    made = function()
    return time.perf_counter() - began, made


def transformed(model: FourierFeatures, samples: Any) -> float:
    """Make all features, and wait until they are there."""
    return float(model.transform(samples)[-1, -1])


def main() -> None:
    """Run from the command line."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((options.rows, options.columns)).astype(options.dtype)
    phases = X @ rng.standard_normal(options.columns).astype(options.dtype) * 0.3
    y = np.floor(phases).astype(int) % options.classes
    torch.set_num_threads(1)
    kinds = {"numpy": X, "torch": torch.asarray(X, device=options.device)}
    model = FourierFeatures(options.features, smoothing=0.06, random_state=0)
    seconds: dict[tuple[str, str], list[float]] = {}
    learned: dict[str, tuple[Any, Any]] = {}
    with threadpool_limits(1):
        for _ in range(options.repeats):
            for kind, samples in kinds.items():
                took, _ = timed(partial(model.fit, samples, y))
                seconds.setdefault(("fit", kind), []).append(took)
                took = min(timed(partial(transformed, model, samples))[0] for _ in range(5))
                seconds.setdefault(("transform", kind), []).append(took)
                learned[kind] = model.frequencies_, on_host(model.transform(samples))
    print(f"{options.rows:,} rows, {options.columns} columns, {options.features} features")
    print(f"{options.classes} classes, {options.dtype}, torch on {options.device}, one thread")
    for task in ("fit", "transform"):
        one, other = (float(np.median(seconds[task, kind])) for kind in kinds)
        print(f"{task}: numpy {one:.3f} s, torch {other:.3f} s, {other / one:.2f} times as long")
    for number, part in enumerate(("frequencies", "features")):
        far = np.abs(learned["numpy"][number] - learned["torch"][number]).max()
        print(f"{part}: {far:.1e} apart at most")


if __name__ == "__main__":
    main()
