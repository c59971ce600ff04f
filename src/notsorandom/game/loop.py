"""The game itself: Algorithm 2 of the paper, for any space, search and loss."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from notsorandom.data.array_api import like
from notsorandom.data.rows import Array, Rows
from notsorandom.game.active_set import Found
from notsorandom.game.dual import Player
from notsorandom.game.projection import PROJECTIONS
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
    status : {"complete", "stopped", "flat"}
        ``"stopped"`` if it was watched and told to; ``"flat"`` if the potential vanished
        everywhere, as for samples that are all equal.
    checkpoint : Checkpoint, optional
        Where a longer game goes on from.
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
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class Checkpoint:
    """All that a game needs to go on from the start of a round, but for samples and settings."""

    space: Any
    random: Any
    found: Found
    history: list[dict[str, Any]]
    dual: Array
    dual_total: Array
    plays: int
    flat: bool

    def fetched(self, rows: Rows) -> Checkpoint:
        """The same with its columns in memory."""
        return replace(self, dual=rows.fetch(self.dual), dual_total=rows.fetch(self.dual_total))

    def placed(self, rows: Rows) -> Checkpoint:
        """The same with its columns where the rows are."""
        return replace(self, dual=rows.place(self.dual), dual_total=rows.place(self.dual_total))

    def state(self) -> dict[str, Any]:
        """The same in plain values and arrays, of which files can be made."""
        return vars(self) | {
            "merging": self.found.merging,
            "found": self.found.columns(),
            "history": in_columns(self.history),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Checkpoint:
        """What was taken apart by :meth:`state`."""
        columns = {name: column.tolist() for name, column in state["history"].items()}
        rounds = zip(*columns.values(), strict=True)
        found = Found.from_columns(state["merging"], state["found"])
        history = [dict(zip(columns, record, strict=True)) for record in rounds]
        others = {name: state[name] for name in ("space", "random", "dual", "dual_total")}
        return cls(found=found, history=history, plays=state["plays"], flat=state["flat"], **others)


def play(
    rows: Rows,
    player: Player,
    *,
    watch: Callable[[Round, Array], Any] | None = None,
    **settings: Any,
) -> GameResult:
    """Play a :class:`Match` to its end.

    Parameters
    ----------
    rows : Rows
    player : Player
    watch : callable, optional
        Called with each round's record and the dual variables that the round started from.
    **settings
        As in :class:`Match`.

    Returns
    -------
    GameResult
    """
    match = Match(rows, player, **settings)
    while (record := match.play_round()) is not None:
        if watch is not None:
            watch(record, match.before)
    return match.result()


class Match:
    r"""Frequencies learned by no-regret play, round by round.

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
        correlation with the measure. ``"auto"`` takes a quarter of it, or more if there are
        several tasks, always: a longer game goes through the same rounds first. ``"theory"`` is
        the regret bound's schedule, for which a round is one play however many its peaks.
    projection : {"exact", "alternating"}
    checkpoint : Checkpoint, optional
        Where a shorter game on the same samples with the same settings stopped, to go on from.

    Attributes
    ----------
    last : Checkpoint
        The start of the last round, or of the first that had no room for all of its peaks: it is
        where a longer game goes on from.
    before : ndarray of shape (n_samples, n_tasks)
        The dual variables that the last round started from.
    cramped : bool
        Whether there was a round by now that had no room for all of its peaks.
    """

    def __init__(
        self,
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
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.began = time.perf_counter()
        self.rows, self.player = rows, player
        self.search, self.rng = search, rng
        self.n_frequencies, self.n_rounds = n_frequencies, n_rounds or n_frequencies
        self.phase, self.smoothing = phase, smoothing
        self.learning_rate = learning_rate
        self.project_dual = PROJECTIONS[projection]
        if checkpoint is None:
            self.space = space.resolve(rows, rng)
            dual = player.first(self.project_dual)
            found = Found(merging=self.space.kind == "finite")
            nothing = rows.bare.map(lambda _, a: np.zeros_like(a), dual)
            checkpoint = self._checkpoint(found, [], dual, nothing, 0, True)
        elif checkpoint.history:
            self.began -= checkpoint.history[-1]["seconds"]
        self.last, self.cramped = checkpoint, False
        self.space = checkpoint.space
        self.rng.bit_generator.state = checkpoint.random
        self.found, self.history = checkpoint.found.copy(), list(checkpoint.history)
        self.dual, self.dual_total = checkpoint.dual, checkpoint.dual_total
        self.plays, self.flat = checkpoint.plays, checkpoint.flat
        self.bound = self.space.bound(rows.n_features, phase)
        if learning_rate == "theory" and not math.isfinite(self.bound):
            raise ValueError(
                "learning_rate='theory' needs a bound on the kernel, but features that are scaled "
                "to the samples, as zonal ones are, have none: use 'auto', or "
                "Sphere(basis='harmonic')."
            )

    def _checkpoint(self, *state: Any) -> Checkpoint:
        return Checkpoint(self.space, self.rng.bit_generator.state, *state)

    @property
    def over(self) -> bool:
        """Whether there is no room left for frequencies, or all rounds were played."""
        return len(self.found) >= self.n_frequencies or len(self.history) >= self.n_rounds

    def here(self) -> Checkpoint:
        """The start of the next round."""
        return self._checkpoint(
            self.found.copy(), self.history[:], self.dual, self.dual_total, self.plays, self.flat
        )

    @property
    def n_features(self) -> int:
        """Real features found so far."""
        return len(self.found) * int(self.space.n_columns(self.phase))

    def play_round(self) -> Round | None:
        """Play one round and return its record, or None if the game is over."""
        rows, player, space, phase = self.rows, self.player, self.space, self.phase
        if self.over:
            return None
        room = self.n_frequencies - len(self.found)
        start = self.here()
        self.before = dual = self.dual
        measure = player.measure(dual)
        standing = player.standing(dual)
        landscape = Landscape(space, rows, measure, self.smoothing, phase, standing.sums)
        peaks = landscape.in_single(self.search.find(landscape, room, self.rng))
        groups = space.groups(peaks.frequencies, phase)
        scales = space.scales(rows, peaks.frequencies)
        # Of all peaks, whether or not there is room for them.
        seen = kernel_potentials(space, peaks.amplitudes, phase) * scales.astype(np.float64) ** 2
        highest = float(mean_in_groups(seen, groups).max())
        fitting = self.found.fitting(peaks.frequencies, groups, room)
        if not fitting:
            return None
        if not self.cramped:
            self.last = start
        self.cramped = self.cramped or len(fitting) < len(peaks)
        peaks = peaks.take(fitting)
        phases = space.phases(peaks.amplitudes)
        scales = scales[fitting]
        alignment = space.alignment(peaks.amplitudes, phases, phase) * scales[:, None, None]
        potentials = mean_in_groups(
            np.square(alignment, dtype=np.float64).sum(axis=(1, 2)),
            space.groups(peaks.frequencies, phase),
        )
        n_peaks = plays = len(peaks)
        if self.learning_rate == "auto":
            rate = shrinkage(player.n_tasks)
            rate *= space.n_columns(phase)  # a column's mean square is one over that
        elif self.learning_rate == "theory":
            rate, plays = player.theory_rate(len(self.history) + 1, self.bound), 1
        else:
            rate = float(self.learning_rate)
        self.found.add(peaks.frequencies, phases, scales, np.sqrt(potentials), plays / n_peaks)

        step = plays * rate / player.total_weight
        if player.loss.curvature:  # beyond, the dual's own quadratic term would overshoot
            step = min(step, 1 / player.loss.curvature)
        largest = space.largest_potential(landscape)
        rounding = ROUNDING * float(np.finfo(rows.dtype).eps) ** 2
        self.flat = self.flat and bool(potentials.max() <= rounding * largest)
        record = Round(
            n_frequencies=len(self.found),
            potential=float(potentials[0]) / largest if largest else 0.0,
            objective=standing.objective(float(potentials.mean())),
            lower=standing.best_multiple(highest),
            share_at_zero=standing.at_zero,
            share_at_upper=standing.at_upper,
            plays=plays,
            step=step / plays,
            seconds=time.perf_counter() - self.began,
        )
        self.history.append(asdict(record))
        self.plays += plays
        self.dual_total = rows.bare.map(
            lambda _, total, a: total + a.dtype.type(plays) * a, self.dual_total, dual
        )
        coefficients = alignment * scales[:, None, None] / n_peaks
        response = respond(rows, space, phase, peaks.frequencies, phases, coefficients)
        self.dual = player.following(dual, response, step, self.project_dual)
        return record

    def result(self) -> GameResult:
        """What came of the rounds so far."""
        found = self.found
        weights = np.array(found.weights)
        plays = self.player.dtype.type(self.plays)
        return GameResult(
            space=self.space,
            frequencies=np.array(found.frequencies),
            phases=np.array(found.phases),
            scales=np.array(found.scales),
            strengths=np.array(found.strengths),
            weights=weights / weights.sum(),
            dual=self.dual,
            average_dual=self.rows.bare.map(lambda _, total: total / plays, self.dual_total),
            history=in_columns(self.history),
            status="flat" if self.flat else "complete",
            checkpoint=self.last,
        )


def in_columns(history: list[dict[str, Any]]) -> dict[str, Array]:
    """The rounds' records, column by column."""
    return {name: np.array([record[name] for record in history]) for name in history[0]}


def shrinkage(n_tasks: int) -> float:
    """Share of a feature's correlations that a round takes away.

    A feature that serves many tasks is little of any one of them, and there are few a task: they
    can't afford to be found again and again.
    """
    return min(1.0, SHRINKAGE * math.sqrt(n_tasks))


def respond(
    rows: Rows, space: Any, phase: str, frequencies: Array, phases: Array, alignment: Array
) -> Array:
    """Gram matrix of the frequencies' kernel times the measure, by way of the features."""
    coefficients = alignment.reshape(-1, alignment.shape[-1])  # (n_columns, n_tasks)
    return rows.map(lambda X: space.features(X, frequencies, phases, phase) @ like(coefficients, X))
