"""
Choosing the size: how many features
====================================

The number of features is the size of the model: of its file, of its time per prediction, and of
what it can express. The first features of a fit are the features of a smaller fit, so one
long fit is enough to compare all sizes. Or the fit chooses the number.

The data are handwritten digits of 8 x 8 pixels, from scikit-learn.
"""

# %%
# Fit once, look at all sizes
# ---------------------------
#
# ``ScoreCurveDisplay`` fits only a linear model per size: features are not learned again.

from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from notsorandom import FourierClassifier
from notsorandom.display import ScoreCurveDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

model = FourierClassifier(n_components=100, random_state=0).fit(X_train, y_train)
print(f"100 learned features: {model.score(X_test, y_test):.1%}")

figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
ScoreCurveDisplay.from_estimator(model, X_train, y_train, X_test, y_test, ax=axes)
axes.set_title("Ten digits")
pyplot.show()

# %%
# The first features alone
# ------------------------
#
# ``head`` makes a transformer of the first features. Any linear model can follow it.

from sklearn.linear_model import LogisticRegression

for size in (10, 30, 100):
    first = model.features_.head(size)
    linear = LogisticRegression(C=100, max_iter=1000).fit(first.transform(X_train), y_train)
    print(f"{size:3} features: {linear.score(first.transform(X_test), y_test):.1%}")

# %%
# Let the fit choose
# ------------------
#
# With ``n_components="auto"``, the default, trials on held-out parts of the training samples double
# the number while that clearly reduces the loss. ``validation_sizes_`` and ``validation_losses_``
# show what was compared.

chosen = FourierClassifier(random_state=0).fit(X_train, y_train)
print(f"{chosen.kernel_.n_components} features, {chosen.score(X_test, y_test):.1%}")
for size, loss in zip(chosen.validation_sizes_, chosen.validation_losses_, strict=True):
    print(f"    {size:3} features: held-out log loss {loss:.3f}")
