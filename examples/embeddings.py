"""
Embeddings: a linear model, and what it leaves over
===================================================

A language model turns a sentence into a row of a few hundred numbers. Most of what tells its class
is linear in them: a plain logistic regression is hard to beat. What is left over is not, such as
"not" in a review. Trials therefore try a linear part of the kernel, the columns themselves, beside
the learned waves, which then have only the rest to explain.

The rows here are made: 16 topics in 96 dimensions. The sentences of half of the topics praise or
complain; in a negated sentence, praise is a complaint.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from notsorandom import FourierClassifier

# %%
# Made embeddings
# ---------------

rng = np.random.default_rng(0)
n_samples, n_columns, n_topics = 3000, 96, 16
topics, (mood, negation) = np.split(
    normalize(rng.normal(size=(n_topics + 2, n_columns))), [n_topics]
)
topic = rng.integers(n_topics, size=n_samples)
praises, negates = rng.choice([-1.0, 1.0], size=(2, n_samples))
X = topics[topic] + 0.6 * np.outer(praises, mood) + 0.6 * np.outer(negates, negation)
X = normalize(X + 0.2 * rng.normal(size=X.shape)).astype(np.float32)
has_mood = topic < n_topics // 2
y = np.where(has_mood & (praises * negates > 0), topic + n_topics, topic)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
print(f"{len(X_train)} samples of {len(np.unique(y))} classes, {n_columns} columns")

# %%
# Beside a linear model, waves alone, and an SVM
# ----------------------------------------------

models = {
    "logistic regression": LogisticRegression(C=30.0, max_iter=1000),
    "waves alone": FourierClassifier(linear=False, random_state=0),
    "SVC": SVC(),
    "linear part and waves": FourierClassifier(linear=True, random_state=0),
    "trials choose": FourierClassifier(random_state=0),
}
rows = {}
for name, model in models.items():
    model.fit(X_train, y_train)
    row = {"accuracy": f"{model.score(X_test, y_test):.3f}"}
    if hasattr(model, "predict_proba"):
        row["log loss"] = f"{log_loss(y_test, model.predict_proba(X_test)):.3f}"
    if hasattr(model, "frequencies_"):
        row |= {"waves": len(model.frequencies_), "linear part": model.uses_linear_part_}
    rows[name] = row
print(pd.DataFrame(rows).T.fillna("").to_string())

# %%
# What the waves see
# ------------------
#
# The linear part finds the topics. The first waves have to find the product of mood and negation,
# so their frequencies lie in the plane of these two directions.

model = models["linear part and waves"]
plane = np.linalg.qr(np.column_stack([mood, negation]))[0]
figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for axis, name in zip(axes, ["waves alone", "linear part and waves"], strict=True):
    frequencies = models[name].frequencies_[:60]
    shares = np.linalg.norm(frequencies @ plane, axis=1) / np.linalg.norm(frequencies, axis=1)
    axis.bar(np.arange(len(shares)), shares, width=1.0)
    axis.axhline(np.sqrt(2 / n_columns), color="black", linestyle=":")
    axis.set(title=name, xlabel="wave, in the order found", ylim=(0, 1))
axes[0].set_ylabel("share in the plane of mood\nand negation (dots: by chance)")
pyplot.show()
