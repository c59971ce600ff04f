"""Fitted estimators as ONNX graphs, which run without this library and without Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import notsorandom
from notsorandom._utils.files import check_output_path, write_atomic
from notsorandom.data.rows import Array
from notsorandom.estimators.classifier import FourierClassifier
from notsorandom.estimators.features import FourierFeatures
from notsorandom.io.models import ESTIMATORS
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean, HarmonicSphere, ZonalSphere
from notsorandom.spaces.gegenbauer import recurrence
from notsorandom.spaces.harmonics import SINGLE_DEGREE, constants
from notsorandom.spaces.zonal_sphere import poles_and_degrees

# Versions of ONNX 1.8, the oldest with all operators used here.
OPSET, IR_VERSION = 13, 7
# Above this degree, rounding of a cosine near the pole changes a zonal feature by more than 1e-5.
FLOAT32_ZONAL_DEGREE = 8


def to_onnx(model: Any, path: Any) -> Path:
    """Write a fitted estimator as an ONNX file, for other runtimes.

    Parameters
    ----------
    model : FourierFeatures, FourierClassifier or FourierRegressor
        Fitted.
    path : str or Path
        Must end in ``.onnx``.

    Returns
    -------
    Path

    Notes
    -----
    The input of the graph is ``X``, of shape (n_samples, n_features_in_), in float32. The output of
    a transformer is ``features``; those of a classifier are ``label`` and ``decision``, as from
    `predict` and `decision_function`, and with ``loss="logistic"`` also ``probabilities``, of shape
    (n_samples, n_classes); that of a regressor is ``prediction``. Harmonics of high degree are
    computed in float64 internally.

    A graph can't reject samples. On the sphere it scales all of them to norm one, whether or not
    the space has ``normalize=True``; a sample of zeros gives NaN.
    """
    path = check_output_path(path, ".onnx")
    check_exportable(model)
    kernel = model.kernel_
    graph = Graph(import_onnx(), choose_precision(kernel))
    features = add_features(graph, kernel)
    if isinstance(model, FourierFeatures):
        features = graph.cast(features, np.float32)
        graph.add_output("features", features, np.float32, kernel.n_components)
    else:
        coef, intercept = (part.astype(np.float64) for part in (model.coef_, model.intercept_))
        scores = graph.add("Add", graph.add("MatMul", features, coef.T), intercept)
        is_classifier = isinstance(model, FourierClassifier)
        is_flat = len(model.classes_) == 2 if is_classifier else model._flat
        values = graph.add("Squeeze", scores, np.array([1])) if is_flat else scores
        if is_classifier:
            add_labels(graph, values, model.classes_)
        name, values = "decision" if is_classifier else "prediction", graph.cast(values, np.float32)
        graph.add_output(name, values, np.float32, None if is_flat else len(coef))
        if hasattr(model, "predict_proba"):
            add_probabilities(graph, scores, model)
    proto = graph.build(type(model).__name__, model.n_features_in_)
    write_atomic(path, proto.SerializeToString())
    return path


def import_onnx() -> Any:
    """Return the package onnx, or raise an error that names the extra to install."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "Exporting to ONNX needs onnx: install it with pip install 'notsorandom[onnx]'."
        ) from error
    return onnx


def check_exportable(model: Any) -> None:
    """Raise an error unless this is a fitted estimator on a space that can be exported."""
    kinds: Any = tuple(ESTIMATORS.values())
    if not isinstance(model, kinds):
        raise TypeError(
            f"model is a {type(model).__name__}, but only {', '.join(ESTIMATORS)} can be exported: "
            "for a pipeline, export the last step."
        )
    check_is_fitted(model)
    space, names = model.kernel_.space, ", ".join(kind.__name__ for kind in BASES)
    if type(space) not in BASES:  # subclasses may have other features
        raise ValueError(
            f"The model's space is {space!r}, but only {names} can be exported: fit with "
            "space='euclidean' or space='sphere'."
        )


