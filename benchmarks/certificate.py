"""Certificates: the equilibrium on the sphere, and the cost of certificates and of reweighting.

    python -m benchmarks.certificate [sphere] [truck]

sphere  checkerboard, 2000 samples, 961 harmonics: the certified gap of solver="equilibrium" without
        smoothing, and of the default solver
truck   automobiles against trucks of CIFAR-10: time of a certificate relative to the fit at
        m = 100; accuracy and number of features of solver="reweight" after 200 rounds of one
        frequency

All models are SVMs (hinge loss), on the sphere at C = 1 and 100, on the images at C = 1: the
certificate is about their margin.
"""

from __future__ import annotations

import numpy as np

from benchmarks.common import run_parts, timed
from experiments.tasks import load_task
from notsorandom import Ascent, FourierClassifier
from notsorandom.datasets import make_checkerboard


def run_sphere(data_home: str | None) -> None:
    """Print the gaps on the sphere."""
    X, y = make_checkerboard(2000, random_state=0)
    test = make_checkerboard(50_000, random_state=1)
    for C in (1.0, 100.0):
        models = {
            "equilibrium": FourierClassifier(
                1000, loss="hinge", C=C, space="sphere", solver="equilibrium", smoothing=0
            ),
            "default": FourierClassifier(loss="hinge", C=C, space="sphere", random_state=0),
        }
        for name, model in models.items():
            _, seconds = timed(model.fit, X, y)
            certificate, certificate_seconds = timed(model.certificate, X, y)
            print(
                f"sphere, C = {C:g}, {name}: relative gap {certificate.relative_gap:.2e} "
                f"({'certified' if certificate.certified else 'estimated'}), fit {seconds:.1f} s, "
                f"certificate {certificate_seconds:.1f} s, {model.coef_.shape[1]} harmonics, "
                f"test accuracy {model.score(*test):.2%}",
                flush=True,
            )


def run_truck(data_home: str | None) -> None:
    """Print time, accuracy and size."""
    X, y, X_test, y_test = load_task("auto-truck", data_home)
    model = FourierClassifier(100, loss="hinge", C=1.0, random_state=0)
    _, seconds = timed(model.fit, X, y)
    certificate, certificate_seconds = timed(model.certificate, X, y)
    print(
        f"truck, m = 100: fit {seconds:.1f} s, certificate {certificate_seconds:.1f} s, ratio "
        f"{certificate_seconds / seconds:.2f}"
    )
    print(certificate, flush=True)
    for solver in ("gradient", "reweight"):
        scores, sizes, times = [], [], []
        for seed in range(3):
            search = Ascent(n_peaks=1)
            model = FourierClassifier(
                200, loss="hinge", C=1.0, search=search, solver=solver, random_state=seed
            )
            times.append(timed(model.fit, X, y)[1])
            scores.append(100 * model.score(X_test, y_test))
            sizes.append(model.coef_.shape[1])
        print(
            f"truck, 200 rounds, solver={solver!r}: {np.mean(scores):.2f} +- "
            f"{np.std(scores):.2f} % with {np.mean(sizes):.0f} features, {np.mean(times):.1f} s",
            flush=True,
        )


PARTS = {"sphere": run_sphere, "truck": run_truck}


if __name__ == "__main__":
    run_parts(__doc__, PARTS)
