"""Certificates measured: the sphere's equilibrium, and what a certificate and new weights cost.

    python benchmarks/certificate.py [sphere] [truck]

sphere  checkerboard, 2000 samples, 961 harmonics: the certified gap of the equilibrium
        (dynamics="primal_dual", no smoothing) and of the default game
truck   automobiles against trucks of CIFAR-10: time of a certificate against that of the fit at
        m = 100; accuracy and features kept with reweight=True after 200 rounds of one frequency
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from notsorandom import Ascent, FourierClassifier
from notsorandom.datasets import make_checkerboard
from notsorandom.experiments.tasks import load_task


def timed(function: Any, *args: Any) -> tuple[Any, float]:
    """Return the result of a call, and its seconds."""
    began = time.perf_counter()
    result = function(*args)
    return result, time.perf_counter() - began


def run_sphere() -> None:
    """Print the gaps on the sphere."""
    X, y = make_checkerboard(2000, random_state=0)
    test = make_checkerboard(50_000, random_state=1)
    for C in (1.0, 100.0):
        models = {
            "primal_dual": FourierClassifier(
                1000, space="sphere", dynamics="primal_dual", smoothing=0, C=C
            ),
            "default": FourierClassifier(space="sphere", C=C, random_state=0),
        }
        for name, model in models.items():
            _, seconds = timed(model.fit, X, y)
            certificate, more = timed(model.certificate, X, y)
            print(
                f"sphere, C = {C:g}, {name}: relative gap {certificate.relative_gap:.2e} "
                f"({'certified' if certificate.certified else 'estimated'}), fit {seconds:.1f} s, "
                f"certificate {more:.1f} s, {model.coef_.shape[1]} harmonics, test accuracy "
                f"{model.score(*test):.2%}",
                flush=True,
            )


def run_truck() -> None:
    """Print what certificates and new weights cost and give."""
    X, y, X_test, y_test = load_task("auto-truck", None)
    model = FourierClassifier(100, random_state=0)
    _, seconds = timed(model.fit, X, y)
    certificate, more = timed(model.certificate, X, y)
    print(f"truck, m = 100: fit {seconds:.1f} s, certificate {more:.1f} s: {more / seconds:.2f} x")
    print(certificate, flush=True)
    for reweight in (False, True):
        scores, sizes, times = [], [], []
        for seed in range(3):
            model = FourierClassifier(
                200, search=Ascent(n_peaks=1), reweight=reweight, random_state=seed
            )
            times.append(timed(model.fit, X, y)[1])
            scores.append(100 * model.score(X_test, y_test))
            sizes.append(model.coef_.shape[1])
        print(
            f"truck, 200 rounds, reweight={reweight}: {np.mean(scores):.2f} +- "
            f"{np.std(scores):.2f} % with {np.mean(sizes):.0f} features, {np.mean(times):.1f} s",
            flush=True,
        )


PARTS = {"sphere": run_sphere, "truck": run_truck}


def main() -> None:
    """Run the parts asked for, all by default."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    chosen = parser.parse_args().parts or list(PARTS)
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    for part in chosen:
        PARTS[part]()


if __name__ == "__main__":
    main()
