"""The methods of `benchmarks.peers`: what each is, and how it is made.

Tuned methods try the `N_CONFIGS` settings of their grid by 3-fold cross-validation on at most
`TUNING_ROWS` training rows, and are then fitted to all training rows. All of that is their fit.
Packages that only some methods need are imported when these are made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, SVR

from notsorandom import tabular_pipeline
from notsorandom.baselines import LKRF

N_CONFIGS = 9
TUNING_ROWS = 2000
VALIDATION_FRACTION = 0.2  # of xRFM, as in its documentation

GAMMA_FACTORS = np.array([0.25, 1.0, 4.0])  # of gamma="scale"
PENALTIES = [1.0, 10.0, 100.0]  # C of SVC and of the logistic regression
ALPHAS = [1.0, 0.1, 0.01]  # of ridge regressions
STRENGTHS = np.logspace(-2, 2, N_CONFIGS).tolist()  # C or alpha of the linear model
DIVERGENCES = [1.0, 10.0, 100.0]  # rho of LKRF
LEAVES, TREES = [4, 10, 31], [50, 100, 300]  # of LightGBM; its defaults are 31 and 100
# Of kernel ridge regression with more settings, for targets with little noise.
MANY_ALPHAS, MANY_WIDTHS = [1.0, 0.1, 0.01, 0.001, 0.0001], np.array([0.03, 0.1, 0.3, 1.0, 3.0])
MOST_ROWS = 4500
BANDWIDTHS, REGULARIZATIONS = [2.0, 10.0, 50.0], [1e-3, 1e-1, 10.0]  # of xRFM; 10 and 1e-3


class Tuned(BaseEstimator):
    """A model whose settings are chosen by cross-validation on a subsample of the rows.

    With `n_rows`, the model is also fitted to no more than that subsample.
    """

    def __init__(
        self,
        model: Any,
        grid: dict[str, Any],
        seed: int,
        n_rows: int | None = None,
        scoring: str | None = None,
    ) -> None:
        self.model, self.grid, self.seed = model, grid, seed
        self.n_rows, self.scoring = n_rows, scoring

    def fit(self, X: Any, y: Any, is_regression: bool) -> Any:
        """Return the model, fitted with the chosen settings."""
        rows, n_rows = np.arange(len(y)), self.n_rows or TUNING_ROWS
        if len(y) > n_rows:
            stratify = None if is_regression else y
            rows, _ = train_test_split(
                rows, train_size=n_rows, random_state=self.seed, stratify=stratify
            )
        search = GridSearchCV(self.model, self.grid, cv=3, refit=False, scoring=self.scoring)
        search.fit(X[rows], y[rows])
        if self.n_rows:
            X, y = X[rows], y[rows]
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
        return self.model_.predict(X).ravel()

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
    family : {"ours", "linear", "kernel", "random", "trees", "network"}
        For the colours of the figure.
    note : str
        What it is.
    make : callable
        From training samples, whether it is a regression, and a seed, to an unfitted model.
    package : str
        Name on PyPI, if the method needs more than this package does.
    only : {"", "classification", "regression"}
        What it is for, if not for both.
    takes_sparse : bool
        Whether it takes sparse samples; if not, it gets them as an array.
    by_name : bool
        Whether it is run only if it is named.
    """

    title: str
    family: str
    note: str
    make: Callable[[Any, bool, int], Any]
    package: str = ""
    only: str = ""
    takes_sparse: bool = True
    by_name: bool = False


def gammas(X: Any) -> Any:
    """Return the candidates for gamma; the middle one is scikit-learn's "scale"."""
    variance = X.multiply(X).mean() - X.mean() ** 2 if issparse(X) else X.var()
    return (GAMMA_FACTORS / (X.shape[1] * variance)).tolist()


def library(module: str, name: str, **settings: Any) -> Callable[[Any, bool, int], Any]:
    """Return a function that makes the classifier or regressor of a library."""

    def make(X: Any, is_regression: bool, seed: int) -> Any:
        full = name + ("Regressor" if is_regression else "Classifier")
        return getattr(import_module(module), full)(**settings, random_state=seed)

    return make


def make_linear(X: Any, is_regression: bool, seed: int) -> Tuned:
    """Return logistic or ridge regression, tuned."""
    if is_regression:
        return Tuned(Ridge(), {"alpha": STRENGTHS}, seed)
    model = LogisticRegression(max_iter=1000)
    return Tuned(model, {"C": STRENGTHS}, seed, scoring="neg_log_loss")


def make_svm(X: Any, is_regression: bool, seed: int) -> Any:
    """Return SVC or SVR."""
    return SVR() if is_regression else SVC()


def make_tuned_svm(X: Any, is_regression: bool, seed: int) -> Tuned:
    """Return SVC or KernelRidge, tuned."""
    if is_regression:
        return Tuned(KernelRidge(kernel="rbf"), {"alpha": ALPHAS, "gamma": gammas(X)}, seed)
    return Tuned(SVC(), {"C": PENALTIES, "gamma": gammas(X)}, seed)


def make_kernel_ridge(X: Any, is_regression: bool, seed: int) -> Tuned:
    """Return kernel ridge regression with many settings and both kernels."""
    widths = (MANY_WIDTHS / X.shape[1]).tolist()
    grid = {"alpha": MANY_ALPHAS, "gamma": widths, "kernel": ["rbf", "laplacian"]}
    return Tuned(KernelRidge(), grid, seed, MOST_ROWS)


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


