"""A classifier on learned features."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from notsorandom.data.array_api import asarray_like, to_host
from notsorandom.data.rows import Array
from notsorandom.estimators.predictor import FourierPredictor
from notsorandom.estimators.validation import read_labelled
from notsorandom.game.losses import CLASSIFICATION_LOSSES, LOSSES, Loss
from notsorandom.game.problem import codes_from_scores
from notsorandom.search.base import Search
from notsorandom.spaces.base import Space
from notsorandom.spaces.view import View
from notsorandom.tuning.choice import Choice, FitConfig

if TYPE_CHECKING:
    from notsorandom.tuning.conformal import HeldOutScores


def log_probabilities(scores: Array, temperature: float) -> Array:
    """Return the logarithms of the class probabilities, one column per class.

    The scores, of shape (n_samples, n_tasks), are divided by the temperature. Then one column goes
    through the logistic function, several go through softmax.
    """
    exact = scores.astype(np.float64)
    with np.errstate(over="ignore"):  # minus infinity is right where a logarithm overflows
        if scores.shape[1] == 1:
            odds = exact[:, 0] / temperature
            # Never the logarithm of a probability, which may be rounded to 0 or 1.
            logarithms = -np.logaddexp(0, np.column_stack([odds, -odds]))
        else:
            # The largest score is subtracted before the division can make it infinite.
            below = exact - exact.max(axis=1, keepdims=True)
            logarithms = log_softmax(below / temperature, axis=1)
        logarithms = logarithms.astype(scores.dtype)
    if logarithms.dtype == np.float32:  # as the probabilities themselves, which are one there
        logarithms[logarithms > -np.finfo(np.float32).eps / 2] = 0
    return logarithms


class ProbabilityMethod:
    """A method that a classifier has only if its loss gives probabilities.

    Like scikit-learn's ``available_if``, but the error itself says what to do.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self.method
        loss = LOSSES.get(model.loss) if isinstance(model.loss, str) else model.loss
        if not getattr(loss, "gives_probabilities", False):
            raise AttributeError(
                f"loss={model.loss!r} gives no probabilities, so there is no "
                f"{self.method.__name__}: fit with loss='logistic', or wrap the model in "
                "scikit-learn's CalibratedClassifierCV(model, ensemble=False)."
            )
        return MethodType(self.method, model)


