"""Ten digits from a hundred learned features, and what the frequencies look like.

    python examples/digits.py [picture.png]

Handwritten digits of 8 x 8 pixels, as they come with scikit-learn. A frequency is a vector in pixel
space, so it can be looked at: the wave runs from its dark to its bright pixels.
"""

import sys

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from notsorandom import FourierClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

model = FourierClassifier(n_components=100, random_state=0).fit(X_train, y_train)
gamma = 0.5 / model.kernel_.space.scale**2  # the median bandwidth
random = make_pipeline(RBFSampler(gamma=gamma, n_components=100, random_state=0), LinearSVC())
random.fit(X_train, y_train)
print(f"100 learned features: {model.score(X_test, y_test):.1%}")
print(f"100 random features:  {random.score(X_test, y_test):.1%}")

figure, axes = pyplot.subplots(2, 8, figsize=(9, 2.6), layout="constrained")
for frequency, axis in zip(model.frequencies_, axes.ravel(), strict=False):
    limit = np.abs(frequency).max()
    axis.imshow(frequency.reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
    axis.set(xticks=[], yticks=[])
figure.suptitle("The first sixteen frequencies, as images")
picture = sys.argv[1] if len(sys.argv) > 1 else "digits.png"
figure.savefig(picture, dpi=120)
print(f"the frequencies as images: {picture}")
