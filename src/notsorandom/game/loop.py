"""The game loop: Algorithm 2 of the paper, for any space, search and loss."""

from __future__ import annotations

import contextlib
import inspect
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom._utils.parameters import check_number
from notsorandom.data.array_api import cast_like
from notsorandom.data.rows import Array
from notsorandom.game.problem import Problem
from notsorandom.game.projection import PROJECTIONS, nearest
from notsorandom.game.state import ActiveSet, Ahead, GameResult, GameState, Move, Round
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces.base import ResolvedSpace, Space
from notsorandom.spaces.landscape import Landscape, PeakFinder, average_groups

# Share of a feature's correlation with the measure that one play removes, like the shrinkage of
# boosting. Larger values bring the dual variables to zero before thousands of features are found;
# smaller ones make the first twenty features too similar.
SHRINKAGE = 0.25
# A potential counts as zero below this many times the squared machine epsilon times its upper
# bound. Features have mean square one, but on the sphere their squares can be this large at
# single points.
ZERO_POTENTIAL = 1000
# A larger learning rate moves every dual variable to an end of its box.
MAX_RATE = 1e6


class Observer:
    """Watches a game: derive from it and implement `after_round`.

    Observers that have a state of their own also implement the other two methods, so that a
    checkpoint can hold it.
    """

    def after_round(self, game: GameLoop) -> bool:
        """Called after each round; True stops the game."""
        raise NotImplementedError

    def get_state(self) -> Any:
        """Return the state in plain values and arrays; None if there is none."""
        return None

    def set_state(self, state: Any) -> None:
        """Continue from a state that :meth:`get_state` returned."""


