"""The learned features as a transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from notsorandom._utils.threads import thread_pool
from notsorandom.data.rows import Rows
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.samples import read_samples
from notsorandom.game.losses import Loss
from notsorandom.kernel import LearnedKernel
from notsorandom.search.base import Search
from notsorandom.spaces.base import Space


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin that makes an estimator with a `kernel_` a transformer."""

    kernel_: LearnedKernel
    n_jobs: int | None = None  # for classes without this parameter

    def transform(self, X: Any) -> Any:
        """Map samples to the features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or an array API array, such as a tensor, on any device.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            For an array API array `X`, of its kind and on its device. With a linear part, the
            columns of `X` are the last ones, centred and scaled; sparse `X` of more than 128
            columns then have sparse features.
        """
        check_is_fitted(self)
        X, kernel = read_samples(self, X), self.kernel_
        with thread_pool(self.n_jobs, work=X.shape[0] * kernel.frequencies.size) as pool:
            rows = Rows(kernel.space.prepare(X), pool=pool)
            return kernel.device_features(rows)

    @property
    def _n_features_out(self) -> int:
        return self.kernel_.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class FourierFeatures(KernelTransformer, FourierEstimator):
    r"""Fourier features learned from labels.

    A kernel is a measure over frequencies. This transformer finds the frequencies by a game: one
    player searches for the wave that best separates the classes, the other puts weight on the
    samples that are still misclassified. A linear model on a hundred such features does what
    thousands of random ones do not.

    Parameters
    ----------
    n_components : int or "auto", default=100
        Number of features. More of them fit finer structure, and the time to predict grows in
        proportion. On the sphere's harmonics, where a frequency can be found again, there may be
        fewer. ``"auto"``: trials (see Notes) double it, from 100 on, while that clearly reduces the
        held-out loss. On the sphere's harmonics it is 100.
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
    loss : str or Loss, default="logistic"
        Loss of the model that the features are learned for. For classes ``"logistic"``, or
        ``"hinge"`` or ``"squared_hinge"`` of SVMs. For real targets ``"squared"``, ``C * residual
        ** 2``, ``"epsilon_insensitive"``, ``C * max(0, abs(residual) - epsilon)``, or
        ``"quantile"``, ``C / 2 * abs(residual)``, of the median. A
        :class:`notsorandom.game.Loss` is multiplied by `C`, such as ``QuantileLoss(quantile=0.9)``.
    C : float, list of floats or "auto", default="auto"
        Inverse regularisation strength of the linear model, from 1e-30 to 1e30: higher fits the
        training data more closely. Trials choose from a list, or for ``"auto"`` from 0.03 to 3000,
        and up to 3e7 for real targets with little noise; with ``"epsilon_insensitive"`` and
        ``"quantile"`` times the standard deviation of the targets.
    epsilon : float or "auto", default="auto"
        Residuals below it cost nothing with ``loss="epsilon_insensitive"``, in the unit of the
        targets. ``"auto"`` is a tenth of their standard deviation.
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
        Whether the kernel has a linear part; that of a classifier's `features_` may have one.
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
    n_samples_fit_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        If `X` has column names that are all strings.
    classes_ : ndarray of shape (n_classes,)
        For classification losses.
    n_outputs_ : int
        For regression losses.

    See Also
    --------
    notsorandom.FourierClassifier : A linear classifier on these features.
    notsorandom.FourierRegressor : A linear regression on these features.
    notsorandom.baselines.RandomFourierFeatures : Features that are not learned.

    Notes
    -----
    Samples are centred internally, and their overall scale doesn't matter. The scale of one column
    relative to another does, as for ``SVC``: use ``StandardScaler``. Sparse samples are not made
    dense.

    A sample of weight 2 counts like two equal samples. In memory, copies are merged where they
    first appear, and the two give the same model to the last digit. Up to 1024 samples their order
    doesn't matter either; above, random draws differ.

    Trials choose `C`, smoothing and spectrum together, from the training data. Each setting plays a
    short game on a part of the samples. Linear models on its features are evaluated on the rest, by
    the log loss, the squared error or the pinball loss. Up to 1024 samples: 4-fold
    cross-validation. Above: one split of at most 4096 samples into halves, where first candidates
    are kept unless others are better by two standard errors. All settings play 24 frequencies, the
    best three about 100, and the best one as many as the fit if these are more; fewer in proportion
    to the square root of the share of the samples that they have. With fewer than 8 samples of a
    class there are no trials: the first candidates are taken, and 1 for ``C="auto"``. A choice can
    be reused::

        FourierFeatures(
            C=model.C_, smoothing=model.smoothing_, search=Ascent(spectrum=model.spectrum_)
        )

    With scikit-learn 1.9 or later, callbacks can be set (``set_callbacks``): a task is one feature
    learned, before any reweighting, and a callback can stop the game at the end of a round.

    The paper's own setting is::

        FourierFeatures(
            loss="hinge", C=1.0, smoothing=0, phase="paired",
            search=Langevin(n_peaks=10),
            solver=GradientSolver("theory", weighting="uniform", projection="alternating"),
        )

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

    def __init__(
        self,
        n_components: Any = 100,
        *,
        max_components: int = 2000,
        space: str | Space = "euclidean",
        search: str | Search = "auto",
        phase: str = "aligned",
        loss: str | Loss = "logistic",
        C: Any = "auto",
        epsilon: Any = "auto",
        smoothing: Any = "auto",
        solver: Any = "gradient",
        class_weight: Any = None,
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
        self.smoothing = smoothing
        self.solver = solver
        self.class_weight = class_weight
        self.optional_columns = optional_columns
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def head(self, n_components: int) -> FourierFeatures:
        """Return the fitted transformer of the first `n_components` features.

        A fit with that `n_components` and the same smoothing finds the same features, so one fit
        gives every smaller size. Exceptions: on the sphere's harmonics, a harmonic that was found
        again later has the weight of the longer game, and a shorter fit may end with other
        harmonics; `dual_` is the dual point of the longer game; after reweighting, the features
        are the first of the kept ones.

        Parameters
        ----------
        n_components : int
            Number of features to keep, at most as many as there are. A linear part stays.

        Returns
        -------
        FourierFeatures
            Fitted. The transformer itself is not changed.
        """
        check_is_fitted(self)
        kernel = self.kernel_.head(n_components)
        shorter = clone(self).set_params(n_components=n_components)
        shorter.__dict__ |= self._learned()
        shorter.__dict__.pop("average_kernel_", None)  # of the whole game
        shorter.kernel_ = kernel
        shorter.frequencies_, shorter.phases_ = kernel.frequencies, kernel.phases
        n_frequencies = len(kernel.weights)
        if len(self.kernel_.weights) == self.history_["n_frequencies"][-1]:  # not reweighted
            last = int(np.searchsorted(self.history_["n_frequencies"], n_frequencies))
            shorter.history_ = {name: column[: last + 1] for name, column in self.history_.items()}
            counts = shorter.history_["n_frequencies"]
            shorter.history_["n_frequencies"] = np.minimum(counts, n_frequencies)
        return shorter
