"""What makes one fit the same as another: the parameters, and the data."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom.data.array_api import on_host
from notsorandom.data.rows import Rows

# How a fingerprint is told of in a message.
DATA = ("X", "y", "sample weights")


def fingerprint(rows: Rows, targets: Any) -> dict[str, str]:
    """Digests of samples, targets and weights, by name: the same for the same data."""

    def of_block(X: Any, *parts: Any) -> tuple[str, ...]:
        X, *columns = map(on_host, (X, *parts))
        samples: tuple[Any, ...] = (X,)
        if sparse.issparse(X):
            samples = (np.array(X.shape), X.data, X.indices, X.indptr)
        return digest(*samples), digest(columns[0]), digest(*columns[1:])

    columns = zip(*rows.each(of_block, targets, *rows.weighing), strict=True)
    return {
        name: digest(np.frombuffer("".join(parts).encode(), dtype=np.uint8))
        for name, parts in zip(DATA, columns, strict=True)
    }


def digest(*arrays: Any) -> str:
    """A few letters that no two arrays have in common."""
    content = hashlib.blake2b(digest_size=16)
    for array in arrays:
        content.update(f"{array.dtype.str}{array.shape}".encode())
        for start in range(0, len(array), 4096):  # copied only a few rows at a time, if at all
            content.update(np.ascontiguousarray(array[start : start + 4096]).data)
    return content.hexdigest()


def identity_of(estimator: Any, free: Collection[str]) -> dict[str, str]:
    """An estimator's parameters, but for the free ones, and its data, in words."""
    parameters = estimator.get_params().items()
    told = {name: in_words(value) for name, value in parameters if name not in free}
    # However many jobs there are, what they add up to is the same.
    told["n_jobs"] = "None" if estimator.n_jobs is None else "some"
    return {"class": type(estimator).__name__} | told | estimator._fingerprint


def in_words(value: Any) -> str:
    """The value of a parameter, the same in every process."""
    if hasattr(value, "get_params"):  # whose own parameters are told by themselves
        return type(value).__qualname__
    if isinstance(value, np.ndarray):
        return f"array {digest(value)}"
    value = value.item() if isinstance(value, np.generic) else value
    return repr(float(value) if type(value) is int else value)  # 1 is 1.0


def differences(then: dict[str, str], now: dict[str, str]) -> str:
    """What is not the same, in words; nothing if all is."""
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return ", ".join(
        f"{name} is other data"
        if name in DATA
        else f"{name} was {then.get(name, 'not there')}, and is {now.get(name, 'not there')}"
        for name in names
    )
