"""
How sure is it? Intervals of a regression
=========================================

A curve whose noise grows with x, and a gap without data. The intervals of `predict_interval` cover
the share of new samples that was asked for, and are wide where there are no data. The noise is
taken to be the same everywhere. Models of the 5 % and the 95 % quantile follow it, but don't know
where the gap is.
"""

import numpy as np
from matplotlib import pyplot

from notsorandom import FourierRegressor
from notsorandom.display import CoverageDisplay


def sample(n_samples, rng):
    """Return samples of a wave, without any from 4 to 6, and targets whose noise grows with x."""
    x = rng.uniform(0, 8, n_samples)
    x = np.where(x > 4, x + 2, x)
    y = np.sin(x) + (0.05 + 0.06 * x) * rng.standard_normal(n_samples)
    return x[:, None], y


rng = np.random.default_rng(0)
X, y = sample(1000, rng)
X_test, y_test = sample(5000, rng)

model = FourierRegressor(n_components=30, random_state=0).fit(X, y)
low, high = (
    FourierRegressor(n_components=30, loss="quantile", quantile=quantile, random_state=0).fit(X, y)
    for quantile in (0.05, 0.95)
)


def quantile_interval(X):
    """Return what two quantile models predict, sorted where they cross."""
    return np.sort(np.stack([low.predict(X), high.predict(X)], axis=1))


# %%
# The bands, and the curve without noise (dashed)
# -----------------------------------------------
#
# In the gap the prediction is a guess, and the interval is wider than the picture. What the
# quantile models predict there is a guess too.

grid = np.linspace(0, 10, 500)[:, None]
bands = {
    "predict_interval, 90 %": model.predict_interval(grid, 0.9),
    "quantile models, 5 % to 95 %": quantile_interval(grid),
}
figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for axis, (title, band) in zip(axes, bands.items(), strict=True):
    axis.plot(X, y, ".", color="grey", markersize=2)
    axis.fill_between(grid[:, 0], *band.T, alpha=0.3)
    axis.plot(grid, model.predict(grid))
    axis.plot(grid, np.sin(grid), "k--", linewidth=1)
    axis.set(title=title, xlabel="x", ylim=(-3, 3))
pyplot.show()

# %%
# Coverage on new samples
# -----------------------
#
# Over all samples, both cover about 90 %. The intervals of one width cover more where there is
# little noise, and less where there is much.

is_left = X_test[:, 0] < 4
for title, band in (
    ("predict_interval", model.predict_interval(X_test, 0.9)),
    ("quantile models", quantile_interval(X_test)),
):
    covered = (band[:, 0] <= y_test) & (y_test <= band[:, 1])
    print(
        f"{title}: {covered.mean():.1%} of new samples within 90 % intervals, "
        f"{covered[is_left].mean():.1%} left of the gap, {covered[~is_left].mean():.1%} right of it"
    )

# %%
# For every coverage that is asked for:

display = CoverageDisplay.from_estimator(model, X_test, y_test)
pyplot.show()

# %%
# The standard deviation, as of a Gaussian process
# ------------------------------------------------

_, deviation = model.predict(np.array([[2.0], [5.0], [8.0]]), return_std=True)
print(f"noise {model.noise_[0]:.2f}; standard deviation at 2, 5 and 8:", deviation.round(2))
