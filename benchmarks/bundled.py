"""Ours at its defaults against tuned kernel machines on the data sets that scikit-learn ships.

    python benchmarks/bundled.py --repeats 3

Five-fold cross-validation, repeated with other folds; every method behind the same StandardScaler.
`SVC` and `KernelRidge` (RBF) are tuned on the training folds by grid search, bandwidth and
regularisation both; `RBFSampler` has the median bandwidth, as many features as ours, and a linear
model with C (or alpha) tuned in the same way. Ours isn't tuned at all.

A difference's standard error is that of the folds' paired differences, corrected for the training
samples that they share (Nadeau and Bengio, 2003).
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, RepeatedKFold, RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from notsorandom import FourierClassifier, FourierRegressor
from notsorandom.baselines import median_gamma
from notsorandom.experiments.tables import Table

LOADERS = {
    "digits": load_digits,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "diabetes": load_diabetes,
}
# Around scikit-learn's own gamma="scale" for columns of unit variance, one over their number.
GAMMA_FACTORS = 2.0 ** np.arange(-5, 4)
PENALTIES = 10.0 ** np.arange(-1, 4)


def rivals(is_regression: bool, X: Any, n_components: int, seed: int) -> dict[str, Any]:
    """The models to compare with, for training samples of unit variance."""
    gammas = (GAMMA_FACTORS / X.shape[1]).tolist()
    sampler = RBFSampler(gamma=median_gamma(X), n_components=n_components, random_state=seed)
    if is_regression:
        ridge = GridSearchCV(KernelRidge(kernel="rbf"), {"gamma": gammas, "alpha": 1 / PENALTIES})
        return {
            "tuned": ridge,
            "random": make_pipeline(sampler, RidgeCV(alphas=10.0 ** np.arange(-4, 3))),
        }
    linear = GridSearchCV(LinearSVC(random_state=seed), {"C": PENALTIES})
    return {
        "tuned": GridSearchCV(SVC(), {"gamma": gammas, "C": PENALTIES}, n_jobs=2),
        "random": make_pipeline(sampler, linear),
    }


def scores_on(name: str, n_components: int, repeats: int, seed: int) -> dict[str, list[float]]:
    """Scores of every method on the test folds, in one order."""
    X, y = LOADERS[name](return_X_y=True)
    is_regression = name == "diabetes"
    folds = RepeatedKFold if is_regression else RepeatedStratifiedKFold
    ours = FourierRegressor if is_regression else FourierClassifier
    scores: dict[str, list[float]] = {"ours": [], "tuned": [], "random": []}
    for train, test in folds(n_splits=5, n_repeats=repeats, random_state=seed).split(X, y):
        scaler = StandardScaler().fit(X[train])
        X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
        models = rivals(is_regression, X_train, n_components, seed)
        models["ours"] = ours(n_components, random_state=seed)
        for method, model in models.items():
            scores[method].append(model.fit(X_train, y[train]).score(X_test, y[test]))
    return scores


def difference(ours: list[float], other: list[float]) -> str:
    """How much better ours is, with its standard error, in points."""
    gains = 100 * (np.array(ours) - np.array(other))
    variance = gains.var(ddof=1) * (1 / len(gains) + 1 / 4)  # a test fold is a fourth of the rest
    return f"{gains.mean():+.2f} ({variance**0.5:.2f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(LOADERS), help="comma-separated")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    table = []
    for name in options.sets.split(","):
        scores = scores_on(name, options.features, options.repeats, options.seed)
        means = [f"{100 * np.mean(scores[method]):.2f}" for method in ("ours", "tuned", "random")]
        gains = [difference(scores["ours"], scores[method]) for method in ("tuned", "random")]
        table.append([name, *means, *gains])
        print(*table[-1], flush=True)
    header = ["set", "ours", "tuned kernel machine", "random features"]
    header += ["ours - tuned (se)", "ours - random (se)"]
    caption = f"Test scores in percent, {options.features} features, {5 * options.repeats} folds."
    print(Table("Bundled data sets", caption, tuple(header), tuple(map(tuple, table))).markdown())


if __name__ == "__main__":
    main()
