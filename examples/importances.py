"""
Which columns matter: importances and contributions, as images
==============================================================

A model of three handwritten digits, whose columns are the pixels. Importances say which pixels the
model depends on; contributions, which pixels speak for a digit in a single image. Both are exact,
because the gradient of a wave, and its mean along a straight path, are closed-form.
"""

from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from notsorandom import FourierClassifier
from notsorandom.display import ImportancesDisplay

X, y = load_digits(n_class=3, return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
model = FourierClassifier(random_state=0).fit(X, y)
print(f"accuracy {model.score(X_test, y_test):.1%}")

# %%
# Importances
# -----------
#
# The share of a column is the mean square slope of the decision functions along it, in units of the
# column's standard deviation. Without an `image_shape` the largest are drawn as bars.

print(model.importances(X))
_, axes = pyplot.subplots(1, 2, figsize=(7, 3), layout="constrained")
ImportancesDisplay.from_estimator(model, X, image_shape=(8, 8), ax=axes[0])
ImportancesDisplay.from_estimator(model, X, n_columns=8, ax=axes[1])

# %%
# Contributions
# -------------
#
# What each pixel adds to the decision value of the predicted digit: red speaks for it, blue
# against. Over the pixels they add up to the value, less the value at the mean of all images.

contributions = model.contributions(X_test[:3])  # (n_images, n_classes, n_pixels)
values = model.decision_function(X_test[:3])
at_mean = model.decision_function(X.mean(axis=0, keepdims=True))
assert abs(contributions.sum(axis=2) - (values - at_mean)).max() < 1e-6
_, axes = pyplot.subplots(2, 3, figsize=(7, 4.8), layout="constrained")
for k, digit in enumerate(model.predict(X_test[:3])):
    image, speaks = X_test[k].reshape(8, 8), contributions[k, digit].reshape(8, 8)
    limit = abs(speaks).max()
    axes[0, k].imshow(image, cmap="Greys")
    axes[0, k].set_title(f"predicted: {digit}")
    axes[1, k].imshow(speaks, cmap="RdBu_r", vmin=-limit, vmax=limit)
    for axis in axes[:, k]:
        axis.set_axis_off()
