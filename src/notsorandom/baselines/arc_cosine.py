"""The arc-cosine kernel: the limit of a wide random layer of step or ReLU units."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom._utils.parameters import check_number
from notsorandom.data.rows import Array, row_norms


def arc_cosine_kernel(X: Any, Z: Any = None, degree: int = 1) -> Array:
    r"""Arc-cosine kernel of degree 0 or 1.

    With :math:`\theta` the angle between `x` and `z`, it is :math:`1 - \theta / \pi` at degree 0
    and :math:`|x| |z| (\sin\theta + (\pi - \theta) \cos\theta) / \pi` at degree 1.

    Parameters
    ----------
    X : array-like of shape (n_samples_X, n_features)
        The samples.
    Z : array-like of shape (n_samples_Z, n_features), optional
        `X` if not given.
    degree : {0, 1}, default=1
        0 is the kernel of step functions, 1 the kernel of rectified linear units.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Z)

    References
    ----------
    Y. Cho, L. Saul, "Kernel methods for deep learning", NIPS 2009.

    Examples
    --------
    >>> from functools import partial
    >>> from sklearn.svm import SVC
    >>> from notsorandom.baselines import arc_cosine_kernel
    >>> from notsorandom.datasets import make_checkerboard
    >>> X, y = make_checkerboard(500, random_state=0)
    >>> SVC(kernel=partial(arc_cosine_kernel, degree=0), C=10).fit(X, y).score(X, y) > 0.8
    True
    """
    check_number("degree", degree, least=0, most=1, integer=True)
    X = np.asarray(X, dtype=np.float64)
    Z = X if Z is None else np.asarray(Z, dtype=np.float64)
    norms = row_norms(X)[:, None], row_norms(Z)[:, None]
    left, right = X / np.where(norms[0] > 0, norms[0], 1), Z / np.where(norms[1] > 0, norms[1], 1)
    cosine = np.clip(left @ right.T, -1, 1)
    angle = np.arccos(cosine)
    if degree == 0:
        return 1 - angle / np.pi
    return norms[0] * norms[1].T * (np.sqrt(1 - cosine**2) + (np.pi - angle) * cosine) / np.pi
