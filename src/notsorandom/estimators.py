"""The scikit-learn estimators: validate, play, store."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from notsorandom.certify import certify
from notsorandom.game import LOSSES, Certificate, Player
from notsorandom.kernel import LearnedKernel
from notsorandom.learning import DUALITY_GAP, DYNAMICS, WEIGHTINGS, Game, predicted_codes, signs
from notsorandom.linear import decide, solve_machines
from notsorandom.parameters import check_choice, check_flag, check_number, named_object
from notsorandom.progress import Progress
from notsorandom.rows import Array, Rows
from notsorandom.search import SEARCHES
from notsorandom.spaces import SPACES

# What a game teaches an estimator; a transformer needs no more than this.
LEARNED = (
    "classes_",
    "kernel_",
    "frequencies_",
    "phases_",
    "history_",
    "status_",
    "smoothing_",
    "dual_",
    "average_dual_",
    "average_kernel_",
    "n_features_in_",
    "feature_names_in_",
)


class _FourierEstimator(BaseEstimator):
    """Parameters and fitting that the transformer and the classifier have in common."""

    def __init__(
        self,
        n_components: int = 100,
        *,
        n_rounds: Any = "auto",
        space: Any = "euclidean",
        search: Any = "auto",
        phase: str = "aligned",
        loss: str = "hinge",
        C: float = 1.0,
        smoothing: Any = "auto",
        weighting: str = "potential",
        learning_rate: Any = "auto",
        dynamics: str = "gradient",
        reweight: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_rounds = n_rounds
        self.space = space
        self.search = search
        self.phase = phase
        self.loss = loss
        self.C = C
        self.smoothing = smoothing
        self.weighting = weighting
        self.learning_rate = learning_rate
        self.dynamics = dynamics
        self.reweight = reweight
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
                f"y has only one class, {self.classes_.tolist()[0]!r}, but {type(self).__name__} "
                "learns to tell classes apart: give it samples of at least two."
            )
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        # Two streams: the game is the same whether its smoothing was chosen or given.
        rng, choice_rng = np.random.default_rng(seed).spawn(2)
        rows = Rows(game.space.prepare(X))
        player = Player(game.loss, signs(codes, len(self.classes_), X.dtype))
        n_rounds = None if self.n_rounds == "auto" else int(self.n_rounds)
        if self.smoothing == "auto":
            self.smoothing_ = game.choose_smoothing(
                rows, codes, player, self.n_components, n_rounds, choice_rng, self.verbose
            )
        else:
            self.smoothing_ = float(self.smoothing)
        result, self.kernel_ = game.play(
            rows,
            player,
            self.n_components,
            self.smoothing_,
            rng,
            n_rounds,
            self.verbose,
        )
        self.frequencies_ = self.kernel_.frequencies
        self.phases_ = self.kernel_.phases
        self.dual_, self.average_dual_ = result.dual, result.average_dual
        self.average_kernel_ = LearnedKernel.from_game(result, result.weights, self.phase)
        self.history_ = result.history
        self.status_ = result.status
        self._finish(rows, player)

    def _finish(self, rows: Rows, player: Player) -> None:
        """Do what is left once the kernel is learned."""

    def certificate(self, X: Any, y: Any, bandwidth: float | None = None) -> Certificate:
        """Bound how far the learned kernel is from the best one for the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training samples, which as many samples as there were at fit are taken for. Others
            give bounds that are as valid, for a kernel that was not learned for them.
        y : array-like of shape (n_samples,)
        bandwidth : float, optional
            The kernels it is compared with have no frequencies longer than this; by default than
            its own.

        Returns
        -------
        Certificate
        """
        rows, player = self._training_data(X, y)
        game = self._game()
        if bandwidth is not None:
            check_number("bandwidth", bandwidth, above=0)
        same = len(self.dual_) == len(rows)
        average = getattr(self, "average_kernel_", None) if "plays" in self.history_ else None
        duals = [("the last dual", self.dual_), ("the average dual", self.average_dual_)]
        return certify(
            self.kernel_,
            rows,
            player,
            duals if same else [],
            game.search,
            np.random.default_rng(0),
            bandwidth,
            (average, self.history_) if same and average is not None else None,
        )

    def report(
        self,
        path: Any,
        X: Any,
        y: Any,
        *,
        X_test: Any = None,
        y_test: Any = None,
        image_shape: Any = None,
        title: str | None = None,
    ) -> Any:
        """Write a page about the model that opens in any browser: one file, no network.

        It shows the spectrum, how the game went with its bounds, accuracy by number of features,
        the confusion matrix; for two features and two classes, a slider through the rounds.

        Parameters
        ----------
        path : str or Path
            The HTML file to write.
        X, y : array-likes
            The training data.
        X_test, y_test : array-likes, optional
            Accuracies are measured on these; otherwise on the training data, and it says so.
        image_shape : (height, width) or (height, width, n_channels), optional
            If the columns are pixels: the heaviest frequencies are shown as images.
        title : str, optional

        Returns
        -------
        Path
        """
        from notsorandom.report import write_report  # the one way back through the house

        return write_report(
            self, path, X, y, X_test=X_test, y_test=y_test, image_shape=image_shape, title=title
        )

    def _training_data(self, X: Any, y: Any) -> tuple[Rows, Player]:
        """Samples and labels given once more after the fit, as the game takes them."""
        check_is_fitted(self)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], reset=False)
        classes, codes = np.unique(y, return_inverse=True)
        if not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"y has {shortened(classes)}, but this {type(self).__name__} takes samples of just "
                f"the classes seen at fit, {shortened(self.classes_)}."
            )
        loss = LOSSES[self.loss](float(self.C))
        player = Player(loss, signs(codes, len(classes), X.dtype))
        return Rows(self.kernel_.space.prepare(X)), player

    def _game(self) -> Game:
        """Check every parameter, and put the game together."""
        check_choice("phase", self.phase, ["aligned", "paired"])
        check_choice("loss", self.loss, LOSSES)
        check_choice("weighting", self.weighting, WEIGHTINGS)
        check_choice("dynamics", self.dynamics, DYNAMICS)
        check_flag("reweight", self.reweight)
        check_number("n_components", self.n_components, above=0, integer=True)
        check_number("n_rounds", self.n_rounds, above=0, integer=True, or_else=["auto"])
        check_number("C", self.C, above=0)
        check_number("smoothing", self.smoothing, least=0, or_else=["auto"])
        check_number("learning_rate", self.learning_rate, above=0, or_else=["auto", "theory"])
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose, least=0, integer=True)
        space = named_object("space", self.space, SPACES, needs=["check", "prepare", "resolve"])
        search = named_object("search", self.search, SEARCHES, needs=["check", "find"])
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
            dynamics=self.dynamics,
            reweight=self.reweight,
        )

    def _learned(self) -> dict[str, Any]:
        """What the game taught, by attribute."""
        return {name: getattr(self, name) for name in LEARNED if hasattr(self, name)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def shortened(classes: Array) -> str:
    """The first few of some classes, for a message."""
    names = [repr(name) for name in classes.tolist()]
    return ", ".join(names[:10]) + (f", ... ({len(names)} in all)" if len(names) > 10 else "")


class FourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _FourierEstimator):
    r"""Fourier features learned from labels: a kernel found, not guessed.

    A kernel is a measure over frequencies. This transformer finds the frequencies by a game in
    which one player looks for the wave that best tells the classes apart and the other puts
    weight on the samples it gets wrong. A linear model on a hundred such features does what
    thousands of random ones don't.

    Parameters
    ----------
    n_components : int, default=100
        Number of real output features. On the sphere's harmonics, which can be found again, there
        may be fewer.
    n_rounds : int or "auto", default="auto"
        The game ends after so many rounds at the latest. ``"auto"`` is `n_components`.
    space : {"euclidean", "sphere"} or a space, default="euclidean"
        Where the samples live. On the sphere they must be of norm one; see
        :class:`notsorandom.Sphere`.
    search : {"auto", "ascent", "langevin", "enumerate", "chain"} or a search, default="auto"
        How a peak is found. ``"auto"`` climbs (``"ascent"``), but on the sphere's harmonics looks
        at all of them (``"enumerate"``).
    phase : {"aligned", "paired"}, default="aligned"
        ``"aligned"`` gives one cosine a frequency, at the phase that serves the labels best.
        ``"paired"`` gives cosine and sine, so that the kernel itself is translation-invariant.
        On the sphere's harmonics, which are real, it takes those of :math:`\pm l_1` together.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The SVM whose margin is maximised.
    C : float, default=1.0
        Its inverse regularisation.
    smoothing : float or "auto", default="auto"
        Standard deviation of the noise that the samples are thought to carry, as a fraction of
        their median distance. More of it favours low frequencies. ``"auto"`` compares a few
        values on a held-out part of the training data, at less than the cost of the fit (with
        fewer than 30 frequencies or rounds to go, it is 0.06).
    weighting : {"potential", "uniform"}, default="potential"
        How much of the kernel each frequency gets: in proportion to the amplitude of the peak it
        was found at, or all the same, as in the paper.
    learning_rate : "auto", "theory" or float, default="auto"
        Step size of the dual player; see :func:`notsorandom.game.play`.
    dynamics : {"gradient", "primal_dual"}, default="gradient"
        How the players come to the equilibrium. ``"gradient"`` is the paper's play, which stops on
        the way there. ``"primal_dual"``, for the sphere's harmonics, goes there at once, to a
        relative gap of 1e-3 between the bounds of :meth:`certificate` (with ``smoothing=0`` and
        enough `n_components`); it holds all harmonics of all samples in memory.
    reweight : bool, default=False
        Weight the frequencies found so that the margin is largest, and drop those that have no
        weight then. A better margin isn't always a better accuracy.
    random_state : int, RandomState instance or None, default=None
        Seed of the search's starting points.
    verbose : int, default=0
        If 1, show a progress bar with the current potential.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_frequencies, n_features_in_)
        In the order they were found. On the sphere, indices of harmonics, one number fewer, or for
        zonal features their poles times their degrees.
    phases_ : ndarray of shape (n_frequencies,)
        Zero on the sphere.
    kernel_ : LearnedKernel
    classes_ : ndarray of shape (n_classes,)
    history_ : dict of str to ndarray
        One value a round; see :class:`notsorandom.game.Round`.
    status_ : {"complete", "flat"}
    smoothing_ : float
    dual_, average_dual_ : ndarrays of shape (n_samples, n_tasks)
        Where the dual player ended, and where it was on average: dual variables times labels.
    average_kernel_ : LearnedKernel
        The kernel player's average play, of which the paper's theorem speaks.
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
        so one fit gives every smaller size. On the sphere's harmonics, those found again later
        have the weight of the longer game; with ``reweight=True`` they are the first of those
        that were kept.
        """
        check_is_fitted(self)
        kernel = self.kernel_.head(n_components)
        shorter = clone(self).set_params(n_components=n_components)
        shorter.__dict__ |= self._learned()
        shorter.__dict__.pop("average_kernel_", None)  # that of the whole game
        shorter.kernel_ = kernel
        shorter.frequencies_, shorter.phases_ = kernel.frequencies, kernel.phases
        if not self.reweight:
            count = len(kernel.weights)
            n_rounds = 1 + int(np.searchsorted(self.history_["n_frequencies"], count))
            shorter.history_ = {name: column[:n_rounds] for name, column in self.history_.items()}
            shorter.history_["n_frequencies"] = np.minimum(shorter.history_["n_frequencies"], count)
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
    n_components, n_rounds, space, search, phase, loss, C, smoothing, weighting, learning_rate, \
    dynamics, reweight
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
        Largest duality gap of the final SVMs, relative to the objective. They are solved to 1e-3;
        where that can't be reached (at a huge `C`), a ``ConvergenceWarning`` says so.
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

    def _finish(self, rows: Rows, player: Player) -> None:
        features = self.kernel_.features_of(rows)
        with Progress(player.targets.shape[1], "machines", shown=self.verbose > 0) as bar:
            self.coef_, self.intercept_, self.duality_gap_ = solve_machines(
                features, player, DUALITY_GAP, bar.update
            )
        self.features_ = FourierFeatures(**self.get_params(deep=False))
        self.features_.__dict__ |= self._learned()
        if not self.duality_gap_ <= DUALITY_GAP:
            warnings.warn(
                f"The final SVM was solved to a relative duality gap of {self.duality_gap_:.1e}, "
                f"not to {DUALITY_GAP:.0e}: try a smaller C.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def decision_function(self, X: Any) -> Array:
        """Signed distance to the border, up to scale.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for ``classes_[1]`` of two classes; one column a class for more.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        scores = decide(self.kernel_.features(X), self.coef_, self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Class of each sample."""
        scores = self.decision_function(X)
        return self.classes_[predicted_codes(scores.reshape(len(scores), -1))]
