"""Model files and ONNX export."""

from notsorandom.io.archive import SKOPS_TYPES
from notsorandom.io.models import load, read_metadata, save
from notsorandom.io.onnx import to_onnx

__all__ = ["SKOPS_TYPES", "load", "read_metadata", "save", "to_onnx"]
