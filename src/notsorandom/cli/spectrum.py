"""The learned spectrum in a few numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from notsorandom.data.rows import Array

# Columns that are named.
N_COLUMNS = 5


def spectrum_of(model: Any, widths: Array, names: list[str] | None) -> dict[str, Any]:
    """How many frequencies there are, how evenly weighted and how fast, and along which columns.

    Parameters
    ----------
    model : fitted estimator
    widths : ndarray of shape (n_features,)
        Standard deviations of the columns.
    names : list of str, optional
    """
    kernel = model.kernel_
    weights = kernel.weights[kernel.weights > 0]
    even = float(np.exp(-(weights * np.log(weights)).sum()))
    found: dict[str, Any] = {"frequencies": len(kernel.weights), "as even as": round(even, 1)}
    if not kernel.space.is_flat:
        degrees, counts = np.unique(kernel.space.sizes(kernel.frequencies), return_counts=True)
        found["degrees"] = dict(zip(map(str, degrees.tolist()), counts.tolist(), strict=True))
        return found
    turns = np.abs(kernel.frequencies * widths)  # by how much a typical change of a column turns it
    lengths = np.sqrt(np.square(turns).sum(axis=1))
    found["turn"] = [round(float(np.quantile(lengths, q)), 3) for q in (0.1, 0.5, 0.9)]
    if names is not None:
        shares = kernel.weights @ turns
        shares = shares / shares.sum()
        first = np.argsort(-shares, kind="stable")[:N_COLUMNS]
        found["columns"] = {names[place]: round(float(shares[place]), 4) for place in first}
    return found


def spectrum_in_words(spectrum: Mapping[str, Any]) -> str:
    """The same as a sentence."""
    words = f"{spectrum['frequencies']} frequencies, as even as {spectrum['as even as']:.0f}"
    if "degrees" in spectrum:
        degrees = [f"{count} of degree {degree}" for degree, count in spectrum["degrees"].items()]
        return f"{words}: {', '.join(degrees)}"
    low, middle, high = spectrum["turn"]
    words += (
        f"; a typical sample turns them by {low:.1f} to {high:.1f}, median {middle:.1f} radians"
    )
    if "columns" in spectrum:
        columns = [f"{name} {share:.0%}" for name, share in spectrum["columns"].items()]
        words += f"; most along {', '.join(columns)}"
    return words
