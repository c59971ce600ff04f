"""
A model for AutoGluon and the TabArena benchmark
================================================

TabArena compares models on tables of the same kind as yours. It asks of a model that it is an
`AbstractModel` of AutoGluon: a class with `_fit`. This one is `tabular_pipeline`, which takes the
data frames as they are, categories and gaps included. It is run here as TabArena runs a model, once
and in a bag of folds, on two tables of scikit-learn, beside AutoGluon's own linear model and random
forest. It needs ``pip install autogluon.tabular``.
"""

import sys
import tempfile

from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split

from notsorandom import tabular_pipeline

try:
    from autogluon.core.data import LabelCleaner
    from autogluon.core.models import AbstractModel, BaggedEnsembleModel
    from autogluon.features.generators import AutoMLPipelineFeatureGenerator
    from autogluon.tabular.models import LinearModel, RFModel
except ImportError as error:
    sys.exit(f"tabarena.py: {error}: install what it needs with pip install autogluon.tabular")

# %%
# The model
# ---------
#
# Hyperparameters are those of the estimator; there are none that would have to be tuned.


class FourierModel(AbstractModel):
    """`tabular_pipeline` of notsorandom."""

    ag_key, ag_name = "FOURIER", "Fourier"
    seed_name = "random_state"
    _supported_problem_types = ("binary", "multiclass", "regression")

    def _fit(self, X, y, num_cpus=1, **kwargs):
        kind = "regressor" if self.problem_type == "regression" else "classifier"
        X = self.preprocess(X, is_train=True)
        self.model = tabular_pipeline(kind, n_jobs=num_cpus, **self._get_model_params())
        self.model.fit(X, y)

    def _more_tags(self):
        return {"can_refit_full": True}


# %%
# Two tables
# ----------

MODELS = (LinearModel, RFModel, FourierModel)
folder = tempfile.TemporaryDirectory()
figure, axes = pyplot.subplots(1, 2, figsize=(8, 2.6), layout="constrained")
for ax, load, problem in zip(
    axes, (load_breast_cancer, load_diabetes), ("binary", "regression"), strict=True
):
    frame, target = load(return_X_y=True, as_frame=True)
    X, X_test, y, y_test = train_test_split(frame, target, random_state=0)
    features = AutoMLPipelineFeatureGenerator(verbosity=0)
    X, X_test = features.fit_transform(X), features.transform(X_test)
    labels = LabelCleaner.construct(problem_type=problem, y=y)
    y, y_test = labels.transform(y), labels.transform(y_test)
    score = r2_score if problem == "regression" else accuracy_score
    scores, settings = {}, {"path": folder.name, "problem_type": problem}
    for Model in MODELS:
        model = Model(**settings).fit(X=X, y=y)
        bag = BaggedEnsembleModel(Model(**settings), path=folder.name)
        bag.params["fold_fitting_strategy"] = "sequential_local"
        bag.fit(X=X, y=y, k_fold=8)
        scores[Model.ag_name] = score(y_test, bag.predict(X_test))
        single = score(y_test, model.predict(X_test))
        print(f"{problem}, {Model.ag_name}: {single:.3f}, bag of 8 {scores[Model.ag_name]:.3f}")
    ax.barh(list(scores), list(scores.values()))
    ax.set_title(f"{problem}: {score.__name__} of bags", loc="left", fontsize=10)
pyplot.show()

# %%
# With ``pip install tabarena``, `TabArenaV0pt1ExperimentBundle(models=[(generator, 0)])` takes
# ``generator = ConfigGenerator(search_space={}, model_cls=FourierModel, manual_configs=[{}])`` and
# runs it on the benchmark's own tables.
