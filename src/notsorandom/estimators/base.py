"""What all estimators have in common: validate, play, store."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from notsorandom.certify import certify
from notsorandom.estimators.targets import check_classes, check_outputs, check_reals
from notsorandom.game import LOSSES, Certificate, Loss, Player
from notsorandom.kernel import LearnedKernel
from notsorandom.learning import DYNAMICS, WEIGHTINGS, Game, signs
from notsorandom.parameters import check_choice, check_flag, check_number, named_object
from notsorandom.rows import Array, Rows
from notsorandom.search import SEARCHES
from notsorandom.spaces import SPACES

# What samples may be given as.
FLOATS = [np.float64, np.float32]
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
    "n_features_in_",
    "feature_names_in_",
)


class FourierEstimator(BaseEstimator):
    """Parameters and fitting that all estimators have in common."""

    # Losses that it may have.
    _losses: tuple[str, ...] = tuple(LOSSES)

    def __init__(
        self,
        n_components: int = 100,
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
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Any:
        """Learn the features from samples and their targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            For losses of the margin, class labels of any type, of two classes or more. For losses
            of the residual, real numbers, in several columns perhaps.

        Returns
        -------
        self
        """
        # All work is done on a copy whose state is taken over by one assignment, so that a fit
        # that fails or is interrupted leaves the estimator exactly as it was.
        fitted = copy.copy(self)
        fitted._fit(X, y)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any) -> None:
        game = self._game()
        X, player = self._read(X, y, first=True)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        # Two streams: the game is the same whether its smoothing was chosen or given.
        rng, choice_rng = np.random.default_rng(seed).spawn(2)
        rows = Rows(game.space.prepare(X))
        n_rounds = None if self.n_rounds == "auto" else int(self.n_rounds)
        if self.smoothing == "auto":
            self.smoothing_ = game.choose_smoothing(
                rows, player, self.n_components, n_rounds, choice_rng, self.verbose
            )
        else:
            self.smoothing_ = float(self.smoothing)
        result, self.kernel_ = game.play(
            rows,
            player,
            self.n_components,
            self.smoothing_,
            rng,
            n_rounds,
            self.verbose,
        )
        self.frequencies_ = self.kernel_.frequencies
        self.phases_ = self.kernel_.phases
        self.dual_, self.average_dual_ = result.dual, result.average_dual
        self.average_kernel_ = LearnedKernel.from_game(result, result.weights, self.phase)
        self.history_ = result.history
        self.status_ = result.status
        self._finish(rows, player)

    def _finish(self, rows: Rows, player: Player) -> None:
        """Do what is left once the kernel is learned."""

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
        rows, player = self._training_data(X, y)
        game = self._game()
        if bandwidth is not None:
            check_number("bandwidth", bandwidth, above=0)
        same = len(self.dual_) == len(rows)
        average = getattr(self, "average_kernel_", None) if "plays" in self.history_ else None
        duals = [("the last dual", self.dual_), ("the average dual", self.average_dual_)]
        return certify(
            self.kernel_,
            rows,
            player,
            duals if same else [],
            game.search,
            np.random.default_rng(0),
            bandwidth,
            (average, self.history_) if same and average is not None else None,
        )

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

        It shows the spectrum, how the game went with its bounds, accuracy by number of features,
        the confusion matrix; for two features and two classes, a slider through the rounds.

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

    def _training_data(self, X: Any, y: Any) -> tuple[Rows, Player]:
        """Samples and targets given once more after the fit, as the game takes them."""
        check_is_fitted(self)
        X, player = self._read(X, y, first=False)
        return Rows(self.kernel_.space.prepare(X)), player

    def _read(self, X: Any, y: Any, first: bool) -> tuple[Array, Player]:
        """Check samples and targets, and learn what targets there are at the first time."""
        loss = self._loss()
        least = 2 if first else 1
        if not loss.one_sided:
            check_reals(y, self.loss)
            X, y = validate_data(
                self,
                X,
                y,
                dtype=FLOATS,
                multi_output=True,
                y_numeric=True,
                ensure_min_samples=least,
                reset=first,
            )
            y = np.asarray(y, dtype=X.dtype)
            targets = y.reshape(len(y), -1)
            if first:
                self.n_outputs_, self._flat = targets.shape[1], y.ndim == 1
            check_outputs(targets.shape[1], self.n_outputs_)
            return X, Player(loss, targets)
        X, y = validate_data(self, X, y, dtype=FLOATS, ensure_min_samples=least, reset=first)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if first:
            self.classes_ = classes
        check_classes(type(self).__name__, classes, self.classes_)
        return X, Player(loss, signs(codes, len(classes), X.dtype))

    def _loss(self) -> Loss:
        return LOSSES[self.loss](float(self.C), float(self.epsilon))

    def _game(self) -> Game:
        """Check every parameter, and put the game together."""
        check_choice("phase", self.phase, ["aligned", "paired"])
        check_choice("loss", self.loss, self._losses)
        check_choice("weighting", self.weighting, WEIGHTINGS)
        check_choice("dynamics", self.dynamics, DYNAMICS)
        check_flag("reweight", self.reweight)
        check_number("n_components", self.n_components, above=0, integer=True)
        check_number("n_rounds", self.n_rounds, above=0, integer=True, or_else=["auto"])
        check_number("C", self.C, above=0)
        check_number("epsilon", self.epsilon, least=0)
        check_number("smoothing", self.smoothing, least=0, or_else=["auto"])
        check_number("learning_rate", self.learning_rate, above=0, or_else=["auto", "theory"])
        if not isinstance(self.verbose, bool):
            check_number("verbose", self.verbose, least=0, integer=True)
        space = named_object("space", self.space, SPACES, needs=["check", "prepare", "resolve"])
        search = named_object("search", self.search, SEARCHES, needs=["check", "find"])
        n_columns = space.n_columns(self.phase)
        if self.n_components % n_columns:
            raise ValueError(
                f"n_components={self.n_components} is not allowed with phase={self.phase!r}: each "
                f"frequency gives {n_columns} features, so it must be a multiple of {n_columns}."
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
        return tags
