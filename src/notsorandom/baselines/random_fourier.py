"""Random Fourier features of the RBF and of the Laplacian kernel."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from notsorandom._utils.parameters import check_choice, check_number
from notsorandom.data.rows import FLOATS, Array, Rows, row_norms
from notsorandom.estimators.features import KernelTransformer
from notsorandom.kernel import LearnedKernel, normalized
from notsorandom.spaces import Euclidean
from notsorandom.spaces.landscape import median_distance


class RandomFeatures(KernelTransformer, BaseEstimator):
    """Base class of transformers whose features are drawn from the spectrum of a kernel."""

    bandwidth: Any
    random_state: Any

    def fit(self, X: Any, y: Any = None) -> Any:
        """Draw the frequencies.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,), optional
            Class labels, for methods that use them.

        Returns
        -------
        self
        """
        fitted = copy.copy(self)  # a fit that fails leaves the estimator unchanged
        fitted._fit(X, y)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any) -> None:
        raise NotImplementedError

    def _resolve_space(
        self, rows: Rows, norms: Callable[[Any], Array] = row_norms
    ) -> tuple[Euclidean, np.random.Generator]:
        """Return the space with its bandwidth, and the generator to draw from.

        `norms` returns the norms of the rows of an array, differences between samples.
        """
        check_number("bandwidth", self.bandwidth, above=0, or_else=["median"])
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        bandwidth = self.bandwidth
        if bandwidth == "median":
            bandwidth = median_distance(rows, rng, norms)
        space = Euclidean(scale=bandwidth).resolve(rows, rng)
        self.bandwidth_ = float(space.scale)
        return space, rng

    def _set_kernel(
        self, space: Euclidean, frequencies: Array, phases: Array, weights: Array, phase: str
    ) -> None:
        """Set the fitted attributes, with weights that are normalised to sum 1."""
        scales, weights = np.ones(len(frequencies)), normalized(weights)
        kernel = LearnedKernel(space, frequencies, phases, scales, weights, phase)
        self.kernel_ = kernel
        self.frequencies_, self.phases_ = kernel.frequencies, kernel.phases

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class RandomFourierFeatures(RandomFeatures):
    r"""Random features whose inner products approximate the RBF or the Laplacian kernel.

    .. math:: k(x, z) = \exp(-|x - z|^2 / (2 \sigma^2)) \quad\text{or}\quad
       k(x, z) = \exp(-|x - z|_1 / \sigma)

    Parameters
    ----------
    n_components : int, default=100
        Number of real output features.
    kernel : {"gaussian", "laplacian"}, default="gaussian"
        The first or the second kernel above. Frequencies have independent Gaussian or Cauchy
        entries.
    bandwidth : "median" or float, default="median"
        :math:`\sigma` above. ``"median"`` takes the median distance between samples. For the
        Laplacian kernel, distances are sums of absolute differences.
    phase : {"random", "paired"}, default="random"
        Per frequency, one cosine with a random phase, or a cosine and a sine.
    draw : {"plain", "orthogonal", "quasi"}, default="plain"
        ``"plain"`` draws independent frequencies. ``"orthogonal"`` draws orthogonal blocks of
        `n_features` frequencies whose norms are distributed like the norms of Gaussian vectors;
        it is not possible for the Laplacian kernel. ``"quasi"`` maps a scrambled Sobol sequence to
        the distribution.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_frequencies, `n_features_in_`)
    phases_ : ndarray of shape (n_frequencies,)
    kernel_ : LearnedKernel
    bandwidth_ : float
    n_features_in_ : int

    References
    ----------
    A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS 2007.
    F. Yu et al., "Orthogonal random features", NIPS 2016.
    H. Avron et al., "Quasi-Monte Carlo feature maps for shift-invariant kernels", JMLR 2016.

    Examples
    --------
    >>> from notsorandom.baselines import RandomFourierFeatures
    >>> from notsorandom.datasets import make_windmill
    >>> X, y = make_windmill(500, random_state=0)
    >>> RandomFourierFeatures(20, random_state=0).fit_transform(X).shape
    (500, 20)
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        kernel: str = "gaussian",
        bandwidth: Any = "median",
        phase: str = "random",
        draw: str = "plain",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.phase = phase
        self.draw = draw
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        check_number("n_components", self.n_components, above=0, integer=True)
        check_choice("phase", self.phase, ["random", "paired"])
        check_choice("kernel", self.kernel, KERNEL_SPECTRA)
        spectrum = KERNEL_SPECTRA[self.kernel]
        check_choice("draw", self.draw, DRAWS)
        if self.draw == "orthogonal" and self.kernel != "gaussian":
            raise ValueError(
                f"draw='orthogonal' is not possible with kernel={self.kernel!r}, whose spectrum is "
                "not the same in all directions: use 'plain' or 'quasi', or kernel='gaussian'."
            )
        is_paired = self.phase == "paired"
        if is_paired and self.n_components % 2:
            raise ValueError(
                f"n_components={self.n_components} is not allowed with phase='paired': each "
                "frequency gives a cosine and a sine, so it must be even."
            )
        rows = Rows(validate_data(self, X, accept_sparse="csr", dtype=FLOATS))
        space, rng = self._resolve_space(rows, spectrum.norms)
        n_frequencies = self.n_components // 2 if is_paired else self.n_components
        draws = DRAWS[self.draw](spectrum, n_frequencies, rows.n_features, rng)
        frequencies = draws / space.scale
        phases = rng.uniform(0, 2 * math.pi, size=n_frequencies)
        if is_paired:
            phases = 0 * phases
        self._set_kernel(
            space,
            frequencies.astype(rows.dtype),
            phases.astype(rows.dtype),
            np.ones(n_frequencies),
            "paired" if is_paired else "aligned",
        )


