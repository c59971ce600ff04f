"""
A messy table, from a data frame to a model file
================================================

A table as it comes: categories, dates as text, gaps, an identifier, a constant column.
A shop wants to know which customers come back. `tabular_pipeline` finds out what each column is,
leaves out columns without information, and encodes the others; the model on top is a
`FourierClassifier` with all defaults. The whole pipeline is saved, loaded and tried again.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot
from sklearn.model_selection import train_test_split

import notsorandom
from notsorandom.display import CalibrationDisplay, ImportancesDisplay

# %%
# The table
# ---------

rng = np.random.default_rng(0)
n = 2000
frame = pd.DataFrame(
    {
        "customer": [f"C{number:05d}" for number in rng.permutation(n)],
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(45, 15, n).round()),
        "spent": np.exp(rng.normal(4, 1.5, n)).round(2),
        "city": rng.choice(["Rome", "Oslo", "Bonn", None], n, p=[0.5, 0.3, 0.15, 0.05]),
        "newsletter": rng.choice(["yes", "No", "YES"], n),
        "first order": pd.Series(rng.choice(pd.date_range("2020-01-01", periods=1000), n)),
        "currency": "EUR",
    }
)
frame["first order"] = frame["first order"].dt.strftime("%d.%m.%Y")
december = frame["first order"].str[3:5] == "12"
wish = np.sin(frame["age"].fillna(30) / 6) + (frame["city"] == "Oslo") - 2 * december
y = np.where(wish + 0.5 * rng.normal(size=n) > 0.3, "comes back", "doesn't")
print(frame.head().to_string())
X, X_test, y, y_test = train_test_split(frame, y, random_state=0)

# %%
# Fit: what each column is taken for, and the score beside the score of guessing
# ------------------------------------------------------------------------------

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # names the columns that are left out: see below
    model = notsorandom.tabular_pipeline("classifier", random_state=0).fit(X, y)
for name, kind in model["clean"].kinds_.items():
    print(f"{name}: {model['clean'].left_out_.get(name, kind)}")
majority = max(np.mean(y_test == label) for label in model.classes_)
print(f"accuracy {model.score(X_test, y_test):.1%}, by guessing {majority:.1%}")

# %%
# Which columns matter, and how sure is it
# ----------------------------------------
#
# The answer was made from age, city and the month of the first order. The model finds them. Of the
# customers that it gives a probability of 70 %, about 70 % should come back.

figure, axes = pyplot.subplots(figsize=(7, 2.6), layout="constrained")
ImportancesDisplay.from_estimator(model, X_test, ax=axes)
figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
CalibrationDisplay.from_estimator(model[-1], model[:-1].transform(X_test), y_test, ax=axes)
pyplot.show()

# %%
# Save and load the whole pipeline
# --------------------------------

with tempfile.TemporaryDirectory() as folder:
    path = notsorandom.save(model, Path(folder) / "shop.skops")
    loaded = notsorandom.load(path)
assert np.array_equal(loaded.predict_proba(X_test), model.predict_proba(X_test))
print(f"{path.name}: the loaded pipeline has the same probabilities, to the last bit")
