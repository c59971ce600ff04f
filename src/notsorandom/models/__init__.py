"""Fitted estimators as files: small, readable from elsewhere, and safe to open."""

from notsorandom.models.loading import load
from notsorandom.models.saving import save

__all__ = ["load", "save"]
