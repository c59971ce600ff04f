"""
Text: which library is a docstring from?
========================================

The corpus is installed already: the docstrings of NumPy, SciPy and scikit-learn, without the names
of the libraries. Each is a sparse row of tf-idf values, which is never made dense. A learned
frequency has one number per word; the largest show which words matter to its wave.
"""

import importlib
import inspect
import pkgutil
import re
import warnings

import numpy as np
from matplotlib import pyplot
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from notsorandom import FourierClassifier

LIBRARIES = ("numpy", "scipy", "sklearn")
OWN_NAMES = re.compile(r"\b(numpy|scipy|sklearn|scikit|learn|np|sp|estimators?)\b", re.IGNORECASE)


def docstrings(library):
    """Return the distinct docstrings of a library's public functions and classes."""
    found = set()
    package = importlib.import_module(library)
    for module in pkgutil.iter_modules(package.__path__, library + "."):
        if module.name.split(".")[-1].startswith(("_", "test", "conftest")):
            continue
        try:
            members = vars(importlib.import_module(module.name)).values()
        except Exception:  # an optional dependency isn't installed
            continue
        for member in members:
            if callable(member) and str(getattr(member, "__module__", "")).startswith(library):
                found.add(inspect.getdoc(member) or "")
    return [OWN_NAMES.sub(" ", text) for text in sorted(found) if len(text) > 200]


# %%
# The corpus
# ----------

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about deprecated modules
    corpus = {library: docstrings(library) for library in LIBRARIES}
texts = [text for library in LIBRARIES for text in corpus[library]]
labels = np.repeat(LIBRARIES, [len(corpus[library]) for library in LIBRARIES])
train, test, y_train, y_test = train_test_split(
    texts, labels, test_size=0.4, random_state=0, stratify=labels
)

# %%
# A pipeline of tf-idf and a classifier
# -------------------------------------

words = TfidfVectorizer(min_df=3, token_pattern=r"[A-Za-z]{3,}", stop_words="english")
model = make_pipeline(words, FourierClassifier(50, class_weight="balanced", random_state=0))
model.fit(train, y_train)
X = words.transform(train)
print(f"{X.shape[0]} docstrings of {X.shape[1]} words, {X.nnz / np.prod(X.shape):.1%} not zero")
print(f"50 learned features: {model.score(test, y_test):.1%}")
print(
    f"the largest class:   {np.mean(y_test == max(corpus, key=lambda name: len(corpus[name]))):.1%}"
)

# %%
# The words that matter to the first frequencies
# ----------------------------------------------

names = words.get_feature_names_out()
classifier = model[-1]
figure, axes = pyplot.subplots(1, 3, figsize=(9, 4), layout="constrained")
for number, (axis, frequency) in enumerate(zip(axes, classifier.frequencies_, strict=False)):
    largest = np.argsort(-np.abs(frequency))[:14][::-1]
    axis.barh(names[largest], frequency[largest])
    axis.set(title=f"frequency {number + 1}", xticks=[])
pyplot.show()
