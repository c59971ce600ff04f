"""Certificates: equilibria, and the cost of certificates and of reweighting.

    python -m benchmarks.certificate [line] [plane] [space] [high] [sphere] [truck]

line, plane, space
        200 random instances on R^1, R^2 and R^3: the certified gap of solver="equilibrium" over the
        kernels of a ball, without smoothing
high    200 random games on R^4 to R^30: how much too high estimated lower bounds are, by another
        search of the highest peak with 20 times the evaluations

sphere  checkerboard, 2000 samples, 961 harmonics: the certified gap of solver="equilibrium" without
        smoothing, and of the default solver
truck   automobiles against trucks of CIFAR-10: time of a certificate relative to the fit at
        m = 100; accuracy and number of features of solver="reweight" after 200 rounds of one
        frequency

On the sphere and the images, models are SVMs (hinge loss), at C = 1 and 100 and at C = 1: the
certificate is about their margin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.common import run_parts, timed
from benchmarks.peaks import bound_by_other_search, random_game
from experiments.tasks import load_task
from notsorandom import Ascent, Euclidean, FourierClassifier, FourierFeatures
from notsorandom.data.rows import Array
from notsorandom.datasets import make_checkerboard

# Random instances on R^d, and the relative gaps to reach.
N_INSTANCES, GOALS = 200, {1: 1e-2, 2: 1e-2, 3: 5e-2}
# An estimated bound that is above another search's by this share is too high.
TOO_HIGH = 0.02


def random_instance(seed: int, n_features: int) -> tuple[FourierFeatures, Array, Array]:
    """Return an unfitted model, samples and labels: 10 to 59 samples with random labels."""
    rng = np.random.default_rng(seed)
    n_samples, C = int(rng.integers(10, 60)), float(10 ** rng.uniform(-1, 1))
    space = Euclidean(max_norm=float(rng.uniform(1, 5)))
    model = FourierFeatures(
        400,
        space=space,
        phase=["aligned", "paired"][seed // 2 % 2],
        loss=["hinge", "squared_hinge"][seed % 2],
        C=C,
        smoothing=0,
        solver="equilibrium",
        random_state=0,
    )
    X = rng.standard_normal((n_samples, n_features))
    return model, X, rng.permutation(np.arange(n_samples) % 2)


def run_instances(data_home: str | None, n_features: int) -> None:
    """Print the certified gaps of the equilibria of random instances."""
    gaps, seconds, n_certified = [], [], 0
    for seed in range(N_INSTANCES):
        model, X, y = random_instance(seed, n_features)
        _, fit_seconds = timed(model.fit, X, y)
        certificate = model.certificate(X, y)
        n_certified += certificate.certified
        gaps.append(certificate.relative_gap)
        seconds.append(fit_seconds)
    reached = np.sum(np.array(gaps) <= GOALS[n_features])
    print(
        f"R^{n_features}: {n_certified} of {N_INSTANCES} certified, relative gap at most "
        f"{max(gaps):.2e}, median {np.median(gaps):.2e}, at most {GOALS[n_features]:g} in "
        f"{reached}; fit {np.median(seconds):.1f} s in the median, {max(seconds):.0f} s at most",
        flush=True,
    )


def run_high(data_home: str | None) -> None:
    """Print by how much estimated lower bounds in high dimensions are too high."""
    excesses, doubts = [], []
    for seed in range(N_INSTANCES):
        model, X, y = random_game(seed)
        certificate = model.fit(X, y).certificate(X, y)
        excesses.append(certificate.lower / bound_by_other_search(model, X, y, certificate) - 1)
        doubts.append("searches agree" in certificate.sentence)
        print(
            f"{seed}: {X.shape}, {model.loss}, {model.phase}, {model.solver}: bound "
            f"{certificate.lower:.4g}, {certificate.n_agreeing} of {certificate.n_ascents} agree, "
            f"{excesses[-1]:+.2%}{', doubted' if doubts[-1] else ''}",
            flush=True,
        )
    excess, doubted = np.array(excesses), np.array(doubts)
    high = excess > TOO_HIGH
    print(
        f"R^4 to R^30: {high.sum()} of {N_INSTANCES} too high by more than {TOO_HIGH:.0%}, "
        f"{(high & doubted).sum()} of them doubted, by {excess.max():.1%} at most; {doubted.sum()} "
        f"doubted in all; the other search's bound is higher by more than 1 % in "
        f"{(excess < -0.01).sum()}",
        flush=True,
    )


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


PARTS: dict[str, Callable[..., None]] = {
    **{
        name: partial(run_instances, n_features=n_features)
        for n_features, name in enumerate(("line", "plane", "space"), start=1)
    },
    "high": run_high,
    "sphere": run_sphere,
    "truck": run_truck,
}


if __name__ == "__main__":
    run_parts(__doc__, PARTS)
