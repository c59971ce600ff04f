"""
On the sphere: a checkerboard and its harmonics
===============================================

The classes alternate between sixteen fields of the sphere, by the sign of
sin(2 longitude) * sin(4 colatitude). The frequencies are spherical harmonics, and the game keeps
only a few of the 961 up to degree 30.
"""

from functools import partial

import numpy as np
from matplotlib import pyplot

from notsorandom import Enumerate, FourierClassifier, GradientSolver
from notsorandom.datasets import make_checkerboard
from notsorandom.display import GlobeDisplay
from notsorandom.spaces.harmonics import harmonics

X, y = make_checkerboard(2000, random_state=0)
X_test, y_test = make_checkerboard(50_000, random_state=1)
model = FourierClassifier(
    space="sphere",
    search=Enumerate(n_peaks=1),
    solver=GradientSolver(n_rounds=100),
    random_state=0,
).fit(X, y)
indices, weights = model.kernel_.frequencies, model.kernel_.weights
print(f"test accuracy {model.score(X_test, y_test):.2%} on {len(indices)} harmonics")

# %%
# The samples, the three harmonics with the largest weights, and the decision function:

panels = []
for place in np.argsort(-weights)[:3]:
    order, degree = indices[place]
    print(f"degree {degree:2}, order {order:3}: {weights[place]:.0%} of the kernel")
    harmonic = partial(harmonics, indices=indices[place : place + 1])
    panels.append(
        (
            f"degree {degree}, order {order}",
            lambda points, harmonic=harmonic: harmonic(points)[:, 0],
        )
    )
panels.append(("decision function", model.decision_function))
GlobeDisplay(panels, samples=(X, y)).plot()
pyplot.show()
