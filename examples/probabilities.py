"""
How sure is it? Calibrated probabilities
========================================

Two moons that overlap: no model can be sure of the class everywhere, but its probabilities can be
right. Of the samples that get a probability of 70 %, about 70 % should have the class. Nothing is
tuned by hand: `C`, smoothing, spectrum and the temperature of the probabilities are chosen on
held-out parts of the training samples.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from notsorandom import FourierClassifier
from notsorandom.display import CalibrationDisplay, TuningDisplay

X, y = make_moons(1000, noise=0.4, random_state=0)
X_test, y_test = make_moons(10_000, noise=0.4, random_state=1)

model = FourierClassifier(random_state=0).fit(X, y)
svm = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y)
for name, each in (("learned features", model), ("calibrated SVC", svm)):
    loss = log_loss(y_test, each.predict_proba(X_test))
    print(f"{name}: accuracy {each.score(X_test, y_test):.1%}, log loss {loss:.3f}")

# %%
# The probability of class 1 in the plane
# ---------------------------------------

figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
side = np.linspace(-2.5, 3.5, 150), np.linspace(-2, 2.5, 150)
grid = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)
levels = axes.contourf(*side, model.predict_proba(grid)[:, 1].reshape(150, 150), cmap="RdBu_r")
figure.colorbar(levels, ax=axes)
axes.scatter(*X.T, c=y, s=4, cmap="coolwarm")
axes.set(xticks=[], yticks=[])
pyplot.show()

# %%
# A reliability diagram on test samples
# -------------------------------------
#
# For each bin of predicted probabilities: how often the class was 1. Beside it: how many samples
# got which probability.

figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
display = CalibrationDisplay.from_estimator(model, X_test, y_test, ax=axes)
print(f"expected calibration error: {display.expected_error:.3f}")
pyplot.show()

# %%
# What the trials chose
# ---------------------

print(
    f"chosen: {model.spectrum_} spectrum, smoothing {model.smoothing_:g}, C = {model.C_:.2g}, "
    f"temperature {model.temperature_:.2f}"
)
figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
TuningDisplay.from_estimator(model, ax=axes)
pyplot.show()
