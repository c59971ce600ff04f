"""Learn a kernel instead of guessing one.

A tour of the rooms, in the order data walks through them:

- :mod:`notsorandom.data.tables`: data files, read and written a block of rows at a time.
- :mod:`notsorandom.data`: samples that are not in memory, made to be read by slices of rows.
- :mod:`notsorandom.data.rows`: where the samples live; :mod:`notsorandom.data.array_api`, if that is a device.
- :mod:`notsorandom.spaces`: where frequencies live; the potential and its gradient.
- :mod:`notsorandom.search`: how a peak of the potential is found.
- :mod:`notsorandom.game`: the game between the kernel and the dual player.
- :mod:`notsorandom.kernel`: what was learned, as a Gram matrix or as features.
- :mod:`notsorandom.linear.newton`: the linear SVM at the end; :mod:`notsorandom.linear.streaming`: the same on
  features that are too many to hold, by :mod:`notsorandom.linear.passes` over the samples.
- :mod:`notsorandom.game.reweight`: the best weights for the frequencies found.
- :mod:`notsorandom.estimators.training`: the game put together; :mod:`notsorandom.estimators.smoothing` chosen.
- :mod:`notsorandom.estimators.certify`: how far the kernel is from the best one.
- :mod:`notsorandom.estimators`: all of it behind scikit-learn's interface.
- :mod:`notsorandom.io`: fitted estimators as files, safe to open.
- :mod:`notsorandom.io.onnx`: a fitted model as a graph that runs without Python.
- :mod:`notsorandom.dask`: the estimators on a cluster.
- :mod:`notsorandom.datasets`: toy data, MNIST, CIFAR-10, HoG.
- :mod:`notsorandom.baselines`: what the method is compared with.
- :mod:`notsorandom.display.inspection`: a fitted model looked at once more.
- :mod:`notsorandom.display`, :mod:`notsorandom.display.report`: pictures, and a page of them.
- :mod:`notsorandom.experiments`: the paper's figures, run again.
- :mod:`notsorandom.cli`: all of it from the command line.

A few cupboards serve them all: :mod:`notsorandom._utils.parameters` checks what users give,
:mod:`notsorandom._utils.progress` draws bars, :mod:`notsorandom._utils.threads` shares work among threads,
:mod:`notsorandom._utils.files` writes files whole, :mod:`notsorandom.io.tensors` reads and writes arrays, and
:mod:`notsorandom.io.packing` everything else.
"""

from notsorandom.estimators import FourierClassifier, FourierFeatures, FourierRegressor
from notsorandom.io import SKOPS_TYPES, load
from notsorandom.io.tensors import FileFormatError
from notsorandom.kernel import LearnedKernel
from notsorandom.search import Ascent, Chain, Enumerate, Langevin
from notsorandom.spaces import Euclidean, Sphere

__version__ = "0.1.0"

__all__ = [
    "SKOPS_TYPES",
    "Ascent",
    "Chain",
    "Enumerate",
    "Euclidean",
    "FileFormatError",
    "FourierClassifier",
    "FourierFeatures",
    "FourierRegressor",
    "Langevin",
    "LearnedKernel",
    "Sphere",
    "__version__",
    "load",
]
