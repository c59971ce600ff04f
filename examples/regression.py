"""
Regression: a surface from 600 noisy samples
============================================

The surface has two oblique waves, which no single column shows. Linear regression on as many random
waves doesn't find them; the learned frequencies are close to them.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from notsorandom import FourierRegressor
from notsorandom.baselines import RandomFourierFeatures


def surface(X):
    """Return the sum of two oblique waves."""
    return np.sin(9 * X[:, 0] + 6 * X[:, 1]) + 0.5 * np.sin(4 * X[:, 0] - 11 * X[:, 1])


rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(600, 2))
y = surface(X) + 0.3 * rng.standard_normal(600)
side = np.linspace(-1, 1, 120)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

model = FourierRegressor(n_components=60, random_state=0).fit(X, y)
random = RandomFourierFeatures(n_components=60, random_state=0)
other = make_pipeline(random, RidgeCV(np.logspace(-6, 2, 9))).fit(X, y)
print(f"R^2 on the noise-free surface, 60 learned waves: {model.score(grid, surface(grid)):.3f}")
print(f"R^2 on the noise-free surface, 60 random waves:  {other.score(grid, surface(grid)):.3f}")

# %%
# The surface, both predictions, and the learned frequencies: the larger the dot, the larger its
# weight.

figure, axes = pyplot.subplots(2, 2, figsize=(7.5, 7), layout="constrained")
axes = axes.ravel()
shown = {
    "the surface": surface(grid),
    "learned": model.predict(grid),
    "random": other.predict(grid),
}
for axis, (title, values) in zip(axes, shown.items(), strict=False):
    axis.imshow(
        values.reshape(120, 120), extent=(-1, 1, -1, 1), origin="lower", vmin=-1.5, vmax=1.5
    )
    axis.set(title=title, xticks=[], yticks=[])
weights = model.kernel_.weights
frequencies = np.concatenate([model.frequencies_, -model.frequencies_])
axes[3].scatter(*frequencies.T, s=2000 * np.tile(weights, 2), alpha=0.5)
axes[3].plot([9, 4, -9, -4], [6, -11, -6, 11], "k+", markersize=12)
axes[3].set(title="frequencies, and the two waves (+)", aspect="equal")
pyplot.show()