def median_gamma(X: Any, random_state: int = 0) -> float:
    """Return `gamma` of scikit-learn's RBF kernel with the median distance as bandwidth.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The samples.
    random_state : int, default=0
        Seed of the pairs whose distances are taken.
    """
    rows = Rows(check_array(X, accept_sparse="csr", dtype=FLOATS))
    return 0.5 / median_distance(rows, np.random.default_rng(random_state)) ** 2


def row_sums(X: Any) -> Array:
    """Return the sum of absolute values of each row, dense or sparse."""
    return np.asarray(abs(X).sum(axis=1)).ravel()


@dataclass(frozen=True)
class Spectrum:
    """A distribution of frequencies with independent entries, and the norm of its kernel.

    Parameters
    ----------
    sample : function of a generator and a shape
    quantile : function of probabilities
    norms : function of an array of vectors
    """

    sample: Callable[[np.random.Generator, tuple[int, int]], Array]
    quantile: Callable[[Array], Array]
    norms: Callable[[Any], Array]


KERNEL_SPECTRA = {
    "gaussian": Spectrum(np.random.Generator.standard_normal, special.ndtri, row_norms),
    "laplacian": Spectrum(np.random.Generator.standard_cauchy, stats.cauchy.ppf, row_sums),
}


def draw_plain(
    spectrum: Spectrum, n_draws: int, n_features: int, rng: np.random.Generator
) -> Array:
    """Return independent vectors."""
    return spectrum.sample(rng, (n_draws, n_features))


def draw_orthogonal(_: Spectrum, n_draws: int, n_features: int, rng: np.random.Generator) -> Array:
    """Return standard normal vectors that are orthogonal within each block of `n_features`."""
    parts = []
    for first in range(0, n_draws, n_features):
        basis, triangle = np.linalg.qr(rng.standard_normal((n_features, n_features)))
        # Without the signs of the diagonal, the basis would not be uniformly distributed.
        directions = (basis * np.sign(np.diag(triangle))).T
        parts.append(directions[: n_draws - first])
    norms = np.sqrt(rng.chisquare(n_features, size=(n_draws, 1)))
    return np.concatenate(parts) * norms


def draw_quasi(
    spectrum: Spectrum, n_draws: int, n_features: int, rng: np.random.Generator
) -> Array:
    """Return quantiles of the first points of a scrambled Sobol sequence."""
    max_features = stats.qmc.Sobol.MAXDIM
    if n_features > max_features:
        raise ValueError(
            f"draw='quasi' is not possible with {n_features} columns: Sobol sequences have at most "
            f"{max_features} dimensions. Use draw='plain' or draw='orthogonal'."
        )
    sequence = stats.qmc.Sobol(n_features, scramble=True, seed=rng)
    points = sequence.random_base2(math.ceil(math.log2(n_draws)))[:n_draws]
    cell = 0.5**sequence.bits  # resolution of the sequence; the quantiles of 0 and 1 are infinite
    return spectrum.quantile(np.clip(points, cell / 2, 1 - cell / 2))


DRAWS: dict[str, Callable[[Spectrum, int, int, np.random.Generator], Array]] = {
    "plain": draw_plain,
    "orthogonal": draw_orthogonal,
    "quasi": draw_quasi,
}
