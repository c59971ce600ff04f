"""A fitted model looked at once more: what the pictures of it show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length, column_or_1d

from notsorandom._utils.parameters import check_number
from notsorandom.baselines import RandomFourierFeatures
from notsorandom.data.array_api import on_host
from notsorandom.data.rows import Array, Rows, dense
from notsorandom.estimators.config import loss_of
from notsorandom.estimators.samples import read_samples
from notsorandom.estimators.training import DUALITY_GAP
from notsorandom.game import Player, replay
from notsorandom.game.scoring import predicted_codes, score
from notsorandom.kernel import LearnedKernel
from notsorandom.linear.newton import decide, solve_machines

# Sizes and rounds at which something is computed anew, if none are asked for.
N_POINTS = 8


@dataclass(frozen=True)
class Moment:
    """One moment of a game.

    Parameters
    ----------
    round : int
        Counted from one.
    measure : ndarray of shape (n_samples, n_tasks)
        That the round's frequencies were found for: dual variables times labels.
    kernel : LearnedKernel
        Of the frequencies found until then, this round's included.
    coef, intercept : ndarrays of shape (n_tasks, n_components) and (n_tasks,)
        The SVM on their features.
    """

    round: int
    measure: Array
    kernel: LearnedKernel
    coef: Array
    intercept: Array

    def decision(self, X: Array) -> Array:
        """Decision values of shape (n_samples, n_tasks)."""
        return decide(self.kernel.features(X), self.coef, self.intercept)


def moments(estimator: Any, X: Any, y: Any, rounds: Sequence[int] | None = None) -> list[Moment]:
    """Play a fitted estimator's game again, and stop at some rounds.

    Parameters
    ----------
    estimator : FourierFeatures or FourierClassifier, fitted
    X, y : array-likes
        The training data.
    rounds : sequence of int, optional
        Counted from one; by default the first, the last, and one in between.

    Returns
    -------
    list of Moment
        In the order of the rounds. With ``reweight=True`` they are of all frequencies that were
        found, in the weights of the play, before any were dropped.
    """
    rows, player = estimator._played_data(X, y)
    kernel, history = whole_kernel(estimator), estimator.history_
    n_rounds = len(history["n_frequencies"])
    if "plays" not in history or kernel.space.kind == "finite":
        raise ValueError(
            "This game can't be played again: only on continuous spaces, and with "
            "dynamics='gradient', does its record tell what was found when."
        )
    if rounds is None:
        rounds = spread_out(np.arange(1, n_rounds + 1), 3).tolist()
    if not len(rounds) or any(number not in range(1, n_rounds + 1) for number in rounds):
        raise ValueError(
            f"rounds={list(rounds)!r} is not allowed: give some from 1 to {n_rounds}, as many as "
            "the game had."
        )
    duals = replay(
        rows,
        player,
        space=kernel.space,
        frequencies=kernel.frequencies,
        phases=kernel.phases,
        scales=kernel.scales.astype(rows.dtype),
        phase=kernel.phase,
        history=history,
    )
    n_columns = kernel.space.n_columns(kernel.phase)
    found = []
    for number, dual in zip(range(1, max(rounds) + 1), duals, strict=False):
        if number in rounds:
            part = kernel.head(int(history["n_frequencies"][number - 1]) * n_columns)
            coef, intercept = fit_machines(part.features_of(rows), player)
            found.append(Moment(number, player.measure(dual), part, coef, intercept))
    return found


def bounds_by_round(estimator: Any, X: Any, y: Any) -> tuple[Array, Array, Array]:
    """Bounds on the value of the game, as they were after some of its rounds.

    Returns
    -------
    rounds : ndarray of shape (n_points,)
        Counted from one.
    upper : ndarray of shape (n_points,)
        The least objective of an SVM on the features found by then, or at a point before.
    lower : ndarray of shape (n_points,)
        The best that a dual point said until then, with the peaks found for it as the highest.
    """
    rows, player = estimator._played_data(X, y)
    kernel, history = whole_kernel(estimator), estimator.history_
    counts = history["n_frequencies"] * kernel.space.n_columns(kernel.phase)
    possible = np.flatnonzero(np.isin(counts, kernel.possible_sizes()))
    rounds = spread_out(possible + 1, N_POINTS)
    upper = []
    for size in counts[rounds - 1]:
        features = kernel.head(int(size)).features_of(rows)
        coef, intercept = fit_machines(features, player)
        losses = player.loss_of(decide(features, coef, intercept))
        upper.append(0.5 * float(np.square(coef).sum()) + losses)
    lower = np.maximum.accumulate(history["lower"])[rounds - 1]
    return rounds, np.minimum.accumulate(upper), lower


def accuracy_by_size(
    estimator: Any,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    sizes: Sequence[int] | None = None,
    baselines: Mapping[str, Any] | None = None,
) -> tuple[Array, dict[str, Array]]:
    """Test accuracy by number of features, of a fitted estimator and of baselines.

    Parameters
    ----------
    estimator : FourierFeatures, FourierClassifier or FourierRegressor, fitted
    X, y, X_test, y_test : array-likes
        Training and test data.
    sizes : sequence of int, optional
        By default a few, up to all features.
    baselines : dict of str to transformer, optional
        Of :mod:`notsorandom.baselines`, fitted anew at the largest size; by default random
        features of the RBF kernel. All get the same linear model, with the estimator's loss and
        `C`.

    Returns
    -------
    sizes : ndarray of shape (n_sizes,)
    accuracies : dict of str to ndarray of shape (n_sizes,)
        The estimator's as ``"learned"``; NaN where a baseline has no such size. Of real targets,
        the coefficient of determination.
    """
    rows, player = estimator._training_data(X, y).pair
    kernel = estimator.kernel_
    possible = kernel.possible_sizes()
    if sizes is None:
        sizes = spread_out(possible, N_POINTS).tolist()
    if not len(sizes) or not set(sizes) <= set(possible.tolist()):
        raise ValueError(
            f"sizes={list(sizes)!r} is not allowed: this model has {kernel.n_components} features, "
            f"and can be cut at {summary(possible)}."
        )
    if baselines is None:
        baselines = {"random (RBF)": RandomFourierFeatures(random_state=0)}
    X_test, y_test = read_samples(estimator, X_test, dtype=rows.dtype), on_host(y_test)
    y_test = np.asarray(y_test) if learned_reals(estimator) else column_or_1d(y_test)
    check_consistent_length(X_test, y_test)
    kernels = {"learned": kernel}
    targets = player.targets if learned_reals(estimator) else predicted_codes(player.targets)
    for name, baseline in baselines.items():
        model = (
            clone(baseline).set_params(n_components=max(sizes)).fit(on_host(rows.array), targets)
        )
        kernels[name] = model.kernel_
    test_rows = Rows(kernel.space.prepare(X_test))

    def quality(kernel: LearnedKernel) -> float:
        coef, intercept = fit_machines(kernel.features_of(rows), player)
        return quality_of(estimator, decide(kernel.features_of(test_rows), coef, intercept), y_test)

    accuracies = {
        name: np.array(
            [quality(each.head(n)) if n in each.possible_sizes() else np.nan for n in sizes]
        )
        for name, each in kernels.items()
    }
    return np.array(sizes), accuracies


def quality_of(estimator: Any, scores: Array, y: Array) -> float:
    """Accuracy of scores, or the coefficient of determination of real targets."""
    if learned_reals(estimator):
        targets = np.asarray(y, dtype=np.float64).reshape(len(scores), -1)
        return score(Player(loss_of(estimator), targets), scores)
    return float(np.mean(estimator.classes_[predicted_codes(scores)] == y))


def learned_reals(estimator: Any) -> bool:
    """Whether a fitted estimator learned from real targets, not from classes."""
    return not hasattr(estimator, "classes_")


def mean_and_spread(trials: Array) -> tuple[Array, Array]:
    """Mean and standard deviation over trials, (n_trials, n_sizes), of which some may be NaN."""
    known = np.isfinite(trials)
    counts = known.sum(axis=0)
    mean = np.where(known, trials, 0).sum(axis=0) / np.where(counts > 0, counts, np.nan)
    square = np.where(known, (trials - mean) ** 2, 0).sum(axis=0)
    return mean, np.sqrt(square / np.maximum(counts - 1, 1))


def fit_machines(features: Array, player: Player) -> tuple[Array, Array]:
    """Weights and intercepts of the machines on some features."""
    coef, intercept, _ = solve_machines(features, player, DUALITY_GAP)
    return coef, intercept


def heaviest_as_images(kernel: LearnedKernel, image_shape: Sequence[int], n_images: int) -> Array:
    """The heaviest frequencies of a model on images, (n_images, height, width), channels averaged.

    Parameters
    ----------
    kernel : LearnedKernel
    image_shape : (height, width) or (height, width, n_channels)
        Of the images whose pixels are the columns of `X`.
    n_images : int
        At most.
    """
    check_number("n_images", n_images, above=0, integer=True)
    n_pixels = kernel.frequencies.shape[1]
    if kernel.space.kind == "finite":
        raise ValueError(
            "image_shape is not allowed on the sphere's harmonics: their frequencies are indices, "
            "not images."
        )
    shape = np.asarray(image_shape)
    fits = shape.dtype.kind in "iu" and shape.shape in ((2,), (3,)) and (shape > 0).all()
    if not fits or shape.prod() != n_pixels:
        raise ValueError(
            f"image_shape={image_shape!r} is not allowed: it must be (height, width) or "
            f"(height, width, n_channels), of {n_pixels} numbers together."
        )
    heaviest = np.argsort(-kernel.weights, kind="stable")[:n_images]
    images = kernel.frequencies[heaviest].reshape(len(heaviest), *image_shape)
    return images if images.ndim == 3 else images.mean(axis=-1)


def potential_on_grid(
    kernel: LearnedKernel, rows: Rows, measure: Array, across: Array, up: Array
) -> Array:
    """Potential on a grid of frequencies of the plane, of shape (len(up), len(across)).

    A wave on the plane is the product of one along each axis, so that the grid's are products of
    few.
    """
    tasks = range(measure.shape[1])

    def sums(X: Array, a: Array) -> tuple[Array, ...]:
        places = X - kernel.space.center
        first, second = (
            np.exp(1j * places[:, [axis]] * side) for axis, side in ((0, across), (1, up))
        )
        transforms = [second.T @ (a[:, [task]] * first) for task in tasks]  # (n_up, n_across)
        return tuple(part for each in transforms for part in (each.real, each.imag))

    parts = rows.add(sums, measure, width=4 * (len(across) + len(up)))
    return np.square(parts, dtype=np.float64).sum(axis=0)


def whole_kernel(estimator: Any) -> LearnedKernel:
    """The kernel of all frequencies that the game found, before any were dropped."""
    kernel: LearnedKernel = estimator.kernel_
    if not estimator.reweight:
        return kernel
    if not hasattr(estimator, "average_kernel_"):
        raise ValueError(
            "The head of a model with reweight=True doesn't know the game that it comes from: "
            "look at the whole model."
        )
    return estimator.average_kernel_


def plane_of(estimator: Any, X: Any, y: Any) -> tuple[Array, Player]:
    """The samples that the game was played on, if they can be drawn on a plane, and its player."""
    rows, player = estimator._played_data(X, y)
    space = estimator.kernel_.space
    if rows.n_features != 2 or not space.is_flat:
        raise ValueError(
            f"X has {rows.n_features} columns, on {type(space).__name__}, but only games of two "
            "columns on the Euclidean plane can be drawn as maps: leave X and y out, or use "
            "HistoryDisplay."
        )
    return dense(rows.array), player


def require_classes(estimator: Any) -> None:
    """Raise ValueError unless the estimator learned from classes."""
    if learned_reals(estimator):
        raise ValueError(
            f"This {type(estimator).__name__} learned from real targets, but what was asked for is "
            "about classes: use HistoryDisplay, SpectrumDisplay or PathDisplay."
        )


def spread_out(numbers: Array, n_points: int) -> Array:
    """At most `n_points` of some rising numbers, the first and last among them, evenly by ratio."""
    wanted = np.geomspace(numbers[0], numbers[-1], n_points)
    places = np.searchsorted(numbers, wanted * (1 - 1e-9))
    return numbers[np.unique(np.minimum(places, len(numbers) - 1))]


def summary(numbers: Array) -> str:
    """A few of some numbers, in words."""
    shown = [str(number) for number in numbers[:5]]
    return ", ".join(shown) + (f", ... {numbers[-1]}" if len(numbers) > len(shown) else "")
