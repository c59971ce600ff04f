"""Samples as torch tensors: time of fit and transform relative to NumPy arrays.

    python -m benchmarks.devices [--device cuda] [--dtype float64]

Both use one thread on a CPU. They are fitted in turn to the same samples and transform all of them.
Prints seconds, their ratio, and the largest difference of the results.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import make_parser, timed
from notsorandom import Ascent, FourierFeatures
from notsorandom.data.array_api import to_host


def transform(model: FourierFeatures, samples: Any) -> float:
    """Compute all features; reading one waits until a device has finished."""
    return float(model.transform(samples)[-1, -1])


def main() -> None:
    """Run from the command line."""
    import torch

    parser = make_parser(__doc__)
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
    libraries = {"numpy": X, "torch": torch.asarray(X, device=options.device)}
    # Nothing to choose: trials would be on the host.
    model = FourierFeatures(
        options.features,
        C=1.0,
        smoothing=0.06,
        search=Ascent(spectrum="gaussian"),
        random_state=0,
    )
    seconds: dict[tuple[str, str], list[float]] = {}
    results: dict[str, tuple[Any, Any]] = {}
    with threadpool_limits(1):
        for _ in range(options.repeats):
            for library, samples in libraries.items():
                taken = timed(model.fit, samples, y)[1]
                seconds.setdefault(("fit", library), []).append(taken)
                taken = min(timed(partial(transform, model, samples))[1] for _ in range(5))
                seconds.setdefault(("transform", library), []).append(taken)
                results[library] = model.frequencies_, to_host(model.transform(samples))
    print(f"{options.rows:,} rows, {options.columns} columns, {options.features} features")
    print(f"{options.classes} classes, {options.dtype}, torch on {options.device}, one thread")
    for task in ("fit", "transform"):
        numpy, other = (float(np.median(seconds[task, library])) for library in libraries)
        print(f"{task}: numpy {numpy:.3f} s, torch {other:.3f} s, ratio {other / numpy:.2f}")
    for number, part in enumerate(("frequencies", "features")):
        difference = np.abs(results["numpy"][number] - results["torch"][number]).max()
        print(f"{part}: largest difference {difference:.1e}")


if __name__ == "__main__":
    main()
