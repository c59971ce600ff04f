"""Learn a kernel instead of guessing one.

Subpackages and modules, in the order in which data passes through them:

- :mod:`notsorandom.data`: where the samples are: in memory, on disk, on a device.
- :mod:`notsorandom.spaces`: where frequencies live; the potential and its gradient.
- :mod:`notsorandom.search`: how a peak of the potential is found.
- :mod:`notsorandom.kernel`: the learned kernel, as a Gram matrix, as features, or for a Gaussian
  process.
- :mod:`notsorandom.game`: the game between the kernel and the dual of a linear model.
- :mod:`notsorandom.linear`: the linear model on the learned features.
- :mod:`notsorandom.tuning`: what a fit chooses by itself, by trial games.
- :mod:`notsorandom.estimators`: all of it behind scikit-learn's interface.
- :mod:`notsorandom.tabular`: ordinary data frames, with text, dates and gaps.
- :mod:`notsorandom.io`, :mod:`notsorandom.dask`, :mod:`notsorandom.baselines`,
  :mod:`notsorandom.datasets`: model files and ONNX, clusters, other methods, data.
- :mod:`notsorandom.display`: plots and reports.
- :mod:`notsorandom.cli`: the command ``notsorandom``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from notsorandom._utils.files import FileFormatError
    from notsorandom.display.report import report
    from notsorandom.estimators.classifier import FourierClassifier
    from notsorandom.estimators.config import Checkpoint
    from notsorandom.estimators.degrees import DegreeKernel, SphereKernel
    from notsorandom.estimators.features import FourierFeatures
    from notsorandom.estimators.gaussian_process import GaussianProcessKernel
    from notsorandom.estimators.regressor import FourierRegressor
    from notsorandom.game.solvers import EquilibriumSolver, GradientSolver
    from notsorandom.io import load, save, to_onnx
    from notsorandom.kernel import LearnedKernel
    from notsorandom.search import Ascent, Chain, Enumerate, Langevin, Thorough
    from notsorandom.spaces import Euclidean, Sphere
    from notsorandom.tabular import tabular_pipeline

__version__ = "0.3.0"

# Where the public names are defined. They are imported when first used, so that the command line
# starts at once, and what reads or writes files is loaded only where it is needed.
_MODULES = {
    "_utils.files": ["FileFormatError"],
    "display.report": ["report"],
    "estimators.classifier": ["FourierClassifier"],
    "estimators.config": ["Checkpoint"],
    "estimators.degrees": ["DegreeKernel", "SphereKernel"],
    "estimators.features": ["FourierFeatures"],
    "estimators.gaussian_process": ["GaussianProcessKernel"],
    "estimators.regressor": ["FourierRegressor"],
    "game.solvers": ["EquilibriumSolver", "GradientSolver"],
    "io": ["load", "save", "to_onnx"],
    "kernel": ["LearnedKernel"],
    "search": ["Ascent", "Chain", "Enumerate", "Langevin", "Thorough"],
    "spaces": ["Euclidean", "Sphere"],
    "tabular": ["tabular_pipeline"],
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Ascent",
    "Chain",
    "Checkpoint",
    "DegreeKernel",
    "Enumerate",
    "EquilibriumSolver",
    "Euclidean",
    "FileFormatError",
    "FourierClassifier",
    "FourierFeatures",
    "FourierRegressor",
    "GaussianProcessKernel",
    "GradientSolver",
    "Langevin",
    "LearnedKernel",
    "Sphere",
    "SphereKernel",
    "Thorough",
    "__version__",
    "load",
    "report",
    "save",
    "tabular_pipeline",
    "to_onnx",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"notsorandom.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'notsorandom' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
