"""The learned features as a transformer."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.transformer import KernelTransformer


class FourierFeatures(KernelTransformer, FourierEstimator):
    r"""Fourier features learned from labels: a kernel found, not guessed.

    A kernel is a measure over frequencies. This transformer finds the frequencies by a game in
    which one player looks for the wave that best tells the classes apart and the other puts
    weight on the samples it gets wrong. A linear model on a hundred such features does what
    thousands of random ones don't.

    Parameters
    ----------
    n_components : int or "auto", default=100
        Number of real output features. On the sphere's harmonics, which can be found again, there
        may be fewer. ``"auto"`` stops by itself, as with `early_stopping`, at 2000 at the latest.
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
    loss : {"hinge", "squared_hinge", "squared", "epsilon_insensitive"}, default="hinge"
        Of the model that the features are learned for: the first two for classes, the SVM whose
        margin is maximised; the others for real targets, ridge and support vector regression.
    C : float, default=1.0
        Its inverse regularisation.
    epsilon : float, default=0.1
        Residuals below cost nothing, with the last loss, in the targets' unit.
    smoothing : float or "auto", default="auto"
        Standard deviation of the noise that the samples are thought to carry, as a fraction of
        their median distance. More of it favours low frequencies. ``"auto"`` compares a few
        values, by short games on a part of the training data: all of up to 1024 samples are asked
        once, of more at most 1024.
    weighting : {"potential", "uniform"}, default="potential"
        How much of the kernel each frequency gets: in proportion to the amplitude of the peak it
        was found at, or all the same, as in the paper.
    learning_rate : "auto", "theory" or float, default="auto"
        Step size of the dual player; see :func:`notsorandom.game.loop`.
    dynamics : {"gradient", "primal_dual"}, default="gradient"
        How the players come to the equilibrium. ``"gradient"`` is the paper's play, which stops on
        the way there. ``"primal_dual"``, for the sphere's harmonics, goes there at once, to a
        relative gap of 1e-3 between the bounds of :meth:`certificate` (with ``smoothing=0`` and
        enough `n_components`); it holds all harmonics of all samples in memory.
    reweight : bool, default=False
        Weight the frequencies found so that the margin is largest, and drop those that have no
        weight then. A better margin isn't always a better accuracy.
    class_weight : dict, "balanced" or None, default=None
        Factors of the samples' weights by class; ``"balanced"`` gives every class the same weight
        in all.
    early_stopping : bool, default=False
        Hold out some of the samples, and stop when the features no longer help there. Those are
        kept that there were when the loss was last smaller than before. The final model of a
        predictor sees all samples.
    validation_fraction : float, default=0.1
        Share of the samples that is held out, of every class alike; not the only one of a class.
    n_iter_no_change : int, default=5
        Stop after so many looks at the held-out samples without a smaller loss. There is a look
        whenever there are ten features more and a tenth more, and one at the end.
    tol : float, default=1e-4
        What a loss must be smaller by, to count.
    warm_start : bool, default=False
        Go on with the game of the last fit, which must have had ``warm_start=True`` too, the same
        data, and the same parameters but for more `n_components` or `n_rounds`: 50 features and
        then 100 are the same as 100 at once. With ``dynamics="primal_dual"`` there is no game to
        go on with, and it begins anew.
    checkpoint : str, Path or None, default=None
        File that the game is kept in while it goes on, so that a fit that was killed can go on: the
        next ``fit`` with the same data and parameters takes it up, and ends with the very same
        model. With others it refuses, and says what differs. The file is removed when the fit is
        done. Fits that run at the same time need a file each. With ``dynamics="primal_dual"``
        there are no rounds, and none is written.
    checkpoint_every : float, default=60.0
        Seconds between two times that it is written.
    n_jobs : int or None, default=None
        Threads that share the samples, block by block; -1 is one a core. Matrix products then have
        one thread each, and the model is the same to the last digit however many there are. None
        leaves all to the threads of the matrix products.
    random_state : int, RandomState instance or None, default=None
        Seed of the search's starting points, and of what is held out.
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
        Of losses of the margin.
    n_outputs_ : int
        Of losses of the residual.
    history_ : dict of str to ndarray
        One value a round; see :class:`notsorandom.game.Round`.
    status_ : {"complete", "stopped", "flat"}
        How the game ended: with all its features or rounds, stopped early or by a callback, or
        with nothing to find.
    smoothing_ : float
    dual_, average_dual_ : ndarrays of shape (n_samples, n_tasks)
        Where the dual player ended, and where it was on average: dual variables times labels.
        Zero for samples that the game wasn't played on.
    validation_sizes_, validation_losses_, validation_scores_ : ndarrays
        Only if it stops by itself: numbers of features; the held-out loss of a model on them, by
        which it stops, the squared distance of decision values from the labels, clipped to [-1, 1]
        and over 4, or ``1 - R^2``; and the accuracy or R^2.
    average_kernel_ : LearnedKernel
        The kernel player's average play, of which the paper's theorem speaks.
    n_samples_fit_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` has column names, all strings.

    Notes
    -----
    Data are centred inside, and their overall scale doesn't matter; the scale of one column
    against another does, as it does for ``SVC``: see ``StandardScaler``. Sparse samples are not
    made dense, and their centre is seen to without it.

    A sample of weight 2 is like the sample twice. For up to 1024 samples the two give the same to
    the last digit, and the order of the samples doesn't matter; beyond that, random draws differ.

    With scikit-learn 1.9 or later, callbacks can be set (``set_callbacks``): a task is one feature
    learned (with ``dynamics="gradient"``), before any reweighting, and a callback that asks for it
    stops the game at the end of the round.

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

    def head(self, n_components: int) -> FourierFeatures:
        """Return the fitted transformer of the first `n_components` features.

        They are the features that a fit with that `n_components` and the same smoothing finds,
        so one fit gives every smaller size. On the sphere's harmonics, those found again later
        have the weight of the longer game, and a short fit may fill the end of its room with
        others; `dual_` is the longer game's; with ``reweight=True`` they are the first of those
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
