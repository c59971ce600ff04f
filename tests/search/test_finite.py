"""Searches of finite spaces: by enumeration, and by a Markov chain."""

import numpy as np
import pytest
import reference
from sklearn.base import clone

from notsorandom import Ascent, Chain, Enumerate, FourierFeatures, Langevin, Sphere
from notsorandom.data.rows import Rows
from notsorandom.datasets import make_checkerboard
from notsorandom.game import LOSSES, Problem, play
from notsorandom.search.finite import kernel_heights, metropolis_step
from notsorandom.spaces import Landscape
from notsorandom.spaces.harmonics import count_harmonics, harmonics

pytestmark = pytest.mark.usefixtures("quick_trials")


def landscape(
    rng, n_features=3, max_degree=4, basis="harmonic", phase="aligned", smoothing=0.0, n_samples=200
):
    rows = Rows(reference.sphere_points(rng, n_samples, n_features))
    space = Sphere(basis, max_degree, max_harmonics=10**9).resolve(rows, rng)
    measure = rng.standard_normal((n_samples, 2))
    return Landscape(space, rows, measure - measure.mean(axis=0), smoothing, phase)


def potentials(land, indices):
    return np.square(harmonics(land.rows.array, indices).T @ land.measure).sum(axis=1)


class TestEnumerate:
    @pytest.mark.parametrize("n_features", [2, 3, 5])
    def test_finds_the_highest_of_all(self, rng, n_features):
        land = landscape(rng, n_features)
        all_indices = land.space.all_frequencies(n_features)
        order = np.argsort(-potentials(land, all_indices))
        peaks = Enumerate(n_peaks=3).find(land, 10, rng)
        np.testing.assert_array_equal(peaks.frequencies, all_indices[order[:3]])
        np.testing.assert_allclose(
            land.unit * np.exp(peaks.height),
            potentials(land, all_indices)[order[:3]],
            rtol=1e-8,
        )

    def test_smoothing_favours_low_degrees(self, rng):
        land = landscape(rng, smoothing=0.5)
        all_indices = land.space.all_frequencies(3)
        degrees = all_indices[:, -1]
        expected = np.log(potentials(land, all_indices))
        expected -= (0.5 * land.space.scale) ** 2 * degrees * (degrees + 1)
        best = Enumerate(n_peaks=1).find(land, 1, rng)
        np.testing.assert_array_equal(best.frequencies[0], all_indices[np.argmax(expected)])
        rough = Enumerate(n_peaks=1).find(landscape(np.random.default_rng(0)), 1, rng)
        assert best.frequencies[0, -1] < rough.frequencies[0, -1]

    def test_height_of_a_pair_is_the_height_of_its_mean(self, rng):
        land = landscape(rng, phase="paired")
        all_indices = land.space.all_frequencies(3)
        means = {
            tuple(index): potentials(land, np.unique([index, [-index[0], index[1]]], axis=0)).mean()
            for index in all_indices[all_indices[:, 0] >= 0]
        }
        best = max(means, key=means.get)
        peaks = Enumerate(n_peaks=1).find(land, 10, rng)
        assert sorted(map(tuple, peaks.frequencies)) == sorted({best, (-best[0], best[1])})
        np.testing.assert_allclose(land.unit * np.exp(peaks.height), means[best], rtol=1e-8)

    def test_height_of_a_degree_is_the_height_of_its_mean(self, rng):
        land = landscape(rng, basis="degree")
        all_indices = land.space.all_frequencies(3)
        means = [
            potentials(land, all_indices[all_indices[:, -1] == degree]).mean()
            for degree in range(5)
        ]
        peaks = Enumerate(n_peaks=1).find(land, 100, rng)
        assert (peaks.frequencies[:, -1] == np.argmax(means)).all()
        assert len(peaks) == 2 * np.argmax(means) + 1


class TestChain:
    @pytest.mark.parametrize("phase", ["aligned", "paired"])
    def test_stationary_distribution(self, rng, phase):
        land = landscape(rng, max_degree=2, phase=phase)
        all_indices = land.space.all_frequencies(3)
        heights = kernel_heights(land, all_indices)
        beta = 1.5 / np.exp(heights).max()
        expected = np.exp(beta * np.exp(heights))
        expected /= expected.sum()
        assert expected.max() > 2 * expected.min()
        places = land.draw(2000, rng)
        here = kernel_heights(land, places)
        counts = np.zeros(len(all_indices))
        for step in range(200):
            places, here = metropolis_step(land, places, here, beta, rng)
            if step >= 50:
                counts += (places[:, None] == all_indices).all(axis=2).sum(axis=0)
        np.testing.assert_allclose(counts / counts.sum(), expected, atol=0.006)

    @pytest.mark.parametrize(("n_features", "max_degree"), [(2, 4), (3, 3), (5, 2)])
    def test_proposals_are_symmetric_and_irreducible(self, rng, n_features, max_degree):
        land = landscape(rng, n_features, max_degree)
        all_indices = land.space.all_frequencies(n_features)
        place = {tuple(index): i for i, index in enumerate(all_indices)}
        counts = np.zeros((len(all_indices), len(all_indices)))
        for _ in range(40):
            for start, end in zip(
                np.repeat(all_indices, 100, axis=0),
                land.space.propose(np.repeat(all_indices, 100, axis=0), rng),
                strict=True,
            ):
                counts[place[tuple(start)], place[tuple(end)]] += 1
        share = counts / 4000
        np.testing.assert_allclose(share, share.T, atol=0.05)
        reach = np.linalg.matrix_power((counts > 0).astype(float), 2 * n_features)
        assert (reach > 0).all()

    def test_finds_a_planted_harmonic_in_a_large_space(self, rng):
        rows = Rows(reference.sphere_points(rng, 2000, 8))
        planted = np.array([-1, 1, 2, 2, 3, 3, 4])
        measure = harmonics(rows.array, planted[None]) + rng.standard_normal((2000, 1))
        space = Sphere("harmonic", 6, max_harmonics=10**6).resolve(rows, rng)
        assert count_harmonics(8, 6) > 2000
        land = Landscape(space, rows, measure, 0.0)
        peaks = Chain(n_steps=60).find(land, 3, rng)
        np.testing.assert_array_equal(peaks.frequencies, planted[None])
        assert len(Chain(n_steps=2, n_peaks=5).find(land, 3, rng)) == 5

    def test_pairs_are_complete(self, rng):
        land = landscape(rng, max_degree=6, phase="paired")
        peaks = Chain(n_steps=10, n_peaks=4).find(land, 4, rng)
        members = {tuple(index) for index in peaks.frequencies}
        assert all((-first, second) in members for first, second in members)


