r"""The game between the kernel and the SVM dual.

The estimators cover what most users need. This module has the parts that they are made of, for
experiments with the method itself.

Through an estimator, `loss`, `space`, `search` and `solver` accept objects: a :class:`Loss`, a
:class:`notsorandom.spaces.Space`, a :class:`notsorandom.search.Search` and a :class:`Solver`. The
notes of :class:`notsorandom.FourierFeatures` show the paper's own setting.

Without an estimator, a game needs a problem, that is samples, targets and a loss, a space and a
search::

    rng = np.random.default_rng(0)
    # Labels of +1 and -1, of shape (n_samples, n_tasks).
    problem = Problem(LOSSES["hinge"], labels, Rows(X))
    result = play(problem, space=Euclidean(), search=Langevin(), n_frequencies=50, rng=rng,
                  phase="paired", smoothing=0.0, learning_rate="theory", projection="alternating")
    kernel = result.kernel("uniform")   # a LearnedKernel: Gram matrix and features
    result.history["objective"]         # one value per round

The parts, by what they are needed for:

- Losses: ``LOSSES`` has the named ones as :class:`Loss` objects with `C = 1`, and
  :meth:`Loss.times` multiplies one by `C`. :class:`QuadraticLoss` and
  :class:`QuantileLoss` have more of them as settings.
- Play round by round, or continue a game: :class:`GameLoop` (``play_round``, ``current_state``,
  ``result``). :func:`play` resolves the space and plays to the end.
- Watch or stop a game: an :class:`Observer` is called after each round. :class:`SearchGap` measures
  how far the peaks found are below the highest ones.
- Other steps or projections: :class:`Problem` (``step``, ``project``) and :func:`project`.
- Another way to solve the game in a fit: :class:`Solver`.
- The exact solution over finitely many kernels: :func:`find_equilibrium`, and
  `notsorandom.game.reweighting` for the weights of given frequencies.
- Bounds on the value, regret and generalisation:
  :class:`~notsorandom.game.certificate.Certificate`, made by the estimators.
- Alignment of a kernel with labels, the Fourier potential and the maximum mean discrepancy:
  :func:`kernel_alignment`, :func:`fourier_potential`, :func:`mean_discrepancy`.
- The dual variables of a finished game, round by round: :func:`replay`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from notsorandom.game.loop import GameLoop, Observer, play, replay
from notsorandom.game.losses import (
    CLASSIFICATION_LOSSES,
    LOSSES,
    REGRESSION_LOSSES,
    LogisticLoss,
    Loss,
    QuadraticLoss,
    QuantileLoss,
)
from notsorandom.game.problem import Problem
from notsorandom.game.projection import PROJECTIONS, project
from notsorandom.game.solvers import Solver
from notsorandom.game.state import GameResult, GameState, Round

if TYPE_CHECKING:
    from notsorandom.game.alignment import fourier_potential, kernel_alignment, mean_discrepancy
    from notsorandom.game.equilibrium import Equilibrium, find_equilibrium
    from notsorandom.game.search_gap import SearchGap

# What fits don't need is imported when it is first used.
_LAZY = {
    "Equilibrium": "equilibrium",
    "SearchGap": "search_gap",
    "find_equilibrium": "equilibrium",
    "fourier_potential": "alignment",
    "kernel_alignment": "alignment",
    "mean_discrepancy": "alignment",
}

__all__ = [
    "CLASSIFICATION_LOSSES",
    "LOSSES",
    "PROJECTIONS",
    "REGRESSION_LOSSES",
    "Equilibrium",
    "GameLoop",
    "GameResult",
    "GameState",
    "LogisticLoss",
    "Loss",
    "Observer",
    "Problem",
    "QuadraticLoss",
    "QuantileLoss",
    "Round",
    "SearchGap",
    "Solver",
    "find_equilibrium",
    "fourier_potential",
    "kernel_alignment",
    "mean_discrepancy",
    "play",
    "project",
    "replay",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"notsorandom.game.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'notsorandom.game' has no attribute {name!r}")
