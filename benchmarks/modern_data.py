"""Data of today for `benchmarks.peers`: sentence embeddings, text, regressions with little noise.

The folder has one file per set. ``banking77.npz`` and ``trec.npz`` have sentence embeddings `X`,
`X_test`, classes `y`, `y_test`, and the sentences `texts`, `texts_test`. The sets ``banking77-10``
and ``trec-10`` have ten samples of each class; ``banking77-words`` and ``trec-words`` have the
frequencies of the words (TfidfVectorizer, sparse) in place of the embeddings. The other files, such
as ``pol.npz``, have the arrays `X` and `y` of the UCI repository's tables. Of these, 4/9 of the
rows are for training and 3/9 for testing, standardised by the training rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

EMBEDDINGS = ("banking77", "banking77-10", "trec", "trec-10")
TEXTS = ("banking77-words", "trec-words")
REGRESSIONS = (
    "skillcraft",
    "sml",
    "airfoil",
    "energy",
    "pumadyn32nm",
    "pol",
    "elevators",
    "keggdirected",
)
MODERN = (*REGRESSIONS, *EMBEDDINGS, *TEXTS)
SHOTS = "10"  # samples of each class, if the name ends so


class Split(NamedTuple):
    """Training and test samples and targets."""

    X: Any
    X_test: Any
    y: Any
    y_test: Any


def count_splits(name: str) -> int:
    """Return the number of splits: 1 where the training and test samples are given."""
    return 3 if name in REGRESSIONS or name.endswith(f"-{SHOTS}") else 1


def file_of(folder: Path, name: str) -> Path:
    """Return the file of a set."""
    return folder / f"{name.partition('-')[0]}.npz"


def load_modern(folder: Path, name: str, split: int, validation: bool = False) -> Split:
    """Return a split; for validation the test samples are a fourth of the training samples."""
    load = load_regression if name in REGRESSIONS else load_classes
    return load(folder, name, split, validation)


def load_regression(folder: Path, name: str, split: int, validation: bool) -> Split:
    """Return standardised samples and targets."""
    file = np.load(file_of(folder, name))
    X, y = file["X"].astype(float), file["y"].astype(float)
    X = X[:, X.std(axis=0) > 0]
    order = np.random.default_rng(split).permutation(len(y))
    train, test = order[: len(y) * 4 // 9], order[len(y) * 6 // 9 :]
    if validation:
        train, test = np.split(train, [len(train) * 3 // 4])
    deviations = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(deviations > 0, deviations, 1)
    y = (y - y[train].mean()) / y[train].std()
    return Split(X[train], X[test], y[train], y[test])


def load_classes(folder: Path, name: str, split: int, validation: bool) -> Split:
    """Return embeddings of unit norm or frequencies of words, and class labels."""
    file, (_, _, form) = np.load(file_of(folder, name)), name.partition("-")
    key = "texts" if form == "words" else "X"
    X, X_test, y, y_test = file[key], file[f"{key}_test"], file["y"], file["y_test"]
    if validation:
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=split)
    if form == SHOTS:
        rng = np.random.default_rng(split)
        members = [
            rng.permutation(np.flatnonzero(y == each))[: int(SHOTS)] for each in np.unique(y)
        ]
        X, y = X[np.concatenate(members)], y[np.concatenate(members)]
    if form == "words":
        words = TfidfVectorizer(sublinear_tf=True).fit(X)
        return Split(words.transform(X), words.transform(X_test), y, y_test)
    X, X_test = (each.astype(np.float32) for each in (X, X_test))
    X, X_test = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (X, X_test))
    return Split(X, X_test, y, y_test)