def choose_precision(kernel: LearnedKernel) -> np.dtype[Any]:
    """Return the type to compute features in: float32, except for high degrees."""
    if kernel.space.is_vector_space:
        return np.dtype(np.float32)
    limit = FLOAT32_ZONAL_DEGREE if isinstance(kernel.space, ZonalSphere) else SINGLE_DEGREE
    is_high = kernel.space.norms(kernel.frequencies).max() > limit
    return np.dtype(np.float64 if is_high else np.float32)


@dataclass
class Graph:
    """An ONNX graph under construction; it computes in `dtype`, with inputs in float32."""

    onnx: Any
    dtype: np.dtype[Any]
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def add(self, operator: str, *inputs: str | Array, **attributes: Any) -> str:
        """Add a node and return the name of its output; arrays among its inputs are constants."""
        names = [value if isinstance(value, str) else self.add_constant(value) for value in inputs]
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], **attributes))
        return output

    def add_constant(self, array: Array) -> str:
        """Add a constant, with float64 rounded to the graph's type, and return its name."""
        name = f"constant_{len(self.constants)}"
        stored = self.round(array) if array.dtype == np.float64 else array
        self.constants.append(self.onnx.numpy_helper.from_array(stored, name))
        return name

    def round(self, array: Array) -> Array:
        """Round real numbers to the graph's type."""
        with np.errstate(over="ignore"):
            rounded: Array = array.astype(self.dtype)
        if not np.isfinite(rounded).all():
            raise ValueError(
                f"The model has numbers as large as {np.abs(array).max():.3g}, which are infinite "
                "in float32: scale samples and targets before the fit."
            )
        return rounded

    def cast(self, value: str, dtype: Any) -> str:
        """Cast a value to another type."""
        return self.add("Cast", value, to=self.tensor_type(dtype))

    def take_columns(self, value: str, indices: Array | list[int]) -> str:
        """Take some columns of a value."""
        return self.add("Gather", value, np.asarray(indices, dtype=np.int64), axis=1)

    def ones_like(self, column: str, n_columns: int) -> str:
        """Return ones, with as many rows as a column has."""
        return self.add("Add", self.add("Mul", column, np.zeros(n_columns)), np.ones(n_columns))

    def add_output(self, name: str, value: str, dtype: Any, n_columns: int | None = None) -> None:
        """Add an output, of shape (n_samples,) or (n_samples, n_columns)."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.outputs.append(self.value_info(name, dtype, n_columns))

    def value_info(self, name: str, dtype: Any, n_columns: int | None) -> Any:
        """Return name, type and shape of an input or output with any number of rows."""
        shape = ["N"] if n_columns is None else ["N", n_columns]
        return self.onnx.helper.make_tensor_value_info(name, self.tensor_type(dtype), shape)

    def tensor_type(self, dtype: Any) -> Any:
        """Return ONNX's number of a type."""
        return self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def build(self, name: str, n_features: int) -> Any:
        """Return the whole model, checked."""
        helper = self.onnx.helper
        inputs = [self.value_info("X", np.float32, n_features)]
        model = helper.make_model(
            helper.make_graph(self.nodes, name, inputs, self.outputs, self.constants),
            producer_name="notsorandom",
            producer_version=notsorandom.__version__,
            doc_string=f"{name} on {n_features} columns, with learned Fourier features.",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        self.onnx.checker.check_model(model, full_check=True)
        return model


def add_features(graph: Graph, kernel: LearnedKernel) -> str:
    """Add the learned features of `X`; see :meth:`LearnedKernel.feature_map`."""
    values, factors = BASES[type(kernel.space)](graph, graph.cast("X", graph.dtype), kernel)
    scales = kernel.scales.astype(np.float64) * np.sqrt(kernel.weights, dtype=np.float64)
    columns = np.repeat(scales, kernel.space.n_columns(kernel.phase))
    return graph.add("Mul", values, columns * factors)


def add_waves(graph: Graph, X: str, kernel: LearnedKernel) -> tuple[str, Any]:
    """Add cosines, or cosines and sines, and return them with the factors to multiply them by."""
    frequencies = kernel.frequencies.astype(np.float64)
    assert isinstance(kernel.space, Euclidean)
    center = np.asarray(kernel.space.center, dtype=np.float64)
    # Subtracting the rounded centre from samples near it is exact; what rounding changes in the
    # centre is a constant part of the angles.
    rounded = graph.round(center).astype(np.float64)
    angles = graph.add("MatMul", graph.add("Sub", X, rounded), frequencies.T)
    is_aligned = kernel.phase == "aligned"
    offsets = frequencies @ (center - rounded) + (kernel.phases if is_aligned else 0)
    angles = graph.add("Sub", angles, offsets)
    if is_aligned:
        return graph.add("Cos", angles), math.sqrt(2)
    waves = graph.add("Concat", graph.add("Cos", angles), graph.add("Sin", angles), axis=1)
    interleaved = np.arange(2 * len(frequencies)).reshape(2, -1).T.ravel()
    return graph.take_columns(waves, interleaved), 1.0


def add_zonal(graph: Graph, X: str, kernel: LearnedKernel) -> tuple[str, Any]:
    """Add zonal harmonics, as :func:`notsorandom.spaces.gegenbauer.zonal` computes them."""
    poles, degrees = poles_and_degrees(kernel.frequencies.astype(np.float64))
    cosines = graph.add("MatMul", add_directions(graph, X), poles.T)
    orders = np.full(len(poles), poles.shape[1] / 2 - 1)
    return add_polynomials(graph, cosines, None, orders, degrees)[-1], 1.0


def add_harmonics(graph: Graph, X: str, kernel: LearnedKernel) -> tuple[str, Any]:
    """Add spherical harmonics, as in :func:`notsorandom.spaces.harmonics.harmonics`."""
    indices = kernel.frequencies.astype(int)
    degrees = np.abs(indices)
    X = add_directions(graph, X)
    values = add_circle(graph, X, indices[:, 0])
    squared_radii = graph.add("CumSum", graph.add("Mul", X, X), np.array(1))
    for level in range(2, indices.shape[1] + 1):
        lower, upper = degrees[:, level - 2], degrees[:, level - 1]
        if (upper > lower).any():
            orders, positions = np.unique(lower, return_inverse=True)
            height = graph.take_columns(X, [level])
            squared_radius = graph.take_columns(squared_radii, [level])
            steps = upper - lower
            last = np.full(len(orders), steps.max())
            order = orders + (level - 1) / 2
            tables = add_polynomials(graph, height, squared_radius, order, last)
            table = graph.add("Concat", *tables, axis=1)
            factors = graph.take_columns(table, steps * len(orders) + positions)
            values = graph.add("Mul", values, factors)
    return values, constants(indices)


def add_directions(graph: Graph, X: str) -> str:
    """Divide rows by their norms, without overflow of the squares."""
    largest = graph.add("ReduceMax", graph.add("Abs", X), axes=[1], keepdims=1)
    scaled = graph.add("Div", X, largest)
    squares = graph.add("ReduceSumSquare", scaled, axes=[1], keepdims=1)
    return graph.add("Div", scaled, graph.add("Sqrt", squares))


def add_circle(graph: Graph, X: str, orders: Array) -> str:
    r"""Add parts of :math:`\sqrt 2 (x_1 + i x_2)^{|l|}`: real for positive `l`, else imaginary."""
    root = np.array([math.sqrt(2)])
    power = graph.take_columns(X, [0]), graph.take_columns(X, [1])
    real, imaginary = (graph.add("Mul", part, root) for part in power)
    n_powers = 1  # in the table so far; each iteration doubles it
    while n_powers < np.abs(orders).max():
        higher = multiply_complex(graph, (real, imaginary), power)
        real, imaginary = (
            graph.add("Concat", *parts, axis=1)
            for parts in zip((real, imaginary), higher, strict=True)
        )
        n_powers, power = 2 * n_powers, multiply_complex(graph, power, power)
    table = graph.add("Concat", graph.ones_like(power[0], 1), real, imaginary, axis=1)
    return graph.take_columns(table, np.where(orders < 0, n_powers - orders, orders))


def multiply_complex(graph: Graph, x: tuple[str, str], y: tuple[str, str]) -> tuple[str, str]:
    """Add real and imaginary part of a product of complex numbers."""
    (a, b), (c, d) = x, y
    ac, bd, ad, bc = (graph.add("Mul", *pair) for pair in ((a, c), (b, d), (a, d), (b, c)))
    return graph.add("Sub", ac, bd), graph.add("Add", ad, bc)


def add_polynomials(
    graph: Graph, height: str, squared_radius: str | None, orders: Array, degrees: Array
) -> list[str]:
    r"""Add orthonormal Gegenbauer polynomials of degree 0, 1, ..., with one column per order.

    With a squared radius they are homogeneous in :math:`(x, r)`, :math:`r^j p_j(x / r)`, as in
    :func:`notsorandom.spaces.gegenbauer.coordinate_factors`. Each column keeps its value after the
    degree given for it in `degrees`.
    """
    values = [graph.ones_like(height, len(orders))]
    b_before = np.zeros(len(orders))
    for j in range(1, int(degrees.max()) + 1):
        b = recurrence(j, orders)
        value = graph.add("Mul", graph.add("Mul", values[-1], height), 1 / b)
        if j > 1:
            before = graph.add("Mul", values[-2], b_before / b)
            if squared_radius is not None:
                before = graph.add("Mul", before, squared_radius)
            value = graph.add("Sub", value, before)
        if (degrees < j).any():
            # In every step, so that a runtime holds only a few degrees at a time.
            value = graph.add("Where", degrees >= j, value, values[-1])
        values.append(value)
        b_before = b
    return values


# Functions that add the features of a space, and return them with factors to multiply them by.
BASES: dict[type, Callable[[Graph, str, LearnedKernel], tuple[str, Any]]] = {
    Euclidean: add_waves,
    ZonalSphere: add_zonal,
    HarmonicSphere: add_harmonics,
}


def add_labels(graph: Graph, scores: str, classes: Array) -> None:
    """Add the predicted classes as an output."""
    if len(classes) == 2:
        codes = graph.cast(graph.add("Greater", scores, np.zeros(1)), np.int64)
    else:
        codes = graph.add("ArgMax", scores, axis=1, keepdims=0)
    stored = convert_classes(classes)
    graph.add_output("label", graph.add("Gather", stored, codes), stored.dtype)


def add_probabilities(graph: Graph, scores: str, model: FourierClassifier) -> None:
    """Add the probabilities of the classes as an output; scores have one column per task."""
    # The logistic function as softmax of two columns: runtimes round Sigmoid coarsely near zero.
    factors = np.array([-0.5, 0.5] if len(model.classes_) == 2 else [1.0])
    odds = graph.add("Mul", scores, factors / model.temperature_)
    values = graph.cast(graph.add("Softmax", odds, axis=1), np.float32)
    graph.add_output("probabilities", values, np.float32, len(model.classes_))


def convert_classes(classes: Array) -> Array:
    """Return the classes in a type that ONNX has and that holds them exactly."""
    if all(isinstance(name, str) for name in classes.tolist()):
        return classes.astype(object)
    dtype = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float32}.get(classes.dtype.kind)
    stored: Array | None = None if dtype is None else classes.astype(dtype)
    if stored is None or not np.array_equal(stored, classes):
        raise ValueError(
            f"The classes {classes.tolist()[:3]} ... of type {classes.dtype} have no exact "
            "counterpart in ONNX, which has strings, int64, bool and float32 here: fit with labels "
            "of such a type."
        )
    return stored
