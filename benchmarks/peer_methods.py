"""The methods of `benchmarks.peers`: what each is, and how it is made.

Tuned methods try the `N_CONFIGS` settings of their grid by 3-fold cross-validation on at most
`TUNING_ROWS` training rows, and are then fitted to all training rows. All of that is their fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, SVR

from notsorandom import FourierClassifier, FourierRegressor
from notsorandom.baselines import LKRF

N_CONFIGS = 9
TUNING_ROWS = 2000
VALIDATION_FRACTION = 0.2  # of xRFM, as in its documentation

GAMMA_FACTORS = np.array([0.25, 1.0, 4.0])  # of gamma="scale"
PENALTIES = [1.0, 10.0, 100.0]  # C of SVC and of the logistic regression
ALPHAS = [1.0, 0.1, 0.01]  # of ridge regressions
DIVERGENCES = [1.0, 10.0, 100.0]  # rho of LKRF
LEAVES, TREES = [4, 10, 31], [50, 100, 300]  # of LightGBM; its defaults are 31 and 100
BANDWIDTHS, REGULARIZATIONS = [2.0, 10.0, 50.0], [1e-3, 1e-1, 10.0]  # of xRFM; 10 and 1e-3


class Tuned(BaseEstimator):
    """A model whose settings are chosen by cross-validation on a subsample of the rows."""

    def __init__(self, model: Any, grid: dict[str, Any], seed: int) -> None:
        self.model, self.grid, self.seed = model, grid, seed

    def fit(self, X: Any, y: Any, is_regression: bool) -> Any:
        """Return the model, fitted to all rows with the chosen settings."""
        rows = np.arange(len(y))
        if len(y) > TUNING_ROWS:
            stratify = None if is_regression else y
            rows, _ = train_test_split(
                rows, train_size=TUNING_ROWS, random_state=self.seed, stratify=stratify
            )
        search = GridSearchCV(self.model, self.grid, cv=3, refit=False).fit(X[rows], y[rows])
        return clone(self.model).set_params(**search.best_params_).fit(X, y)


class XRFM(BaseEstimator):
    """xRFM as a scikit-learn estimator; a fifth of the rows is the validation set it asks for."""

    def __init__(
        self, is_regression: bool, seed: int, bandwidth: float = 10.0, reg: float = 1e-3
    ) -> None:
        self.is_regression, self.seed = is_regression, seed
        self.bandwidth, self.reg = bandwidth, reg

    def fit(self, X: Any, y: Any) -> XRFM:
        """Fit with the library's own defaults, but for bandwidth and regularisation."""
        import xrfm

        stratify = None if self.is_regression else y
        if not self.is_regression:
            self.classes_, y = np.unique(y, return_inverse=True)
        X, X_validation, y, y_validation = train_test_split(
            X, y, test_size=VALIDATION_FRACTION, random_state=self.seed, stratify=stratify
        )
        self.model_ = xrfm.xRFM(device="cpu", n_threads=1, random_state=self.seed, verbose=False)
        settings = self.model_.rfm_params  # the defaults
        settings["model"]["bandwidth"], settings["fit"]["reg"] = self.bandwidth, self.reg
        self.model_.fit(X, y, X_validation, y_validation)
        return self

    def predict(self, X: Any) -> Any:
        """Return labels or numbers."""
        predicted = self.model_.predict(X)
        return predicted.ravel() if self.is_regression else self.classes_[predicted.ravel()]

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        return self.model_.predict_proba(X)

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy or R^2."""
        if not self.is_regression:
            return float(np.mean(self.predict(X) == y))
        return 1 - float(np.mean((self.predict(X) - y) ** 2) / np.var(y))


@dataclass(frozen=True)
class Method:
    """A method that is compared.

    Parameters
    ----------
    title : str
    family : {"ours", "kernel", "random", "trees", "network"}
        For the colours of the figure.
    note : str
        What it is.
    make : callable
        From training samples, whether it is a regression, and a seed, to an unfitted model.
    package : str
        Name on PyPI, if the method needs more than this package does.
    regresses : bool
        Whether it can predict numbers.
    """

    title: str
    family: str
    note: str
    make: Callable[[Any, bool, int], Any]
    package: str = ""
    regresses: bool = True


def gammas(X: Any) -> Any:
    """Return the candidates for gamma; the middle one is scikit-learn's "scale"."""
    return (GAMMA_FACTORS / (X.shape[1] * X.var())).tolist()


