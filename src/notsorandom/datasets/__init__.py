"""Synthetic data, MNIST, CIFAR-10, and HoG descriptors of images."""

from notsorandom.datasets.descriptors import hog
from notsorandom.datasets.images import CIFAR10_CLASSES, fetch_cifar10, fetch_mnist
from notsorandom.datasets.synthetic import make_checkerboard, make_windmill

__all__ = [
    "CIFAR10_CLASSES",
    "fetch_cifar10",
    "fetch_mnist",
    "hog",
    "make_checkerboard",
    "make_windmill",
]
