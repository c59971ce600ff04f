"""The game itself: Algorithm 2 of the paper, for any space, search and loss."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from notsorandom.game.player import Player
from notsorandom.game.project import PROJECTIONS
from notsorandom.rows import Array, Rows
from notsorandom.spaces import Landscape, mean_in_groups
from notsorandom.spaces.landscape import kernel_potentials

# The share of a feature's correlation with the measure that one round takes away: a round is a
# step of boosting, and this its shrinkage. Small enough that the measure keeps its variety over
# thousands of features, large enough that the first twenty already differ.
SHRINKAGE = 0.25
# A potential of less than so many squared roundings of its largest value is none; features are of
# mean square one, but on the sphere their squares can be as large as this at single points.
ROUNDING = 1000


@dataclass(frozen=True)
class Round:
    """What happened in one round.

    Parameters
    ----------
    n_frequencies : int
        Found so far, this round's included.
    potential : float
        Of the first frequency found, as a share of the largest value it could have: on R^d that
        of samples all at the crests and troughs of one wave, on the sphere that of a feature of
        mean square one which is the measure itself. About ``1 / n_samples`` is luck.
    objective : float
        The dual objective on this round's kernel, the mean of its frequencies'.
    lower : float
        What the round's dual variables, at their best multiple, say the value of the game is not
        below, if the highest peak found is the highest there is.
    share_at_zero, share_at_upper : float
        Dual variables at zero, and at the far ends of their boxes.
    plays : int
        How many plays the round counts for: its peaks, or one with the theory's schedule.
    step : float
        Step of the dual player, per play.
    seconds : float
        Since the game began.
    """

    n_frequencies: int
    potential: float
    objective: float
    lower: float
    share_at_zero: float
    share_at_upper: float
    plays: int
    step: float
    seconds: float


@dataclass(frozen=True)
class GameResult:
    """The outcome of a game.

    Parameters
    ----------
    space : the space, with its scale and centre measured
    frequencies : ndarray of shape (n_frequencies, n_features)
        In the order they were first found; on the sphere's harmonics, their indices.
    phases, scales : ndarrays of shape (n_frequencies,)
        Of each frequency's features.
    strengths : ndarray of shape (n_frequencies,)
        Amplitude of each frequency's features when it was found: the root of the potential, added
        up if it was found again.
    weights : ndarray of shape (n_frequencies,)
        The kernel player's average play: uniform over the frequencies, or, with the theory's
        schedule, over the rounds. A frequency found again has more.
    dual, average_dual : ndarrays of shape (n_samples, n_tasks)
        Where the dual player ended, and where it was on average over the plays; signed.
    history : dict of str to ndarray
        The rounds' records, column by column; see :class:`Round`.
    status : {"complete", "flat"}
        ``"flat"`` if the potential vanished everywhere, as for samples that are all equal.
    """

    space: Any
    frequencies: Array
    phases: Array
    scales: Array
    strengths: Array
    weights: Array
    dual: Array
    average_dual: Array
    history: dict[str, Array]
    status: str


def play(
    rows: Rows,
    player: Player,
    *,
    space: Any,
    search: Any,
    n_frequencies: int,
    rng: np.random.Generator,
    n_rounds: int | None = None,
    phase: str = "aligned",
    smoothing: float = 0.06,
    learning_rate: str | float = "auto",
    projection: str = "exact",
    watch: Callable[[Round, Array], None] | None = None,
) -> GameResult:
    r"""Learn frequencies by no-regret play.

    In each round the kernel player searches for peaks of the potential of the current measure, and
    the dual player takes a gradient step against the mean kernel :math:`\lambda` of the `p` peaks
    found, which counts for `p` plays:

    .. math:: \alpha \leftarrow
       \mathrm{Proj}[\alpha + \tfrac{\eta p}{n} \nabla_\alpha F(\alpha, \lambda)].

    Parameters
    ----------
    rows : Rows
    player : Player
        The dual player, with targets in the rows' type.
    space, search
        See :mod:`notsorandom.spaces` and :mod:`notsorandom.search`.
    n_frequencies : int
        The game ends when it has found so many.
    rng : numpy.random.Generator
    n_rounds : int, optional
        The game also ends after so many rounds, by default `n_frequencies`. Where frequencies are
        finite and can be found again, it may have found fewer by then.
    phase : {"aligned", "paired"}
    smoothing : float
        As a fraction of the space's scale.
    learning_rate : "auto", "theory" or float
        :math:`\eta` above: in these units, with aligned phases, 1 takes away a feature's whole
        correlation with the measure. ``"auto"`` takes a quarter of it, always: a longer game goes
        through the same rounds first. ``"theory"`` is the regret bound's schedule, for which a
        round is one play however many its peaks.
    projection : {"exact", "alternating"}
    watch : callable, optional
        Called with each round's record and the dual variables that the round started from.

    Returns
    -------
    GameResult
    """
    began = time.perf_counter()
    space = space.resolve(rows, rng)
    project_dual = PROJECTIONS[projection]
    n_columns = space.n_columns(phase)
    bound = space.bound(rows.n_features, phase)
    if learning_rate == "theory" and not math.isfinite(bound):
        raise ValueError(
            "learning_rate='theory' needs a bound on the kernel, but features that are scaled to "
            "the samples, as zonal ones are, have none: use 'auto', or Sphere(basis='harmonic')."
        )
    loss, dual = player.loss, player.first(project_dual)
    found = Found(n_frequencies, merging=space.kind == "finite")
    history: list[dict[str, Any]] = []
    flat = True
    plays_so_far, dual_total = 0, np.zeros_like(dual)
    while len(found) < n_frequencies and len(history) < (n_rounds or n_frequencies):
        measure = player.measure(dual)
        landscape = Landscape(space, rows, measure, smoothing, phase)
        peaks = search.find(landscape, n_frequencies - len(found), rng)
        groups = space.groups(peaks.frequencies, phase)
        scales = space.scales(rows, peaks.frequencies)
        # Of all peaks, whether or not there is room for them.
        seen = kernel_potentials(space, peaks.amplitudes, phase) * scales.astype(np.float64) ** 2
        highest = float(mean_in_groups(seen, groups).max())
        fitting = found.fitting(peaks.frequencies, groups)
        if not fitting:
            break
        peaks = peaks.take(fitting)
        phases = space.phases(peaks.amplitudes)
        scales = scales[fitting]
        alignment = space.alignment(peaks.amplitudes, phases, phase) * scales[:, None, None]
        potentials = mean_in_groups(
            np.square(alignment, dtype=np.float64).sum(axis=(1, 2)),
            space.groups(peaks.frequencies, phase),
        )
        n_peaks = plays = len(peaks)
        if learning_rate == "auto":
            rate = SHRINKAGE * n_columns  # a column's mean square is 1 / n_columns
        elif learning_rate == "theory":
            rate, plays = player.theory_rate(len(history) + 1, bound), 1
        else:
            rate = float(learning_rate)
        found.add(peaks.frequencies, phases, scales, np.sqrt(potentials), plays / n_peaks)

        step = plays * rate / player.total_weight
        if loss.curvature:  # beyond, the dual's own quadratic term would overshoot
            step = min(step, 1 / loss.curvature)
        largest = space.largest_potential(measure, phase)
        rounding = ROUNDING * float(np.finfo(rows.dtype).eps) ** 2
        flat = flat and bool(potentials.max() <= rounding * largest)
        share_at_zero, share_at_upper = player.shares(dual)
        record = Round(
            n_frequencies=len(found),
            potential=float(potentials[0]) / largest if largest else 0.0,
            objective=player.objective(dual, float(potentials.mean())),
            lower=player.best_multiple(dual, highest),
            share_at_zero=share_at_zero,
            share_at_upper=share_at_upper,
            plays=plays,
            step=step / plays,
            seconds=time.perf_counter() - began,
        )
        history.append(asdict(record))
        if watch is not None:
            watch(record, dual)

        plays_so_far += plays
        dual_total += dual.dtype.type(plays) * dual
        coefficients = alignment * scales[:, None, None] / n_peaks
        response = respond(rows, space, phase, peaks.frequencies, phases, coefficients)
        dual = player.following(dual, response, step, project_dual)

    weights = np.array(found.weights)
    return GameResult(
        space=space,
        frequencies=np.array(found.frequencies),
        phases=np.array(found.phases),
        scales=np.array(found.scales),
        strengths=np.array(found.strengths),
        weights=weights / weights.sum(),
        dual=dual,
        average_dual=dual_total / dual.dtype.type(plays_so_far),
        history={name: np.array([record[name] for record in history]) for name in history[0]},
        status="flat" if flat else "complete",
    )


class Found:
    """The frequencies found so far.

    Parameters
    ----------
    room : int
        How many there may be.
    merging : bool
        Whether one found again grows instead of being listed twice.
    """

    def __init__(self, room: int, merging: bool) -> None:
        self.room = room
        self.merging = merging
        self.frequencies: list[Array] = []
        self.phases: list[float] = []
        self.scales: list[float] = []
        self.strengths: list[float] = []
        self.weights: list[float] = []
        self._known: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.frequencies)

    def fitting(self, frequencies: Array, groups: Array) -> list[int]:
        """Indices of those that are known or that there is room for, group by group."""
        room = self.room - len(self)
        fitting: list[int] = []
        for group in dict.fromkeys(groups.tolist()):
            members = np.flatnonzero(groups == group).tolist()
            n_new = sum(frequencies[i].tobytes() not in self._known for i in members)
            if n_new <= room:
                fitting += members
                room -= n_new
        if not fitting and not len(self):
            raise ValueError(
                f"n_components={self.room} is not enough: the first kernel found has {n_new} "
                "features, which come together. Give at least as many, or a smaller max_degree."
            )
        return fitting

    def add(
        self, frequencies: Array, phases: Array, scales: Array, strengths: Array, weight: float
    ) -> None:
        """Take in the frequencies of a round, each with the same weight."""
        for frequency, phase, scale, strength in zip(
            frequencies, phases, scales, strengths, strict=True
        ):
            place = self._known.get(frequency.tobytes(), len(self))
            if place == len(self):
                self.frequencies.append(frequency)
                self.phases.append(phase)
                self.scales.append(scale)
                self.strengths.append(0.0)
                self.weights.append(0.0)
                if self.merging:
                    self._known[frequency.tobytes()] = place
            self.strengths[place] += float(strength)
            self.weights[place] += weight


def respond(
    rows: Rows, space: Any, phase: str, frequencies: Array, phases: Array, alignment: Array
) -> Array:
    """Gram matrix of the frequencies' kernel times the measure, by way of the features."""
    coefficients = alignment.reshape(-1, alignment.shape[-1])  # (n_columns, n_tasks)
    return rows.map(lambda X: space.features(X, frequencies, phases, phase) @ coefficients)
