"""Fitted estimators as files: small, readable from elsewhere, and safe to open."""

from notsorandom.models.layout import SKOPS_TYPES
from notsorandom.models.loading import describe, load
from notsorandom.models.rescaling import rescaled, scaler_of
from notsorandom.models.saving import save

__all__ = ["SKOPS_TYPES", "describe", "load", "rescaled", "save", "scaler_of"]
