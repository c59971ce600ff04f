"""Scikit-learn's callbacks, where the installed version has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    CALLBACK_FRAMES = 1  # between who calls fit and fit
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to set: there are no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method."""
        return method

    CALLBACK_FRAMES = 0


__all__ = ["CALLBACK_FRAMES", "CallbackSupportMixin", "Tasks", "with_callbacks"]


class Tasks:
    """The tasks of one fit, of which callbacks are told: one a feature learned.

    Parameters
    ----------
    estimator : estimator
        As the caller knows it.
    max_features : int
    **data
        `X`, `y` and `metadata` of the fit.
    """

    def __init__(self, estimator: Any, max_features: int, **data: Any) -> None:
        self.data = {"estimator": estimator, **data}
        self.context: Any = None
        self.n_told = 0
        if getattr(estimator, "_skl_callbacks", None):
            self.context = estimator._init_callback_context(max_subtasks=max_features)
            self.context.call_on_fit_task_begin(**self.data)

    def features_found(self, n_features: int, fitted: Callable[[int], dict[str, Any]]) -> bool:
        """Tell of all features up to the `n_features`-th; return whether to stop.

        ``fitted(n)`` gives the attributes of the estimator fitted with the first `n`.
        """
        stop = False
        while self.context is not None and self.n_told < n_features:
            self.n_told += 1
            task = self.context.subcontext(task_name="feature")
            task.call_on_fit_task_begin(**self.data)
            stop |= task.call_on_fit_task_end(
                **self.data, reconstruction_attributes=lambda: fitted(self.n_told)
            )
        return stop

    def end(self, fitted: Callable[[], dict[str, Any]]) -> None:
        """Tell that the fit is done."""
        if self.context is not None:
            self.context.call_on_fit_task_end(**self.data, reconstruction_attributes=fitted)
