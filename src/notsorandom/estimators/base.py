"""What all estimators have in common: validate, play, store."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from notsorandom._utils.parameters import check_number
from notsorandom._utils.threads import Workers, working
from notsorandom.data.rows import Array, Rows
from notsorandom.data.splits import held_out
from notsorandom.estimators.callbacks import CallbackSupportMixin, Tasks, with_callbacks
from notsorandom.estimators.certify import certify
from notsorandom.estimators.checkpoints import CheckpointFile, Saved
from notsorandom.estimators.config import configured_game, most_components, stops_early
from notsorandom.estimators.early_stopping import Validation
from notsorandom.estimators.identity import fingerprint
from notsorandom.estimators.training import Game
from notsorandom.estimators.validation import Reading, read_data
from notsorandom.estimators.warm_start import Paused
from notsorandom.game import LOSSES, Certificate, Checkpoint, GameResult, Match, Player
from notsorandom.game.scoring import strata
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean

# What a game teaches an estimator; a transformer needs no more than this.
LEARNED = (
    "classes_",
    "n_outputs_",
    "kernel_",
    "frequencies_",
    "phases_",
    "history_",
    "status_",
    "smoothing_",
    "dual_",
    "average_dual_",
    "average_kernel_",
    "validation_sizes_",
    "validation_losses_",
    "validation_scores_",
    "n_samples_fit_",
    "n_features_in_",
    "feature_names_in_",
    "_flat",
    "_weights",
    "_weighted",
    "_held_bits",
    "_fingerprint",
)


class FourierEstimator(CallbackSupportMixin, BaseEstimator):
    """Parameters and fitting that all estimators have in common."""

    _paused: Paused
    # Losses that it may have.
    _losses: tuple[str, ...] = tuple(LOSSES)

    def __init__(
        self,
        n_components: Any = 100,
        *,
        n_rounds: Any = "auto",
        space: Any = "euclidean",
        search: Any = "auto",
        phase: str = "aligned",
        loss: str = "hinge",
        C: float = 1.0,
        epsilon: float = 0.1,
        smoothing: Any = "auto",
        weighting: str = "potential",
        learning_rate: Any = "auto",
        dynamics: str = "gradient",
        reweight: bool = False,
        class_weight: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float = 1e-4,
        warm_start: bool = False,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_rounds = n_rounds
        self.space = space
        self.search = search
        self.phase = phase
        self.loss = loss
        self.C = C
        self.epsilon = epsilon
        self.smoothing = smoothing
        self.weighting = weighting
        self.learning_rate = learning_rate
        self.dynamics = dynamics
        self.reweight = reweight
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn the features from samples and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Sparse samples stay sparse. Those that are not in memory are read by the block: memory
            maps and arrays of zarr's or h5py's where they are; datasets and tables of pyarrow's,
            and iterators of blocks ``(X, y)`` or ``(X, y, sample_weight)``, once, into temporary
            files. Arrays by the array API standard, such as tensors on a GPU, stay there, and what
            needs all samples is computed there.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            For losses of the margin, class labels of any type, of two classes or more. For losses
            of the residual, real numbers, in several columns perhaps. Of a dataset of pyarrow's the
            name of a column; for an iterator of blocks nothing.
        sample_weight : array-like of shape (n_samples,), optional
            A sample of weight 2 is like the sample twice, one of weight 0 is left out.

        Returns
        -------
        self
        """
        game = configured_game(self)
        tasks = Tasks(
            self,
            most_components(self),
            X=X,
            y=y,
            metadata=None if sample_weight is None else {"sample_weight": sample_weight},
        )
        # All work is done on a copy whose state is taken over by one assignment, so that a fit
        # that fails or is interrupted leaves the estimator exactly as it was.
        fitted = copy.copy(self)
        with working(self.n_jobs) as workers:
            fitted._fit(game, X, y, sample_weight, tasks, workers)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(
        self, game: Game, X: Any, y: Any, sample_weight: Any, tasks: Tasks, workers: Workers | None
    ) -> None:
        # Nothing of an earlier fit remains, but what a game that goes on needs.
        before = copy.copy(self)
        for name in (*LEARNED, "_paused"):
            self.__dict__.pop(name, None)
        reading = played = self._read(game.space, X, y, sample_weight, workers)
        self._fingerprint = fingerprint(reading.rows, reading.player.targets)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        file = None if self.checkpoint is None else CheckpointFile(self)
        saved = None if file is None else file.read()  # what a fit that was killed left there
        if saved is not None:
            seed = saved.seed
        # Streams of their own: the game is the same whether its smoothing was chosen or given.
        rng, choice_rng, split_rng = np.random.default_rng(seed).spawn(3)
        self._held_bits: Array | None = None
        validation: Validation | None = None
        if stops_early(self):
            played, held = self._divided(reading, split_rng)
            validation = Validation(
                game.plain_kernel, played.pair, held.pair, self.n_iter_no_change, float(self.tol)
            )
        n_components = most_components(self)
        start: Checkpoint | None = None
        if file is not None and saved is not None:
            start = file.checked(saved, played.player.targets.shape).placed(played.rows)
            self.smoothing_ = saved.smoothing
            if validation is not None and saved.validation is not None:
                validation.restore(saved.validation)
        elif self.warm_start and hasattr(before, "_paused"):
            start, self.smoothing_ = before._paused.resumed(self), before.smoothing_
        elif self.smoothing == "auto":
            self.smoothing_ = game.choose_smoothing(
                *played.pair, n_components, choice_rng, self.verbose
            )
        else:
            self.smoothing_ = float(self.smoothing)

        def state(match: Match) -> Saved:
            seen = None if validation is None else validation.state()
            return Saved(seed, self.smoothing_, match.here().fetched(played.rows), seen)

        def watch(match: Match) -> bool:
            told = tasks.features_found(
                match.n_features, lambda n: self._if_stopped(game, match, n, reading, played)
            )
            stop = (validation is not None and validation.says_stop(match)) or told
            # A round that was cut short, or was the last, is played again after a crash.
            if file is not None and not (stop or match.cramped or match.over):
                file.write_if_due(lambda: state(match))
            return stop

        result = game.play(
            *played.pair,
            n_components,
            self.smoothing_,
            rng,
            None if self.n_rounds == "auto" else int(self.n_rounds),
            self.verbose,
            watch,
            start,
        )
        if validation is not None:
            result = replace(validation.conclude(result), status=result.status)
            self.validation_sizes_ = np.array(validation.sizes)
            self.validation_losses_ = np.array(validation.losses)
            self.validation_scores_ = np.array(validation.scores)
        self._take(result, game.kernel(result, *played.pair), played)
        self._finish(*reading.pair)
        if self.warm_start and result.checkpoint is not None:
            self._paused = Paused.after(self, result.checkpoint)
        tasks.end(lambda: dict(vars(self)))
        if file is not None:
            file.done()

    def _read(
        self, space: Any, X: Any, y: Any, sample_weight: Any, workers: Workers | None
    ) -> Reading:
        """Samples and targets as the game takes them, checked."""
        return read_data(self, space, X, y, sample_weight, workers=workers)

    def _take(self, result: GameResult, kernel: LearnedKernel, played: Reading) -> None:
        """Keep what a game taught."""
        self.kernel_ = kernel
        self.frequencies_, self.phases_ = kernel.frequencies, kernel.phases
        self.dual_ = played.spread(result.dual)
        self.average_dual_ = played.spread(result.average_dual)
        self.average_kernel_ = LearnedKernel.from_game(result, result.weights, self.phase)
        self.history_ = result.history
        self.status_ = result.status

    def _finish(self, rows: Rows, player: Player) -> None:
        """Do what is left once the kernel is learned."""

    def _if_stopped(
        self, game: Game, match: Match, n_components: int, reading: Reading, played: Reading
    ) -> dict[str, Any]:
        """Attributes of the estimator, had the game ended at so many features."""
        other, result = copy.copy(self), match.result()
        kernel = game.plain_kernel(result)
        sizes = kernel.possible_sizes()
        other._take(result, kernel.head(int(sizes[sizes >= n_components].min())), played)
        other._finish(*reading.pair)
        return dict(vars(other))

    def _divided(self, reading: Reading, rng: np.random.Generator) -> tuple[Reading, Reading]:
        """Samples to learn from, and some to stop by."""
        rows, player = reading.pair
        share = float(self.validation_fraction)
        mask = held_out(strata(player), player.multiplicities, share, rng)
        if not mask.any():
            raise ValueError(
                f"validation_fraction={share} of {len(rows)} different samples leaves none to "
                "validate on: give more samples, a larger fraction, or early_stopping=False and a "
                "number for n_components."
            )
        self._held_bits = np.packbits(reading.spread(mask))
        return reading.take(~mask), reading.take(mask)

    @property
    def _held_out(self) -> Array | None:
        """Which of the samples given to fit were held out; None if there was no need to."""
        if self._held_bits is None:
            return None
        return np.unpackbits(self._held_bits, count=self.n_samples_fit_).view(bool)

    def certificate(self, X: Any, y: Any, bandwidth: float | None = None) -> Certificate:
        """Bound how far the learned kernel is from the best one for the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training samples, which as many samples as there were at fit are taken for. Others
            give bounds that are as valid, for a kernel that was not learned for them.
        y : array-like of shape (n_samples,)
        bandwidth : float, optional
            The kernels it is compared with have no frequencies longer than this; by default than
            its own.

        Returns
        -------
        Certificate
        """
        reading = self._training_data(X, y)
        if bandwidth is not None:
            check_number("bandwidth", bandwidth, above=0)
        duals, played = [], None
        if hasattr(self, "dual_") and len(self.dual_) == reading.n_given:
            duals = [
                ("the last dual", reading.gathered(self.dual_)),
                ("the average dual", reading.gathered(self.average_dual_)),
            ]
            average = getattr(self, "average_kernel_", None)
            if average is not None and "plays" in self.history_ and self._held_bits is None:
                played = (average, self.history_)
        found = certify(
            self.kernel_,
            *reading.pair,
            duals,
            configured_game(self).search,
            np.random.default_rng(0),
            bandwidth,
            played,
        )
        if self._weights is None and getattr(self, "class_weight", None) is None:
            return found
        return replace(found, generalization=math.nan)  # it is about samples all drawn alike

    def report(
        self,
        path: Any,
        X: Any,
        y: Any,
        *,
        X_test: Any = None,
        y_test: Any = None,
        image_shape: Any = None,
        title: str | None = None,
    ) -> Any:
        """Write a page about the model that opens in any browser: one file, no network.

        It shows the spectrum, how the game went with its bounds, accuracy (or R^2) by number of
        features, the confusion matrix; for two features and two classes, a slider through the
        rounds.

        Parameters
        ----------
        path : str or Path
            The HTML file to write.
        X, y : array-likes
            The training data.
        X_test, y_test : array-likes, optional
            Accuracies are measured on these; otherwise on the training data, and it says so.
        image_shape : (height, width) or (height, width, n_channels), optional
            If the columns are pixels: the heaviest frequencies are shown as images.
        title : str, optional

        Returns
        -------
        Path
        """
        from notsorandom.display.report import write_report  # a way back through the house

        return write_report(
            self, path, X, y, X_test=X_test, y_test=y_test, image_shape=image_shape, title=title
        )

    def save(self, path: Any, metrics: Any = None) -> Any:
        """Write the model to a file, which :func:`notsorandom.load` reads.

        The file is in the safetensors format, of arrays and a header in JSON, which many programs
        and languages read. Until it is whole, a file that was there before stays as it was.

        Parameters
        ----------
        path : str or Path
            Must end in ``.safetensors``.
        metrics : dict of str to number, optional
            What is known of the model, such as its accuracy; kept in the file.

        Returns
        -------
        Path

        Notes
        -----
        What is as long as the training data is not kept: `dual_`, `average_dual_` and sample
        weights; nor is `checkpoint`, or a `random_state` that is a generator.
        """
        from notsorandom.io import save  # a way back through the house

        return save(self, path, metrics)

    def to_onnx(self, path: Any) -> Any:
        """Write the model as an ONNX file, for runtimes that know nothing of this library.

        Parameters
        ----------
        path : str or Path
            The file to write, which ends in ``.onnx``.

        Returns
        -------
        Path

        Notes
        -----
        The graph takes ``X``, of shape (n_samples, n_features_in_), in single precision. A
        transformer gives ``features``; a classifier ``label`` and ``decision``, the answers of
        `predict` and `decision_function`; a regressor ``prediction``. Inside, degrees beyond 64
        are computed in double precision.

        A graph can't refuse samples. On the sphere it scales all of them to norm one, whether or
        not the space has ``normalize=True``; zero, which has no direction, becomes NaN.
        """
        from notsorandom.io.onnx import export_onnx  # another way back

        return export_onnx(self, path)

    def _complete(self) -> None:
        """Make what follows from the rest, once that was read from a file."""

    def _training_data(self, X: Any, y: Any) -> Reading:
        """Samples and targets given once more after the fit, as the game takes them."""
        check_is_fitted(self)
        if self._weighted and self._weights is None:
            raise ValueError(
                "This model was fitted with sample weights, which files of models don't keep: ask "
                "the model as it was before it was saved."
            )
        return read_data(self, self.kernel_.space, X, y, first=False)

    def _played_data(self, X: Any, y: Any) -> tuple[Rows, Player]:
        """Those of them that the game was played on."""
        reading = self._training_data(X, y)
        if reading.n_given != self.n_samples_fit_:
            raise ValueError(
                f"X has {reading.n_given} samples, but the game was played on "
                f"{self.n_samples_fit_}: give the training data."
            )
        if self._held_out is not None:
            reading = reading.take(~reading.gathered(self._held_out))
        return reading.pair

    def _learned(self) -> dict[str, Any]:
        """What the game taught, by attribute."""
        return {name: getattr(self, name) for name in LEARNED if hasattr(self, name)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # On the sphere too, but only rows that are not zero, which few sparse data have.
        tags.input_tags.sparse = self.space == "euclidean" or isinstance(self.space, Euclidean)
        return tags
