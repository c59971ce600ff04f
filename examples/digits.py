"""Ten classes of digits with 100 learned features.

    python examples/digits.py [picture.png]

Handwritten digits of 8 x 8 pixels, from scikit-learn. The first features of a fit are those of a
smaller fit, so accuracy by number of features costs only one linear model per size.
"""

import sys

from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from notsorandom import FourierClassifier
from notsorandom.display import ScoreCurveDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

model = FourierClassifier(n_components=100, random_state=0).fit(X_train, y_train)
print(f"100 learned features: {model.score(X_test, y_test):.1%}")
print(f"probabilities: {model.predict_proba(X_test).shape}, one column per class")

auto = FourierClassifier(n_components="auto", random_state=0).fit(X_train, y_train)
n_features = auto.kernel_.n_components
print(f"n_components='auto' keeps {n_features} features: {auto.score(X_test, y_test):.1%}")

figure, axis = pyplot.subplots(figsize=(6, 4), layout="constrained")
ScoreCurveDisplay.from_estimator(model, X_train, y_train, X_test, y_test, ax=axis)
axis.set_title("Ten digits")
picture = sys.argv[1] if len(sys.argv) > 1 else "digits.png"
figure.savefig(picture, dpi=120)
print(f"accuracy by number of features: {picture}")
