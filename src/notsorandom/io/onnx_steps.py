"""Values in ONNX graphs, and converters of steps before an estimator that skl2onnx lacks."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from functools import partialmethod
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from notsorandom.tabular import NumberEncoder
from notsorandom.tabular.numbers import LIMIT


@dataclass(frozen=True)
class Tensor:
    """A value in a graph of skl2onnx; real constants that it meets are rounded to its `dtype`."""

    scope: Any
    container: Any
    name: str
    dtype: Any = np.float32

    def node(self, operator: str, *others: Any, **attributes: Any) -> Tensor:
        """Add a node whose inputs are this and others, tensors or constants."""
        inputs = [each if isinstance(each, Tensor) else self.constant(each) for each in others]
        output = self.scope.get_unique_variable_name(operator)
        self.container.add_node(operator, [x.name for x in (self, *inputs)], output, **attributes)
        return replace(self, name=output)

    __add__, __sub__ = partialmethod(node, "Add"), partialmethod(node, "Sub")
    __mul__, __truediv__ = partialmethod(node, "Mul"), partialmethod(node, "Div")
    __matmul__ = partialmethod(node, "MatMul")

    def constant(self, value: Any) -> Tensor:
        """Add a constant."""
        array = np.asarray(value)
        if array.dtype.kind == "f":
            if np.abs(array).max(initial=0) > np.finfo(self.dtype).max:
                raise ValueError("Numbers are infinite in float32: scale X and y before the fit.")
            array = array.astype(self.dtype)
        name = self.scope.get_unique_variable_name("constant")
        constant = importlib.import_module("onnx.numpy_helper").from_array(array, name)
        self.container.initializers.append(constant)
        return replace(self, name=name)

    def cast(self, dtype: Any) -> Tensor:
        """Convert to float32 or float64."""
        number = {np.float32: 1, np.float64: 11}[dtype]  # in TensorProto.DataType
        return replace(self.node("Cast", to=number), dtype=dtype)

    def take(self, columns: Any) -> Tensor:
        """Take some columns."""
        return self.node("Gather", columns, axis=1)


def convert_numbers(model: NumberEncoder, X: Tensor) -> list[Tensor]:
    """Return numbers, scores and indicators, in float64 since numbers may be far from zero."""
    X = X.cast(np.float64)
    missing, columns = X.node("IsNaN"), model.number_columns_
    scaled = (X.take(columns) - model.center_[columns]) / model.scale_[columns]
    blocks = [scaled / (scaled * scaled / LIMIT**2 + 1.0).node("Sqrt")]
    for column, (values, scores) in model.column_knots():
        # Of each interval between knots, a score has the share that is below the value.
        shares = (X.take([column]) - values[:-1]) / np.diff(values)
        shares = shares.node("Clip", 0.0, 1.0)
        blocks.append(shares @ np.diff(scores)[:, None] + scores[0])
    known = blocks[0].node("Concat", *blocks[1:], axis=1)
    shown = np.concatenate([columns, model.score_columns_])
    known = missing.take(shown).node("Where", 0.0, known)
    return [known.node("Concat", missing.cast(np.float64).take(model.missing_columns_), axis=1)]


def convert_imputer(model: SimpleImputer, X: Tensor) -> list[Tensor]:
    """Return imputed columns, and the indicator of missing values."""
    if model.statistics_.dtype == object or str(model.missing_values) != "nan":
        raise NotImplementedError(f"{model} imputes text, or numbers that aren't NaN.")
    X = X.cast(np.float32)
    missing = X.node("IsNaN")
    known = np.flatnonzero(~np.isnan(model.statistics_))
    imputed = missing.node("Where", model.statistics_, X).take(known)
    if model.indicator_ is not None:
        indicator = missing.cast(np.float32).take(model.indicator_.features_)
        imputed = imputed.node("Concat", indicator, axis=1)
    return [imputed]


def convert_one_hot(model: OneHotEncoder, *inputs: Tensor) -> list[Tensor]:
    """Return columns of zeros and ones, also of infrequent, unknown and missing categories."""
    if model.drop is not None:
        raise NotImplementedError(f"{model} drops categories.")
    blocks = []
    for index, categories in enumerate(model.categories_):
        column = inputs[index] if len(inputs) > 1 else inputs[0].take([index])
        keys: dict[str, Any] = {"keys_strings": [*map(str, categories)]}
        if categories.dtype.kind in "fiub":
            column, nan = column.cast(np.float32), 3e38  # NaN equals no key
            column = column.node("IsNaN").node("Where", nan, column)
            keys = {"keys_floats": np.nan_to_num(categories.astype(np.float32), nan=nan)}
            if len(np.unique(keys["keys_floats"])) < len(categories):
                raise NotImplementedError(f"{model} has numbers that are equal in float32.")
        rare = getattr(model, "infrequent_categories_", {index: None})[index]
        is_rare = np.isin(categories.astype(str), [] if rare is None else rare.astype(str))
        n_frequent = np.sum(~is_rare)
        codes = np.where(is_rare, n_frequent, np.cumsum(~is_rare) - 1)
        is_grouped = is_rare.any() and model.handle_unknown in ("infrequent_if_exist", "warn")
        keys |= {"values_int64s": codes, "default_int64": int(n_frequent) if is_grouped else -1}
        code = column.node("LabelEncoder", op_domain="ai.onnx.ml", **keys)
        blocks.append(code.node("Equal", np.arange(codes.max() + 1)))
    return [blocks[0].node("Concat", *blocks[1:], axis=1)]
