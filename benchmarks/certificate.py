"""Certificates: equilibria, and the cost of certificates and of reweighting.

    python -m benchmarks.certificate [ball] [high] [sphere] [truck]

ball    200 random instances on each of R^1, R^2 and R^3: the certified gap of solver="equilibrium"
        over the kernels of a ball, without smoothing
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

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.common import Recorded, run_parts, timed
from benchmarks.peaks import bound_by_other_search, random_game
from experiments.records import Config, Record
from experiments.tables import Table
from experiments.tasks import load_task
from notsorandom import Ascent, Euclidean, FourierClassifier, FourierFeatures
from notsorandom.data.rows import Array
from notsorandom.datasets import make_checkerboard

N_INSTANCES = 200  # on each R^d, and in high dimensions together
# Games of a run, and the share by which an estimated bound is too high.
N_GAMES, TOO_HIGH = 20, 0.02


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


def ball_configs() -> list[Config]:
    """Return one run per dimension."""
    return [{"kind": "ball", "columns": n_columns} for n_columns in (1, 2, 3)]


def run_ball(data: str | None, config: Config) -> dict[str, Any]:
    """Return the certified gaps of the equilibria of random instances."""
    gaps, n_certified = [], 0
    for seed in range(N_INSTANCES):
        model, X, y = random_instance(seed, config["columns"])
        certificate = model.fit(X, y).certificate(X, y)
        n_certified += certificate.certified
        gaps.append(float(certificate.relative_gap))
    return {"gaps": gaps, "n_certified": n_certified}


def ball_tables(records: Sequence[Record]) -> list[Table]:
    """Return how many gaps are certified, and how large they are."""
    rows = [
        (
            f"R^{record['config']['columns']}",
            f"{record['outcome']['n_certified']} of {len(record['outcome']['gaps'])}",
            f"{max(record['outcome']['gaps']):.1e}",
            f"{np.median(record['outcome']['gaps']):.1e}",
        )
        for record in records
    ]
    headers = ("", "certified", "largest relative gap", "median")
    return [Table("Gaps over a ball", "", headers, tuple(rows))]


def high_configs() -> list[Config]:
    """Return runs of some games each."""
    return [{"kind": "high", "first": first} for first in range(0, N_INSTANCES, N_GAMES)]


def run_high(data: str | None, config: Config) -> dict[str, Any]:
    """Return by how much estimated lower bounds are too high, and whether they are doubted."""
    excesses, doubts = [], []
    for seed in range(config["first"], config["first"] + N_GAMES):
        model, X, y = random_game(seed)
        certificate = model.fit(X, y).certificate(X, y)
        other = bound_by_other_search(model, X, y, certificate)
        excesses.append(float(certificate.lower / other - 1))
        doubts.append("searches agree" in certificate.sentence)
    return {"excess": excesses, "doubted": doubts}


def high_tables(records: Sequence[Record]) -> list[Table]:
    """Return one sentence."""
    excess, doubted = (
        np.concatenate([record["outcome"][name] for record in records])
        for name in ("excess", "doubted")
    )
    high = excess > TOO_HIGH
    sentence = (
        f"Of {len(excess)} random games in 4 to 30 dimensions, {high.sum()} estimates were too "
        f"high by more than {TOO_HIGH:.0%}, by up to {excess.max():.0%}, as another search with 20 "
        f"times the evaluations found; the sentence had warned of {(high & doubted).sum()} of "
        f"these, and of {(doubted & ~high).sum()} others."
    )
    return [Table("Estimates in high dimensions", notes=(sentence,))]


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


PARTS: dict[str, Callable[..., None] | Recorded] = {
    "ball": Recorded(ball_configs, run_ball, ball_tables),
    "high": Recorded(high_configs, run_high, high_tables),
    "sphere": run_sphere,
    "truck": run_truck,
}


if __name__ == "__main__":
    run_parts(__doc__, PARTS)
