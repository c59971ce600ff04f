"""Synthetic data, MNIST, CIFAR-10, and HoG descriptors of images."""

from notsorandom.datasets.images import CIFAR10_CLASSES, fetch_cifar10, fetch_mnist, hog
from notsorandom.datasets.synthetic import make_checkerboard, make_windmill

__all__ = [
    "CIFAR10_CLASSES",
    "fetch_cifar10",
    "fetch_mnist",
    "hog",
    "make_checkerboard",
    "make_windmill",
]
