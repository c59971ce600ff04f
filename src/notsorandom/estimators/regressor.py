"""A regressor on learned features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from notsorandom.data.array_api import asarray_like, to_host
from notsorandom.data.rows import Array, Rows
from notsorandom.estimators.config import fitted_loss
from notsorandom.estimators.predictor import FourierPredictor
from notsorandom.estimators.steps import FinalFit
from notsorandom.estimators.validation import read_labelled
from notsorandom.game.losses import REGRESSION_LOSSES, Loss
from notsorandom.search.base import Search
from notsorandom.spaces.base import Space

if TYPE_CHECKING:
    from notsorandom.linear.fit import LinearFit
    from notsorandom.linear.ridge import RidgePosterior
    from notsorandom.tuning.conformal import HeldOutScores


class FourierRegressor(MultiOutputMixin, RegressorMixin, FourierPredictor):
    r"""A linear regression on Fourier features learned from the same targets.

    A kernel is a measure over frequencies, which a game finds: one player searches for the wave
    that correlates most with the residuals, the other updates the residuals. With
    ``calibration_size=0`` the features are those of :class:`notsorandom.FourierFeatures`. Standard
    deviations and intervals of the predictions come from samples that the game has not seen.

    Columns should have comparable scales, as for ``SVR``: put a ``StandardScaler`` before it, or
    use :func:`notsorandom.tabular_pipeline`, which also encodes text, dates and gaps. The unit of
    the targets doesn't matter. Start with all defaults; `n_components` is the parameter to change
    first.

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
        correlates with the residuals. ``"auto"`` is gradient ascent, and enumeration on the
        sphere's harmonics. ``"langevin"`` is the paper's; ``"thorough"`` misses fewer of the
        highest peaks, and takes long. There are ``"ascent"``, ``"enumerate"`` and ``"chain"``, too.
        On R^d the ascent starts from the Cauchy spectrum of Laplacian kernels or the Gaussian
        spectrum of RBF kernels. The trials choose one, and take the Gaussian one for samples of
        more than 128 columns that are projected; ``Ascent(spectrum="cauchy")`` or ``"gaussian"``
        sets it.
    phase : {"aligned", "paired"}, default="aligned"
        ``"aligned"`` gives one cosine per frequency, at the best phase for the targets.
        ``"paired"`` gives cosine and sine, so that the kernel is translation-invariant; on the
        sphere's harmonics, the indices :math:`l_1` and :math:`-l_1` form one kernel.
    loss : {"squared", "epsilon_insensitive", "quantile"} or Loss, default="squared"
        ``C * residual ** 2``, as in kernel ridge regression; ``C * max(0, abs(residual) -
        epsilon)``, as in support vector regression; or the pinball loss ``C * max(q * residual,
        (q - 1) * residual)`` of the `quantile` `q`. A :class:`notsorandom.game.Loss` of real
        targets is multiplied by `C`, such as Huber's loss
        ``QuadraticLoss(upper=1.0, curvature=1.0, start=0.5, one_sided=False)``.
    C : float, list of floats or "auto", default="auto"
        Inverse regularisation strength of the linear model, from 1e-30 to 1e30: higher fits the
        training data more closely. Trials choose from a list, or for ``"auto"`` from 0.03 to 3000,
        and up to 3e7 for real targets with little noise; with ``"epsilon_insensitive"`` and
        ``"quantile"`` times the standard deviation of the targets.
    epsilon : float or "auto", default="auto"
        Residuals below it cost nothing with ``loss="epsilon_insensitive"``, in the unit of the
        targets. ``"auto"`` is a tenth of their standard deviation.
    quantile : float, default=0.5
        The quantile to predict with ``loss="quantile"``, between 0 and 1; 0.5 is the median. About
        this share of the training targets is below the predictions. Several quantiles are fitted
        separately, so their predictions may cross: sort them if they do.
    smoothing : float, list of floats or "auto", default="auto"
        Higher is smoother. Scale of the noise that blurs the samples, in units of their median
        distance, at most 1000: Gaussian noise with the Gaussian spectrum, Cauchy noise with the
        Cauchy spectrum. Trials choose from a list. ``"auto"`` is ``[0.07, 0.02, 0.2, 0.6]``
        for Gaussian and ``[0.02, 0.005, 0.07, 0.2, 0.002]`` for Cauchy noise.
    solver : {"gradient", "reweight", "equilibrium"} or Solver, default="gradient"
        How the game is solved. ``"gradient"`` is the paper's online gradient ascent.
        ``"reweight"`` then weights the frequencies found so that the objective of the final model
        is smallest, and drops those without weight. ``"equilibrium"`` computes the equilibrium
        itself, to a stated gap; on R^d it needs a limit of the frequencies or smoothing. A
        :class:`notsorandom.GradientSolver` sets step size, weights, projection and number of
        rounds.
    linear : {"auto", True, False}, default="auto"
        Whether the kernel has a linear part: the columns of `X` beside the waves, under the same
        regularisation. The game then finds waves for what a linear model leaves over. ``"auto"``:
        trials use one only where it is clearly better, as on embeddings and words; they choose it
        where they choose the smoothing too. Not possible with ``solver="reweight"`` and
        ``"equilibrium"``, for dense samples of more than 4096 columns, and for sparse samples of
        more than 128 columns with losses other than ``"squared"``. Certificates are for
        models without a linear part.
    calibration_size : int or "auto", default="auto"
        With ``loss="squared"``, the number of samples that the features are not learned from: they
        tell how uncertain predictions are; see `predict_interval`. The final model is fitted to all
        samples. ``"auto"`` is a fifth of them, at most 2000, and none for solvers that compute an
        equilibrium. 0 for none.
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
    n_outputs_ : int
    coef_ : ndarray of shape (n_outputs, n_components)
        Weights of the learned features, then those of the columns of a linear part, if there is
        one: ``kernel_.n_components`` in all.
    intercept_ : ndarray of shape (n_outputs,)
    duality_gap_ : float
        Largest duality gap of the final models, relative to the objective. They are solved to 1e-3;
        where that can't be reached, as with a huge `C`, a ``ConvergenceWarning`` says so.
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
    epsilon_ : float
        The epsilon that was given or chosen.
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
        One column per output.
        The last dual point and the average over the game.
    validation_sizes_, validation_losses_, validation_scores_ : ndarrays
        With a chosen number of features: the numbers that trials compared, with the held-out loss
        that decides and the accuracy or R^2.
    noise_ : ndarray of shape (n_outputs,)
        Standard deviation of the noise, estimated on the held-out samples.
    posterior_ : RidgePosterior or None
        The posterior variance of the final model, in units of the noise variance; None for more
        than 2048 features and for many sparse columns: intervals have the same width everywhere.
    held_out_scores_ : HeldOutScores
        Residuals of the held-out samples in units of their deviation.
    n_samples_fit_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        If `X` has column names that are all strings.

    See Also
    --------
    notsorandom.FourierClassifier : The same for classes.
    notsorandom.FourierFeatures : The features alone, as a transformer.
    notsorandom.tabular_pipeline : For data frames as they are.

    Notes
    -----
    Trials choose `C`, smoothing and spectrum together, from the training data. Each setting plays a
    short game on a part of the samples. Linear models on its features are evaluated on the rest, by
    the squared error, or the pinball loss for quantiles. Up to 1024 samples: 4-fold
    cross-validation. Above: one split of at most 4096 samples into halves, where first candidates
    are kept unless others are better by two standard errors. All settings play 24 frequencies, the
    best three about 100, and the best one as many as the fit if these are more; fewer in proportion
    to the square root of the share of the samples that they have. With fewer than 8 samples there
    are no trials: the first candidates are taken, and 1 for ``C="auto"``. A choice can be reused::

        FourierRegressor(
            C=model.C_, smoothing=model.smoothing_, search=Ascent(spectrum=model.spectrum_)
        )

    Examples
    --------
    >>> import numpy as np
    >>> from notsorandom import FourierRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 2))
    >>> y = np.sin(5 * X[:, 0] - 3 * X[:, 1])
    >>> FourierRegressor(20, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    _losses = REGRESSION_LOSSES
    posterior_: RidgePosterior | None
    held_out_scores_: HeldOutScores

    def __init__(
        self,
        n_components: Any = "auto",
        *,
        max_components: int = 2000,
        space: str | Space = "euclidean",
        search: str | Search = "auto",
        phase: str = "aligned",
        loss: str | Loss = "squared",
        C: Any = "auto",
        epsilon: Any = "auto",
        quantile: float = 0.5,
        smoothing: Any = "auto",
        solver: Any = "gradient",
        linear: Any = "auto",
        calibration_size: Any = "auto",
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
        self.epsilon = epsilon
        self.quantile = quantile
        self.smoothing = smoothing
        self.solver = solver
        self.linear = linear
        self.calibration_size = calibration_size
        self.optional_columns = optional_columns
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, with the same columns as at fit.
        return_std : bool, default=False
            Whether to return the standard deviation of each target around its prediction too, as
            scikit-learn's Gaussian processes do. It is that of the posterior of a Bayesian linear
            model on the learned features, and of the noise. The noise is estimated on rows that
            the features were not learned from. For ``loss="squared"``.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            For an array API array `X`, of its kind and on its device.
        std : ndarray of the same shape
            Only if `return_std` is true.
        """
        if not return_std:
            return self._output(self._scores(X), X)
        self._check_held_out("return_std=True")
        with self._rows(X) as rows:
            scores, deviations = self._evaluate(rows)
        deviations = (deviations * self.noise_).astype(scores.dtype)
        return self._output(scores, X), self._output(deviations, X)

    def predict_interval(self, X: Any, coverage: Any = 0.9) -> Any:
        """Return intervals that cover the targets with a given probability.

        They are conformal: as wide as it takes to cover this share of the rows that the features
        were not learned from, each predicted from all other rows. Their width follows the standard
        deviation of the posterior; see `predict`. For ``loss="squared"``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, with the same columns as at fit.
        coverage : float or array-like of float, default=0.9
            Probability, between 0 and 1, or several. With `n` held-out rows, at most
            ``n / (n + 1)``.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper limits, with one more axis at the end for several coverages. For an
            array API array `X`, of its kind and on its device.
        """
        thresholds = self._thresholds(coverage)  # (n_outputs, ...)
        with self._rows(X) as rows:
            scores, deviations = self._evaluate(rows)
        middle = scores.reshape(*scores.shape, *[1] * (thresholds.ndim - 1))
        widths = deviations.reshape(-1, *[1] * thresholds.ndim) * thresholds
        intervals = np.stack([middle - widths, middle + widths], axis=2).astype(scores.dtype)
        return asarray_like(intervals[:, 0] if self._flat else intervals, X)

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> FourierRegressor:
        """Estimate noise and intervals anew, from samples that the model was not fitted to.

        The predictions stay the same. Intervals then have at least the asked coverage for new
        samples like these, by the theorem of split conformal prediction.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, with the same columns as at fit.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 2 counts a sample twice, weight 0 leaves it out.

        Returns
        -------
        self
        """
        from notsorandom.tuning.conformal import HeldOutScores

        check_is_fitted(self)
        self._check_squared_loss("calibrate")
        problem = read_labelled(self, X, y, sample_weight)
        scores, deviations = self._evaluate(problem.rows)
        residuals = (problem.targets - scores) / deviations
        self.held_out_scores_, self.noise_ = HeldOutScores.of_residuals(residuals, problem)
        return self

    def _output(self, values: Array, X: Any) -> Any:
        """Return one column per output as `predict` returns them."""
        return asarray_like(values[:, 0] if self._flat else values, X)

    def _evaluate(self, rows: Rows) -> tuple[Array, Array]:
        """Return predictions, and their deviations in units of that of the noise.

        They have the shapes (n_samples, n_outputs) and (n_samples, 1). The deviations are one
        without a posterior.
        """
        kernel, posterior = self.kernel_, getattr(self, "posterior_", None)
        scores = to_host(kernel.scores(rows, self.coef_, self.intercept_))
        if posterior is None:
            return scores, np.ones((len(scores), 1))
        features, compute = kernel.feature_map(rows.dtype), posterior.variance_map()
        variances = rows.map(
            lambda block: compute(to_host(features(block)))[:, None],
            width=kernel.width,
        )
        return scores, np.sqrt(1 + variances)

    def _store_uncertainty(self, final: FinalFit, found: LinearFit) -> None:
        if fitted_loss(self).is_squared_error:
            self.posterior_ = found.posterior
        if not len(final.held_out):
            return
        from notsorandom.tuning.conformal import score_held_out  # needed by fits only

        self.held_out_scores_, self.noise_ = score_held_out(
            final.kernel, final.problem, found, final.game_problem, final.held_out
        )

    def _thresholds(self, coverage: Any) -> Array:
        """Return half widths of intervals, in units of the deviation, or raise an error."""
        self._check_held_out("predict_interval")
        return self.held_out_scores_.quantiles(coverage)

    def _check_squared_loss(self, name: str) -> None:
        if not fitted_loss(self).is_squared_error:
            raise ValueError(
                f"{name} is not possible with loss={self.loss!r}: fit with loss='squared', or fit "
                "two models with loss='quantile', for the limits of an interval."
            )

    def _check_held_out(self, name: str) -> None:
        """Raise an error unless the model has scores of held-out rows."""
        check_is_fitted(self)
        self._check_squared_loss(name)
        if not hasattr(self, "held_out_scores_"):
            from notsorandom.tuning.conformal import HELD_OUT_RATIO

            raise ValueError(
                f"{name} is not possible: no samples were held out, because there were fewer than "
                f"{HELD_OUT_RATIO}, calibration_size is 0, or the solver computes an equilibrium. "
                "Set calibration_size and fit again, or call calibrate with other samples."
            )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, averaged over the outputs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, with the same columns as at fit.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            True targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
        """
        truth, predicted, weights = map(to_host, (y, self.predict(X), sample_weight))
        return float(r2_score(truth, predicted, sample_weight=weights))
