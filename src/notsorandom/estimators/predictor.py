"""Learned features with a linear model at their end."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from notsorandom._utils.progress import Progress
from notsorandom._utils.threads import working
from notsorandom.data.rows import Array, Rows
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.callbacks import CALLBACK_FRAMES
from notsorandom.estimators.features import FourierFeatures
from notsorandom.estimators.samples import read_samples
from notsorandom.estimators.training import DUALITY_GAP
from notsorandom.game import Player
from notsorandom.linear.streaming import fit_machines


class FourierPredictor(FourierEstimator):
    """What classifier and regressor have in common."""

    def _finish(self, rows: Rows, player: Player) -> None:
        with Progress(player.n_tasks, "machines", shown=self.verbose > 0) as bar:
            self.coef_, self.intercept_, self.duality_gap_ = fit_machines(
                self.kernel_, rows, player, DUALITY_GAP, bar.update
            )
        self._complete()
        if not self.duality_gap_ <= DUALITY_GAP:
            warnings.warn(
                f"The final model was solved to a relative duality gap of {self.duality_gap_:.1e}, "
                f"not to {DUALITY_GAP:.0e}: try a smaller C.",
                ConvergenceWarning,
                stacklevel=4 + CALLBACK_FRAMES,
            )

    def _complete(self) -> None:
        self.features_ = FourierFeatures(**self.get_params(deep=False))
        self.features_.__dict__ |= self._learned()

    def _scores(self, X: Any) -> Array:
        """Values of the linear models, of shape (n_samples, n_tasks)."""
        check_is_fitted(self)
        X = read_samples(self, X)
        with working(self.n_jobs) as workers:
            rows = Rows(self.kernel_.space.prepare(X), workers=workers)
            return self.kernel_.scores(rows, self.coef_, self.intercept_)
