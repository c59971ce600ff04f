"""Model files and ONNX export."""

from notsorandom.io.models import load, read_metadata, save
from notsorandom.io.onnx import to_onnx

__all__ = ["load", "read_metadata", "save", "to_onnx"]
