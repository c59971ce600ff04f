"""
Images: learned frequencies and important pixels
================================================

A frequency has one number per pixel, so it can be drawn as an image: it shows the change of an
image along which the wave rises and falls. Random frequencies are noise; learned ones show strokes.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits

from notsorandom import FourierClassifier
from notsorandom.display import ImportancesDisplay, SpectrumDisplay

X, y = load_digits(return_X_y=True)
threes_and_eights = np.isin(y, (3, 8))
X, y = X[threes_and_eights], y[threes_and_eights]
model = FourierClassifier(n_components=24, random_state=0).fit(X, y)

# %%
# Correlation of each feature alone with the label:

waves = model.features_.transform(X)
correlations = np.abs([np.corrcoef(wave, y)[0, 1] for wave in waves.T])
print(f"correlation of single features with the label: up to {correlations.max():.2f}")

# %%
# What distinguishes the classes on average, the frequencies with the largest weights, and the share
# of each pixel in how the prediction changes:

figure, axes = pyplot.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
difference = X[y == 3].mean(axis=0) - X[y == 8].mean(axis=0)
limit = np.abs(difference).max()
axes[0].imshow(difference.reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
axes[0].set(title="Mean three minus mean eight", xticks=[], yticks=[])
SpectrumDisplay.from_estimator(model, image_shape=(8, 8), ax=axes[1])
axes[1].set_title("The heaviest frequencies")
ImportancesDisplay.from_estimator(model, X, image_shape=(8, 8), ax=axes[2])
axes[2].set_title("Important pixels")
pyplot.show()
