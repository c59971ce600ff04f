"""The scikit-learn estimators: validate, play, store."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from notsorandom.game import LOSSES, GameResult, MarginLoss, Round, play
from notsorandom.kernel import LearnedKernel, normalized
from notsorandom.linear import LinearSVM, one_versus_rest
from notsorandom.progress import Progress
from notsorandom.rows import Array, Rows
from notsorandom.search import SEARCHES
from notsorandom.smoothing import choose_smoothing
from notsorandom.spaces import Euclidean

SPACES: dict[str, Any] = {"euclidean": Euclidean}
WEIGHTINGS = {
    "potential": lambda result: normalized(np.sqrt(result.potentials)),
    "uniform": lambda result: result.weights,
}
# Games that choose the smoothing are this much shorter than the one they choose it for.
TRIAL_SHARE = 6
# float32 features carry no more than about this many digits of the objective.
DUALITY_GAP = 1e-3


@dataclass(frozen=True)
class Game:
    """A configured game, ready for data: what the two estimators share."""

    space: Any
    search: Any
    loss: MarginLoss
    phase: str
    weighting: str
    learning_rate: str | float

    def play(
        self,
        rows: Rows,
        labels: Array,
        n_components: int,
        smoothing: float,
        rng: np.random.Generator,
        verbose: int = 0,
    ) -> tuple[GameResult, LearnedKernel]:
        """Play for `n_components` real features; return the result and its kernel."""
        with Progress(n_components, "features", shown=verbose > 0) as bar:
            n_columns = self.space.n_columns(self.phase)

            def watch(record: Round, dual: Array) -> None:
                bar.update(record.n_frequencies * n_columns, f"potential {record.potential:.2e}")

            result = play(
                rows,
                labels,
                space=self.space,
                search=self.search,
                loss=self.loss,
                n_frequencies=n_components // n_columns,
                rng=rng,
                phase=self.phase,
                smoothing=smoothing,
                learning_rate=self.learning_rate,
                watch=watch,
            )
        kernel = LearnedKernel(
            space=result.space,
            frequencies=result.frequencies,
            phases=result.phases,
            weights=WEIGHTINGS[self.weighting](result),
            phase=self.phase,
        )
        return result, kernel

    def choose_smoothing(
        self, rows: Rows, codes: Array, labels: Array, n_components: int, rng: np.random.Generator
    ) -> float:
        """Cross-validate the smoothing with short games."""
        n_columns = self.space.n_columns(self.phase)
        n_trial = max(1, n_components // n_columns // TRIAL_SHARE) * n_columns
        seed = rng.integers(2**63)

        def errors(train: Array, test: Array, smoothing: float) -> Array:
            # The same seed for all candidates: they differ by nothing else.
            trial_rng = np.random.default_rng(seed)
            _, kernel = self.play(rows.take(train), labels[train], n_trial, smoothing, trial_rng)
            features = kernel.features(rows.array[train])
            machines = one_versus_rest(features, labels[train], self.loss, 10 * DUALITY_GAP)
            scores = decide(machines, kernel.features(rows.array[test]))
            return predicted_codes(scores) != codes[test]

        return choose_smoothing(codes, errors, rng)


def decide(machines: list[LinearSVM], features: Array) -> Array:
    """Decision values, of shape (n_samples, n_tasks)."""
    coef = np.stack([machine.coef for machine in machines]).astype(features.dtype)
    intercept = np.array([machine.intercept for machine in machines], dtype=features.dtype)
    scores: Array = features @ coef.T + intercept
    return scores


def predicted_codes(scores: Array) -> Array:
    """Class codes from decision values: the sign of one task, the largest of several."""
    codes: Array = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return codes


def signs(codes: Array, n_classes: int, dtype: Any) -> Array:
    """One-versus-rest labels of +1 and -1: one column for two classes, else one a class."""
    tasks = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    labels: Array = np.where(codes[:, None] == tasks, 1, -1).astype(dtype)
    return labels


class _FourierEstimator(BaseEstimator):
    """Parameters and fitting that the transformer and the classifier have in common."""

    def __init__(
        self,
        n_components: int = 100,
        *,
        space: Any = "euclidean",
        search: Any = "ascent",
        phase: str = "aligned",
        loss: str = "hinge",
        C: float = 1.0,
        smoothing: Any = "auto",
        weighting: str = "potential",
        learning_rate: Any = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.space = space
        self.search = search
        self.phase = phase
        self.loss = loss
        self.C = C
        self.smoothing = smoothing
        self.weighting = weighting
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Any:
        """Learn the features from samples and their classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels of any type, of two classes or more.

        Returns
        -------
        self
        """
        # All work is done on a copy whose state is taken over by one assignment, so that a fit
        # that fails or is interrupted leaves the estimator exactly as it was.
        fitted = copy.copy(self)
        fitted._fit(X, y)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any) -> None:
        game = self._game()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has only one class, {self.classes_[0]!r}, but {type(self).__name__} learns to "
                "tell classes apart: give it samples of at least two."
            )
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        rows = Rows(X)
        labels = signs(codes, len(self.classes_), X.dtype)
        if self.smoothing == "auto":
            self.smoothing_ = game.choose_smoothing(rows, codes, labels, self.n_components, rng)
        else:
            self.smoothing_ = float(self.smoothing)
        result, self.kernel_ = game.play(
            rows, labels, self.n_components, self.smoothing_, rng, self.verbose
        )
        self.frequencies_ = result.frequencies
        self.phases_ = result.phases
        self.history_ = result.history
        self.status_ = result.status
        self._finish(rows, labels, game.loss)

    def _finish(self, rows: Rows, labels: Array, loss: MarginLoss) -> None:
        """Do what is left once the kernel is learned."""

    def _game(self) -> Game:
        """Check every parameter, and put the game together."""
        check_choice("phase", self.phase, ("aligned", "paired"))
        check_choice("loss", self.loss, LOSSES)
        check_choice("weighting", self.weighting, WEIGHTINGS)
        space = named_object("space", self.space, SPACES)
        search = named_object("search", self.search, SEARCHES)
        check_number("n_components", self.n_components, Integral, above=0)
        check_number("C", self.C, Real, above=0)
        check_number("verbose", self.verbose, Integral, least=0)
        if not isinstance(self.smoothing, str) or self.smoothing != "auto":
            check_number("smoothing", self.smoothing, Real, least=0, or_else="'auto'")
        if self.learning_rate not in ("auto", "theory"):
            check_number(
                "learning_rate", self.learning_rate, Real, above=0, or_else="'auto', 'theory'"
            )
        n_columns = space.n_columns(self.phase)
        if self.n_components % n_columns:
            raise ValueError(
                f"n_components={self.n_components} is not allowed with phase={self.phase!r}: each "
                f"frequency gives {n_columns} features, so it must be a multiple of {n_columns}."
            )
        return Game(
            space=space,
            search=search,
            loss=LOSSES[self.loss](float(self.C)),
            phase=self.phase,
            weighting=self.weighting,
            learning_rate=self.learning_rate,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class FourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _FourierEstimator):
    """Fourier features learned from labels: a kernel found, not guessed.

    A kernel is a measure over frequencies. This transformer finds the frequencies by a game in
    which one player looks for the wave that best tells the classes apart and the other puts
    weight on the samples it gets wrong. A linear model on a hundred such features does what
    thousands of random ones don't.

    Parameters
    ----------
    n_components : int, default=100
        Number of real output features.
    space : "euclidean" or a space, default="euclidean"
        Where the samples live.
    search : {"ascent", "langevin"} or a search, default="ascent"
        How a peak is found.
    phase : {"aligned", "paired"}, default="aligned"
        ``"aligned"`` gives one cosine a frequency, at the phase that serves the labels best.
        ``"paired"`` gives cosine and sine, so that the kernel itself is translation-invariant.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The SVM whose margin is maximised.
    C : float, default=1.0
        Its inverse regularisation.
    smoothing : float or "auto", default="auto"
        Standard deviation of the noise that the samples are thought to carry, as a fraction of
        their median distance. More of it favours low frequencies. ``"auto"`` compares a few
        values by cross-validation on the training data, at less than the cost of the fit.
    weighting : {"potential", "uniform"}, default="potential"
        How much of the kernel each frequency gets: in proportion to the amplitude of the peak it
        was found at, or all the same, as in the paper.
    learning_rate : "auto", "theory" or float, default="auto"
        Step size of the dual player; see :func:`notsorandom.game.play`.
    random_state : int, RandomState instance or None, default=None
        Seed of the search's starting points.
    verbose : int, default=0
        If 1, show a progress bar with the current potential.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_frequencies, n_features_in_)
        In the order they were found.
    phases_ : ndarray of shape (n_frequencies,)
    kernel_ : LearnedKernel
    classes_ : ndarray of shape (n_classes,)
    history_ : dict of str to ndarray
        One value a round; see :class:`notsorandom.game.Round`.
    status_ : {"complete", "flat"}
    smoothing_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` has column names, all strings.

    Notes
    -----
    Data are centred inside, and their overall scale doesn't matter; the scale of one column
    against another does, as it does for ``SVC``: see ``StandardScaler``.

    References
    ----------
    B. Bullins, C. Zhang, Y. Zhang, "Not-So-Random Features", ICLR 2018.

    Examples
    --------
    >>> from notsorandom import FourierFeatures
    >>> from notsorandom.datasets import make_windmill
    >>> X, y = make_windmill(500, random_state=0)
    >>> features = FourierFeatures(20, random_state=0).fit(X, y)
    >>> features.transform(X).shape
    (500, 20)
    """

    def transform(self, X: Any) -> Array:
        """Map samples to the learned features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return self.kernel_.features(X)

    def head(self, n_components: int) -> FourierFeatures:
        """Return the fitted transformer of the first `n_components` features.

        They are the features that a fit with that `n_components` and the same smoothing finds,
        so one fit gives every smaller size.
        """
        check_is_fitted(self)
        kernel = self.kernel_.head(n_components)
        shorter = clone(self).set_params(n_components=n_components)
        vars(shorter).update({name: value for name, value in vars(self).items() if name[-1] == "_"})
        shorter.kernel_ = kernel
        shorter.frequencies_, shorter.phases_ = kernel.frequencies, kernel.phases
        return shorter

    @property
    def _n_features_out(self) -> int:
        return self.kernel_.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class FourierClassifier(ClassifierMixin, _FourierEstimator):
    """A linear SVM on Fourier features learned from the same labels.

    Parameters
    ----------
    n_components, space, search, phase, loss, C, smoothing, weighting, learning_rate
        As in :class:`FourierFeatures`. `loss` and `C` are those of the final SVM too.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    features_ : FourierFeatures
        The fitted transformer.
    coef_ : ndarray of shape (1, n_components) or (n_classes, n_components)
        Weights of the learned features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    duality_gap_ : float
        Largest duality gap of the final SVMs, relative to the objective: at most 1e-3.
    classes_, frequencies_, phases_, kernel_, history_, status_, smoothing_
        As in :class:`FourierFeatures`.

    Examples
    --------
    >>> from notsorandom import FourierClassifier
    >>> from notsorandom.datasets import make_windmill
    >>> X, y = make_windmill(1000, random_state=0)
    >>> FourierClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def _finish(self, rows: Rows, labels: Array, loss: MarginLoss) -> None:
        features = self.kernel_.features(rows.array)
        with Progress(labels.shape[1], "machines", shown=self.verbose > 0) as bar:
            machines = one_versus_rest(
                features, labels, loss, DUALITY_GAP, lambda task: bar.update(task + 1)
            )
        self.coef_ = np.stack([machine.coef for machine in machines])
        self.intercept_ = np.array([machine.intercept for machine in machines])
        self.duality_gap_ = max(machine.gap for machine in machines)
        self.features_ = FourierFeatures(**self.get_params(deep=False))
        shared = {name: value for name, value in vars(self).items() if name[-1] == "_"}
        for own in ("coef_", "intercept_", "duality_gap_"):
            del shared[own]
        vars(self.features_).update(shared)

    def decision_function(self, X: Any) -> Array:
        """Signed distance to the border, up to scale.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for ``classes_[1]`` of two classes; one column a class for more.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        features = self.kernel_.features(X)
        scores = features @ self.coef_.T.astype(features.dtype)
        scores += self.intercept_.astype(features.dtype)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Class of each sample."""
        scores = self.decision_function(X)
        labels: Array = self.classes_[predicted_codes(scores.reshape(len(scores), -1))]
        return labels


def check_choice(name: str, value: Any, allowed: Any) -> None:
    """Raise ValueError unless the value is one of the allowed names."""
    if not isinstance(value, str) or value not in allowed:
        choices = ", ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{name}={value!r} is not allowed: choose one of {choices}.")


def check_number(
    name: str,
    value: Any,
    kind: type,
    *,
    above: float | None = None,
    least: float | None = None,
    or_else: str = "",
) -> None:
    """Raise ValueError unless the value is a finite number of the kind and in its range."""
    good = isinstance(value, kind) and not isinstance(value, bool) and np.isfinite(value)
    if good and (above is None or value > above) and (least is None or value >= least):
        return
    number = "an int" if kind is Integral else "a finite number"
    limit = f"> {above}" if above is not None else f">= {least}"
    options = f"{or_else} or {number} {limit}" if or_else else f"{number} {limit}"
    raise ValueError(f"{name}={value!r} is not allowed: it must be {options}.")


def named_object(name: str, value: Any, known: dict[str, Any]) -> Any:
    """Make the object that a name stands for, or check the object given, and copy it."""
    if isinstance(value, str):
        check_choice(name, value, known)
        return known[value]()
    if not isinstance(value, tuple(known.values())):
        choices = ", ".join(repr(choice) for choice in known)
        raise ValueError(
            f"{name}={value!r} is not allowed: choose one of {choices}, or give an object such as "
            f"{next(iter(known.values())).__name__}()."
        )
    value.check()
    return clone(value)
