"""How good the predictions of a model are, in numbers and in words.

``notsorandom evaluate`` uses the same words. Accuracies and other shares are in percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.utils.validation import column_or_1d

from notsorandom.data.rows import Array, Rows
from notsorandom.display.calibration import log_loss
from notsorandom.display.inspection import score_name, score_predictions
from notsorandom.estimators.classifier import log_probabilities
from notsorandom.estimators.samples import read_samples
from notsorandom.game.problem import Problem, codes_from_scores
from notsorandom.linear.fit import fit_linear_models

# Rows below which a score says little.
FEW_ROWS = 100
# By chance, held-out rows are 20 times as likely by a model as by shares in at most one case of 20.
CLEAR_LOG_RATIO = math.log(20)


@dataclass(frozen=True)
class Predictions:
    """Predictions of some rows, and their targets."""

    model: Any
    scores: Array  # (n_rows, n_tasks): decision values or predictions
    y: Any
    part: str  # "test" or "training"
    target: str
    n_rows: int  # of the part, of which some were scored

    @property
    def predicted(self) -> Array:
        """The predicted classes."""
        return self.model.classes_[codes_from_scores(self.scores)]

    @property
    def targets(self) -> Array:
        """The classes, or the real targets with one column per output."""
        if hasattr(self.model, "classes_"):
            return column_or_1d(self.y)
        return np.asarray(self.y, dtype=np.float64).reshape(len(self.scores), -1)

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values of the scores."""
        name = score_name(self.model)
        score, error, guess = score_beside_guessing(self.model, self.scores, self.y)
        guessed = "the largest class" if name == "accuracy" else "the mean"
        facts = [
            (f"{self.part} {name}", format_score(name, score)),
            (f"standard error of {name}", format_score(name, error)),
            (f"{name} of guessing {guessed}", format_score(name, guess)),
        ]
        if name == "R^2" and self.targets.shape[1] == 1:
            errors = self.scores - self.targets
            squared = float(np.sqrt(np.square(errors).mean()))
            facts.append(("root mean squared error", format_number(squared)))
            facts.append(("mean absolute error", format_number(np.abs(errors).mean())))
        return facts

    def describe(self) -> str:
        """Return what the scores mean, and how far they can be relied on."""
        n_rows, is_test, targets = len(self.scores), self.part == "test", self.targets
        where = f"{n_rows:,} {self.part} rows{', which it has not seen before' * is_test}"
        if n_rows < self.n_rows:
            where += f" (drawn from {self.n_rows:,})"
        if hasattr(self.model, "classes_"):
            names, counts = np.unique(targets, return_counts=True)
            n_hits = int((self.predicted == targets).sum())
            text = (
                f"The model predicts {self.target} correctly in {n_hits:,} of {where}. Always "
                f'guessing "{names[counts.argmax()]}" would be correct in {counts.max():,}. '
            )
        elif targets.shape[1] == 1:
            error, guess = (
                format_number(np.abs(targets - each).mean())
                for each in (self.scores, targets.mean())
            )
            text = (
                f"On the average of {where}, the model's prediction of {self.target} is off by "
                f"{error}. Always guessing the mean would be off by {guess}. "
            )
        else:
            text = "R^2 is computed over all outputs together, weighted by their variance. "
        if not is_test:
            return f"{text}It learned from these rows: new ones are predicted less well."
        found = score_beside_guessing(self.model, self.scores, self.y)
        log_ratio = 0.0
        if hasattr(self.model, "temperature_"):
            logarithms = log_probabilities(self.scores, self.model.temperature_)
            gain = class_entropy(counts) - log_loss(logarithms, targets, self.model.classes_)
            log_ratio = n_rows * gain
        caution = find_caution(n_rows, *found, log_ratio)
        return f"{text}But {caution}." if caution else text.strip()


def predict_scores(model: Any, problem: Problem, X_scored: Any) -> Array:
    """Return the scores of a predictor, or of a linear model on a transformer's features."""
    if hasattr(model, "coef_"):
        return model._scores(X_scored)
    found = fit_linear_models(model.kernel_, problem)
    rows = Rows(model.kernel_.space.prepare(read_samples(model, X_scored)))
    return model.kernel_.scores(rows, found.coef, found.intercept)


def name_target(y: Any) -> str:
    """Return the name of the target, or the names of several targets."""
    names = getattr(y, "columns", [getattr(y, "name", None)])
    return ", ".join(str(name) for name in names if name is not None) or "the target"


def score_beside_guessing(estimator: Any, scores: Array, y: Any) -> tuple[float, float, float]:
    """Return the score, its standard error, and the score of guessing the largest class or mean."""
    score = score_predictions(estimator, scores, y)
    if hasattr(estimator, "classes_"):
        counts = np.unique(column_or_1d(y), return_counts=True)[1]
        return score, accuracy_error(score, len(scores)), float(counts.max() / len(scores))
    targets = np.asarray(y, dtype=np.float64).reshape(len(scores), -1)
    squares = np.square(scores - targets).sum(axis=1)
    spread = np.square(targets - targets.mean(axis=0)).sum(axis=1)
    # By the delta method, as the error of a ratio of means.
    errors = (squares - (1 - score) * spread) / (spread.mean() or 1.0)
    return score, float(errors.std() / np.sqrt(len(scores))), 0.0


def accuracy_error(accuracy: float, n_rows: int) -> float:
    """Return the standard error of an accuracy.

    As Agresti and Coull propose, two correct and two wrong rows are added, so the error of few
    rows without mistakes is not zero.
    """
    n_more = n_rows + 4
    share = (accuracy * n_rows + 2) / n_more
    return float(np.sqrt(share * (1 - share) / n_more))


def find_caution(
    n_rows: int, score: float, error: float, guess: float, log_ratio: float = 0.0
) -> str:
    """Return why a score on new rows should not be relied on; empty if it can be.

    `log_ratio` is how much more likely the classes of all rows are by the model than by the shares
    of the classes: where one is rare, no accuracy is much higher than that of guessing.
    """
    if n_rows < FEW_ROWS:
        return f"{n_rows} rows are too few to tell how good the model is"
    is_better = score >= guess + 2 * error or log_ratio >= CLEAR_LOG_RATIO
    return "" if is_better else "the model is not clearly better than guessing"


def rank_scores(hits: Array, scores: Array) -> dict[str, float | None]:
    """Return ROC AUC and average precision, means over the classes that occur, None without.

    `hits` says whether a row is of a class: of the second of two, or of each.
    """
    columns = (hits.min(axis=0) < hits.max(axis=0)).nonzero()[0]  # (n_rows, n_columns)

    def mean(metric: Callable[[Array, Array], float]) -> float | None:
        values = [metric(hits[:, k], scores[:, k]) for k in columns]
        return float(np.mean(values)) if values else None

    return {"ROC AUC": mean(roc_auc_score), "average precision": mean(average_precision_score)}


def class_entropy(counts: Array) -> float:
    """Return the log loss of predicting the shares of the classes."""
    return float(special.entr(counts / counts.sum()).sum())


def format_score(name: str, value: float) -> str:
    """Return an accuracy in percent, and R^2 as a number."""
    return format_share(value) if name == "accuracy" else format_number(value)


def format_share(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.2f} %"


def format_number(value: float) -> str:
    """Return four digits of a number, or all before the point."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"