def make_ours(n_components: int) -> Callable[[Any, bool, int], Any]:
    """Return a function that makes our model of a size."""

    def make(X: Any, is_regression: bool, seed: int) -> Any:
        ours = FourierRegressor if is_regression else FourierClassifier
        return ours(n_components, n_jobs=1, random_state=seed)

    return make


def make_svm(X: Any, is_regression: bool, seed: int) -> Any:
    """Return SVC or SVR."""
    return SVR() if is_regression else SVC()


def make_tuned_svm(X: Any, is_regression: bool, seed: int) -> Tuned:
    """Return SVC or KernelRidge, tuned."""
    if is_regression:
        return Tuned(KernelRidge(kernel="rbf"), {"alpha": ALPHAS, "gamma": gammas(X)}, seed)
    return Tuned(SVC(), {"C": PENALTIES, "gamma": gammas(X)}, seed)


def on_features(features: Any, is_regression: bool) -> Pipeline:
    """Return features with a linear model on them.

    LKRF gets the samples in single precision, in which its fit takes a fourth of the time.
    """
    linear = Ridge() if is_regression else LogisticRegression(max_iter=1000)
    single = FunctionTransformer(np.float32) if isinstance(features, LKRF) else "passthrough"
    return Pipeline([("single", single), ("features", features), ("linear", linear)])


def tuned_on_features(features: Any, is_regression: bool, seed: int, **grid: Any) -> Tuned:
    """Return the same, tuned: a parameter of the features, and the penalty."""
    penalty = {"linear__alpha": ALPHAS} if is_regression else {"linear__C": PENALTIES}
    grid = {f"features__{name}": values for name, values in grid.items()}
    return Tuned(on_features(features, is_regression), grid | penalty, seed)


def make_lightgbm(X: Any, is_regression: bool, seed: int) -> Any:
    """Return LightGBM."""
    import lightgbm

    model = lightgbm.LGBMRegressor if is_regression else lightgbm.LGBMClassifier
    return model(n_jobs=1, random_state=seed, verbose=-1)


