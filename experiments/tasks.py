"""The eight pairs of classes of MNIST and CIFAR-10."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.datasets import fetch_cifar10, fetch_mnist, hog

SHORT_NAMES = ("plane", "auto", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TASKS = (
    "mnist-1-7",
    "mnist-4-9",
    "mnist-5-6",
    "plane-bird",
    "auto-truck",
    "dog-frog",
    "auto-ship",
    "auto-deer",
)


class Task(NamedTuple):
    """Training and test samples in float32, with labels 0 and 1."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


# From the name of a task to its data.
TaskLoader: TypeAlias = Callable[[str], Task]


@lru_cache(maxsize=1)  # consecutive runs use the same task
def load_task(task: str, data_home: str | None = None) -> Task:
    """Load all images of two classes: pixels / 255 of MNIST, HoG descriptors of CIFAR-10."""
    if task.startswith("mnist-"):
        images, y, test_images, y_test = fetch_mnist(data_home)
        first, second = (int(digit) for digit in task.split("-")[1:])
        X, X_test = (part.astype(np.float32) / 255 for part in (images, test_images))
    else:
        images, y, test_images, y_test = fetch_cifar10(data_home)
        first, second = (SHORT_NAMES.index(name) for name in task.split("-"))
        X, X_test = (hog(part, data_home) for part in (images, test_images))
    train, test = (np.isin(labels, (first, second)) for labels in (y, y_test))
    return Task(X[train], (y[train] == second) * 1, X_test[test], (y_test[test] == second) * 1)
