"""Samples of length one."""

from __future__ import annotations

import numpy as np

from notsorandom.rows import Array, Rows
from notsorandom.spaces.euclidean import lengths

# How far from 1 a norm may be. Numbers stored in half precision are off by less.
NORM_TOLERANCE = 1e-3


def unit_rows(X: Array, normalize: bool) -> Array:
    """Return the rows scaled to norm one, or as they are if they have it already."""
    if X.shape[1] < 2:
        raise ValueError(
            f"X has n_features = {X.shape[1]}, but a sphere needs at least 2 columns: use "
            "space='euclidean'."
        )
    if len(X) == 0:
        return X
    norms = Rows(X).map(lengths)
    if not norms.all():
        raise ValueError(
            f"Row {int(np.argmin(norms))} of X is zero ({int((norms == 0).sum())} of {len(X)} rows "
            "are), and zero has no direction: leave such rows out."
        )
    if normalize:
        return (X / norms[:, None]).astype(X.dtype)
    off = np.flatnonzero(np.abs(norms - 1) > NORM_TOLERANCE)
    if len(off):
        raise ValueError(
            f"Row {off[0]} of X has norm {norms[off[0]]:.6g}, but samples on the sphere have norm "
            f"1, to within {NORM_TOLERANCE:g} ({len(off)} of {len(X)} rows don't): scale them, or "
            "use Sphere(normalize=True)."
        )
    return X
