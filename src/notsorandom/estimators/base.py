"""What all estimators have in common: validate, play, store."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from notsorandom.certify import certify
from notsorandom.estimators.callbacks import CallbackSupportMixin, Tasks, with_callbacks
from notsorandom.estimators.reading import Reading
from notsorandom.estimators.targets import (
    check_classes,
    check_finite,
    check_labels,
    check_outputs,
    check_reals,
)
from notsorandom.estimators.warm_start import Paused, identity_of
from notsorandom.estimators.weights import check_sample_weight, class_factors
from notsorandom.game import (
    LOSSES,
    MARGIN_LOSSES,
    Certificate,
    Checkpoint,
    GameResult,
    Loss,
    Match,
    Player,
)
from notsorandom.kernel import LearnedKernel
from notsorandom.learning import DYNAMICS, WEIGHTINGS, Game
from notsorandom.parameters import check_choice, check_flag, check_number, named_object
from notsorandom.rows import Array, Rows
from notsorandom.scoring import signs, strata
from notsorandom.search import SEARCHES
from notsorandom.spaces import SPACES, Euclidean
from notsorandom.splits import held_out
from notsorandom.stopping import Validation

# What samples may be given as.
FLOATS = [np.float64, np.float32]
# With n_components="auto", there are never more than this.
MOST_COMPONENTS = 2000
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
    "n_features_in_",
    "feature_names_in_",
    "_flat",
    "_weights",
    "_held_out",
)


class FourierEstimator(CallbackSupportMixin, BaseEstimator):
    """Parameters and fitting that all estimators have in common."""

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
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the features from samples and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Sparse samples stay sparse.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            For losses of the margin, class labels of any type, of two classes or more. For losses
            of the residual, real numbers, in several columns perhaps.
        sample_weight : array-like of shape (n_samples,), optional
            A sample of weight 2 is like the sample twice, one of weight 0 is left out.

        Returns
        -------
        self
        """
        game = self._game()
        tasks = Tasks(
            self,
            self._most_components(),
            X=X,
            y=y,
            metadata=None if sample_weight is None else {"sample_weight": sample_weight},
        )
        # All work is done on a copy whose state is taken over by one assignment, so that a fit
        # that fails or is interrupted leaves the estimator exactly as it was.
        fitted = copy.copy(self)
        fitted._fit(game, X, y, sample_weight, tasks)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, game: Game, X: Any, y: Any, sample_weight: Any, tasks: Tasks) -> None:
        # Nothing of an earlier fit remains, but what a game that goes on needs.
        smoothing = getattr(self, "smoothing_", None)
        for name in LEARNED:
            self.__dict__.pop(name, None)
        paused: Paused | None = self.__dict__.pop("_paused", None)
        reading = played = self._read(game.space, X, y, sample_weight)
        n_components = self._most_components()
        n_rounds = None if self.n_rounds == "auto" else int(self.n_rounds)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        # Streams of their own: the game is the same whether its smoothing was chosen or given.
        rng, choice_rng, split_rng = np.random.default_rng(seed).spawn(3)
        self._held_out: Array | None = None
        validation: Validation | None = None
        if self._stops_early():
            played, held = self._divided(reading, split_rng)
            validation = Validation(
                game.plain_kernel, played.pair, held.pair, self.n_iter_no_change, float(self.tol)
            )
        checkpoint: Checkpoint | None = None
        if self.warm_start and paused is not None:
            checkpoint = paused.resumed(self, reading)
            self.smoothing_ = smoothing
        elif self.smoothing == "auto":
            self.smoothing_ = game.choose_smoothing(
                *played.pair, n_components, choice_rng, self.verbose
            )
        else:
            self.smoothing_ = float(self.smoothing)

        def watch(match: Match) -> bool:
            told = tasks.features_found(
                match.n_features, lambda n: self._if_stopped(game, match, n, reading, played)
            )
            return (validation is not None and validation.says_stop(match)) or told

        result = game.play(
            *played.pair,
            n_components,
            self.smoothing_,
            rng,
            n_rounds,
            self.verbose,
            watch,
            checkpoint,
        )
        if validation is not None:
            result = replace(validation.conclude(), status=result.status)
            self.validation_sizes_ = np.array(validation.sizes)
            self.validation_losses_ = np.array(validation.losses)
            self.validation_scores_ = np.array(validation.scores)
        self._take(result, game.kernel(result, *played.pair), played)
        self._finish(*reading.pair)
        if self.warm_start and result.checkpoint is not None:
            lengths = {
                "n_components": self.average_kernel_.n_components,
                "n_rounds": len(result.history["seconds"]),
            }
            self._paused = Paused(result.checkpoint, identity_of(self, reading), lengths)
        tasks.end(lambda: dict(vars(self)))

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

    def _stops_early(self) -> bool:
        return self.early_stopping or self.n_components == "auto"

    def _most_components(self) -> int:
        return MOST_COMPONENTS if self.n_components == "auto" else int(self.n_components)

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
        self._held_out = reading.spread(mask)
        return reading.take(~mask), reading.take(mask)

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
        if len(self.dual_) == len(reading.places):
            duals = [
                ("the last dual", reading.gathered(self.dual_)),
                ("the average dual", reading.gathered(self.average_dual_)),
            ]
            average = getattr(self, "average_kernel_", None)
            if average is not None and "plays" in self.history_ and self._held_out is None:
                played = (average, self.history_)
        found = certify(
            self.kernel_,
            *reading.pair,
            duals,
            self._game().search,
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
        from notsorandom.report import write_report  # the one way back through the house

        return write_report(
            self, path, X, y, X_test=X_test, y_test=y_test, image_shape=image_shape, title=title
        )

    def _training_data(self, X: Any, y: Any) -> Reading:
        """Samples and targets given once more after the fit, as the game takes them."""
        check_is_fitted(self)
        return self._read(self.kernel_.space, X, y, first=False)

    def _played_data(self, X: Any, y: Any) -> tuple[Rows, Player]:
        """Those of them that the game was played on."""
        reading = self._training_data(X, y)
        if len(reading.places) != len(self.dual_):
            raise ValueError(
                f"X has {len(reading.places)} samples, but the game was played on "
                f"{len(self.dual_)}: give the training data."
            )
        if self._held_out is not None:
            reading = reading.take(~reading.gathered(self._held_out))
        return reading.pair

    def _read(
        self, space: Any, X: Any, y: Any, sample_weight: Any = None, first: bool = True
    ) -> Reading:
        """Check samples and targets; at the first time, learn what targets and weights there are.

        The weights are kept, for when the training data are given once more.
        """
        loss = self._loss()
        of_classes = loss.one_sided
        if not of_classes:
            check_reals(y, self.loss)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=FLOATS,
            multi_output=not of_classes,
            y_numeric=not of_classes,
            ensure_min_samples=2 if first else 1,
            reset=first,
        )
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        y = np.asarray(y)
        if of_classes:
            check_labels(y, type(self).__name__)
        if first:
            self._weights = check_sample_weight(sample_weight, X.shape[0], X.dtype)
        weights = self._weights
        if weights is not None and len(weights) != X.shape[0]:
            weights = None  # other samples than at fit
        places = np.arange(X.shape[0])
        if weights is not None:
            kept = np.flatnonzero(weights > 0)
            places = np.where(weights > 0, np.cumsum(weights > 0) - 1, -1)
            X, y, weights = X[kept], y[kept], weights[kept]
        if of_classes:
            classes, codes = np.unique(y, return_inverse=True)
            if first:
                self.classes_ = classes
            check_classes(type(self).__name__, classes, self.classes_)
            targets = signs(codes, len(classes), X.dtype)
            factors = class_factors(self.class_weight, classes, codes, weights, X.dtype)
            if factors is not None:
                weights = factors if weights is None else weights * factors
        else:
            with np.errstate(over="ignore"):
                targets = y.astype(X.dtype).reshape(len(y), -1)
            check_finite(targets)
            if first:
                self.n_outputs_, self._flat = targets.shape[1], y.ndim == 1
            check_outputs(targets.shape[1], self.n_outputs_)
        column = None if weights is None or (weights == 1).all() else weights[:, None]
        rows = Rows(space.prepare(X), column)
        return Reading(rows, Player(loss, targets, column), places).settled()

    def _loss(self) -> Loss:
        return LOSSES[self.loss](float(self.C), float(self.epsilon))

    def _game(self) -> Game:
        """Check every parameter, and put the game together."""
        check_choice("phase", self.phase, ["aligned", "paired"])
        check_choice("loss", self.loss, self._losses)
        check_choice("weighting", self.weighting, WEIGHTINGS)
        check_choice("dynamics", self.dynamics, DYNAMICS)
        for name in ("reweight", "early_stopping", "warm_start"):
            check_flag(name, getattr(self, name))
        check_number("n_components", self.n_components, above=0, integer=True, or_else=["auto"])
        check_number("n_rounds", self.n_rounds, above=0, integer=True, or_else=["auto"])
        check_number("C", self.C, above=0)
        check_number("epsilon", self.epsilon, least=0)
        check_number("smoothing", self.smoothing, least=0, or_else=["auto"])
        check_number("learning_rate", self.learning_rate, above=0, or_else=["auto", "theory"])
        check_number("validation_fraction", self.validation_fraction, above=0, below=1)
        check_number("n_iter_no_change", self.n_iter_no_change, above=0, integer=True)
        check_number("tol", self.tol, least=0)
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose, least=0, integer=True)
        space = named_object("space", self.space, SPACES, needs=["check", "prepare", "resolve"])
        search = named_object("search", self.search, SEARCHES, needs=["check", "find"])
        n_columns = space.n_columns(self.phase)
        if self._most_components() % n_columns:
            raise ValueError(
                f"n_components={self.n_components} is not allowed with phase={self.phase!r}: each "
                f"frequency gives {n_columns} features, so it must be a multiple of {n_columns}."
            )
        if self._stops_early() and (self.warm_start or self.dynamics == "primal_dual"):
            other = "warm_start=True" if self.warm_start else "dynamics='primal_dual'"
            raise ValueError(
                f"early_stopping={self.early_stopping} with n_components={self.n_components!r} is "
                f"not allowed with {other}: give n_components a number and early_stopping=False, "
                "or leave the other out."
            )
        if self.class_weight is not None and self.loss not in MARGIN_LOSSES:
            raise ValueError(
                f"class_weight={self.class_weight!r} is not allowed with loss={self.loss!r}, which "
                "has no classes: use sample_weight in fit."
            )
        return Game(
            space=space,
            search=search,
            loss=self._loss(),
            phase=self.phase,
            weighting=self.weighting,
            learning_rate=self.learning_rate,
            dynamics=self.dynamics,
            reweight=self.reweight,
        )

    def _learned(self) -> dict[str, Any]:
        """What the game taught, by attribute."""
        return {name: getattr(self, name) for name in LEARNED if hasattr(self, name)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # On the sphere too, but only rows that are not zero, which few sparse data have.
        tags.input_tags.sparse = self.space == "euclidean" or isinstance(self.space, Euclidean)
        return tags
