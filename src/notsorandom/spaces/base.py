r"""The contract of a space: a set of frequencies and their features.

To add a space, write one class that derives from :class:`ContinuousSpace` or :class:`FiniteSpace`,
and name it in ``notsorandom.spaces.SPACES``. All sums over samples go through ``Rows.sum_blocks``.

A frequency :math:`\omega` stands for one or two real features :math:`\phi_\omega`. The *measure* is
a column of shape (n_samples, n_tasks), the signed dual variables times the sample weights. Its
*amplitudes* are the sums :math:`\sum_i a_{ik} \phi_\omega(x_i)`, and its *potential* is the sum of
their squares. With the *phase* ``"aligned"`` the kernel has one real feature per frequency, with
``"paired"`` it has all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from notsorandom.data.rows import Array, Column, Rows
from notsorandom.spaces.view import CastView, View

if TYPE_CHECKING:
    # scikit-learn has no types. As a base of type Any it would hide missing methods from mypy.
    class BaseEstimator:
        """Parameters in the style of scikit-learn."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters by name."""
            raise NotImplementedError

else:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class Supremum:
    """The largest potential over the frequencies within a bandwidth.

    Parameters
    ----------
    reached : float
        The largest value known to be attained; infinite if the potential counts as unbounded.
    bound : float
        An upper bound; infinite if there is none.
    frequency : ndarray of shape (n_features,), optional
        Where the largest value was found, if it is larger than the one known before.
    """

    reached: float
    bound: float
    frequency: Array | None = field(default=None, compare=False)

    @property
    def certified(self) -> bool:
        """Whether no estimate is needed: the bound is finite, or the supremum infinite."""
        return bool(np.isfinite(self.bound) or np.isinf(self.reached))

    @property
    def precision(self) -> float:
        """Share by which the bound exceeds the largest value known."""
        if np.isinf(self.reached) or not self.bound > self.reached:
            return 0.0
        return self.bound / self.reached - 1 if self.reached > 0 else np.inf


class Space(BaseEstimator, ABC):
    """A space as a user configures it, with scikit-learn style parameters."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""

    @abstractmethod
    def prepare(self, X: Any) -> Any:
        """Validate the samples and return them as the space needs them, such as normalised.

        `X` is of any kind that ``Rows`` takes, and so is the result.
        """

    @abstractmethod
    def n_columns(self, phase: str) -> int:
        """Return the number of real features per frequency; raise ValueError for a bad phase."""

    @abstractmethod
    def resolve(self, rows: Rows, rng: np.random.Generator) -> ResolvedSpace:
        """Return the space fitted to the data: with its scale, centre or largest degree."""


class ResolvedSpace(Space, ABC):
    """A space that has been fitted to data: what the game, the kernel and the searches use.

    Attributes
    ----------
    kind : {"continuous", "finite"}
    is_vector_space : bool
        Whether every vector is a frequency, so that the potential can be drawn on a grid.
    scale : float
        The length in units of which smoothing is given.
    """

    kind: ClassVar[str]
    is_vector_space: ClassVar[bool] = False
    scale: float

    # For searches.

    @abstractmethod
    def draw(
        self, n_frequencies: int, rows: Rows, rng: np.random.Generator, variance: float = 1.0
    ) -> Array:
        """Draw frequencies to start from, for samples like the rows.

        `variance` multiplies the variance of the frequencies, where the space has one.
        """

    @abstractmethod
    def penalty(self, rows: Rows, frequencies: Array, smoothing: float) -> Array:
        """Return what smoothing subtracts from the log potential, of shape (n_frequencies,)."""

    @abstractmethod
    def groups(self, frequencies: Array, phase: str) -> Array:
        """Return a label per frequency, equal for frequencies that form one kernel together."""

    @abstractmethod
    def amplitudes(self, rows: Rows, measure: Column, frequencies: Array) -> Array:
        """Return the amplitudes, of shape (n_parts, n_tasks, n_frequencies).

        The parts are the cosine and the sine on R^d; there is one part on the sphere.
        """

    # For the game and the kernel.

    def view(self, rows: Rows, dtype: str, rng: np.random.Generator) -> View:
        """Return the view of the samples that the game is played on."""
        return CastView(self, dtype)

    def far_rows(self, X: Any, frequencies: Array) -> Any:
        """Return which rows of a block are too far away to compute with, or None if none is."""
        return None

    def farthest_column(self, row: Array, frequencies: Array) -> int:
        """Return the column in which a sample is farthest away."""
        return int(np.abs(row).argmax())

    @abstractmethod
    def phases(self, amplitudes: Array) -> Array:
        """Return the phase per frequency at which an aligned feature has the largest potential."""

    @abstractmethod
    def scales(self, rows: Rows, frequencies: Array) -> Array:
        """Return the factors that give each frequency's features mean square one."""

    @abstractmethod
    def alignment(self, amplitudes: Array, phases: Array, phase: str) -> Array:
        """Return the features' inner products with the measure, computed from the amplitudes.

        The shape is (n_frequencies, n_columns(phase), n_tasks).
        """

    @abstractmethod
    def features(self, X: Any, frequencies: Array, phases: Array, phase: str) -> Any:
        """Return the features of a block, of shape (n_rows, n_frequencies * n_columns(phase)).

        They are not multiplied by :meth:`scales`. `X` is a block of samples, and the result is an
        array of the same kind and on the same device, dense for sparse `X`.
        """

    @abstractmethod
    def n_features(self, frequencies: Array) -> int:
        """Return the number of columns of the samples that the frequencies belong to."""

    @abstractmethod
    def kernel_bound(self, n_features: int, phase: str) -> float:
        """Return the largest value of the kernel of one frequency; infinite if unbounded."""

    @abstractmethod
    def max_potential(self, rows: Rows, measure: Column, mass: Array, phase: str) -> float:
        """Return an upper bound on the potential of the measure, for features of mean square one.

        `mass` has the sum of the absolute measure of each task.
        """

    # For certificates and displays.

    @abstractmethod
    def norms(self, frequencies: Array) -> Array:
        """Return the lengths or degrees of the frequencies."""

    @abstractmethod
    def bandwidth(self, frequencies: Array) -> float:
        """Return the largest length or degree of the kernels that a certificate compares with."""

    @abstractmethod
    def within(self, bandwidth: float, n_features: int) -> ResolvedSpace:
        """Return the space of all frequencies up to the bandwidth."""

    @abstractmethod
    def supremum(
        self,
        rows: Rows,
        measure: Array,
        phase: str,
        bandwidth: float,
        reached: float,
        tol: float,
        max_evaluations: int,
    ) -> Supremum:
        """Return the largest potential within the bandwidth, bounded if possible.

        Parameters
        ----------
        rows : Rows
        measure : ndarray of shape (n_samples, n_tasks)
        phase : {"aligned", "paired"}
        bandwidth : float
        reached : float
            The largest potential known so far.
        tol : float
            Relative precision of the bound.
        max_evaluations : int
            Evaluations of the potential after which the bound is returned as it is.
        """

    @abstractmethod
    def rademacher_complexity(
        self, rows: Rows, bandwidth: float, phase: str
    ) -> tuple[float, float]:
        """Return a bound on the Rademacher complexity of the kernels within the bandwidth, or NaN.

        The second number is the share of the probability of failure that is reserved for this
        bandwidth. The shares of all bandwidths that could have been chosen sum to at most 1.
        """

    @abstractmethod
    def required_sample_size(self, rows: Rows, bandwidth: float) -> float:
        """Return the sample size at which the potential concentrates, or NaN."""


