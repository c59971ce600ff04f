"""Random Fourier features of the RBF kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from notsorandom._utils.parameters import check_choice, check_number
from notsorandom.baselines.feature_map import FeatureMap
from notsorandom.data.rows import FLOATS, Array, Rows
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean
from notsorandom.spaces.euclidean import median_distance


class RandomFourierFeatures(FeatureMap):
    r"""Random features whose inner products approximate the RBF kernel.

    .. math:: k(x, z) = \exp(-|x - z|^2 / (2 \sigma^2))

    Parameters
    ----------
    n_components : int, default=100
        Number of real output features.
    bandwidth : "median" or float, default="median"
        :math:`\sigma` above. ``"median"`` takes the median distance between samples.
    phase : {"random", "paired"}, default="random"
        One cosine a frequency at a phase drawn at random, or cosine and sine.
    draw : {"plain", "orthogonal", "quasi"}, default="plain"
        ``"plain"`` draws frequencies one by one from a Gaussian; ``"orthogonal"`` draws as many as
        there are input features at right angles to each other, with lengths as if they were drawn
        one by one; ``"quasi"`` takes a scrambled Sobol sequence to the Gaussian.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_frequencies, n_features_in_)
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
        bandwidth: Any = "median",
        phase: str = "random",
        draw: str = "plain",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.phase = phase
        self.draw = draw
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        """Draw the frequencies; of the samples only their median distance matters."""
        check_number("n_components", self.n_components, above=0, integer=True)
        check_number("bandwidth", self.bandwidth, above=0, or_else=["median"])
        check_choice("phase", self.phase, ["random", "paired"])
        check_choice("draw", self.draw, DRAWS)
        n_columns = 2 if self.phase == "paired" else 1
        if self.n_components % n_columns:
            raise ValueError(
                f"n_components={self.n_components} is not allowed with phase='paired': each "
                "frequency gives cosine and sine, so it must be even."
            )
        rows = Rows(validate_data(self, X, accept_sparse="csr", dtype=FLOATS))
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        space = Euclidean(scale=self.bandwidth).resolve(rows, rng)
        self.bandwidth_ = float(space.scale)
        n_frequencies = self.n_components // n_columns
        frequencies = DRAWS[self.draw](n_frequencies, rows.n_features, rng) / space.scale
        phases = rng.uniform(0, 2 * math.pi, size=n_frequencies)
        kernel = LearnedKernel(
            space=space,
            frequencies=frequencies.astype(rows.dtype),
            phases=(phases if n_columns == 1 else 0 * phases).astype(rows.dtype),
            scales=np.ones(n_frequencies),
            weights=np.full(n_frequencies, 1 / n_frequencies),
            phase="paired" if n_columns == 2 else "aligned",
        )
        self._take(kernel)


def median_gamma(X: Any, random_state: int = 0) -> float:
    """Return scikit-learn's `gamma` of the RBF kernel whose bandwidth is the median distance."""
    rows = Rows(check_array(X, accept_sparse="csr", dtype=FLOATS))
    return 0.5 / median_distance(rows, np.random.default_rng(random_state)) ** 2


def draw_plain(n_draws: int, n_features: int, rng: np.random.Generator) -> Array:
    """Standard normal vectors."""
    return rng.standard_normal((n_draws, n_features))


def draw_orthogonal(n_draws: int, n_features: int, rng: np.random.Generator) -> Array:
    """Vectors that are each standard normal, and orthogonal within each `n_features` of them."""
    parts = []
    for first in range(0, n_draws, n_features):
        basis, triangle = np.linalg.qr(rng.standard_normal((n_features, n_features)))
        # The signs make the basis uniform over all of them.
        directions = (basis * np.sign(np.diag(triangle))).T
        parts.append(directions[: n_draws - first])
    lengths = np.sqrt(rng.chisquare(n_features, size=(n_draws, 1)))
    return np.concatenate(parts) * lengths


def draw_quasi(n_draws: int, n_features: int, rng: np.random.Generator) -> Array:
    """Normal quantiles of a scrambled Sobol sequence, whose first points are even by themselves."""
    most = stats.qmc.Sobol.MAXDIM
    if n_features > most:
        raise ValueError(
            f"draw='quasi' is not possible with {n_features} columns: Sobol sequences have at most "
            f"{most}; use 'plain' or 'orthogonal'."
        )
    sequence = stats.qmc.Sobol(n_features, scramble=True, seed=rng)
    points = sequence.random_base2(math.ceil(math.log2(n_draws)))[:n_draws]
    cell = 0.5**sequence.bits
    return special.ndtri(np.clip(points, cell / 2, 1 - cell / 2))


DRAWS: dict[str, Callable[[int, int, np.random.Generator], Array]] = {
    "plain": draw_plain,
    "orthogonal": draw_orthogonal,
    "quasi": draw_quasi,
}
