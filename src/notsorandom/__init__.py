"""Learn a kernel instead of guessing one.

Subpackages and modules, in the order in which data passes through them:

- :mod:`notsorandom.data`: where the samples are: in memory, on disk, on a device.
- :mod:`notsorandom.spaces`: where frequencies live; the potential and its gradient.
- :mod:`notsorandom.search`: how a peak of the potential is found.
- :mod:`notsorandom.kernel`: the learned kernel, as a Gram matrix or as features.
- :mod:`notsorandom.game`: the game between the kernel and the dual of a linear model.
- :mod:`notsorandom.linear`: the linear model on the learned features.
- :mod:`notsorandom.estimators`: all of it behind scikit-learn's interface.
- :mod:`notsorandom.io`, :mod:`notsorandom.dask`, :mod:`notsorandom.baselines`,
  :mod:`notsorandom.datasets`: model files and ONNX, clusters, other methods, data.
- :mod:`notsorandom.display`: plots and reports.
- :mod:`notsorandom.cli`: the command ``notsorandom``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from notsorandom.estimators.classifier import FourierClassifier
from notsorandom.estimators.config import (
    Checkpoint,
    EquilibriumSolver,
    GradientSolver,
)
from notsorandom.estimators.features import FourierFeatures
from notsorandom.estimators.regressor import FourierRegressor
from notsorandom.kernel import LearnedKernel
from notsorandom.search import Ascent, Chain, Enumerate, Langevin
from notsorandom.spaces import Euclidean, Sphere

if TYPE_CHECKING:
    from notsorandom._utils.files import FileFormatError
    from notsorandom.display.report import report
    from notsorandom.io import SKOPS_TYPES, load, save, to_onnx

__version__ = "0.1.0"

# Names of modules that read or write files, which are imported when first used.
_LAZY = {
    "SKOPS_TYPES": "notsorandom.io",
    "load": "notsorandom.io",
    "save": "notsorandom.io",
    "to_onnx": "notsorandom.io",
    "report": "notsorandom.display.report",
    "FileFormatError": "notsorandom._utils.files",
}

__all__ = [
    "SKOPS_TYPES",
    "Ascent",
    "Chain",
    "Checkpoint",
    "Enumerate",
    "EquilibriumSolver",
    "Euclidean",
    "FileFormatError",
    "FourierClassifier",
    "FourierFeatures",
    "FourierRegressor",
    "GradientSolver",
    "Langevin",
    "LearnedKernel",
    "Sphere",
    "__version__",
    "load",
    "report",
    "save",
    "to_onnx",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'notsorandom' has no attribute {name!r}")
