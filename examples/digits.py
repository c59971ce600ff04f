"""Ten digits from a hundred learned features.

    python examples/digits.py [picture.png]

Handwritten digits of 8 x 8 pixels, as they come with scikit-learn. One fit has all smaller ones in
it, so that accuracy by number of features costs nothing but the final SVMs.
"""

import sys

from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from notsorandom import FourierClassifier
from notsorandom.display import PathDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

model = FourierClassifier(n_components=100, random_state=0).fit(X_train, y_train)
print(f"100 learned features: {model.score(X_test, y_test):.1%}")
print(f"decision values: {model.decision_function(X_test).shape}, one column a class")

by_itself = FourierClassifier(n_components="auto", random_state=0).fit(X_train, y_train)
n_features = by_itself.kernel_.n_components
print(f"as many as help, {n_features}: {by_itself.score(X_test, y_test):.1%}")

figure, axis = pyplot.subplots(figsize=(6, 4), layout="constrained")
PathDisplay.from_estimator(model, X_train, y_train, X_test, y_test, ax=axis)
axis.set_title("Ten digits")
picture = sys.argv[1] if len(sys.argv) > 1 else "digits.png"
figure.savefig(picture, dpi=120)
print(f"accuracy by number of features: {picture}")
