"""Langevin dynamics on the potential: Algorithm 1 of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom._utils.parameters import check_choice, check_number
from notsorandom.data.rows import Array
from notsorandom.search.ascent import climb, dot
from notsorandom.search.base import Search
from notsorandom.spaces.landscape import Landscape, Points

# The paper starts from a Gaussian of 1.5 times the variance of the RBF spectrum (Appendix A.1).
START_VARIANCE = 1.5
# With diffusion_rate="auto", the first step of the steepest start is this share of its length.
FIRST_STEP = 0.1


class Langevin(Search):
    r"""Noisy gradient ascent on the potential from many starts; returns the highest points visited.

    Each particle moves by

    .. math:: \omega \leftarrow \omega + \zeta \nabla v(\omega) + \sqrt{2 \xi / \zeta} \; z,
       \qquad z \sim N(0, I),

    for `n_steps` steps, where `v` is the smoothed potential (``smoothing=0`` in the paper).

    Parameters
    ----------
    n_steps : int, default=100
        Time horizon.
    n_particles : int, default=500
        Parallel starts, from a Gaussian of 1.5 times the variance of the RBF spectrum.
    diffusion_rate : float or "auto", default="auto"
        :math:`\zeta`. ``"auto"`` derives it from the gradients at the starts: the steepest of them
        makes a first step of a tenth of its length.
    temperature : float or "auto", default="auto"
        :math:`\xi`. ``"auto"`` makes the noise as long as the median gradient step at the starts.
        0 is plain gradient ascent.
    noise : {"paper", "textbook"}, default="paper"
        The scale of the noise; see the notes.
    n_peaks : int, default=1
        Maximum number of distinct peaks, highest first (the top-k of the paper).
    similarity : float, default=0.7
        Two peaks count as one if their features correlate by more than this.
    n_refine : int, default=0
        Ascent steps without noise from the highest points visited.

    Notes
    -----
    In textbooks, Langevin dynamics has noise :math:`\sqrt{2 \zeta \xi}`, which vanishes with the
    step size, so that the chain tends to a diffusion whose invariant measure has the density
    :math:`\exp(v / \xi)`. On R^d that is at least one everywhere and can't be normalised, with or
    without smoothing: there is no stationary distribution, and particles spread without limit.
    The paper divides by :math:`\zeta` where the textbook multiplies. For a fixed rate,
    :math:`\xi_{paper} = \zeta^2 \xi_{textbook}` gives the same noise. With
    ``temperature="auto"`` the two give the same noise, too.
    """

    def __init__(
        self,
        n_steps: int = 100,
        n_particles: int = 500,
        diffusion_rate: Any = "auto",
        temperature: Any = "auto",
        noise: str = "paper",
        n_peaks: int = 1,
        similarity: float = 0.7,
        n_refine: int = 0,
    ) -> None:
        self.n_steps = n_steps
        self.n_particles = n_particles
        self.diffusion_rate = diffusion_rate
        self.temperature = temperature
        self.noise = noise
        self.n_peaks = n_peaks
        self.similarity = similarity
        self.n_refine = n_refine

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        check_number("n_steps", self.n_steps, least=0, integer=True)
        check_number("n_particles", self.n_particles, least=1, integer=True)
        check_number("diffusion_rate", self.diffusion_rate, above=0, or_else=["auto"])
        check_number("temperature", self.temperature, least=0, or_else=["auto"])
        check_choice("noise", self.noise, ["paper", "textbook"])
        check_number("n_peaks", self.n_peaks, least=1, integer=True)
        check_number("similarity", self.similarity, above=0, most=1)
        check_number("n_refine", self.n_refine, least=0, integer=True)

    def find(self, landscape: Landscape, n_peaks: int, rng: np.random.Generator) -> Points:
        """Return at most `n_peaks` distinct peaks of the landscape, highest first."""
        landscape.require_kind("continuous", self, "search='chain', its discrete counterpart")
        starts = landscape.draw(self.n_particles, rng, START_VARIANCE)
        points, unit = landscape.evaluate_with_slope(starts), landscape.unit
        rate, spread = self._settings(points, unit)
        best = points
        for _ in range(self.n_steps):
            noise = rng.standard_normal(starts.shape, dtype=starts.dtype)
            points = landscape.move(points, rate * gradient(points, unit) + spread * noise)
            best = best.where(points.height > best.height, points)
        if self.n_refine:
            steps = np.full(len(best), landscape.continuous_space.first_step(), dtype=starts.dtype)
            best, _ = climb(landscape, best, steps, self.n_refine)
        n_peaks = min(n_peaks, self.n_peaks)
        return best.take(landscape.distinct(best, self.similarity, rng, n_peaks))

    def _settings(self, points: Points, unit: float) -> tuple[Any, Any]:
        """Return the diffusion rate and the scale of the noise, in the dtype of the points."""
        scalar = points.frequencies.dtype.type
        slopes = np.sqrt(dot(gradient(points, unit), gradient(points, unit)))
        if self.diffusion_rate == "auto":
            lengths = np.sqrt(dot(points.frequencies, points.frequencies))
            rate = FIRST_STEP * float(np.min(lengths / np.maximum(slopes, np.finfo(scalar).tiny)))
        else:
            rate = float(self.diffusion_rate)
        if self.temperature == "auto":
            spread = rate * float(np.median(slopes)) / points.frequencies.shape[1] ** 0.5
        elif self.noise == "paper":
            spread = (2 * self.temperature / rate) ** 0.5
        else:
            spread = (2 * self.temperature * rate) ** 0.5
        return scalar(rate), scalar(spread)


def gradient(points: Points, unit: float) -> Array:
    """Return the gradient of the potential, computed from the gradient of its logarithm."""
    potential = points.height.dtype.type(unit) * np.exp(points.height)
    return potential[:, None] * points.slope
