r"""The contract of a space: where frequencies live.

To add a space, write one class that derives from :class:`ContinuousSpace` or :class:`FiniteSpace`,
and name it in ``notsorandom.spaces.SPACES``. All sums over samples go through ``Rows.sum_blocks``.

A frequency :math:`\omega` stands for one or two real features :math:`\phi_\omega`. The *measure* is
an array of shape (n_samples, n_tasks), the dual variables times labels and weights. Its *amplitudes*
are the sums :math:`\sum_i a_{ik} \phi_\omega(x_i)`, and its *potential* is the sum of their squares.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from notsorandom.data.rows import Array, Rows

if TYPE_CHECKING:
    from notsorandom.spaces.landscape import Landscape
    from notsorandom.spaces.supremum import Supremum


class Space(BaseEstimator, ABC):
    """A space as a user configures it, with scikit-learn style parameters."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""

    @abstractmethod
    def prepare(self, X: Any) -> Any:
        """Validate the samples and return them as the space needs them, such as normalised."""

    @abstractmethod
    def n_columns(self, phase: str) -> int:
        """Return the number of real features per frequency; raise ValueError for a bad phase."""

    @abstractmethod
    def resolve(self, rows: Rows, rng: np.random.Generator) -> ResolvedSpace:
        """Measure the data (scale, centre, degree) and return the space to play in."""


class ResolvedSpace(Space, ABC):
    """A space that has been fitted to data: what the game, the kernel and the searches use.

    Attributes
    ----------
    kind : {"continuous", "finite"}
    is_vector_space : bool
        Whether every vector is a frequency, so that the potential can be drawn on a grid.
    scale : float
        The length that smoothing is a multiple of.
    """

    kind: ClassVar[str]
    is_vector_space: ClassVar[bool]
    scale: Any

    # For searches.

    @abstractmethod
    def draw(
        self,
        n_frequencies: int,
        n_features: int,
        dtype: Any,
        rng: np.random.Generator,
        variance: float = 1.0,
    ) -> Array:
        """Draw frequencies to start from, of shape (n_frequencies, ...)."""

    @abstractmethod
    def penalty(self, rows: Rows, frequencies: Array, smoothing: float) -> tuple[Array, Array]:
        """Return what smoothing subtracts from the log potential, and its gradient."""

    @abstractmethod
    def groups(self, frequencies: Array, phase: str) -> Array:
        """Return a label per frequency, equal for frequencies that form one kernel together."""

    @abstractmethod
    def amplitudes(self, rows: Rows, measure: Any, frequencies: Array) -> Array:
        """Return the sums of the measure, of shape (n_parts, n_tasks, n_frequencies)."""

    # For the game and the kernel.

    @abstractmethod
    def phases(self, amplitudes: Array) -> Array:
        """Return the phase at which one feature per frequency has the largest potential."""

    @abstractmethod
    def scales(self, rows: Rows, frequencies: Array) -> Array:
        """Return the factors that give each frequency's features mean square one."""

    @abstractmethod
    def alignment(self, amplitudes: Array, phases: Array, phase: str) -> Array:
        """Return the features' inner products with the measure, computed from the amplitudes.

        Of shape (n_frequencies, n_columns(phase), n_tasks).
        """

    @abstractmethod
    def features(self, X: Any, frequencies: Array, phases: Array, phase: str) -> Any:
        """Return the features of a block, of shape (n_rows, n_frequencies * n_columns(phase))."""

    @abstractmethod
    def n_features(self, frequencies: Array) -> int:
        """Return the number of columns of the samples that the frequencies belong to."""

    @abstractmethod
    def kernel_bound(self, n_features: int, phase: str) -> float:
        """Return the largest value of the kernel of one frequency; infinite if unbounded."""

    @abstractmethod
    def max_potential(self, landscape: Landscape) -> float:
        """Return the largest potential that the landscape's measure could have."""

    # For certificates and displays.

    @abstractmethod
    def norms(self, frequencies: Array) -> Array:
        """Return the lengths or degrees of the frequencies."""

    @abstractmethod
    def bandwidth(self, frequencies: Array) -> float:
        """Return the largest length or degree of the kernels that these compete with."""

    @abstractmethod
    def supremum(
        self,
        rows: Rows,
        measure: Any,
        phase: str,
        bandwidth: float,
        reached: float,
        tol: float,
        max_evaluations: int,
    ) -> Supremum:
        """Return the largest potential within the bandwidth, bounded if possible.

        Parameters
        ----------
        rows, measure, phase
        bandwidth : float
        reached : float
            The largest potential known so far.
        tol : float
            Relative precision of the bound.
        max_evaluations : int
            Evaluations of the potential after which the bound is returned as it is.
        """

    @abstractmethod
    def rademacher_complexity(self, rows: Rows, bandwidth: float, phase: str) -> float:
        """Return the Rademacher complexity of the kernels within the bandwidth, or NaN."""

    @abstractmethod
    def required_sample_size(self, rows: Rows, bandwidth: float) -> float:
        """Return the sample size at which the potential concentrates, or NaN."""

    def potential(self, rows: Rows, measure: Any, frequencies: Array) -> Array:
        r"""Return the Fourier potential :math:`v(\omega) = \sum_k |\sum_i a_{ik} \phi_i|^2`."""
        amplitudes = self.amplitudes(rows, measure, frequencies)
        return (amplitudes * amplitudes).sum(axis=(0, 1))


class ContinuousSpace(ResolvedSpace, ABC):
    """A space whose potential has a gradient."""

    kind = "continuous"

    @abstractmethod
    def move(self, frequencies: Array, shift: Array) -> Array:
        """Return the frequencies displaced by a shift along the space."""

    @abstractmethod
    def first_step(self) -> float:
        """Return the first step size of an ascent of the log potential."""

    @abstractmethod
    def amplitudes_and_gradient(
        self, rows: Rows, measure: Any, frequencies: Array
    ) -> tuple[Array, Array]:
        """Return the amplitudes, and the gradient of the potential per frequency."""

    @abstractmethod
    def clip_to_bandwidth(self, frequencies: Array, bandwidth: float) -> Array:
        """Return the frequencies, shortened to the bandwidth where they exceed it."""


class FiniteSpace(ResolvedSpace, ABC):
    """A space with finitely many frequencies, which may be found again."""

    kind = "finite"

    @abstractmethod
    def all_frequencies(self, n_features: int) -> Array:
        """Return all frequencies."""

    @abstractmethod
    def all_amplitudes(self, rows: Rows, measure: Any) -> Array:
        """Return the amplitudes at all frequencies."""

    @abstractmethod
    def propose(self, frequencies: Array, rng: np.random.Generator) -> Array:
        """Return random neighbours, by a symmetric and irreducible Markov chain."""

    @abstractmethod
    def representatives(self, frequencies: Array, phase: str) -> Array:
        """Return one frequency for each, equal for those of one kernel."""

    @abstractmethod
    def members(self, representative: Array, phase: str) -> Array:
        """Return all frequencies of the kernel of a representative."""
