"""The base class of the estimators: the steps of a fit, and what is read off a fitted model."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from notsorandom._utils.progress import progress_bar
from notsorandom._utils.threads import ThreadPool, thread_pool
from notsorandom.estimators.config import (
    Checkpoint,
    check_memory,
    choose_linear,
    configure,
    configure_checkpoint,
    find_optional_columns,
)
from notsorandom.estimators.observers import (
    CallbackSupportMixin,
    CallbackTasks,
    ProgressObserver,
    with_callbacks,
)
from notsorandom.estimators.steps import (
    FinalFit,
    Fit,
    Start,
    hold_out,
    make_view,
    set_epsilon,
)
from notsorandom.estimators.validation import read_again, read_training_data
from notsorandom.game.loop import GameLoop, Observer
from notsorandom.game.losses import LOSSES, Loss
from notsorandom.game.problem import Problem
from notsorandom.game.state import GameResult
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import ResolvedSpace, Space
from notsorandom.spaces.view import View
from notsorandom.tuning.choice import Choice, FitConfig

if TYPE_CHECKING:
    from notsorandom.estimators.resume import WarmStart
    from notsorandom.game.certificate import Certificate

# Attributes that validation and the game set; a transformer needs no others.
LEARNED = (
    "classes_ n_outputs_ kernel_ frequencies_ phases_ history_ status_ smoothing_ C_ epsilon_ "
    "spectrum_ uses_optional_columns_ uses_linear_part_ tuning_ temperature_ dual_ "
    "average_dual_ average_kernel_ validation_sizes_ validation_losses_ validation_scores_ "
    "noise_ posterior_ held_out_scores_ feature_importances_ "
    "n_samples_fit_ n_features_in_ feature_names_in_ _flat _weights _weighted _n_held_out"
).split()


class FourierEstimator(CallbackSupportMixin, BaseEstimator):
    """Fitting and certificates of all estimators; each class has its own parameters."""

    # Losses that the estimator allows, by name.
    _losses: dict[str, Loss] = LOSSES
    _warm_start: WarmStart

    space: str | Space
    phase: str
    linear: Any = False  # a parameter of predictors
    quantile: Any = 0.5  # a parameter of the regressor
    calibration_size: Any = 0  # a parameter of the regressor
    optional_columns: Any
    warm_start: bool
    checkpoint: Any
    n_jobs: int | None
    random_state: Any
    verbose: int

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn the features from samples and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Sparse samples are not made dense. Memory maps are read in blocks, where they are.
            Arrays of zarr or h5py, pyarrow datasets and tables, and iterators of blocks ``(X, y)``
            or ``(X, y, sample_weight)`` are copied once, in blocks, to temporary files. Array API
            arrays, such as tensors on a GPU, stay on their device.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            Class labels of any type, of two classes or more, for classification losses. Real
            numbers, in one or several columns, for regression losses. For a pyarrow dataset the
            name of a column; not given for an iterator of blocks.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 2 counts a sample twice, weight 0 leaves it out.

        Returns
        -------
        self
        """
        config, checkpoint = configure(self), configure_checkpoint(self.checkpoint)
        tasks = None
        if getattr(self, "_skl_callbacks", None):
            metadata = None if sample_weight is None else {"sample_weight": sample_weight}
            tasks = CallbackTasks(self, config.n_components, X=X, y=y, metadata=metadata)
        # All work is done on a copy whose state is taken over by one assignment, so a fit that
        # fails or is interrupted leaves the estimator exactly as it was.
        fitted = copy.copy(self)
        with thread_pool(self.n_jobs) as pool:
            fitted._fit(config, checkpoint, X, y, sample_weight, pool, tasks)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(
        self,
        config: FitConfig,
        checkpoint: Checkpoint | None,
        X: Any,
        y: Any,
        sample_weight: Any,
        pool: ThreadPool | None,
        tasks: CallbackTasks | None,
    ) -> None:
        last_fit = self._forget_last_fit()
        problem = self._read(config, X, y, sample_weight, pool)
        check_memory(config, self.n_features_in_)
        names = getattr(self, "feature_names_in_", None)
        optional = find_optional_columns(self.optional_columns, self.n_features_in_, names)
        linear = choose_linear(self, config, problem)
        config = replace(config, optional=optional, linear=linear)
        held_out = hold_out(config, problem)
        self._n_held_out = len(held_out)
        start = self._find_start(checkpoint, problem, last_fit)
        # Separate streams: the game is the same whether its smoothing was chosen or given.
        # (The third is not used; without it, published figures would be of other seeds.)
        rng, trial_rng, _, view_rng = np.random.default_rng(start.seed).spawn(4)
        view = start.view or make_view(config, problem, view_rng)
        # From here on, everything is computed in the coordinates of the view.
        config = config.in_view(view)
        choice = start.choice() or self._tune(config, problem, view, trial_rng)
        self._store_choice(config, view, choice)
        fit = Fit.of(config, problem, view, choice, held_out)
        observers = self._observers(fit, tasks, start, choice)
        result = self._play(fit, observers, start, rng)
        self._store_model(fit, result, fit.config.solver.final_kernel(result, fit.problem))
        self._store_importances(problem)
        if self.warm_start and result.state is not None:
            from notsorandom.estimators.resume import WarmStart

            self._warm_start = WarmStart.after(self, start, view, choice, result.state)
        if tasks is not None:
            tasks.end(lambda: dict(vars(self)))
        if start.file is not None:
            start.file.remove()

    # The steps of a fit.

    def _forget_last_fit(self) -> FourierEstimator:
        """Remove the attributes of an earlier fit, and return a copy that has them."""
        last_fit = copy.copy(self)
        for name in (*LEARNED, "_warm_start"):
            self.__dict__.pop(name, None)
        return last_fit

    def _read(
        self, config: FitConfig, X: Any, y: Any, sample_weight: Any, pool: ThreadPool | None
    ) -> Problem:
        """Validate samples and targets, and store what was found."""
        problem, found = self._validate(config, X, y, sample_weight, pool)
        self.__dict__ |= found
        self.epsilon_, problem = set_epsilon(config, problem)
        return problem

    def _validate(
        self, config: FitConfig, X: Any, y: Any, sample_weight: Any, pool: ThreadPool | None
    ) -> tuple[Problem, dict[str, Any]]:
        return read_training_data(self, config, X, y, sample_weight, pool)

    def _find_start(
        self, checkpoint: Checkpoint | None, problem: Problem, last_fit: FourierEstimator
    ) -> Start:
        """Return where the fit begins: anew, from a checkpoint, or from the last fit's game."""
        start = Start(check_random_state(self.random_state).randint(2**31 - 1))
        if checkpoint is None and not self.warm_start:
            return start
        from notsorandom.estimators.resume import find_start

        return find_start(start, self, checkpoint, problem, last_fit)

    def _tune(
        self, config: FitConfig, problem: Problem, view: View, rng: np.random.Generator
    ) -> Choice:
        """Return what is to be chosen by trials, or was given."""
        from notsorandom.tuning.tune import tune  # needed by fits only

        return tune(config, problem, view, rng, self.verbose)

    def _store_choice(self, config: FitConfig, view: View, choice: Choice) -> None:
        """Store what trials chose."""
        candidate, self.C_ = choice.candidate, choice.C
        self.spectrum_, self.smoothing_ = candidate.spectrum, candidate.smoothing
        leaves_out = view.is_selection or not candidate.uses_optional
        self.uses_linear_part_ = candidate.linear
        self.uses_optional_columns_ = view.is_projected or candidate.linear or not leaves_out
        self.tuning_ = choice.table
        if config.calibrated:
            self.temperature_ = choice.temperature
        self.__dict__ |= choice.sizes or {}

    def _observers(
        self, fit: Fit, tasks: CallbackTasks | None, start: Start, choice: Choice
    ) -> list[Observer]:
        """Return the observers of the game; the checkpoint is the last, and holds the others."""
        observers: list[Observer] = []
        if tasks is not None:
            tasks.attributes_at = lambda game, n: self._attributes_at(fit, game, n)
            observers = [tasks]
        if start.file is not None:
            start.file.begin(start.seed, choice, observers)
            observers = [*observers, start.file]
        return observers

    def _play(
        self, fit: Fit, observers: list[Observer], start: Start, rng: np.random.Generator
    ) -> GameResult:
        """Play the game, or continue it."""
        config, space = fit.config, fit.config.space
        assert isinstance(space, ResolvedSpace)  # of the view
        state = start.state(fit.view)
        with progress_bar(config.n_components, "features", self.verbose) as update:
            if self.verbose:
                observers = [ProgressObserver(update), *observers]
            return config.solver.solve(
                fit.problem,
                space=space,
                search=config.search_in(space),
                n_frequencies=config.n_frequencies,
                phase=config.phase,
                smoothing=self.smoothing_,
                rng=rng,
                observers=observers,
                state=state,
                verbose=self.verbose,
            )

    def _store_model(self, fit: Fit, result: GameResult, kernel: LearnedKernel) -> None:
        """Store what the game found, and fit the linear models; the kernel is of the view."""
        final = fit.final(kernel)
        self.kernel_ = final.kernel.restored(final.view)
        self.frequencies_, self.phases_ = self.kernel_.frequencies, self.kernel_.phases
        self._store_duals(fit, result)
        self.average_kernel_ = result.kernel().restored(fit.view)
        self.history_ = result.history
        self.status_ = result.status
        self._fit_linear_models(final)

    def _store_duals(self, fit: Fit, result: GameResult) -> None:
        """Store the dual variables of the samples as they were given, if they are in memory."""
        if result.average_dual is None:
            return
        duals: tuple[Any, Any] = (result.dual, result.average_dual)
        if len(fit.held_out):  # as of rows without weight
            duals = tuple(dual * (fit.problem.weights > 0) for dual in duals)
        dtype = fit.view.given_dtype
        self.dual_, self.average_dual_ = (
            fit.problem.to_given(dual).astype(np.promote_types(dtype, dual.dtype), copy=False)
            for dual in duals
        )

    def _fit_linear_models(self, final: FinalFit) -> None:
        """Fit the final models of a predictor; a transformer has none."""

    def _store_importances(self, problem: Problem) -> None:
        """Store the importances of the columns; a transformer has none."""

    def _attributes_at(self, fit: Fit, game: GameLoop, n_components: int) -> dict[str, Any]:
        """Return the attributes that the estimator would have with `n_components` features."""
        other, result = copy.copy(self), game.result()
        kernel = fit.config.solver.kernel(result)
        sizes = kernel.possible_sizes()
        other._store_model(fit, result, kernel.head(int(sizes[sizes >= n_components].min())))
        return dict(vars(other))

    # After a fit.

    def certificate(
        self,
        X: Any,
        y: Any,
        bandwidth: float | None = None,
        max_evaluations: int = 200_000,
    ) -> Certificate:
        """Bound how far the learned kernel is from the best one for the training data.

        Only for kernels of waves alone: a model with a linear part has none.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training samples; if there are as many as at fit, they are taken to be the same.
            Other samples give valid bounds too, for a kernel that was not learned from them.
        y : array-like of shape (n_samples,)
            Their targets.
        bandwidth : float, optional
            The learned kernel is compared with all kernels whose frequencies are no longer than
            this. By default, its own longest frequency.
        max_evaluations : int, default=200000
            Evaluations of the potential after which a certified bound is returned as it is.

        Returns
        -------
        Certificate
        """
        from notsorandom.estimators.certify import certify

        return certify(self, X, y, bandwidth, max_evaluations)

    def _training_problem(self, X: Any, y: Any) -> Problem:
        """Validate the training data, given again after the fit."""
        check_is_fitted(self)
        if self._weighted and self._weights is None:
            raise ValueError(
                "This model was fitted with sample weights, which model files don't keep: use the "
                "model as it was before it was saved."
            )
        return read_again(self, X, y)

    def _game_problem(self, X: Any, y: Any) -> Problem:
        """Return the problem that the game was played on, from the training data."""
        problem = self._training_problem(X, y)
        self._check_n_samples(problem.n_given)
        return self._played_part(problem)

    def _check_n_samples(self, n_samples: int) -> None:
        """Raise ValueError if samples are not as many as at fit."""
        if n_samples != self.n_samples_fit_:
            raise ValueError(
                f"X has {n_samples} samples, but the game was played on {self.n_samples_fit_}: "
                "give the training data."
            )

    def _played_part(self, problem: Problem) -> Problem:
        """Return the rows of the training problem that the game was played on."""
        n_held_out = getattr(self, "_n_held_out", 0)
        if not n_held_out or problem.n_given != self.n_samples_fit_:
            return problem
        from notsorandom.tuning.conformal import choose_held_out  # needed by few models

        return problem.without(choose_held_out(len(problem.rows), n_held_out))

    def _learned(self) -> dict[str, Any]:
        """Return the attributes that the game set."""
        return {name: getattr(self, name) for name in LEARNED if hasattr(self, name)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # Sparse rows work on the sphere too, but not rows of zeros, which sparse data often have.
        tags.input_tags.sparse = self.space == "euclidean" or isinstance(self.space, Euclidean)
        return tags
