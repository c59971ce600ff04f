"""Learn a kernel instead of guessing one.

A tour of the rooms, in the order data walks through them:

- :mod:`notsorandom.tables`: data files, read and written a block of rows at a time.
- :mod:`notsorandom.sources`: samples that are not in memory, made to be read by slices of rows.
- :mod:`notsorandom.rows`: where the samples live; :mod:`notsorandom.devices`, if that is a device.
- :mod:`notsorandom.spaces`: where frequencies live; the potential and its gradient.
- :mod:`notsorandom.search`: how a peak of the potential is found.
- :mod:`notsorandom.game`: the game between the kernel and the dual player.
- :mod:`notsorandom.kernel`: what was learned, as a Gram matrix or as features.
- :mod:`notsorandom.linear`: the linear SVM at the end; :mod:`notsorandom.streaming`: the same on
  features that are too many to hold, by :mod:`notsorandom.passes` over the samples.
- :mod:`notsorandom.reweight`: the best weights for the frequencies found.
- :mod:`notsorandom.learning`: the game put together; :mod:`notsorandom.smoothing` chosen.
- :mod:`notsorandom.certify`: how far the kernel is from the best one.
- :mod:`notsorandom.estimators`: all of it behind scikit-learn's interface.
- :mod:`notsorandom.models`: fitted estimators as files, safe to open.
- :mod:`notsorandom.onnx_export`: a fitted model as a graph that runs without Python.
- :mod:`notsorandom.dask`: the estimators on a cluster.
- :mod:`notsorandom.datasets`: toy data, MNIST, CIFAR-10, HoG.
- :mod:`notsorandom.baselines`: what the method is compared with.
- :mod:`notsorandom.inspection`: a fitted model looked at once more.
- :mod:`notsorandom.plots`, :mod:`notsorandom.report`: pictures, and a page of them.
- :mod:`notsorandom.experiments`: the paper's figures, run again.
- :mod:`notsorandom.cli`: all of it from the command line.

A few cupboards serve them all: :mod:`notsorandom.parameters` checks what users give,
:mod:`notsorandom.progress` draws bars, :mod:`notsorandom.parallel` shares work among threads,
:mod:`notsorandom.files` writes files whole, :mod:`notsorandom.tensors` reads and writes arrays, and
:mod:`notsorandom.packing` everything else.
"""

from notsorandom.estimators import FourierClassifier, FourierFeatures, FourierRegressor
from notsorandom.kernel import LearnedKernel
from notsorandom.models import SKOPS_TYPES, load
from notsorandom.search import Ascent, Chain, Enumerate, Langevin
from notsorandom.spaces import Euclidean, Sphere
from notsorandom.tensors import FileFormatError

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
