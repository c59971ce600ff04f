"""Our defaults against tuned kernel methods on the data sets that scikit-learn ships.

    python -m benchmarks.bundled --repeats 3

Repeated five-fold cross-validation; every method follows the same StandardScaler. Bandwidth and
regularisation of `SVC` and `KernelRidge` (RBF) are tuned by grid search on the training folds.
`RBFSampler` has the median bandwidth, as many features as ours, and a linear model whose C (or
alpha) is tuned in the same way. Ours has its defaults: it chooses C, smoothing and spectrum itself.

The standard error of a difference is that of the paired differences of the folds, corrected for the
training samples that they share (Nadeau and Bengio, 2003).
"""

from __future__ import annotations

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

from benchmarks.common import make_parser
from experiments.tables import Table
from notsorandom import FourierClassifier, FourierRegressor
from notsorandom.baselines import median_gamma

LOADERS = {
    "digits": load_digits,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "diabetes": load_diabetes,
}
# Factors of scikit-learn's gamma="scale", which for columns of unit variance is 1 / n_columns.
GAMMA_FACTORS = 2.0 ** np.arange(-5, 4)
PENALTIES = 10.0 ** np.arange(-1, 4)


def make_baselines(is_regression: bool, X: Any, n_components: int, seed: int) -> dict[str, Any]:
    """Return the baselines, for training samples of unit variance."""
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


def cross_validate(name: str, n_components: int, repeats: int, seed: int) -> dict[str, list[float]]:
    """Return the scores of every method on the same test folds."""
    X, y = LOADERS[name](return_X_y=True)
    is_regression = name == "diabetes"
    folds = RepeatedKFold if is_regression else RepeatedStratifiedKFold
    ours = FourierRegressor if is_regression else FourierClassifier
    scores: dict[str, list[float]] = {"ours": [], "tuned": [], "random": []}
    for train, test in folds(n_splits=5, n_repeats=repeats, random_state=seed).split(X, y):
        scaler = StandardScaler().fit(X[train])
        X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
        models = make_baselines(is_regression, X_train, n_components, seed)
        models["ours"] = ours(n_components, random_state=seed)
        for method, model in models.items():
            scores[method].append(model.fit(X_train, y[train]).score(X_test, y[test]))
    return scores


def difference(ours: list[float], other: list[float]) -> str:
    """Return the gain of ours and its standard error, in points."""
    gains = 100 * (np.array(ours) - np.array(other))
    # A test fold has 1/4 of the size of the training folds.
    variance = gains.var(ddof=1) * (1 / len(gains) + 1 / 4)
    return f"{gains.mean():+.2f} ({variance**0.5:.2f})"


def main() -> None:
    """Print one line per data set, then the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", default=",".join(LOADERS), help="comma-separated")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    table = []
    for name in options.sets.split(","):
        scores = cross_validate(name, options.features, options.repeats, options.seed)
        means = [f"{100 * np.mean(scores[method]):.2f}" for method in ("ours", "tuned", "random")]
        gains = [difference(scores["ours"], scores[method]) for method in ("tuned", "random")]
        table.append([name, *means, *gains])
        print(*table[-1], flush=True)
    header = ["data set", "ours", "tuned kernel method", "random features"]
    header += ["ours - tuned (se)", "ours - random (se)"]
    caption = f"Test scores in percent, {options.features} features, {5 * options.repeats} folds."
    print(Table("Bundled data sets", caption, tuple(header), tuple(map(tuple, table))).markdown())


if __name__ == "__main__":
    main()
