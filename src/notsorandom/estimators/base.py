"""The base class of the estimators: the steps of a fit, and what is read off a fitted model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from notsorandom._utils.threads import ThreadPool, thread_pool
from notsorandom.data.rows import Array
from notsorandom.estimators.callbacks import (
    CallbackSupportMixin,
    CallbackTasks,
    with_callbacks,
)
from notsorandom.estimators.config import Choice, FitConfig, configure
from notsorandom.estimators.training import (
    FitData,
    Preparation,
    kernel_before_reweighting,
    learn_kernel,
    play_game,
)
from notsorandom.estimators.validation import TrainingData, read_training_data
from notsorandom.game.dual import DualProblem
from notsorandom.game.loop import GameLoop
from notsorandom.game.losses import LOSSES
from notsorandom.game.result import GameResult
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import Space

if TYPE_CHECKING:
    from notsorandom.estimators.early_stopping import EarlyStopping
    from notsorandom.estimators.resume import CheckpointFile, WarmStart
    from notsorandom.game.certificate import Certificate

# Width of the insensitive zone, in units of the targets' scale.
DEFAULT_EPSILON = 0.1
# Attributes that validation and the game set; a transformer needs no others.
LEARNED = (
    "classes_ n_outputs_ kernel_ frequencies_ phases_ history_ status_ smoothing_ C_ epsilon_ "
    "spectrum_ tuning_ temperature_ dual_ "
    "average_dual_ average_kernel_ validation_sizes_ validation_losses_ validation_scores_ "
    "n_samples_fit_ n_features_in_ feature_names_in_ _flat _weights _weighted _held_out_bits"
).split()


class FourierEstimator(CallbackSupportMixin, BaseEstimator):
    """Fitting and certificates of all estimators; each class has its own parameters."""

    # Losses that the estimator allows.
    _losses: tuple[str, ...] = tuple(LOSSES)
    _warm_start: WarmStart

    space: str | Space
    phase: str
    warm_start: bool
    n_jobs: int | None
    random_state: Any
    validation_fraction: Any
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
        config = configure(self)
        tasks = None
        if getattr(self, "_skl_callbacks", None):
            metadata = None if sample_weight is None else {"sample_weight": sample_weight}
            tasks = CallbackTasks(self, config.n_components, X=X, y=y, metadata=metadata)
        # All work is done on a copy whose state is taken over by one assignment, so a fit that
        # fails or is interrupted leaves the estimator exactly as it was.
        fitted = copy.copy(self)
        with thread_pool(self.n_jobs) as pool:
            fitted._fit(config, X, y, sample_weight, pool, tasks)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(
        self,
        config: FitConfig,
        X: Any,
        y: Any,
        sample_weight: Any,
        pool: ThreadPool | None,
        tasks: CallbackTasks | None,
    ) -> None:
        last_fit = self._forget_last_fit()
        given = self._read(config.space, X, y, sample_weight, pool)
        if config.epsilon is None:
            config = replace(config, epsilon=DEFAULT_EPSILON * given.problem.target_scale())
        self.epsilon_ = config.epsilon
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        file, saved = self._open_checkpoint(config, given.problem)
        if saved is not None:
            seed = saved["seed"]
        # Separate streams: the game is the same whether its smoothing was chosen or given.
        rng, trial_rng, split_rng, view_rng = np.random.default_rng(seed).spawn(4)
        held_out = self._hold_out(config, given, split_rng)
        warm_start = None
        if self.warm_start and hasattr(last_fit, "_warm_start"):
            warm_start = last_fit._warm_start.check(self, given.problem)
            preparation = warm_start.preparation
        else:
            preparation = self._prepare(config, given, held_out, view_rng)
        # From here on, everything is computed in the coordinates of the view.
        config = replace(config, space=preparation.view.space)
        data = training = replace(given, problem=preparation.apply(given.problem))
        dtype, description = given.problem.dtype, {}
        if self.warm_start:
            description = self._describe(given.problem)
        del given  # the game needs only the view
        if held_out is not None:
            training = data.take(~held_out)
        if file is not None and saved is not None:
            choice = file.restore_choice(saved, config)
        elif warm_start is not None:
            choice = last_fit._last_choice()
        else:
            chooses_size = config.stops_early and held_out is None
            choice = self._tune(config, preparation, training.problem, trial_rng, chooses_size)
        self._store_choice(config, choice)
        config, loss = choice.apply(config), config.loss(choice.C)
        data, training = data.with_loss(loss), training.with_loss(loss)
        problem, stopping, state = training.problem, None, None
        if held_out is not None:
            from notsorandom.estimators.early_stopping import EarlyStopping

            validation = data.take(held_out)
            stopping = EarlyStopping(config, problem, validation.problem, split_rng)
        if file is not None and saved is not None:
            state = file.restore(saved, config, preparation.view.space, problem, stopping)
        elif warm_start is not None:
            state = warm_start.state
        fit = FitData(dtype, preparation, data, training)
        after_round = self._after_round(config, fit, tasks, stopping, file, (seed, choice))
        result = play_game(config, problem, self.smoothing_, rng, after_round, state, self.verbose)
        if stopping is not None:
            result = self._choose_size(stopping, result)
        self._store_model(result, learn_kernel(config, problem, result), fit)
        if self.warm_start and result.state is not None:
            from notsorandom.estimators.resume import WarmStart

            self._warm_start = WarmStart.after(self, description, preparation, result.state)
        if tasks is not None:
            tasks.end(lambda: dict(vars(self)))
        if file is not None:
            file.remove()

    # The steps of a fit.

    def _forget_last_fit(self) -> FourierEstimator:
        """Remove the attributes of an earlier fit, and return a copy that has them."""
        last_fit = copy.copy(self)
        for name in (*LEARNED, "_warm_start"):
            self.__dict__.pop(name, None)
        return last_fit

    def _read(
        self, space: Space, X: Any, y: Any, sample_weight: Any, pool: ThreadPool | None
    ) -> TrainingData:
        """Validate samples and targets."""
        return read_training_data(self, space, X, y, sample_weight, pool=pool)

    def _open_checkpoint(
        self, config: FitConfig, problem: DualProblem
    ) -> tuple[CheckpointFile | None, dict[str, Any] | None]:
        """Return the checkpoint file and its contents, if there are any."""
        if config.checkpoint is None:
            return None, None
        from notsorandom.estimators.resume import CheckpointFile

        file = CheckpointFile(config.checkpoint, self, problem)
        return file, file.read()

    def _hold_out(
        self, config: FitConfig, data: TrainingData, rng: np.random.Generator
    ) -> Array | None:
        """Return the mask of the samples to validate on if the game stops early, or None."""
        self._held_out_bits: Array | None = None
        if not config.stops_early:
            return None
        from notsorandom.estimators.splits import validation_mask
        from notsorandom.estimators.tuning import can_choose_size

        if can_choose_size(config, len(data.problem.rows)):
            return None
        fraction = self.validation_fraction
        share = None if fraction == "auto" else float(fraction)
        mask = validation_mask(data.problem, share, rng)
        self._held_out_bits = np.packbits(data.to_given(mask))
        return mask

    def _prepare(
        self,
        config: FitConfig,
        data: TrainingData,
        held_out: Array | None,
        rng: np.random.Generator,
    ) -> Preparation:
        """Return the preparation of the samples that are not held out."""
        if held_out is not None:
            data = data.take(~held_out)
        if config.C is not None:  # the view must be precise enough for each of them
            data = data.with_loss(config.loss(max(config.C)))
        return Preparation.of(config.space, data.problem, rng)

    def _tune(
        self,
        config: FitConfig,
        preparation: Preparation,
        problem: DualProblem,
        rng: np.random.Generator,
        chooses_size: bool,
    ) -> Choice:
        """Return what is to be chosen by trials, or was given."""
        if preparation.view.is_projected:  # the columns, which Cauchy starts select, are mixed
            config = replace(config, spectra=config.spectra[:1])
        from notsorandom.estimators.tuning import tune

        return tune(config, problem, rng, chooses_size, self.verbose)

    def _store_choice(self, config: FitConfig, choice: Choice) -> None:
        """Store what trials chose."""
        self.spectrum_, self.smoothing_, self.C_ = choice.spectrum, choice.smoothing, choice.C
        self.tuning_ = choice.table
        if config.calibrated:
            self.temperature_ = choice.temperature
        self.__dict__ |= choice.sizes or {}

    def _last_choice(self) -> Choice:
        """Return what was chosen for the last fit; a warm start has a given number of features."""
        temperature = getattr(self, "temperature_", 1.0)
        return Choice(self.spectrum_, self.smoothing_, self.C_, temperature, self.tuning_)

    def _after_round(
        self,
        config: FitConfig,
        fit: FitData,
        tasks: CallbackTasks | None,
        stopping: EarlyStopping | None,
        file: CheckpointFile | None,
        start: tuple[int, Choice],
    ) -> Callable[[GameLoop], bool]:
        """Return the function that is called after each round; True stops the game."""

        def after_round(loop: GameLoop) -> bool:
            stop = tasks is not None and tasks.report_features(
                loop.n_features, lambda n: self._attributes_at(config, loop, n, fit)
            )
            stop = (stopping is not None and stopping.should_stop(loop)) or stop
            # A truncated round, or the last one, is played again after a crash.
            if file is not None and not (stop or loop.truncated or loop.finished):
                file.write_if_due(*start, loop, stopping)
            return stop

        return after_round

    def _choose_size(self, stopping: EarlyStopping, result: GameResult) -> GameResult:
        """Return the result with the best validation loss, and store the evaluations."""
        result = replace(stopping.best_result(result), status=result.status)
        self.validation_sizes_ = np.array(stopping.sizes)
        self.validation_losses_ = np.array(stopping.losses)
        self.validation_scores_ = np.array(stopping.scores)
        return result

    def _store_model(self, result: GameResult, kernel: LearnedKernel, fit: FitData) -> None:
        """Store what the game found: its kernel is that of the view, or a part of it."""
        self.kernel_ = fit.preparation.restore(kernel, fit.dtype)
        self.frequencies_, self.phases_ = self.kernel_.frequencies, self.kernel_.phases
        self._store_duals(result, fit)
        self.average_kernel_ = fit.preparation.restore(result.kernel(), fit.dtype)
        self.history_ = result.history
        self.status_ = result.status
        self._fit_linear_models(kernel, fit)

    def _store_duals(self, result: GameResult, fit: FitData) -> None:
        """Store the dual variables of the samples as they were given, if they are in memory."""
        if result.average_dual is None:
            return
        duals: tuple[Any, Any] = (result.dual, result.average_dual)
        self.dual_, self.average_dual_ = (
            fit.training.to_given(dual).astype(np.promote_types(fit.dtype, dual.dtype), copy=False)
            for dual in duals
        )

    def _fit_linear_models(self, kernel: LearnedKernel, fit: FitData) -> None:
        """Fit the final models of a predictor; a transformer has none."""

    def _describe(self, problem: DualProblem) -> dict[str, str]:
        """Return the parameters and data that must be the same in a warm start."""
        from notsorandom.estimators.resume import FREE_IN_WARM_START, describe_fit

        return describe_fit(self, problem, FREE_IN_WARM_START)

    def _attributes_at(
        self, config: FitConfig, loop: GameLoop, n_components: int, fit: FitData
    ) -> dict[str, Any]:
        """Return the attributes that the estimator would have with `n_components` features."""
        other, result = copy.copy(self), loop.result()
        kernel = kernel_before_reweighting(config, result)
        sizes = kernel.possible_sizes()
        other._store_model(result, kernel.head(int(sizes[sizes >= n_components].min())), fit)
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

    def _training_data(self, X: Any, y: Any) -> TrainingData:
        """Validate the training data, given again after the fit."""
        check_is_fitted(self)
        if self._weighted and self._weights is None:
            raise ValueError(
                "This model was fitted with sample weights, which model files don't keep: use the "
                "model as it was before it was saved."
            )
        return read_training_data(self, self.kernel_.space, X, y, reset=False)

    def _game_problem(self, X: Any, y: Any) -> DualProblem:
        """Return the problem that the game was played on, from the training data."""
        data = self._training_data(X, y)
        if data.n_given != self.n_samples_fit_:
            raise ValueError(
                f"X has {data.n_given} samples, but the game was played on {self.n_samples_fit_}: "
                "give the training data."
            )
        if self._held_out is not None:
            data = data.take(~data.from_given(self._held_out))
        return data.problem

    @property
    def _held_out(self) -> Array | None:
        """Mask of the samples given to fit that were held out; None if there were none."""
        if self._held_out_bits is None:
            return None
        return np.unpackbits(self._held_out_bits, count=self.n_samples_fit_).view(bool)

    def _learned(self) -> dict[str, Any]:
        """Return the attributes that the game set."""
        return {name: getattr(self, name) for name in LEARNED if hasattr(self, name)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # Sparse rows work on the sphere too, but not rows of zeros, which sparse data often have.
        tags.input_tags.sparse = self.space == "euclidean" or isinstance(self.space, Euclidean)
        return tags
