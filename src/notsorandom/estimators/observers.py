"""Observers of a fit's game: the progress bar, and scikit-learn's callbacks (from version 1.9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from notsorandom.game.loop import GameLoop, Observer

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    CALLBACK_FRAMES = 1  # stack frames between the caller of fit and fit
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Empty base class in place of scikit-learn's."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method

    CALLBACK_FRAMES = 0


__all__ = [
    "CALLBACK_FRAMES",
    "CallbackSupportMixin",
    "CallbackTasks",
    "ProgressObserver",
    "with_callbacks",
]


class ProgressObserver(Observer):
    """Draw the progress bar of a game, given its function to update."""

    def __init__(self, update: Callable[[int, str], None]) -> None:
        self.update = update

    def after_round(self, game: GameLoop) -> bool:
        """Show the number of features and the last potential."""
        self.update(game.n_features, f"potential {game.history[-1]['potential']:.2e}")
        return False


class CallbackTasks(Observer):
    """Report the tasks of one fit to its callbacks: one task per feature learned.

    Parameters
    ----------
    estimator : FourierEstimator
        The estimator that the user called `fit` on.
    max_features : int
    **data
        The arguments of the call.

    Attributes
    ----------
    attributes_at : callable
        ``attributes_at(game, n)`` returns the attributes of the estimator fitted with the first
        `n` features. It is set when the game begins.
    """

    attributes_at: Callable[[GameLoop, int], dict[str, Any]]

    def __init__(self, estimator: Any, max_features: int, **data: Any) -> None:
        self.data = {"estimator": estimator, **data}
        self.n_reported = 0
        self.context = estimator._init_callback_context(max_subtasks=max_features)
        self.context.call_on_fit_task_begin(**self.data)

    def after_round(self, game: GameLoop) -> bool:
        """Report all new features; return whether a callback stops the game."""
        stop = False
        while self.n_reported < game.n_features:
            self.n_reported += 1
            task = self.context.subcontext(task_name="feature")
            task.call_on_fit_task_begin(**self.data)
            stop |= task.call_on_fit_task_end(
                **self.data,
                reconstruction_attributes=lambda: self.attributes_at(game, self.n_reported),
            )
        return stop

    def end(self, attributes: Callable[[], dict[str, Any]]) -> None:
        """Report the end of the fit."""
        self.context.call_on_fit_task_end(**self.data, reconstruction_attributes=attributes)