class FourierClassifier(ClassifierMixin, FourierPredictor):
    r"""A linear classifier on Fourier features learned from the same labels.

    A kernel is a measure over frequencies, which a game finds: one player searches for the wave
    that best separates the classes, the other puts weight on the samples that are still
    misclassified. The features are the same as in :class:`notsorandom.FourierFeatures`.

    Columns should have comparable scales, as for ``SVC``: put a ``StandardScaler`` before it, or
    use :func:`notsorandom.tabular_pipeline`, which also encodes text, dates and gaps. Start with
    all defaults; `n_components` is the parameter to change first.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of features, without the columns of a linear part. More of them fit finer structure,
        and the time to predict grows in proportion. On the sphere's harmonics, where a frequency
        can be found again, there may be fewer. ``"auto"``: trials (see Notes) double it, from 100
        on, while that clearly reduces the held-out loss. On the sphere's harmonics it is 100.
    max_components : int, default=2000
        Most features that may be chosen.
    space : {"euclidean", "sphere"} or Space, default="euclidean"
        Where the samples live. ``"euclidean"`` is R^d: ordinary columns of numbers. ``"sphere"`` is
        for samples of norm one, such as normalised embeddings; see :class:`notsorandom.Sphere`.
    search : str or Search, default="auto"
        How the next frequency is found: as a peak of the potential, which measures how well a wave
        separates the weighted classes. ``"auto"`` is gradient ascent, and enumeration on the
        sphere's harmonics. ``"langevin"`` is the paper's; ``"thorough"`` misses fewer of the
        highest peaks, and takes long. There are ``"ascent"``, ``"enumerate"`` and ``"chain"``, too.
        On R^d the ascent starts from the Cauchy spectrum of Laplacian kernels or the Gaussian
        spectrum of RBF kernels. The trials choose one, and take the Gaussian one for samples of
        more than 128 columns that are projected; ``Ascent(spectrum="cauchy")`` or ``"gaussian"``
        sets it.
    phase : {"aligned", "paired"}, default="aligned"
        ``"aligned"`` gives one cosine per frequency, at the best phase for the labels. ``"paired"``
        gives cosine and sine, so that the kernel is translation-invariant; on the sphere's
        harmonics, the indices :math:`l_1` and :math:`-l_1` form one kernel.
    loss : {"logistic", "hinge", "squared_hinge"} or Loss, default="logistic"
        Loss in the game and in the final model. ``"logistic"`` gives probabilities; the others are
        losses of SVMs. A :class:`notsorandom.game.Loss` of class labels is multiplied by `C`. With
        more than two classes, the final model of ``"logistic"`` is multinomial, those of others
        are one-versus-rest.
    C : float, list of floats or "auto", default="auto"
        Inverse regularisation strength of the linear model, from 1e-30 to 1e30: higher fits the
        training data more closely. Trials choose from a list, or for ``"auto"`` from 0.03 to 3000.
    smoothing : float, list of floats or "auto", default="auto"
        Higher is smoother. Scale of the noise that blurs the samples, in units of their median
        distance, at most 1000: Gaussian noise with the Gaussian spectrum, Cauchy noise with the
        Cauchy spectrum. Trials choose from a list. ``"auto"`` is ``[0.07, 0.02, 0.2, 0.6]``
        for Gaussian and ``[0.02, 0.005, 0.07, 0.2, 0.002]`` for Cauchy noise.
    solver : {"gradient", "reweight", "equilibrium"} or Solver, default="gradient"
        How the game is solved. ``"gradient"`` is the paper's online gradient ascent.
        ``"reweight"`` then weights the frequencies found so that the margin is largest, and drops
        those without weight. ``"equilibrium"`` computes the equilibrium itself, to a stated
        gap; on R^d it needs a limit of the frequencies or smoothing. A
        :class:`notsorandom.GradientSolver` sets step size, weights, projection and number of
        rounds.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights by class. ``"balanced"`` gives all classes the same total
        weight. A weight multiplies `C`, so leave that to the trials where a class is rare.
    linear : {"auto", True, False}, default="auto"
        Whether the kernel has a linear part: the columns of `X` beside the waves, under the same
        regularisation. The game then finds waves for what a linear model leaves over. ``"auto"``:
        trials use one only where it is clearly better, as on embeddings and words; they choose it
        where they choose the smoothing too. Not possible with ``solver="reweight"`` and
        ``"equilibrium"``, for dense samples of more than 4096 columns, and for sparse samples of
        more than 128 columns with losses other than ``"logistic"``. Certificates are for
        models without a linear part.
    optional_columns : str, array-like of int or str, or None, default=None
        Columns that trials may leave out, because they restate others: their numbers, their names,
        or a regular expression that finds their names. They are used unless the others alone are
        clearly better. They are left out if there are more than 128 columns with them, and all are
        used if there are more without them.
    warm_start : bool, default=False
        Continue the game of the last fit, which must have had ``warm_start=True`` too, the same
        data, and the same parameters except for more components or rounds: 50 features and then 100
        are the same as 100 at once. No effect with ``solver="equilibrium"``.
    checkpoint : str, Path, Checkpoint or None, default=None
        File that the state of the game is written to once a minute, so that a fit that was killed
        can continue: the next ``fit`` with the same data and parameters continues from it and ends
        with the same model; with others it raises an error that says what differs. The file is
        removed when the fit is done. Concurrent fits need a file each.
        ``Checkpoint(path, every=seconds)`` sets the interval.
    n_jobs : int or None, default=None
        Most threads that share the samples, each with one BLAS thread. None and -1: one per core;
        None also respects ``OMP_NUM_THREADS``. Little work is done by one thread. The model is the
        same for any number.
    random_state : int, RandomState instance or None, default=None
        Seed of the search's starting points, of the trials and of random splits.
    verbose : int, default=0
        If positive, show progress bars.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_components) or (n_classes, n_components)
        Weights of the learned features, then those of the columns of a linear part, if there is
        one: ``kernel_.n_components`` in all. In the multinomial model their sum over the classes is
        zero.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    duality_gap_ : float
        Duality gap of the final model, relative to the objective; the largest one of
        one-versus-rest models. They are solved to 1e-3; where that can't be reached, as with a
        huge `C`, a ``ConvergenceWarning`` says so.
    temperature_ : float
        Decision values are divided by it for probabilities.
    feature_importances_ : ndarray of shape (`n_features_in_`,)
        Shares of the columns in how predictions change, as `importances` returns them, of at most
        2000 training samples. Not on the sphere. ``SelectFromModel`` and ``RFE`` use `coef_`
        unless ``importance_getter="feature_importances_"`` is given.
    features_ : FourierFeatures
        The learned features as a fitted transformer.
    kernel_ : LearnedKernel
        The learned kernel, also as a callable for ``SVC(kernel=...)``.
    frequencies_ : ndarray of shape (n_frequencies, `n_features_in_`)
        In the order they were found. On the sphere's harmonics their indices, with one column
        fewer; for zonal features the poles times the degrees.
    phases_ : ndarray of shape (n_frequencies,)
        Zero on the sphere.
    average_kernel_ : LearnedKernel
        The kernel player's average play, which the paper's theorem is about.
    history_ : dict of str to ndarray
        One value per round; see :class:`notsorandom.game.Round`.
    status_ : {"complete", "stopped", "flat"}
        How the game ended: with all features or rounds, stopped early or by a callback, or with a
        potential that is zero everywhere.
    C_, smoothing_ : float
        The values that were given or chosen.
    spectrum_ : {"gaussian", "cauchy"} or None
        Spectrum of the ascent's starts; None for other searches and on the sphere.
    uses_linear_part_ : bool
        Whether the kernel has a linear part.
    uses_optional_columns_ : bool
        Whether the features depend on the `optional_columns`.
    tuning_ : dict of str to ndarray, or None
        What the trials found, one entry per setting tried; ``pandas.DataFrame(model.tuning_)`` is
        a table. Columns: spectrum, smoothing, n_columns, linear, C, n_components, loss,
        standard_error, temperature. `linear` is the weight of a linear part, 0 without one.
        None without trials.
    dual_, average_dual_ : ndarrays of shape (n_samples, n_tasks)
        One column for two classes, else one per class.
        The last dual point and the average over the game: dual variables times labels.
    validation_sizes_, validation_losses_, validation_scores_ : ndarrays
        With a chosen number of features: the numbers that trials compared, with the held-out loss
        that decides and the accuracy or R^2.
    held_out_scores_ : HeldOutScores
        Log losses of the samples that the trials held out; see `predict_set`.
    n_samples_fit_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        If `X` has column names that are all strings.

    See Also
    --------
    notsorandom.FourierRegressor : The same for real targets.
    notsorandom.FourierFeatures : The features alone, as a transformer.
    notsorandom.tabular_pipeline : For data frames as they are.

    Notes
    -----
    Trials choose `C`, smoothing and spectrum together, from the training data. Each setting plays a
    short game on a part of the samples. Linear models on its features are evaluated on the rest, by
    the log loss after division of the scores by the best temperature. Up to 1024 samples: 4-fold
    cross-validation. Above: one split of at most 4096 samples into halves, where first candidates
    are kept unless others are better by two standard errors. All settings play 24 frequencies, the
    best three about 100, and the best one as many as the fit if these are more; fewer in proportion
    to the square root of the share of the samples that they have. With fewer than 8 samples of a
    class there are no trials: the first candidates are taken, and 1 for ``C="auto"``. A choice can
    be reused (one trial remains, for the temperature)::

        FourierClassifier(
            C=model.C_, smoothing=model.smoothing_, search=Ascent(spectrum=model.spectrum_)
        )

    Features are learned from the samples that the final model is fitted to, so its own
    probabilities would be too confident. `temperature_` is the one with the least log loss on the
    held-out samples of the chosen setting, and corrects that on the average.

    Examples
    --------
    >>> from notsorandom import FourierClassifier
    >>> from notsorandom.datasets import make_windmill
    >>> X, y = make_windmill(1000, random_state=0)
    >>> FourierClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    _losses = CLASSIFICATION_LOSSES
    held_out_scores_: HeldOutScores

    def __init__(
        self,
        n_components: Any = "auto",
        *,
        max_components: int = 2000,
        space: str | Space = "euclidean",
        search: str | Search = "auto",
        phase: str = "aligned",
        loss: str | Loss = "logistic",
        C: Any = "auto",
        smoothing: Any = "auto",
        solver: Any = "gradient",
        class_weight: Any = None,
        linear: Any = "auto",
        optional_columns: Any = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.max_components = max_components
        self.space = space
        self.search = search
        self.phase = phase
        self.loss = loss
        self.C = C
        self.smoothing = smoothing
        self.solver = solver
        self.class_weight = class_weight
        self.linear = linear
        self.optional_columns = optional_columns
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def decision_function(self, X: Any) -> Any:
        """Return the signed distance to the decision boundary, up to scale.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, with the same columns as at fit.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for ``classes_[1]`` of two classes; one column per class for more. For an
            array API array `X`, of its kind and on its device.
        """
        scores = self._scores(X)
        return asarray_like(scores[:, 0] if scores.shape[1] == 1 else scores, X)

    def predict(self, X: Any) -> Any:
        """Return the class of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, with the same columns as at fit.

        Returns
        -------
        ndarray of shape (n_samples,)
            For an array API array `X` and numeric classes, of its kind and on its device.
        """
        codes = codes_from_scores(self._scores(X))
        labels = self.classes_[codes]
        return asarray_like(labels, X) if labels.dtype.kind in "biuf" else labels

    @ProbabilityMethod
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities of the classes; see `predict_proba`.

        They are finite where a probability is rounded to zero.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, with the same columns as at fit.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For an array API array `X`, of its kind and on its device.
        """
        check_is_fitted(self, "temperature_")
        return asarray_like(log_probabilities(self._scores(X), self.temperature_), X)

    @ProbabilityMethod
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, for ``loss="logistic"``.

        They are the logistic function of the decision values divided by `temperature_`, or softmax
        for more than two classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, with the same columns as at fit.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; rows sum to one. For an array API array `X`, of its kind
            and on its device.
        """
        check_is_fitted(self, "temperature_")
        return asarray_like(np.exp(log_probabilities(self._scores(X), self.temperature_)), X)

    @ProbabilityMethod
    def predict_set(self, X: Any, coverage: Any = 0.9) -> Any:
        """Return sets of classes that contain the true one with a given probability.

        They are conformal: a class is in the set if its probability is at least what covers this
        share of the samples that the trials held out. A set has more than one class where the model
        is not sure, and may be empty where no class is likely, as if `coverage` is below the
        accuracy. With a `class_weight`, the coverage is of the weighted classes, until `calibrate`
        is called. For ``loss="logistic"``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, with the same columns as at fit.
        coverage : float or array-like of float, default=0.9
            Probability, between 0 and 1, or several. With `n` held-out samples, at most
            ``n / (n + 1)``.

        Returns
        -------
        boolean ndarray of shape (n_samples, n_classes)
            In the order of `classes_`, with one more axis at the end for several coverages. For an
            array API array `X`, of its kind and on its device.
        """
        thresholds = self._thresholds(coverage)
        losses = -log_probabilities(self._scores(X), self.temperature_)
        if np.ndim(thresholds):
            losses = losses[:, :, None]
        return asarray_like(losses.astype(np.float32) <= thresholds, X)

    def _thresholds(self, coverage: Any) -> Array:
        """Return the largest losses of classes in a set, or raise an error."""
        check_is_fitted(self, "temperature_")
        if not hasattr(self, "held_out_scores_"):
            from notsorandom.tuning.held_out import MIN_CLASS_SAMPLES

            raise ValueError(
                "predict_set is not possible: no samples were held out, because a class has too "
                f"few. It needs {MIN_CLASS_SAMPLES} of each: fit to more, or call calibrate with "
                "other samples."
            )
        return self.held_out_scores_.quantiles(coverage)[0]

    @ProbabilityMethod
    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> FourierClassifier:
        """Set what `predict_set` needs from samples that the model was not fitted to.

        Classes and probabilities stay the same. Sets then have at least the asked coverage for new
        samples like these, by the theorem of split conformal prediction.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, with the same columns as at fit.
        y : array-like of shape (n_samples,)
            Their classes, all of them.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 2 counts a sample twice, weight 0 leaves it out.

        Returns
        -------
        self
        """
        from notsorandom.tuning.conformal import HeldOutScores
        from notsorandom.tuning.held_out import row_counts

        check_is_fitted(self, "temperature_")
        unweighted = copy.copy(self)
        unweighted.class_weight = None  # coverage is of samples as they come
        problem = read_labelled(unweighted, X, y, sample_weight)
        scores = to_host(self.kernel_.scores(problem.rows, self.coef_, self.intercept_))
        losses = -log_probabilities(scores, self.temperature_)
        own = np.take_along_axis(losses, problem.strata()[:, None].astype(int), axis=1)
        self.held_out_scores_ = HeldOutScores.of(own, row_counts(problem))
        return self

    def _store_choice(self, config: FitConfig, view: View, choice: Choice) -> None:
        super()._store_choice(config, view, choice)
        losses, counts = choice.held_out_losses, choice.held_out_counts
        if losses is not None and counts is not None:
            from notsorandom.tuning.conformal import HeldOutScores  # needed by fits only

            self.held_out_scores_ = HeldOutScores.of(losses[:, None], counts)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, with the same columns as at fit.
        y : array-like of shape (n_samples,)
            True classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
        """
        truth, predicted, weights = map(to_host, (y, self.predict(X), sample_weight))
        return float(accuracy_score(truth, predicted, sample_weight=weights))
