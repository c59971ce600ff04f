"""Support of scikit-learn's callbacks, which came with version 1.9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


__all__ = ["CALLBACK_FRAMES", "CallbackSupportMixin", "CallbackTasks", "with_callbacks"]


class CallbackTasks:
    """Report the tasks of one fit to its callbacks: one task per feature learned.

    `estimator` is the one that the user called `fit` on, and `data` the arguments of the call.
    """

    def __init__(self, estimator: Any, max_features: int, **data: Any) -> None:
        self.data = {"estimator": estimator, **data}
        self.n_reported = 0
        self.context = estimator._init_callback_context(max_subtasks=max_features)
        self.context.call_on_fit_task_begin(**self.data)

    def report_features(
        self, n_features: int, attributes_at: Callable[[int], dict[str, Any]]
    ) -> bool:
        """Report all features up to the `n_features`-th; return whether to stop.

        ``attributes_at(n)`` gives the attributes of the estimator fitted with the first `n`.
        """
        stop = False
        while self.n_reported < n_features:
            self.n_reported += 1
            task = self.context.subcontext(task_name="feature")
            task.call_on_fit_task_begin(**self.data)
            stop |= task.call_on_fit_task_end(
                **self.data, reconstruction_attributes=lambda: attributes_at(self.n_reported)
            )
        return stop

    def end(self, attributes: Callable[[], dict[str, Any]]) -> None:
        """Report the end of the fit."""
        self.context.call_on_fit_task_end(**self.data, reconstruction_attributes=attributes)
