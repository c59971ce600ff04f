"""A fitted model as an ONNX graph, which runs without this library and without Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import notsorandom
from notsorandom._utils.files import checked_path, write_whole
from notsorandom.data.rows import Array
from notsorandom.estimators import FourierClassifier, FourierFeatures, FourierRegressor
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean, HarmonicSphere, ZonalSphere
from notsorandom.spaces.gegenbauer import recurrence
from notsorandom.spaces.harmonics import SINGLE_DEGREE, constants
from notsorandom.spaces.zonal_sphere import poles_and_degrees

# Those of ONNX 1.8: nothing here asks more of a runtime.
OPSET, IR_VERSION = 13, 7
# Beyond, the rounding of a cosine near the pole shows in a zonal feature by more than 1e-5.
SINGLE_ZONAL_DEGREE = 8


def export_onnx(estimator: Any, path: Any) -> Path:
    """Write a fitted estimator as an ONNX model.

    Parameters
    ----------
    estimator : FourierFeatures, FourierClassifier or FourierRegressor
    path : str or Path
        The file to write, which ends in ``.onnx``.

    Returns
    -------
    Path

    See Also
    --------
    notsorandom.FourierFeatures.to_onnx : what goes in and what comes out.
    """
    path = checked_path(path, ".onnx")
    check_exportable(estimator)
    kernel = estimator.kernel_
    graph = Graph(import_onnx(), precision_of(kernel))
    features = add_features(graph, kernel)
    if isinstance(estimator, FourierFeatures):
        graph.add_output("features", graph.single(features), np.float32, kernel.n_components)
    else:
        coef, intercept = (
            part.astype(np.float64) for part in (estimator.coef_, estimator.intercept_)
        )
        scores = graph.single(graph.add("Add", graph.add("MatMul", features, coef.T), intercept))
        if isinstance(estimator, FourierClassifier):
            add_classes(graph, scores, estimator.classes_)
        else:
            add_scores(graph, "prediction", scores, None if estimator._flat else len(coef))
    model = graph.model(type(estimator).__name__, estimator.n_features_in_)
    write_whole(path, model.SerializeToString())
    return path


def check_exportable(estimator: Any) -> None:
    """Raise an error unless it is a fitted estimator of a space that is known here."""
    if not isinstance(estimator, FourierFeatures | FourierClassifier | FourierRegressor):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}, but only a FourierFeatures, "
            "FourierClassifier or FourierRegressor can be exported: of a pipeline, export the last "
            "step."
        )
    check_is_fitted(estimator)
    space = estimator.kernel_.space
    # Not one derived from those known, whose features may be others.
    if type(space) not in BASES:
        known = ", ".join(each.__name__ for each in BASES)
        raise ValueError(
            f"The model's space is {space!r}, but only {known} can be exported: fit with "
            "space='euclidean' or space='sphere'."
        )


def precision_of(kernel: LearnedKernel) -> np.dtype[Any]:
    """What the features are to be computed in: single precision, but for high degrees."""
    if kernel.space.is_flat:
        return np.dtype(np.float32)
    most = SINGLE_ZONAL_DEGREE if isinstance(kernel.space, ZonalSphere) else SINGLE_DEGREE
    degrees = kernel.space.sizes(kernel.frequencies)
    return np.dtype(np.float64 if np.max(degrees) > most else np.float32)


@dataclass
class Graph:
    """Nodes, constants and outputs of a graph that is being built.

    Parameters
    ----------
    onnx : module
    dtype : dtype
        What real numbers are computed in. Whatever it is, they come and go in single precision.
    """

    onnx: Any
    dtype: np.dtype[Any]
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def add(self, operator: str, *inputs: str | Array, **attributes: Any) -> str:
        """Add a node whose inputs are values, by name, or constants; return its output's name."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], **attributes))
        return output

    def constant(self, array: Array) -> str:
        """Add a constant; real numbers of double precision are rounded."""
        name = f"constant_{len(self.constants)}"
        stored = self.rounded(array) if array.dtype == np.float64 else array
        self.constants.append(self.onnx.numpy_helper.from_array(stored, name))
        return name

    def rounded(self, array: Array) -> Array:
        """Real numbers in the graph's type."""
        with np.errstate(over="ignore"):
            stored: Array = array.astype(self.dtype)
        if not np.isfinite(stored).all():
            raise ValueError(
                f"The model has numbers as large as {np.abs(array).max():.3g}, which single "
                "precision doesn't hold: scale samples and targets before the fit."
            )
        return stored

    def cast(self, value: str, dtype: Any) -> str:
        """The value in another type."""
        return self.add("Cast", value, to=self.tensor_type(dtype))

    def single(self, value: str) -> str:
        """The value in single precision."""
        return value if self.dtype == np.float32 else self.cast(value, np.float32)

    def columns(self, value: str, indices: Array | list[int]) -> str:
        """Some columns of a value."""
        return self.add("Gather", value, np.asarray(indices, dtype=np.int64), axis=1)

    def ones(self, column: str, width: int) -> str:
        """Ones in so many columns, and in as many rows as a value has."""
        return self.add("Add", self.add("Mul", column, np.zeros(width)), np.ones(width))

    def add_output(self, name: str, value: str, dtype: Any, width: int | None = None) -> None:
        """Give a value out, of shape (n_samples,) or (n_samples, width)."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.outputs.append(self.described(name, dtype, width))

    def described(self, name: str, dtype: Any, width: int | None) -> Any:
        """Name, type and shape of an input or output with any number of rows."""
        shape = ["N"] if width is None else ["N", width]
        return self.onnx.helper.make_tensor_value_info(name, self.tensor_type(dtype), shape)

    def tensor_type(self, dtype: Any) -> Any:
        """ONNX's number of a type."""
        return self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def model(self, name: str, n_features: int) -> Any:
        """The whole model, checked."""
        helper = self.onnx.helper
        inputs = [self.described("X", np.float32, n_features)]
        model = helper.make_model(
            helper.make_graph(self.nodes, name, inputs, self.outputs, self.constants),
            producer_name="notsorandom",
            producer_version=notsorandom.__version__,
            doc_string=f"A {name} of {n_features} columns, on learned Fourier features.",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        self.onnx.checker.check_model(model, full_check=True)
        return model


def add_features(graph: Graph, kernel: LearnedKernel) -> str:
    """The learned features of `X`; see :meth:`LearnedKernel.features_of`."""
    X = "X" if graph.dtype == np.float32 else graph.cast("X", graph.dtype)
    values, factors = BASES[type(kernel.space)](graph, X, kernel)
    scales = kernel.scales.astype(np.float64) * np.sqrt(kernel.weights, dtype=np.float64)
    columns = np.repeat(scales, kernel.space.n_columns(kernel.phase))
    return graph.add("Mul", values, columns * factors)


def add_waves(graph: Graph, X: str, kernel: LearnedKernel) -> tuple[str, Any]:
    """Cosines, or cosines and sines, of the angles, and what they are to be multiplied by."""
    frequencies = kernel.frequencies.astype(np.float64)
    center = np.asarray(kernel.space.center, dtype=np.float64)
    # Samples near a far centre lose nothing when one is taken from the other; what the centre
    # itself loses to rounding is a part of the angles, which are small.
    near = graph.rounded(center).astype(np.float64)
    angles = graph.add("MatMul", graph.add("Sub", X, near), frequencies.T)
    offsets = frequencies @ (center - near)
    if kernel.phase == "aligned":
        angles = graph.add("Sub", angles, offsets + kernel.phases)
        return graph.add("Cos", angles), math.sqrt(2)
    angles = graph.add("Sub", angles, offsets)
    waves = graph.add("Concat", graph.add("Cos", angles), graph.add("Sin", angles), axis=1)
    side_by_side = np.arange(2 * len(frequencies)).reshape(2, -1).T.ravel()
    return graph.columns(waves, side_by_side), 1.0


def add_zonal(graph: Graph, X: str, kernel: LearnedKernel) -> tuple[str, Any]:
    """Zonal harmonics, as :func:`notsorandom.spaces.gegenbauer.zonal` computes them."""
    poles, degrees = poles_and_degrees(kernel.frequencies.astype(np.float64))
    cosines = graph.add("MatMul", add_directions(graph, X), poles.T)
    orders = np.full(len(poles), poles.shape[1] / 2 - 1)
    return add_polynomials(graph, cosines, None, orders, degrees)[-1], 1.0


def add_harmonics(graph: Graph, X: str, kernel: LearnedKernel) -> tuple[str, Any]:
    """Spherical harmonics, as :func:`notsorandom.spaces.harmonics.harmonics` computes them."""
    indices = kernel.frequencies.astype(int)
    degrees = np.abs(indices)
    X = add_directions(graph, X)
    values = add_circle(graph, X, indices[:, 0])
    squared_radii = graph.add("CumSum", graph.add("Mul", X, X), np.array(1))
    for level in range(2, indices.shape[1] + 1):
        lower, upper = degrees[:, level - 2], degrees[:, level - 1]
        if (upper > lower).any():
            orders, places = np.unique(lower, return_inverse=True)
            height, squared_radius = (graph.columns(value, [level]) for value in (X, squared_radii))
            steps = upper - lower
            to_the_end = np.full(len(orders), steps.max())
            tables = add_polynomials(
                graph, height, squared_radius, orders + (level - 1) / 2, to_the_end
            )
            table = graph.add("Concat", *tables, axis=1)
            polynomials = graph.columns(table, steps * len(orders) + places)
            values = graph.add("Mul", values, polynomials)
    return values, constants(indices)


def add_directions(graph: Graph, X: str) -> str:
    """Rows over their norms, whose squares never overflow."""
    reach = graph.add("ReduceMax", graph.add("Abs", X), axes=[1], keepdims=1)
    scaled = graph.add("Div", X, reach)
    squares = graph.add("ReduceSumSquare", scaled, axes=[1], keepdims=1)
    return graph.add("Div", scaled, graph.add("Sqrt", squares))


def add_circle(graph: Graph, X: str, orders: Array) -> str:
    r"""Parts of :math:`\sqrt 2 (x_1 + i x_2)^{|l|}`: real where `l` is positive, else imaginary."""
    root = np.array([math.sqrt(2)])
    power = graph.columns(X, [0]), graph.columns(X, [1])
    real, imaginary = (graph.add("Mul", part, root) for part in power)
    known = 1  # the power up to which all are there; each turn doubles it
    while known < np.abs(orders).max():
        more = add_product(graph, (real, imaginary), power)
        real, imaginary = (
            graph.add("Concat", *parts, axis=1)
            for parts in zip((real, imaginary), more, strict=True)
        )
        known, power = 2 * known, add_product(graph, power, power)
    table = graph.add("Concat", graph.ones(power[0], 1), real, imaginary, axis=1)
    return graph.columns(table, np.where(orders < 0, known - orders, orders))


def add_product(graph: Graph, one: tuple[str, str], other: tuple[str, str]) -> tuple[str, str]:
    """Real and imaginary part of a product of complex numbers."""
    (a, b), (c, d) = one, other
    ac, bd, ad, bc = (graph.add("Mul", *pair) for pair in ((a, c), (b, d), (a, d), (b, c)))
    return graph.add("Sub", ac, bd), graph.add("Add", ad, bc)


def add_polynomials(
    graph: Graph, height: str, squared_radius: str | None, orders: Array, degrees: Array
) -> list[str]:
    r"""Orthonormal Gegenbauer polynomials of the degrees 0, 1, ..., one column an order.

    With a squared radius they are homogeneous in :math:`(x, r)`, :math:`r^j p_j(x / r)`, as in
    :func:`notsorandom.spaces.gegenbauer.climb_degrees`. A column that has reached its last degree,
    of `degrees`, stays as it is.
    """
    values = [graph.ones(height, len(orders))]
    last = np.zeros(len(orders))
    for j in range(1, int(degrees.max()) + 1):
        b = recurrence(j, orders)
        following = graph.add("Mul", graph.add("Mul", values[-1], height), 1 / b)
        if j > 1:
            drop = graph.add("Mul", values[-2], last / b)
            if squared_radius is not None:
                drop = graph.add("Mul", drop, squared_radius)
            following = graph.add("Sub", following, drop)
        if (degrees < j).any():
            # Here and not in the end, so that a runtime never holds more than a few degrees.
            following = graph.add("Where", degrees >= j, following, values[-1])
        values.append(following)
        last = b
    return values


# The features of a space without their weights, and further factors of them.
BASES: dict[type, Callable[[Graph, str, LearnedKernel], tuple[str, Any]]] = {
    Euclidean: add_waves,
    ZonalSphere: add_zonal,
    HarmonicSphere: add_harmonics,
}


def add_scores(graph: Graph, name: str, scores: str, width: int | None) -> None:
    """Give scores out, those of a single task as a vector if `width` is None."""
    if width is None:
        scores = graph.add("Squeeze", scores, np.array([1]))
    graph.add_output(name, scores, np.float32, width)


def add_classes(graph: Graph, scores: str, classes: Array) -> None:
    """Give out decision values and the classes that they speak for."""
    stored = storable(classes)
    if len(classes) == 2:
        flat = graph.add("Squeeze", scores, np.array([1]))
        codes = graph.cast(graph.add("Greater", flat, np.zeros(1, dtype=np.float32)), np.int64)
    else:
        codes = graph.add("ArgMax", scores, axis=1, keepdims=0)
    graph.add_output("label", graph.add("Gather", stored, codes), stored.dtype)
    add_scores(graph, "decision", scores, None if len(classes) == 2 else len(classes))


def storable(classes: Array) -> Array:
    """The classes in a type that ONNX has and that holds them exactly."""
    if all(isinstance(name, str) for name in classes.tolist()):
        return classes.astype(object)
    dtype = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float32}.get(classes.dtype.kind)
    if dtype is None:
        raise TypeError(
            f"The classes are of type {classes.dtype}, but ONNX has only strings, integers, bools "
            "and floats: fit with labels of such a type."
        )
    stored: Array = classes.astype(dtype)
    if not np.array_equal(stored, classes):
        raise ValueError(
            f"The class {classes[stored != classes][0]!r} has no equal in {stored.dtype}, which "
            f"classes of type {classes.dtype} are stored in: fit with smaller numbers, or with "
            "strings."
        )
    return stored


def import_onnx() -> Any:
    """Return onnx, or say which extra brings it."""
    try:
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError(
            "Exporting to ONNX needs onnx: install it with pip install 'notsorandom[onnx]'."
        ) from error
    return onnx
