"""Learned frequencies as images.

    python examples/images.py [picture.png]

A frequency has one number per pixel, so it can be drawn as an image: it shows the change of an
image along which the wave rises and falls. Random frequencies are noise; learned ones show strokes.
"""

import sys

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits

from notsorandom import FourierFeatures
from notsorandom.display import SpectrumDisplay

X, y = load_digits(return_X_y=True)
threes_and_eights = np.isin(y, (3, 8))
X, y = X[threes_and_eights], y[threes_and_eights]
features = FourierFeatures(n_components=24, random_state=0).fit(X, y)

# Correlation of each feature alone with the label.
waves = features.transform(X)
correlations = np.abs([np.corrcoef(wave, y)[0, 1] for wave in waves.T])
print(f"correlation of single features with the label: up to {correlations.max():.2f}")

figure, axes = pyplot.subplots(1, 2, figsize=(9, 4), layout="constrained")
difference = X[y == 3].mean(axis=0) - X[y == 8].mean(axis=0)
limit = np.abs(difference).max()
axes[0].imshow(difference.reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
axes[0].set(title="Mean three minus mean eight", xticks=[], yticks=[])
SpectrumDisplay.from_estimator(features, image_shape=(8, 8), ax=axes[1])
axes[1].set_title("The heaviest frequencies")
picture = sys.argv[1] if len(sys.argv) > 1 else "images.png"
figure.savefig(picture, dpi=120)
print(f"frequencies as images: {picture}")
