"""Model files and ONNX export."""

from notsorandom.io.models import SKOPS_TYPES, ModelFile, load, read_metadata, read_model_file, save
from notsorandom.io.onnx import to_onnx

__all__ = ["SKOPS_TYPES", "ModelFile", "load", "read_metadata", "read_model_file", "save"]
__all__ += ["to_onnx"]
