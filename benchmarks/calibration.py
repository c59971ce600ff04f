"""Probabilities of the default classifier: log loss and calibration error.

    python -m benchmarks.calibration [bundled] [mnist] --data DIR

bundled  breast_cancer and digits, standardised, all rows predicted in five folds, against
         CalibratedClassifierCV(SVC(), ensemble=False)
mnist    ten classes, 60,000 training and 10,000 test images, pixels / 255

The calibration error is the expected one of the predicted class, with 10 bins of equal width.
"raw" are the probabilities at a temperature of 1, as the linear models give them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.common import run_parts
from benchmarks.tables import calibration_error
from experiments.tables import Table
from notsorandom import FourierClassifier
from notsorandom.data.rows import Array
from notsorandom.datasets import fetch_mnist

HEADERS = ("", "accuracy, %", "log loss", "calibration error", "temperature")
# From a fitted classifier and samples to probabilities.
Predict = Callable[[Any, Any], Array]


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


def run_bundled(data_home: str | None, features: int) -> None:
    """Compare with a calibrated SVC."""
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


def run_mnist(data_home: str | None, features: int) -> None:
    """Print the calibration on MNIST."""
    images, y, test_images, y_test = fetch_mnist(data_home)
    X, X_test = (part.astype(np.float32) / 255 for part in (images, test_images))
    model = FourierClassifier(features, random_state=0).fit(X, y)
    rows = (
        make_row("ours", calibrated(model, X_test), y_test, f"{model.temperature_:.2f}"),
        make_row("ours, raw", raw(model, X_test), y_test, "1"),
    )
    caption = f"{features} features, smoothing {model.smoothing_:g}, C = {model.C_:.3g}."
    print(Table("MNIST, ten classes", caption, HEADERS, rows).markdown(), flush=True)


PARTS = {"bundled": run_bundled, "mnist": run_mnist}


if __name__ == "__main__":
    run_parts(__doc__, PARTS, features=100)
