r"""What a model depends on: importances of columns, and their contributions to predictions.

On R^d a prediction is a sum of waves and perhaps of a linear part,
:math:`f(x) = \sum_t A_t \cos\theta_t + B_t \sin\theta_t + \langle v, x - \bar x\rangle + c` with
angles :math:`\theta_t = \langle\omega_t, x - \bar x\rangle`. So its gradient, and the mean of its
gradient along a straight path from the centre :math:`\bar x`, are closed-form: combinations of the
frequencies :math:`\omega_t` and the slopes :math:`v`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array, Rows, dense
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean

# Columns that are printed.
N_SHOWN = 10
# Samples for the importances of a fit: so many gradients, but at least 100 of each task. The shares
# were within 0.004 of those of all samples on three sets, in 0.2 to 3 % of the time of the fit.
N_GRADIENTS, MIN_GRADIENTS = 2000, 100


@dataclass(frozen=True, eq=False)
class Importances:
    r"""How much the predictions of a model change with each column.

    Parameters
    ----------
    names : list of str
        Of the columns.
    scales : ndarray of shape (n_features,)
        Standard deviations of the columns.
    root : ndarray of shape (rank, n_features)
        The matrix is ``root.T @ root``. Its rank is at most the number of frequencies, and of
        decision functions or outputs with a linear part, so that the root of many columns takes
        much less memory than the matrix.
    """

    names: list[str]
    scales: Array
    root: Array

    @property
    def matrix(self) -> Array:
        r"""The average outer product of gradients, of shape (n_features, n_features).

        It is :math:`E[\sum_k \nabla f_k(x) \nabla f_k(x)^\top]` over samples :math:`x` and decision
        functions or outputs :math:`f_k`.
        """
        return self.root.T @ self.root

    @property
    def shares(self) -> Array:
        """Share of each column: the mean square slope along it, per standard deviation."""
        squares = np.square(self.root * self.scales).sum(axis=0)
        return squares / (squares.sum() or 1.0)

    def to_dict(self) -> dict[str, float]:
        """Return the shares by name, the largest first."""
        order = np.argsort(-self.shares, kind="stable")
        return {self.names[k]: float(self.shares[k]) for k in order}

    def __str__(self) -> str:
        shares = list(self.to_dict().items())
        lines = [f"{100 * share:6.2f} %  {name}" for name, share in shares[:N_SHOWN]]
        n_others = len(shares) - N_SHOWN
        return "\n".join(lines + [f"and {n_others} more columns"] * (n_others > 0))


def sample_for_importances(rows: Rows, n_tasks: int) -> Rows:
    """Return evenly spread rows with weight, few enough that their gradients cost little."""
    indices = np.arange(len(rows))
    if rows.weights is not None:
        indices = np.flatnonzero(rows.to_host(rows.weights))
    n_rows = max(N_GRADIENTS // n_tasks, MIN_GRADIENTS)
    chosen = np.linspace(0, len(indices) - 1, min(n_rows, len(indices))).astype(int)
    return rows.take(indices[chosen])


@np.errstate(over="ignore", invalid="ignore")  # of numbers that have no squares
def compute_importances(
    kernel: LearnedKernel, coef: Array, rows: Rows, names: list[str]
) -> Importances:
    """Return the importances of the columns, in one pass over the samples."""
    if len(rows) < 2:
        raise ValueError(
            "X has 1 sample, but importances are about how predictions change from sample to "
            "sample: give more. For a single prediction, see the method contributions."
        )
    cosines, sines, center = wave_amplitudes(kernel, coef)
    directions, constants = gradient_directions(kernel, coef)
    unit = float(kernel.space.scale)  # squares of samples in another unit may overflow
    directions, frequencies = unit * directions, unit * kernel.frequencies
    # Gradients are combinations of the directions: products are taken of whichever are fewer.
    is_wide = directions.shape[1] > len(directions)

    def sums(X: Any, w: Any = None) -> tuple[Array, ...]:
        X, w = to_host(X).astype(np.float64), np.ones((X.shape[0], 1)) if w is None else to_host(w)
        angles = -frequencies @ (center / unit) if sparse.issparse(X) else 0.0
        X = (X if sparse.issparse(X) else X - center) / unit  # sparse samples are not centred
        angles = angles + X @ frequencies.T  # (n_rows, n_frequencies)
        slopes = np.cos(angles) * sines[:, None] - np.sin(angles) * cosines[:, None]
        factors = append_constants(slopes, constants)  # (n_tasks, n_rows, n_directions)
        factors = factors if is_wide else factors @ directions
        factors = (factors * np.sqrt(w)).reshape(-1, factors.shape[2])  # of all tasks
        squares = X.multiply(X) if sparse.issparse(X) else X * X
        return factors.T @ factors, np.ravel(X.T @ w), np.ravel(squares.T @ w)

    width = numbers_per_row(directions, coef)
    found = rows.sum_blocks(sums, *rows.weight_columns, width=width, dtype=np.float64)
    products, mean, squares = (each / rows.total_weight for each in found)
    scales = unit * np.sqrt(np.maximum(squares - mean**2, 0.0))
    values, vectors = np.linalg.eigh(products)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return Importances(names, scales, (root @ directions if is_wide else root) / unit)


def compute_contributions(kernel: LearnedKernel, coef: Array, rows: Rows) -> Array:
    r"""Return integrated gradients, of shape (n_samples, n_tasks, n_features).

    The contribution of column `j` is the change of the prediction along the straight path from the
    centre to the sample that is due to it,
    :math:`(x_j - \bar x_j) \int_0^1 \partial_j f(\bar x + s (x - \bar x)) ds`. They add up to
    :math:`f(x) - f(\bar x)`.
    """
    cosines, sines, center = wave_amplitudes(kernel, coef)
    directions, constants = gradient_directions(kernel, coef)

    def contributions(X: Any) -> Array:
        X = dense(to_host(X)).astype(np.float64) - center
        half = X @ kernel.frequencies.T / 2  # (n_rows, n_frequencies)
        # Means over s of the cosine and the sine of s times the angle.
        mean_cosine = np.sinc(2 * half / np.pi)
        mean_sine = np.sin(half) * np.sinc(half / np.pi)
        slopes = mean_cosine * sines[:, None] - mean_sine * cosines[:, None]
        return np.moveaxis(append_constants(slopes, constants) @ directions * X, 0, 1)

    return rows.map(contributions, width=numbers_per_row(directions, coef))


def numbers_per_row(directions: Array, coef: Array) -> int:
    """Return how many numbers are held for each row: slopes and gradients, of all tasks."""
    return 2 * (len(coef) + 1) * sum(directions.shape)


def linear_slopes(kernel: LearnedKernel, coef: Array) -> Array:
    """Return the slopes of the linear part along the columns, of shape (n_tasks, n_features)."""
    return kernel.linear_scale * coef[:, kernel.n_waves :].astype(np.float64)


def gradient_directions(kernel: LearnedKernel, coef: Array) -> tuple[Array, Array]:
    """Return the vectors that gradients are combinations of, and their constant factors.

    Returns
    -------
    directions : ndarray of shape (n_frequencies + n_constants, n_features)
        The frequencies, then the slopes of a linear part, one vector per task.
    constants : ndarray of shape (n_tasks, n_constants)
        The factors of the slopes in the gradient of each task: 1 for its own ones, else 0.
    """
    if not kernel.linear_scale:
        return kernel.frequencies, np.empty((len(coef), 0))
    return np.vstack([kernel.frequencies, linear_slopes(kernel, coef)]), np.eye(len(coef))


def append_constants(slopes: Array, constants: Array) -> Array:
    """Return the factors of all directions, (n_tasks, n_rows, n_directions)."""
    shape = *slopes.shape[:2], constants.shape[1]
    return np.concatenate([slopes, np.broadcast_to(constants[:, None], shape)], axis=2)


def wave_amplitudes(kernel: LearnedKernel, coef: Array) -> tuple[Array, Array, Array]:
    """Return the factors of cosines and sines, (n_tasks, n_frequencies), and the centre."""
    if not isinstance(kernel.space, Euclidean):
        raise ValueError(
            "Columns of samples on the sphere don't vary independently, so they have no "
            "importances and contributions: fit with space='euclidean' for these."
        )
    center = np.asarray(kernel.space.center, dtype=np.float64)
    factors, coef = kernel.scales * np.sqrt(kernel.weights), coef[:, : kernel.n_waves]
    if kernel.phase == "paired":
        pairs = coef.reshape(len(coef), -1, 2) * factors[:, None]
        return pairs[..., 0], pairs[..., 1], center
    amplitudes = np.sqrt(2) * coef * factors
    return amplitudes * np.cos(kernel.phases), amplitudes * np.sin(kernel.phases), center