class GameLoop:
    r"""Learn frequencies by no-regret play, one round at a time.

    In each round the kernel player searches for peaks of the potential of the current measure, and
    the dual player takes a gradient step against the mean kernel :math:`\lambda` of the `p` peaks
    found, which counts for `p` plays:

    .. math:: \alpha \leftarrow
       \mathrm{Proj}[\alpha + \tfrac{\eta p}{n} \nabla_\alpha F(\alpha, \lambda)].

    Parameters
    ----------
    problem : Problem
        With targets in the floating point type of the samples.
    space : ResolvedSpace
    search : PeakFinder
        See :class:`notsorandom.search.Search`.
    n_frequencies : int
        The game ends when this many are found.
    rng : numpy.random.Generator
    n_rounds : int, optional
        The game also ends after this many rounds, by default `n_frequencies`. Where a frequency
        can be found again, it may have found fewer by then.
    phase : {"aligned", "paired"}
    smoothing : float
        In units of the space's scale.
    learning_rate : "auto", "theory", float or callable
        :math:`\eta` above: with aligned phases, 1 removes a feature's whole correlation with the
        measure. ``"auto"`` removes a quarter of it, more if there are several tasks, independent
        of the number of rounds, so a longer game starts with the same rounds. ``"theory"`` is the
        schedule of the regret bound, for which a round is one play however many its peaks. A
        callable is given the number of the round, from 1, and, if it requires two arguments, the
        rate of ``"theory"`` (NaN where there is none); for it, too, a round is one play.
    projection : {"exact", "alternating"}
        Of the dual player's steps; ``"alternating"`` is Algorithm 3 of the paper.
    state : GameState, optional
        Continue a shorter game on the same samples with the same settings.

    Attributes
    ----------
    resume_state : GameState
        The start of the last round, or of the first round that was truncated: where a longer game
        continues from.
    previous_dual : ndarray of shape (n_samples, n_tasks)
        The dual variables at the start of the last round.
    truncated : bool
        Whether a round so far found more peaks than there was room for.
    stopped : bool
        Whether an observer has stopped the game.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        space: ResolvedSpace,
        search: PeakFinder,
        n_frequencies: int,
        rng: np.random.Generator,
        n_rounds: int | None = None,
        phase: str = "aligned",
        smoothing: float = 0.07,
        learning_rate: str | float | Callable[..., float] = "auto",
        projection: str = "exact",
        state: GameState | None = None,
    ) -> None:
        self.start_time = time.perf_counter()
        self.problem, self.space = problem, space
        self.search, self.rng = search, rng
        self.n_frequencies, self.n_rounds = n_frequencies, n_rounds or n_frequencies
        self.phase, self.smoothing = phase, smoothing
        self.learning_rate = learning_rate
        self.n_arguments = count_arguments(learning_rate) if callable(learning_rate) else 0
        self.projection = PROJECTIONS[projection]
        if state is None:
            dual = problem.first_dual(self.projection)
            zero = None
            if problem.rows.is_local:
                zero = problem.rows.columns_only.map(lambda _, a: np.zeros_like(a), dual)
            active_set = ActiveSet(merging=space.kind == "finite")
            random_state = rng.bit_generator.state
            state = GameState(space, random_state, active_set, [], dual, zero, 0, flat=True)
        elif state.history:
            self.start_time -= state.history[-1]["seconds"]
        self.rng.bit_generator.state = state.random_state
        self.active_set, self.history = state.active_set.copy(), list(state.history)
        self.dual, self.dual_total = state.dual, state.dual_total
        self.moves, self.ahead = state.moves, Ahead()
        if self.dual is None:
            self.dual = problem.first_dual(self.projection)
            for move in self.moves:
                self.dual = self._step(self.dual, move)
        self.n_plays, self.flat = state.n_plays, state.flat
        self.resume_state, self.truncated, self.stopped = state, False, False
        self.kernel_bound = space.kernel_bound(problem.rows.n_features, phase)
        if learning_rate == "theory" and not math.isfinite(self.kernel_bound):
            raise ValueError(
                "learning_rate='theory' needs a bound on the kernel, but zonal features are scaled "
                "to the samples and have none: use 'auto', or Sphere(basis='harmonic')."
            )

    @property
    def finished(self) -> bool:
        """Whether all frequencies are found, or all rounds played."""
        full = len(self.active_set) >= self.n_frequencies
        return full or len(self.history) >= self.n_rounds

    @property
    def n_features(self) -> int:
        """Number of real features found so far."""
        return len(self.active_set) * int(self.space.n_columns(self.phase))

    def current_state(self) -> GameState:
        """Return the state at the start of the next round."""
        return GameState(
            space=self.space,
            random_state=self.rng.bit_generator.state,
            active_set=self.active_set.copy(),
            history=self.history[:],
            dual=self.dual,
            dual_total=self.dual_total,
            n_plays=self.n_plays,
            flat=self.flat,
            moves=self.moves,
        )

    def play(self, observers: Sequence[Observer] = ()) -> GameResult:
        """Play to the end, or until an observer stops the game."""
        while not self.stopped and self.play_round() is not None:
            for observer in observers:
                self.stopped = observer.after_round(self) or self.stopped
        return self.result()

    def play_round(self) -> Round | None:
        """Play one round and return its record, or None if the game is over."""
        problem, space, phase = self.problem, self.space, self.phase
        rows = problem.rows
        if self.finished:
            return None
        room = self.n_frequencies - len(self.active_set)
        start = self.current_state()
        self.previous_dual = dual = self.dual
        stats = self.ahead.stats or problem.stats(dual)
        # The kernel player: search for peaks of the potential.
        measure = problem.measure(dual)
        landscape = Landscape(
            space, rows, measure, self.smoothing, phase, stats.block_stats, self.ahead.sample
        )
        peaks = self.search.find(landscape, room, self.rng)
        groups = space.groups(peaks.frequencies, phase)
        scales = space.scales(rows, peaks.frequencies)
        fitting = self.active_set.select_fitting(peaks.frequencies, groups, room)
        if not fitting:
            return None
        if not self.truncated:
            self.resume_state = start
        self.truncated = self.truncated or len(fitting) < len(peaks)
        peaks, scales = peaks.take(fitting), scales[fitting]
        phases = space.phases(peaks.amplitudes)
        alignment = space.alignment(peaks.amplitudes, phases, phase) * scales[:, None, None]
        potentials = average_groups(
            np.square(alignment, dtype=np.float64).sum(axis=(1, 2)),
            space.groups(peaks.frequencies, phase),
        )
        n_peaks = len(peaks)
        rate, plays = self._rate_and_plays(n_peaks)
        strengths = np.sqrt(potentials)
        self.active_set.add(peaks.frequencies, phases, scales, strengths, plays / n_peaks)

        step = plays * rate / problem.total_weight
        if problem.loss.curvature:  # a longer step would overshoot the dual's own quadratic term
            step = min(step, 1 / problem.loss.curvature)
        largest = landscape.max_potential
        rounding = ZERO_POTENTIAL * float(np.finfo(rows.dtype).eps) ** 2
        self.flat = self.flat and bool(potentials.max() <= rounding * largest)
        record = Round(
            n_frequencies=len(self.active_set),
            potential=float(potentials[0]) / largest if largest else 0.0,
            objective=stats.objective(float(potentials.mean())),
            share_at_zero=stats.share_at_zero,
            share_at_upper=stats.share_at_upper,
            plays=plays,
            step=step / plays,
            seconds=time.perf_counter() - self.start_time,
        )
        self.history.append(dict(vars(record)))
        self.n_plays += plays
        if self.dual_total is not None:
            self.dual_total = rows.columns_only.map(
                lambda _, total, a: total + a.dtype.type(plays) * a, self.dual_total, dual
            )
        coefficients = alignment * scales[:, None, None] / n_peaks
        move = Move(peaks.frequencies, phases, coefficients, step)
        self.moves = (*self.moves, move)
        self.dual = self._step(dual, move, self._next_sample_size())
        return record

    def _next_sample_size(self) -> int:
        """Return how many rows the next search samples, if they are drawn with the step."""
        rows = self.problem.rows
        return 0 if self.finished or rows.is_local else self.search.sample_size(len(rows))

    def _step(self, dual: Any, move: Move, n_rows: int = 0) -> Any:
        """The dual player: a projected gradient step against the peaks' mean kernel.

        The sums over the next point and a sample of `n_rows` may be computed along with it.
        """
        parts = (move.frequencies, move.phases, move.coefficients)
        response = KernelResponse(self.space, self.phase, *parts)
        if self.problem.rows.is_local or self.projection is not nearest:
            return self.problem.step(dual, response, move.step, self.projection)
        from notsorandom.game.ahead import project_ahead  # for samples stored elsewhere only

        point = self.problem.ascend(dual, response, move.step)
        dual, self.ahead = project_ahead(self.problem, point, self.ahead.taken, n_rows, self.rng)
        return dual

    def _rate_and_plays(self, n_peaks: int) -> tuple[float, int]:
        """Learning rate of a round, and the plays that it counts for."""
        rate, round_ = self.learning_rate, len(self.history) + 1
        if rate == "theory" or callable(rate):
            theory = math.nan
            if math.isfinite(self.kernel_bound):
                theory = self.problem.theory_rate(round_, self.kernel_bound)
            return (self._call_rate(rate, round_, theory) if callable(rate) else theory), 1
        if rate != "auto":
            return float(rate), n_peaks
        # A column's mean square is one over the number of columns per frequency.
        return shrinkage(self.problem.n_tasks) * self.space.n_columns(self.phase), n_peaks

    def _call_rate(self, rate: Callable[..., float], round_: int, theory: float) -> float:
        """Return the checked value of a callable learning rate."""
        value, hint = rate(*(round_, theory)[: self.n_arguments]), ""
        if self.n_arguments > 1 and math.isnan(theory):
            hint = (
                "The theory's step is NaN, since zonal features are scaled to the samples and "
                "their kernel has no bound: use the round alone, or Sphere(basis='harmonic')."
            )
        # With curvature the step has its own limit, and the theory's can be larger than this one.
        most = None if self.problem.loss.curvature else MAX_RATE
        check_number(f"learning_rate(round={round_})", value, above=0, most=most, hint=hint)
        return float(value)

    def result(self) -> GameResult:
        """Return the outcome of the rounds so far."""
        arrays = self.active_set.to_arrays()
        n_plays = self.problem.dtype.type(self.n_plays)
        average = None
        if self.dual_total is not None:
            average = self.problem.rows.columns_only.map(
                lambda _, total: total / n_plays, self.dual_total
            )
        return GameResult(
            space=self.space,
            phase=self.phase,
            **(arrays | {"weights": arrays["weights"] / arrays["weights"].sum()}),
            dual=self.dual,
            average_dual=average,
            history={name: np.array([r[name] for r in self.history]) for name in self.history[0]},
            status="stopped" if self.stopped else "flat" if self.flat else "complete",
            state=self.resume_state,
        )


def play(
    problem: Problem,
    *,
    space: Space,
    rng: np.random.Generator,
    observers: Sequence[Observer] = (),
    **settings: Any,
) -> GameResult:
    """Resolve the space and play a :class:`GameLoop` to its end.

    Parameters
    ----------
    problem : Problem
    space : Space
    rng : numpy.random.Generator
    observers : sequence of Observer
    **settings
        Other parameters of :class:`GameLoop`.

    Returns
    -------
    GameResult
    """
    resolved = space.resolve(problem.rows, rng)
    return GameLoop(problem, space=resolved, rng=rng, **settings).play(observers)


def count_arguments(rate: Callable[..., float]) -> int:
    """Return 1 if a learning rate can be called with the round alone, 2 if it needs the theory's.

    An argument with a default is the callable's own: ``lambda t, c=2.0: c / t`` is given the round.
    """
    try:
        signature = inspect.signature(rate)
    except ValueError:  # some functions that are written in C don't have one
        return 1
    for arguments in ((1,), (1, 1.0)):
        with contextlib.suppress(TypeError):
            signature.bind(*arguments)
            return len(arguments)
    raise ValueError(
        f"learning_rate={rate!r} is not allowed: it must take one argument, the round, or two, the "
        f"round and the theory's step, but its signature is {signature}. Change its arguments."
    )


def shrinkage(n_tasks: int) -> float:
    """Share of a feature's correlations that a round removes.

    It grows with the number of tasks: each feature explains little of any one task, and a near
    duplicate wastes one of the few features per task.
    """
    return min(1.0, SHRINKAGE * math.sqrt(n_tasks))


@dataclass(frozen=True)
class KernelResponse:
    """The function of a block that multiplies the Gram matrix of a kernel with the measure.

    The product is computed through the features of the frequencies and the coefficients, of shape
    (n_peaks, n_columns, n_tasks).
    """

    space: ResolvedSpace
    phase: str
    frequencies: Array
    phases: Array
    coefficients: Array

    @property
    def width(self) -> int:
        """Number of features."""
        return self.coefficients.shape[0] * self.coefficients.shape[1]

    def __call__(self, X: Any) -> Any:
        """Return the response of the samples of a block."""
        features = self.space.features(X, self.frequencies, self.phases, self.phase)
        coefficients = self.coefficients.reshape(self.width, -1)
        return features @ cast_like(coefficients, X)


def replay(problem: Problem, kernel: LearnedKernel, history: dict[str, Array]) -> Iterator[Array]:
    """Yield the dual variables at the start of each round, and at the end.

    Parameters
    ----------
    problem : Problem
        The problem that the game was played on, with exact projections.
    kernel : LearnedKernel
        With the frequencies in the order they were found, each once. A game on a finite space
        can't be replayed: a frequency can be found again, and the record doesn't say when.
    history : dict of str to ndarray
        The rounds' records.
    """
    rows, space, phase = problem.rows, kernel.space, kernel.phase
    dual = problem.first_dual()
    first = 0
    for last, plays, step in zip(
        history["n_frequencies"], history["plays"], history["step"], strict=True
    ):
        yield dual
        found = slice(first, last)
        frequencies, phases = kernel.frequencies[found], kernel.phases[found]
        scales = kernel.scales[found, None, None].astype(rows.dtype)
        amplitudes = space.amplitudes(rows, problem.measure(dual), frequencies)
        alignment = space.alignment(amplitudes, phases, phase) * scales
        coefficients = alignment * scales / (last - first)
        response = KernelResponse(space, phase, frequencies, phases, coefficients)
        dual = problem.step(dual, response, float(plays * step))
        first = last
    yield dual
