"""A rotation-invariant kernel learned from labels, for embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from notsorandom._utils.parameters import check_number
from notsorandom._utils.progress import progress_bar
from notsorandom.data.array_api import row_norms
from notsorandom.data.rows import FLOATS, Array, Rows, dense
from notsorandom.game.degrees import play_degrees
from notsorandom.game.losses import LOSSES
from notsorandom.game.problem import Problem, signs_from_codes
from notsorandom.spaces.gegenbauer import legendre, n_harmonics
from notsorandom.spaces.sphere import directions, unit_rows

# Rows that the game is played on: its twelve Gram matrices then take 48 MB. With twice as many, the
# accuracy on folds of 3600 rows of trec and banking77 changed by -0.2 and 0.1 %, at three times the
# time.
MAX_PLAYED_ROWS = 1000
# Rounds of the game. With half as many, the accuracy on trec and banking77 changed by up to 0.2 %.
N_ROUNDS = 200
# Largest C: the SVM then has a hard margin, and more would be lost to rounding in float32.
MAX_C = 1e6


@dataclass(frozen=True, eq=False, repr=False)
class DegreeKernel:
    r"""A rotation-invariant kernel :math:`k(x, z) = \sum_l \lambda_l P_l(\cos(x, z))`.

    :math:`P_l` is the Gegenbauer polynomial of degree `l` in the dimension of the samples, with
    :math:`P_l(1) = 1`, so that :math:`k(x, x) = 1`. By Schoenberg's theorem these are all kernels
    that depend on the angle only (Section 2.1 of the paper). It holds none of the training data,
    and can be passed to any estimator that takes a kernel as a callable, such as ``SVC``; for
    Gaussian processes, see :class:`GaussianProcessKernel`.

    A row of zeros has no direction. Its kernel with every row, itself included, is 0.

    Parameters
    ----------
    weights : ndarray of shape (max_degree,)
        :math:`\lambda_1, \lambda_2, \dots`: non-negative, with sum 1.
    n_features : int
        Number of columns of the samples, at least 2.
    """

    weights: Array
    n_features: int

    def __post_init__(self) -> None:
        check_number("n_features", self.n_features, least=2, integer=True)
        weights = np.array(self.weights)
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)

    def __repr__(self) -> str:
        shares = [
            f"{share:.2g} P_{degree}" for degree, share in enumerate(self.weights, 1) if share
        ]
        return f"DegreeKernel({' + '.join(shares)}, n_features={self.n_features})"

    def __sklearn_clone__(self) -> DegreeKernel:
        return self  # frozen: estimators that hold it can share it

    def __call__(self, X: Any, Z: Any = None) -> Any:
        """Return the Gram matrix of shape (n_samples_X, n_samples_Z); `Z` defaults to `X`.

        Rows are divided by their norms; those of zeros have a kernel of 0. Beside the matrix, a
        block of its rows is in memory. For two vectors of shape (n_features,) it returns a number.
        """
        if np.ndim(X) == 1 and np.ndim(Z) == 1:
            return self(np.asarray(X)[None], np.asarray(Z)[None])[0, 0]
        X = self._validate(X)
        Z = X if Z is None else self._validate(Z)
        left = Rows(X).map(directions)
        right = left if Z is X else Rows(Z).map(directions)
        n_degrees = int(np.flatnonzero(self.weights).max(initial=0)) + 1

        def gram_rows(block: Any) -> Array:
            cosines = dense(block @ right.T)
            result = np.zeros_like(cosines)
            for weight, values in zip(
                self.weights, legendre(cosines, self.n_features, n_degrees), strict=False
            ):
                if weight > 0:
                    result += values * cosines.dtype.type(weight)
            return result

        # Cosines, two polynomials, their product and the result.
        gram = Rows(left).map(gram_rows, width=5 * right.shape[0])
        gram[is_zero(X)] = 0  # polynomials of even degree are not zero at 0
        gram[:, is_zero(Z)] = 0
        return gram

    def diag(self, X: Any) -> Array:
        """Return the diagonal of the Gram matrix of `X`: 1, or 0 for rows of zeros.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.
        """
        X = self._validate(X)
        diagonal: Array = np.where(is_zero(X), 0, self.weights.sum()).astype(X.dtype)
        return diagonal

    def is_stationary(self) -> bool:
        """Return False: the kernel depends on angles, not on differences of samples."""
        return False

    def features(self, X: Any) -> Any:
        """Raise ValueError: there are too many features in high dimension.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.
        """
        raise ValueError(
            f"A kernel of whole degrees has no features to compute: degree 2 alone has "
            f"{n_harmonics(self.n_features, 2):,} with {self.n_features} columns. Use the kernel "
            "itself, kernel(X, Z) or SVC(kernel=kernel), or FourierClassifier(space='sphere')."
        )

    def _validate(self, X: Any) -> Any:
        """Return samples as finite numbers in float32 or float64, dense or CSR."""
        X = check_array(X, accept_sparse="csr", dtype=FLOATS)
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has shape {tuple(X.shape)}, but this kernel takes arrays of shape "
                f"(n_samples, {self.n_features}), as at fit."
            )
        return X


class SphereKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Learn a kernel of the angle between samples, for embeddings and other directions.

    The kernel is :math:`\sum_l \lambda_l P_l(\cos(x, z))`, a weighted sum of Gegenbauer polynomials
    in any dimension. Its weights are learned from the labels by the game of the paper, so there is
    no width to tune. Samples are divided by their norms. Rows of zeros have no direction: they are
    left out of the game, and their kernel with all samples is 0.

    Use ``kernel_`` as the kernel of an SVM, or the transformer in a pipeline::

        SVC(kernel=SphereKernel().fit(X, y).kernel_).fit(X, y)
        make_pipeline(SphereKernel(), SVC(kernel="precomputed")).fit(X, y)

    Parameters
    ----------
    max_degree : int, default=12
        Largest degree.
    C : float, default=1.0
        The kernel is learned for an SVM, ``SVC(C=C)``, one-versus-rest.
    smoothing : float, default=0.3
        Higher is smoother. Length of the noise that blurs the samples, in radians: it multiplies
        the kernel of degree `l` by about :math:`e^{-l \sigma^2}` in high dimension.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows that the game is played on, if there are more than 1000.
    verbose : int, default=0
        If positive, show a progress bar.

    Attributes
    ----------
    kernel_ : DegreeKernel
        The learned kernel, a callable; ``kernel_.weights`` has the weights of degrees 1, 2, ...
    X_fit_ : ndarray or sparse matrix of shape (n_samples, n_features)
        The training samples, which `transform` compares with.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        If `X` has column names that are all strings.

    See Also
    --------
    notsorandom.FourierClassifier : With ``space="sphere"``, a linear model on few features.

    Notes
    -----
    The game's Gram matrices are of at most 1000 random rows, since the weights of a dozen kernels
    are estimated precisely enough from these. The kernel itself is of all rows.

    On folds of sentence embeddings and digits, a smoothing of 0.2 to 0.4 made a difference of at
    most 0.3 % in accuracy. Without smoothing, it was 0.3 to 0.4 % lower on embeddings.

    References
    ----------
    B. Bullins, C. Zhang, Y. Zhang, "Not-So-Random Features", ICLR 2018.

    I. J. Schoenberg, "Positive definite functions on spheres", Duke Math. J. 9, 1942.

    Examples
    --------
    >>> from notsorandom import SphereKernel
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import SVC
    >>> X, y = load_digits(return_X_y=True)
    >>> X, y, X_test, y_test = X[::2], y[::2], X[1::2], y[1::2]
    >>> kernel = SphereKernel(random_state=0).fit(X, y).kernel_
    >>> bool(SVC(kernel=kernel).fit(X, y).score(X_test, y_test) > 0.98)
    True
    """

    def __init__(
        self,
        max_degree: int = 12,
        *,
        C: float = 1.0,
        smoothing: float = 0.3,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_degree = max_degree
        self.C = C
        self.smoothing = smoothing
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> SphereKernel:
        """Learn the weights of the degrees.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; rows of zeros are left out.
        y : array-like of shape (n_samples,)
            Class labels, at least two of rows that are not zero.

        Returns
        -------
        self
        """
        check_number("max_degree", self.max_degree, least=1, integer=True)
        check_number("C", self.C, above=0, most=MAX_C)
        check_number("smoothing", self.smoothing, least=0)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, ensure_min_samples=2)
        check_classification_targets(y)
        used = np.flatnonzero(~is_zero(X))
        classes = np.unique(y[used])
        if len(classes) < 2:
            raise ValueError(
                f"y has fewer than two classes, {classes.tolist()}, among rows of X that are not "
                "zero, but SphereKernel learns which samples differ: give samples of at least two "
                "classes."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        columns = Rows.without_features(len(used), X.dtype)
        played = used[columns.sample_indices(MAX_PLAYED_ROWS, rng)]
        rows = Rows(unit_rows(X[played], normalize=True).astype(np.float32))
        targets = signs_from_codes(np.searchsorted(classes, y[played]), len(classes), np.float32)
        problem = Problem(LOSSES["hinge"].times(self.C), targets, rows)
        with progress_bar(N_ROUNDS, "rounds", self.verbose) as update:
            degree_weights, _ = play_degrees(
                problem, int(self.max_degree), float(self.smoothing), N_ROUNDS, update
            )
        self.classes_, self.X_fit_ = np.unique(y), X
        self.kernel_ = DegreeKernel(degree_weights, X.shape[1])
        return self

    def transform(self, X: Any) -> Any:
        """Return the Gram matrix with the training samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples, n_samples_fit)
            For ``SVC(kernel="precomputed")`` and the like.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        return self.kernel_(X, self.X_fit_)

    @property
    def _n_features_out(self) -> int:
        return int(self.X_fit_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def is_zero(X: Any) -> Array:
    """Return which rows are zero."""
    zero: Array = Rows(X).map(row_norms) == 0
    return zero