class ContinuousSpace(ResolvedSpace, ABC):
    """A space whose potential has a gradient."""

    kind = "continuous"

    @abstractmethod
    def draw_cauchy(self, n_frequencies: int, rows: Rows, rng: np.random.Generator) -> Array:
        """Draw frequencies to start from with independent Cauchy entries, at random scales.

        Raise ValueError if the space has no such spectrum.
        """

    @abstractmethod
    def move(self, frequencies: Array, shift: Array) -> Array:
        """Return the frequencies displaced by a shift along the space."""

    @abstractmethod
    def first_step(self) -> float:
        """Return the first step size of an ascent of the log potential."""

    @abstractmethod
    def log_potential(
        self,
        rows: Rows,
        measure: Column,
        frequencies: Array,
        smoothing: float,
        phase: str,
        mass: Array,
    ) -> tuple[Array, Array, Array]:
        """Return the log potential minus the penalty, its gradient, and the amplitudes.

        The gradient has the shape of `frequencies`, without the part that leads out of the space.
        The phase matters if there are several tasks. The potential is in units of the square of
        `mass`, a number; see `relative_potential` in `spaces/landscape.py`.
        """

    def within_reach(self, smoothing: float, n_samples: int) -> ContinuousSpace:
        """Return the part of the space where smoothing leaves peaks above chance."""
        return self

    @abstractmethod
    def spread(self, n_frequencies: int, rows: Rows, rng: np.random.Generator) -> Array:
        """Draw frequencies from all over the space, for searches that should miss nothing."""

    def n_features(self, frequencies: Array) -> int:
        """Return the number of columns of the samples: frequencies have as many."""
        return int(frequencies.shape[1])


class FiniteSpace(ResolvedSpace, ABC):
    """A space with finitely many frequencies, which may be found again."""

    kind = "finite"

    @abstractmethod
    def all_frequencies(self, n_features: int) -> Array:
        """Return all frequencies."""

    @abstractmethod
    def all_amplitudes(self, rows: Rows, measure: Column) -> Array:
        """Return the amplitudes at all frequencies."""

    @abstractmethod
    def propose(self, frequencies: Array, rng: np.random.Generator) -> Array:
        """Return random neighbours, by a symmetric and irreducible Markov chain."""

    @abstractmethod
    def representatives(self, frequencies: Array, phase: str) -> Array:
        """Return a frequency per frequency, the same one for all that form one kernel together."""

    @abstractmethod
    def members(self, representative: Array, phase: str) -> Array:
        """Return all frequencies of the kernel of a representative."""
