r"""The game between the kernel and the SVM dual.

The estimators cover what most users need. This module has the parts that they are made of, for
experiments with the method itself.

Through an estimator, `solver`, `search`, `space` and `smoothing` accept objects. The paper's own
setting, alternating projection (Algorithm 3) included, is one line::

    FourierClassifier(
        loss="hinge", C=1.0, smoothing=0, phase="paired",
        search=Langevin(n_particles=100, n_peaks=10),
        solver=GradientSolver("theory", weighting="uniform", projection="alternating"),
    )

that is: an SVM, no smoothing, a cosine and a sine per frequency, Langevin dynamics for the peaks
(Algorithm 1; the paper has 500 particles), the step sizes of the regret bound and uniform weights.

Without an estimator, a game needs samples, targets, a space and a search. Any class with the method
``find`` of :class:`notsorandom.search.Search` is a search, any subclass of
:class:`notsorandom.spaces.Space` a space, and any :class:`Loss` a loss::

    rng = np.random.default_rng(0)
    problem = Problem(LOSSES["hinge"], labels, Rows(X))  # labels of +1 and -1, one
                                                                    # column per task
    result = play(problem, space=Euclidean(), search=Langevin(), n_frequencies=50, rng=rng,
                  phase="paired", smoothing=0.0, learning_rate="theory", projection="alternating")
    kernel = result.kernel("uniform")   # a LearnedKernel: Gram matrix and features
    result.history["objective"]         # one value per round

The parts, by what they are needed for:

- Play round by round, inspect or stop: :class:`GameLoop` (``play_round``, ``current_state``,
  ``result``). :func:`play` plays it to the end and calls a function after each round.
- Other losses, step sizes or projections: :class:`Loss`, :class:`Problem`, :func:`project`.
- The exact solution over finitely many kernels: :func:`find_equilibrium`, and
  `notsorandom.game.reweighting` for the weights of given frequencies.
- Bounds on the value, regret and generalisation:
  :class:`~notsorandom.game.certificate.Certificate`, made by the estimators.
- The dual variables of a finished game, round by round: :func:`notsorandom.game.loop.replay`.
"""

from notsorandom.game.equilibrium import Equilibrium, find_equilibrium
from notsorandom.game.loop import GameLoop, Observer, play, replay
from notsorandom.game.losses import (
    CLASSIFICATION_LOSSES,
    LOSSES,
    REGRESSION_LOSSES,
    LogisticLoss,
    Loss,
    QuadraticLoss,
)
from notsorandom.game.problem import Problem
from notsorandom.game.projection import PROJECTIONS, project
from notsorandom.game.state import GameResult, GameState, Round

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
    "Round",
    "find_equilibrium",
    "play",
    "project",
    "replay",
]
