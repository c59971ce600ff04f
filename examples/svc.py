"""
The learned kernel in scikit-learn's SVC
========================================

``kernel_`` is a callable for any kernel method. Here it is compared with the RBF kernel at the
median bandwidth, both in an SVM with C = 1, on the paper's windmill data.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.svm import SVC

from notsorandom import FourierFeatures
from notsorandom.baselines import median_gamma
from notsorandom.datasets import make_windmill

X, y = make_windmill(2000, random_state=0)
X_test, y_test = make_windmill(20_000, random_state=1)

kernel = FourierFeatures(n_components=100, random_state=0).fit(X, y).kernel_
models = {
    "RBF kernel": SVC(kernel="rbf", gamma=median_gamma(X)).fit(X, y),
    "learned kernel": SVC(kernel=kernel).fit(X, y),
}

side = np.linspace(-1.1, 1.1, 200)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = pyplot.subplots(1, 2, figsize=(8, 4), layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    accuracy = model.score(X_test, y_test)
    print(f"{name}: {accuracy:.1%}, {model.n_support_.sum()} support vectors")
    values = model.decision_function(grid).reshape(200, 200)
    axis.contourf(side, side, values, levels=[-np.inf, 0, np.inf], colors=["#9ec5e8", "#f3b08c"])
    axis.scatter(*X[:500].T, c=y[:500], s=3, cmap="coolwarm")
    axis.set(title=f"{name}: {accuracy:.1%}", aspect="equal", xticks=[], yticks=[])
pyplot.show()