LIGHTGBM = library("lightgbm", "LGBM", n_jobs=1, verbose=-1)
METHODS = {
    "ours": Method(
        "ours",
        "ours",
        "`FourierClassifier` or `FourierRegressor`, all defaults: number of features, spectrum, "
        "smoothing and C are chosen by trials within the fit",
        library("notsorandom", "Fourier", n_jobs=1),
    ),
    "ours100": Method(
        "ours, 100",
        "ours",
        "the same with `n_components=100`: as many features as scikit-learn's samplers have",
        library("notsorandom", "Fourier", n_components=100, n_jobs=1),
    ),
    "ours500": Method(
        "ours, 500",
        "ours",
        "the same with `n_components=500`",
        library("notsorandom", "Fourier", n_components=500, n_jobs=1),
        by_name=True,
    ),
    "table": Method(
        "ours, pipeline",
        "ours",
        "`tabular_pipeline`, all defaults, on the same columns",
        lambda X, is_regression, seed: tabular_pipeline(
            "regressor" if is_regression else "classifier", n_jobs=1, random_state=seed
        ),
        takes_sparse=False,
        by_name=True,
    ),
    "linear-tuned": Method(
        "linear, tuned",
        "linear",
        f"`LogisticRegression` or `Ridge`: {N_CONFIGS} values of C or alpha, 0.01 to 100, "
        "compared by log loss or R^2",
        make_linear,
    ),
    "svm": Method("SVM", "kernel", "`SVC` or `SVR`, RBF kernel, defaults", make_svm),
    "svm-tuned": Method(
        "SVM, tuned",
        "kernel",
        "`SVC`, or `KernelRidge` for regressions, RBF kernel: gamma of 1/4, 1 or 4 times "
        "`'scale'`; C of 1, 10 or 100, or alpha of 1, 0.1 or 0.01",
        make_tuned_svm,
    ),
    "kernel": Method(
        "kernel ridge, 50 settings",
        "kernel",
        "`KernelRidge`, RBF or Laplacian kernel, five values each of gamma and alpha, tuned on and "
        f"fitted to at most {MOST_ROWS:,} rows",
        make_kernel_ridge,
        only="regression",
        by_name=True,
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
        only="classification",
        takes_sparse=False,
    ),
    "lkrf-tuned": Method(
        "LKRF, tuned",
        "random",
        "the same with 500 features: rho of 1, 10 or 100, and C of the same grid",
        lambda X, is_regression, seed: tuned_on_features(
            LKRF(500, random_state=seed), is_regression, seed, rho=DIVERGENCES
        ),
        only="classification",
        takes_sparse=False,
    ),
    "boosting": Method(
        "HistGradientBoosting",
        "trees",
        "scikit-learn's, defaults",
        library("sklearn.ensemble", "HistGradientBoosting"),
        takes_sparse=False,
    ),
    "lightgbm": Method("LightGBM", "trees", "defaults", LIGHTGBM, "lightgbm"),
    "lightgbm-tuned": Method(
        "LightGBM, tuned",
        "trees",
        "4, 10 or 31 leaves, 50, 100 or 300 trees",
        lambda X, is_regression, seed: Tuned(
            LIGHTGBM(X, is_regression, seed),
            {"num_leaves": LEAVES, "n_estimators": TREES},
            seed,
        ),
        "lightgbm",
    ),
    "xgboost": Method(
        "XGBoost", "trees", "defaults", library("xgboost", "XGB", n_jobs=1), "xgboost"
    ),
    "catboost": Method(
        "CatBoost",
        "trees",
        "defaults",
        library("catboost", "CatBoost", thread_count=1, verbose=False, allow_writing_files=False),
        "catboost",
    ),
    "forest": Method(
        "RandomForest",
        "trees",
        "scikit-learn's, defaults",
        library("sklearn.ensemble", "RandomForest"),
    ),
    "ebm": Method(
        "EBM",
        "trees",
        "`ExplainableBoostingClassifier` or `ExplainableBoostingRegressor` of interpret, defaults",
        library("interpret.glassbox", "ExplainableBoosting", n_jobs=1),
        "interpret",
    ),
    "mlp": Method(
        "MLP",
        "network",
        "`MLPClassifier` or `MLPRegressor`, defaults: one layer of 100",
        library("sklearn.neural_network", "MLP"),
    ),
    "realmlp": Method(
        "RealMLP",
        "network",
        "`RealMLP_TD_Classifier` or `RealMLP_TD_Regressor` of pytabkit: tuned defaults",
        library("pytabkit", "RealMLP_TD_", device="cpu", n_threads=1, verbosity=0),
        "pytabkit",
        takes_sparse=False,
    ),
    "xrfm": Method(
        "xRFM",
        "kernel",
        "defaults; a fifth of the training rows is the validation set that it asks for. Columns "
        "that code categories are standardised as for all, which its authors advise against",
        lambda X, is_regression, seed: XRFM(is_regression, seed),
        "xrfm",
        takes_sparse=False,
    ),
    "xrfm-tuned": Method(
        "xRFM, tuned",
        "kernel",
        "bandwidth of 2, 10 or 50, regularisation of 0.001, 0.1 or 10",
        lambda X, is_regression, seed: Tuned(
            XRFM(is_regression, seed), {"bandwidth": BANDWIDTHS, "reg": REGULARIZATIONS}, seed
        ),
        "xrfm",
        takes_sparse=False,
    ),
}
