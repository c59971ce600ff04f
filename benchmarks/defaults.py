"""Our defaults on the data sets that scikit-learn ships and on MNIST: scores and probabilities.

    python -m benchmarks.defaults scores --repeats 2
    python -m benchmarks.defaults probabilities --data DIR

scores         Repeated five-fold cross-validation; every method follows the same StandardScaler.
               Bandwidth and penalty of `SVC` and `KernelRidge` (RBF) are tuned by grid search on
               the training folds. `RBFSampler` has the median bandwidth, as many features as
               ours, and a linear model whose C (or alpha) is tuned in the same way. Ours has its
               defaults: it chooses C, smoothing and spectrum itself. The standard error of a
               difference comes from the paired differences of the folds, corrected for the training
               samples that they share (Nadeau and Bengio, 2003).
probabilities  Log loss and calibration error of the default classifier. breast_cancer and digits,
               standardised, all rows predicted in five folds, against
               CalibratedClassifierCV(SVC(), ensemble=False); and MNIST, 60,000 training and 10,000
               test images, pixels / 255. The calibration error is the expected one of the predicted
               class, with 10 bins of equal width. "raw" are the probabilities at a temperature of
               1, as the linear models give them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.common import run_command
from benchmarks.tables import calibration_error
from experiments.tables import Table
from notsorandom import FourierClassifier, FourierRegressor
from notsorandom.baselines import median_gamma
from notsorandom.data.rows import Array
from notsorandom.datasets import fetch_mnist

LOADERS = {
    "digits": load_digits,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "diabetes": load_diabetes,
}
# Factors of scikit-learn's gamma="scale", which for columns of unit variance is 1 / n_columns.
GAMMA_FACTORS = 2.0 ** np.arange(-5, 4)
PENALTIES = 10.0 ** np.arange(-1, 4)
HEADERS = ("", "accuracy, %", "log loss", "calibration error", "temperature")
# From a fitted classifier and samples to probabilities.
Predict = Callable[[Any, Any], Array]


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


def compare_scores(
    sets: tuple[str, ...] = tuple(LOADERS), features: int = 100, repeats: int = 1, seed: int = 0
) -> None:
    """Print one line per data set, then the table."""
    table = []
    for name in sets:
        scores = cross_validate(name, features, repeats, seed)
        means = [f"{100 * np.mean(scores[method]):.2f}" for method in ("ours", "tuned", "random")]
        gains = [difference(scores["ours"], scores[method]) for method in ("tuned", "random")]
        table.append([name, *means, *gains])
        print(*table[-1], flush=True)
    header = ["data set", "ours", "tuned kernel method", "random features"]
    header += ["ours - tuned (se)", "ours - random (se)"]
    caption = f"Test scores in percent, {features} features, {5 * repeats} folds."
    print(Table("Bundled data sets", caption, tuple(header), tuple(map(tuple, table))).markdown())


def calibrated(model: Any, X: Any) -> Array:
    """Return the probabilities of a model."""
    probabilities: Array = model.predict_proba(X)
    return probabilities


def raw(model: FourierClassifier, X: Any) -> Array:
    """Return the probabilities at a temperature of 1."""
    scores = model.decision_function(X).astype(np.float64)
    if scores.ndim == 1:
        scores = scores[:, None] * [-0.5, 0.5]
    probabilities: Array = softmax(scores, axis=1)
    return probabilities


def make_row(title: str, probabilities: Array, codes: Array, temperature: str) -> tuple[str, ...]:
    """Return a line of the table; classes are the codes from 0."""
    correct = probabilities.argmax(axis=1) == codes
    return (
        title,
        f"{100 * correct.mean():.2f}",
        f"{log_loss(codes, probabilities, labels=range(probabilities.shape[1])):.4f}",
        f"{calibration_error(probabilities, correct):.4f}",
        temperature,
    )


def predict_folds(model: Any, X: Any, y: Any, methods: list[Predict]) -> tuple[list[Array], str]:
    """Return probabilities of all rows, each from a model of the other folds, by each method.

    And the range of the models' temperatures.
    """
    results = [np.empty((len(y), len(np.unique(y)))) for _ in methods]
    temperatures = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X[train])
        fitted = clone(model).fit(scaler.transform(X[train]), y[train])
        for result, method in zip(results, methods, strict=True):
            result[test] = method(fitted, scaler.transform(X[test]))
        temperatures.append(getattr(fitted, "temperature_", np.nan))
    least, largest = min(temperatures), max(temperatures)
    return results, "" if np.isnan(least) else f"{least:.2f} to {largest:.2f}"


def compare_probabilities(features: int = 100, data: str | None = None) -> None:
    """Print log loss and calibration error on the bundled data sets, then on MNIST."""
    rows = []
    for load in (load_breast_cancer, load_digits):
        X, y = load(return_X_y=True)
        name = load.__name__.removeprefix("load_")
        ours = FourierClassifier(features, random_state=0)
        (final, first), temperature = predict_folds(ours, X, y, [calibrated, raw])
        other = CalibratedClassifierCV(SVC(), ensemble=False)
        (theirs,), _ = predict_folds(other, X, y, [calibrated])
        rows.append(make_row(f"{name}, ours", final, y, temperature))
        rows.append(make_row(f"{name}, ours, raw", first, y, "1"))
        rows.append(make_row(f"{name}, calibrated SVC", theirs, y, ""))
    print(Table("Bundled data sets", "", HEADERS, tuple(rows)).markdown(), flush=True)
    measure_mnist(features, data)


def measure_mnist(features: int, data: str | None) -> None:
    """Print log loss and calibration error on MNIST."""
    images, y, test_images, y_test = fetch_mnist(data)
    X, X_test = (part.astype(np.float32) / 255 for part in (images, test_images))
    model = FourierClassifier(features, random_state=0).fit(X, y)
    rows = (
        make_row("ours", calibrated(model, X_test), y_test, f"{model.temperature_:.2f}"),
        make_row("ours, raw", raw(model, X_test), y_test, "1"),
    )
    caption = f"{features} features, smoothing {model.smoothing_:g}, C = {model.C_:.3g}."
    print(Table("MNIST, ten classes", caption, HEADERS, rows).markdown(), flush=True)


if __name__ == "__main__":
    run_command(__doc__, {"scores": compare_scores, "probabilities": compare_probabilities})
