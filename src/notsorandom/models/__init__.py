"""Fitted estimators as files: small, readable from elsewhere, and safe to open."""

from notsorandom.models.loading import describe, load
from notsorandom.models.rescaling import rescaled, scaler_of
from notsorandom.models.saving import save

__all__ = ["describe", "load", "rescaled", "save", "scaler_of"]
