"""
Reading a learned kernel
========================

What has a fit learned? This page reads one model in five ways: its spectrum, the columns it depends
on, what each column adds to a single prediction, the choices of the fit, and how far the kernel is
from the best one of its kind.

Cells of breast tissue are benign or malignant (from scikit-learn). The columns are standardised, as
for every method that measures distances.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from notsorandom import FourierClassifier
from notsorandom.display import ImportancesDisplay, SpectrumDisplay

data = load_breast_cancer(as_frame=True)
X, X_test, y, y_test = train_test_split(data.data, data.target, random_state=0)
scaler = StandardScaler().set_output(transform="pandas").fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)
model = FourierClassifier(random_state=0).fit(X, y)
print(f"test accuracy {model.score(X_test, y_test):.1%}")

# %%
# The spectrum
# ------------
#
# A kernel is an average of waves. A long frequency is a wave that changes within a short distance.
# If all weight is on short frequencies, the decision function is nearly linear; weight on long ones
# says that details matter. The weights say how many waves carry the kernel.

SpectrumDisplay.from_estimator(model)
weights = model.kernel_.weights
print(
    f"{len(weights)} waves; the 10 heaviest have {np.sort(weights)[-10:].sum():.0%} of the weight"
)
pyplot.show()

# %%
# Which columns matter
# --------------------
#
# The share of a column is the mean square slope of the decision function along it. Correlated
# columns share what either of them could explain.

ImportancesDisplay.from_estimator(model, X_test, n_columns=10)
pyplot.show()

# %%
# Why this prediction
# -------------------
#
# Contributions add up: their sum is the decision value of the sample minus the decision value of
# the mean of the training samples. Here is the test sample that the model is least sure of.

probability = model.predict_proba(X_test)[:, 1]
doubtful = np.abs(probability - 0.5).argmin()
contributions = model.contributions(X_test)[doubtful]
print(f"probability of benign: {probability[doubtful]:.0%}; true class: {y_test.iloc[doubtful]}")
print(f"sum of the contributions: {contributions.sum():+.3f}")

largest = np.argsort(-np.abs(contributions))[:10][::-1]
figure, axes = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
axes.barh(X.columns[largest], contributions[largest])
axes.set(title="Towards malignant (-) or benign (+)", xlabel="contribution to the decision value")
pyplot.show()

# %%
# What the fit chose
# ------------------

print(
    f"{model.spectrum_} spectrum, smoothing {model.smoothing_:g}, C = {model.C_:.2g}, "
    f"temperature {model.temperature_:.2f}"
)

# %%
# How good is the kernel
# ----------------------
#
# The certificate compares the kernel with all kernels of its kind, on the training samples. Its
# last line says what the numbers mean.

print(model.certificate(X, y))