class LabelledXGBoost(BaseEstimator):
    """XGBoost's classifier, which takes codes of classes only, for any labels."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Any, y: Any) -> LabelledXGBoost:
        """Fit."""
        import xgboost

        self.classes_, codes = np.unique(y, return_inverse=True)
        self.model_ = xgboost.XGBClassifier(n_jobs=1, random_state=self.seed).fit(X, codes)
        return self

    def predict(self, X: Any) -> Any:
        """Return labels."""
        return self.classes_[self.model_.predict(X)]

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        return self.model_.predict_proba(X)


def make_xgboost(X: Any, is_regression: bool, seed: int) -> Any:
    """Return XGBoost."""
    import xgboost

    if is_regression:
        return xgboost.XGBRegressor(n_jobs=1, random_state=seed)
    return LabelledXGBoost(seed)


def make_catboost(X: Any, is_regression: bool, seed: int) -> Any:
    """Return CatBoost."""
    import catboost

    model = catboost.CatBoostRegressor if is_regression else catboost.CatBoostClassifier
    return model(thread_count=1, random_seed=seed, verbose=False, allow_writing_files=False)


def make_sklearn(classifier: Any, regressor: Any) -> Callable[[Any, bool, int], Any]:
    """Return a function that makes a model of scikit-learn with its defaults."""
    return lambda X, is_regression, seed: (regressor if is_regression else classifier)(
        random_state=seed
    )


METHODS = {
    "ours": Method(
        "ours, 100",
        "ours",
        "`FourierClassifier` or `FourierRegressor`, defaults: 100 features; spectrum, smoothing "
        "and C are chosen by trials within the fit",
        make_ours(100),
    ),
    "ours500": Method("ours, 500", "ours", "the same with `n_components=500`", make_ours(500)),
    "svm": Method("SVM", "kernel", "`SVC` or `SVR`, RBF kernel, defaults", make_svm),
    "svm-tuned": Method(
        "SVM, tuned",
        "kernel",
        "`SVC`, or `KernelRidge` for regressions, RBF kernel: gamma of 1/4, 1 or 4 times "
        "`'scale'`; C of 1, 10 or 100, or alpha of 1, 0.1 or 0.01",
        make_tuned_svm,
    ),
    "random": Method(
        "RBFSampler",
        "random",
        "`RBFSampler`, default 100 features, `gamma='scale'` (its own default is 1 for any number "
        "of columns), and `LogisticRegression` or `Ridge`",
        lambda X, is_regression, seed: on_features(
            RBFSampler(gamma="scale", random_state=seed), is_regression
        ),
    ),
    "random-tuned": Method(
        "RBFSampler, tuned",
        "random",
        "the same with 500 features: gamma and C, or alpha, of the same grid",
        lambda X, is_regression, seed: tuned_on_features(
            RBFSampler(n_components=500, random_state=seed), is_regression, seed, gamma=gammas(X)
        ),
    ),
    "nystroem": Method(
        "Nystroem",
        "random",
        "`Nystroem`, default 100 features, with the same gamma and the same linear models",
        lambda X, is_regression, seed: on_features(
            Nystroem(gamma=gammas(X)[1], random_state=seed), is_regression
        ),
    ),
    "nystroem-tuned": Method(
        "Nystroem, tuned",
        "random",
        "the same with 500 features: gamma and C, or alpha, of the same grid",
        lambda X, is_regression, seed: tuned_on_features(
            Nystroem(n_components=500, random_state=seed), is_regression, seed, gamma=gammas(X)
        ),
    ),
    "lkrf": Method(
        "LKRF",
        "random",
        "`notsorandom.baselines.LKRF`, defaults: 100 features of a pool of 20,000; and "
        "`LogisticRegression`. It has no regression",
        lambda X, is_regression, seed: on_features(LKRF(random_state=seed), is_regression),
        regresses=False,
    ),
    "lkrf-tuned": Method(
        "LKRF, tuned",
        "random",
        "the same with 500 features: rho of 1, 10 or 100, and C of the same grid",
        lambda X, is_regression, seed: tuned_on_features(
            LKRF(500, random_state=seed), is_regression, seed, rho=DIVERGENCES
        ),
        regresses=False,
    ),
    "boosting": Method(
        "HistGradientBoosting",
        "trees",
        "scikit-learn's, defaults",
        make_sklearn(HistGradientBoostingClassifier, HistGradientBoostingRegressor),
    ),
    "lightgbm": Method("LightGBM", "trees", "defaults", make_lightgbm, "lightgbm"),
    "lightgbm-tuned": Method(
        "LightGBM, tuned",
        "trees",
        "4, 10 or 31 leaves, 50, 100 or 300 trees",
        lambda X, is_regression, seed: Tuned(
            make_lightgbm(X, is_regression, seed),
            {"num_leaves": LEAVES, "n_estimators": TREES},
            seed,
        ),
        "lightgbm",
    ),
    "xgboost": Method("XGBoost", "trees", "defaults", make_xgboost, "xgboost"),
    "catboost": Method("CatBoost", "trees", "defaults", make_catboost, "catboost"),
    "forest": Method(
        "RandomForest",
        "trees",
        "scikit-learn's, defaults",
        make_sklearn(RandomForestClassifier, RandomForestRegressor),
    ),
    "mlp": Method(
        "MLP",
        "network",
        "`MLPClassifier` or `MLPRegressor`, defaults: one layer of 100",
        make_sklearn(MLPClassifier, MLPRegressor),
    ),
    "xrfm": Method(
        "xRFM",
        "kernel",
        "defaults; a fifth of the training rows is the validation set that it asks for. Columns "
        "that code categories are standardised as for all, which its authors advise against",
        lambda X, is_regression, seed: XRFM(is_regression, seed),
        "xrfm",
    ),
    "xrfm-tuned": Method(
        "xRFM, tuned",
        "kernel",
        "bandwidth of 2, 10 or 50, regularisation of 0.001, 0.1 or 10",
        lambda X, is_regression, seed: Tuned(
            XRFM(is_regression, seed), {"bandwidth": BANDWIDTHS, "reg": REGULARIZATIONS}, seed
        ),
        "xrfm",
    ),
}
