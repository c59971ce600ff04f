"""Fitted estimators as files: small, readable from elsewhere, and safe to open."""

from notsorandom.io.layout import SKOPS_TYPES
from notsorandom.io.loading import describe, load
from notsorandom.io.rescaling import rescaled, scaler_of
from notsorandom.io.saving import save

__all__ = ["SKOPS_TYPES", "describe", "load", "rescaled", "save", "scaler_of"]