@pytest.mark.parametrize(
    ("space", "search", "message"),
    [
        ("sphere", "ascent", "continuous space.*HarmonicSphere is finite"),
        ("sphere", "langevin", "continuous space.*HarmonicSphere is finite"),
        ("euclidean", "enumerate", "finite space.*Euclidean is continuous"),
        ("euclidean", "chain", "finite space.*Euclidean is continuous"),
        (Sphere("zonal"), "enumerate", "finite space.*ZonalSphere is continuous"),
    ],
)
def test_searches_reject_the_other_kind_of_space(space, search, message):
    X, y = make_checkerboard(50, random_state=0)
    with pytest.raises(ValueError, match=f"needs a {message}"):
        FourierFeatures(5, space=space, search=search).fit(X, y)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Ascent, {"spectrum": "laplace", "n_draws": 0, "n_particles": 0, "n_peaks": 1.5}),
        (Ascent, {"n_steps": "many", "similarity": 0, "subsample": 0, "max_rows": 0}),
        (Ascent, {"n_steps": -1}),
        (Langevin, {"n_steps": -1, "diffusion_rate": 0, "temperature": -1, "noise": "white"}),
        (Langevin, {"diffusion_rate": "fast", "similarity": 2, "n_refine": -1, "n_peaks": 0}),
        (Chain, {"n_steps": -1, "n_particles": 0, "beta": "cold", "n_peaks": 0}),
        (Enumerate, {"n_peaks": 1.5}),
    ],
)
def test_bad_parameters(kind, settings):
    for name, value in settings.items():
        search = kind(**{name: value})
        with pytest.raises(ValueError, match=f"{name}=.* is not allowed: it must be"):
            search.check()
        assert clone(search).get_params() == search.get_params()


class TestMerging:
    """A harmonic that is found again gains weight and is not listed twice."""

    def game(self, **settings):
        X, y = make_checkerboard(400, random_state=0)
        labels = np.where(y == 1, 1.0, -1.0)[:, None]
        settings = {
            "space": Sphere(),
            "search": Enumerate(n_peaks=1),
            "n_frequencies": 60,
            "rng": np.random.default_rng(0),
            "smoothing": 0.02,
        } | settings
        problem = Problem(LOSSES["hinge"], labels, Rows(X))
        return play(problem, **settings), X

    def test_weights_count_the_rounds(self):
        seen = reference.Recorder()
        result, X = self.game(n_rounds=50, observers=[seen])
        duals = seen.duals
        assert len(duals) == 50 > len(result.frequencies)
        assert len(np.unique(result.frequencies, axis=0)) == len(result.frequencies)
        counts, strengths = np.zeros(len(result.weights)), np.zeros(len(result.weights))
        for dual in duals:
            land = Landscape(result.space, Rows(X), dual, 0.02)
            (peak,) = Enumerate(n_peaks=1).find(land, 1, None).frequencies
            place = np.flatnonzero((result.frequencies == peak).all(axis=1))[0]
            counts[place] += 1
            strengths[place] += abs(harmonics(X, peak[None])[:, 0] @ dual[:, 0])
        np.testing.assert_allclose(result.weights, counts / 50)
        np.testing.assert_allclose(result.strengths, strengths, rtol=1e-8)

    def test_game_ends_by_features_or_by_rounds(self):
        few, _ = self.game(n_frequencies=5, n_rounds=1000)
        assert len(few.frequencies) == 5
        assert few.history["n_frequencies"][-1] == 5 > few.history["n_frequencies"][-2]
        short, _ = self.game(n_frequencies=60)
        assert len(short.history["potential"]) == 60 > len(short.frequencies)

    def test_shorter_game_is_the_start_of_a_longer_one(self):
        long, _ = self.game(search=Enumerate(), n_rounds=200)
        for count in (1, 2, 3, 6, 9, 14):
            short, _ = self.game(search=Enumerate(), n_rounds=200, n_frequencies=count)
            np.testing.assert_array_equal(short.frequencies, long.frequencies[:count])

    @pytest.mark.parametrize("search", [Enumerate(), Chain(n_steps=10, n_peaks=4)])
    @pytest.mark.parametrize(("basis", "phase"), [("harmonic", "paired"), ("degree", "aligned")])
    def test_kernels_that_do_not_fit_are_skipped(self, search, basis, phase):
        result, _ = self.game(
            space=Sphere(basis), phase=phase, search=search, n_frequencies=30, n_rounds=20
        )
        assert 15 < len(result.frequencies) <= 30
        groups = result.space.groups(result.frequencies, phase)
        for group in np.unique(groups):
            (representative,) = np.unique(
                result.space.representatives(result.frequencies[groups == group], phase), axis=0
            )
            assert (groups == group).sum() == len(result.space.members(representative, phase))
