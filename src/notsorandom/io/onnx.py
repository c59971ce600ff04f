"""Fitted estimators and pipelines as ONNX graphs: converters that skl2onnx lacks."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from notsorandom._utils.files import check_output_path, write_atomic
from notsorandom.data.rows import Array
from notsorandom.estimators.classifier import FourierClassifier
from notsorandom.estimators.features import FourierFeatures
from notsorandom.estimators.regressor import FourierRegressor
from notsorandom.io.onnx_steps import Tensor, convert_imputer, convert_numbers, convert_one_hot
from notsorandom.spaces import Euclidean, HarmonicSphere, ZonalSphere
from notsorandom.spaces.gegenbauer import recurrence
from notsorandom.spaces.harmonics import constants
from notsorandom.spaces.zonal_sphere import poles_and_degrees
from notsorandom.tabular import NumberEncoder, TableCleaner


def to_onnx(model: Any, path: Any, *, return_std: bool = False, coverage: Any = None) -> Path:
    """Write a fitted estimator or pipeline as an ONNX file, for other runtimes.

    Parameters
    ----------
    model : estimator or Pipeline
        One of this package's, or a pipeline of one and transformers of scikit-learn.
    path : str or Path
        Must end in ``.onnx``.
    return_std : bool, default=False
        Whether the graph of a :class:`notsorandom.FourierRegressor`, alone or as the last step, has
        an output ``std`` too: see its method `predict`. It takes 8 bytes times the square of the
        number of features.
    coverage : float or array-like of float, optional
        For an output ``interval``: see `predict_interval`.

    Returns
    -------
    Path

    Notes
    -----
    The input is ``X``, in float32. If the first step is a ``ColumnTransformer``, there is instead
    one input for each column that it uses, of shape (n_samples, 1): float32, or strings for text.
    The graph of a :func:`notsorandom.tabular_pipeline` begins after its first step: the inputs are
    the columns of ``pipeline[0].transform(frame)``. The outputs are ``features``, ``prediction``,
    or ``label``, ``probabilities`` if there are any, and ``decision``, and what is asked for beside
    them; an input of such a name ends in ``_``. A graph can't reject samples: on the sphere they
    are scaled to norm one, and unknown categories are encoded as infrequent ones or zeros.
    """
    path = check_output_path(path, ".onnx")
    check_is_fitted(model)
    try:
        import skl2onnx
    except ImportError as error:
        raise ImportError(
            "Exporting to ONNX needs skl2onnx: install it with pip install 'notsorandom[onnx]'."
        ) from error
    model = without_idle_steps(model if isinstance(model, Pipeline) else Pipeline([("", model)]))
    last = model[-1]
    extras = uncertainty(last, return_std, coverage)
    has_map = is_classifier(model) and type(last) not in CONVERTERS
    try:
        inputs = graph_inputs(model)
        proto = skl2onnx.convert_sklearn(
            model,
            "notsorandom",
            inputs,
            target_opset={"": 18, "ai.onnx.ml": 3},  # of ONNX 1.13, 2022
            options={id(last): {"zipmap": False}} if has_map else None,
            custom_conversion_functions=dict.fromkeys(CONVERTERS, partial(convert, last, extras)),
            custom_shape_calculators=dict.fromkeys(CONVERTERS, lambda operator: None),
            custom_parsers=dict.fromkeys(CONVERTERS, partial(declare_outputs, last, extras)),
        )
    except (RuntimeError, AssertionError, AttributeError, LookupError, NameError) as error:
        raise ValueError(
            f"skl2onnx can't convert the model: {str(error).splitlines()[0]} Export the steps "
            "that it can, as in pipeline[1:], and do the others before the graph runs."
        ) from error
    name_inputs(proto.graph, [name for name, _ in inputs])
    write_atomic(path, proto.SerializeToString())
    return path


def uncertainty(model: Any, return_std: bool, coverage: Any) -> dict[str, Array]:
    """Return factors of the deviation by output: the noise, and the limits of intervals."""
    if not return_std and coverage is None:
        return {}
    if not isinstance(model, FourierRegressor):
        raise ValueError(
            f"return_std and coverage are for a FourierRegressor, but the model ends in a "
            f"{type(model).__name__}: leave them out."
        )
    factors = {}
    if return_std:
        model._check_held_out("return_std=True")
        factors["std"] = model.noise_
    if coverage is not None:
        thresholds = model._thresholds(coverage)
        factors["interval"] = np.stack([-thresholds, thresholds], axis=1)
    return factors  # (n_outputs,), and (n_outputs, 2) or (n_outputs, 2, n_coverages)


def without_idle_steps(model: Any) -> Any:
    """Return pipelines without steps that are done before the graph, or do nothing."""
    if isinstance(model, Pipeline):
        steps = [(name, without_idle_steps(step)) for name, step in model.steps]
        return Pipeline(
            [step for step in steps if not isinstance(step[1], TableCleaner | str | None)]
        )
    if isinstance(model, ColumnTransformer):
        model = copy.copy(model)
        model.transformers_ = [
            (name, without_idle_steps(step), columns) for name, step, columns in model.transformers_
        ]
    return model


def graph_inputs(model: Any) -> list[tuple[str, Any]]:
    """Return names and types of the graph's inputs: one array, or one input per column."""
    types = importlib.import_module("skl2onnx.common.data_types")
    while isinstance(model, Pipeline):
        model = model[0]
    is_text, steps = np.zeros(model.n_features_in_, dtype=bool), [(slice(None), model)]
    if isinstance(model, ColumnTransformer):
        columns = model._transformer_to_input_indices
        steps = [(columns[name], step) for name, step, _ in model.transformers_]
    for indices, step in steps:
        encoder = step[-1] if isinstance(step, Pipeline) else step
        if hasattr(encoder, "categories_"):
            is_text[indices] = [each.dtype.kind not in "fiub" for each in encoder.categories_]
    kinds = [types.StringTensorType if text else types.FloatTensorType for text in is_text]
    if not isinstance(model, ColumnTransformer) and len(set(kinds)) == 1:
        return [("X", kinds[0]([None, len(kinds)]))]
    names = getattr(model, "feature_names_in_", [f"x{k}" for k in range(len(kinds))])
    return [(name, kind([None, 1])) for name, kind in zip(names, kinds, strict=True)]


def name_inputs(graph: Any, names: list[str]) -> None:
    """Give inputs their names, which skl2onnx has changed, and remove unused inputs."""
    outputs = {value.name for value in graph.output}
    names = [name + "_" * (name in outputs) for name in names]
    changes = dict(zip([value.name for value in graph.input], names, strict=True))
    used = {value for node in graph.node for value in node.input}
    for value in list(graph.input):
        if value.name not in used:
            graph.input.remove(value)
        value.name = changes[value.name]
    for node in graph.node:
        node.input[:] = [changes.get(value, value) for value in node.input]


def declare_outputs(
    last: Any,
    extras: Mapping[str, Array],
    scope: Any,
    model: Any,
    inputs: Any,
    custom_parsers: Any = None,
) -> Any:
    """Declare the outputs of a model; skl2onnx calls this as a parser."""
    data_types = importlib.import_module("skl2onnx.common.data_types")
    real = data_types.FloatTensorType
    if isinstance(model, FourierClassifier):
        n_classes = len(model.classes_)
        types = {"label": data_types.guess_data_type(onnx_classes(model.classes_))[0][1]}
        types["label"].shape = [None]
        if hasattr(model, "predict_proba"):
            types["probabilities"] = real([None, n_classes])
        types["decision"] = real([None, n_classes][: 1 + (n_classes > 2)])
    elif isinstance(model, FourierRegressor):
        types = {"prediction": real([None, len(model.coef_)][: 2 - model._flat])}
        for name, factors in extras.items() if model is last else ():
            types[name] = real([None, *factors.shape[model._flat :]])
    else:
        types = {"features": real([None, len(model.get_feature_names_out())])}
    operator = scope.declare_local_operator(type(model).__name__, model)
    operator.inputs = inputs
    for name, kind in types.items():
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def convert(
    last: Any, extras: Mapping[str, Array], scope: Any, operator: Any, container: Any
) -> None:
    """Add a model to the graph; skl2onnx calls this as a converter."""
    inputs = [Tensor(scope, container, variable.full_name) for variable in operator.inputs]
    model = operator.raw_operator
    options = {"extras": extras} if model is last and extras else {}
    values = CONVERTERS[type(model)](model, *inputs, **options)
    for value, variable in zip(values, operator.outputs, strict=True):
        kind = variable.type.to_onnx_type().tensor_type.elem_type
        container.add_node("Cast", value.name, variable.full_name, to=kind)


def convert_estimator(
    model: Any, X: Tensor, extras: Mapping[str, Array] | None = None
) -> list[Tensor]:
    """Return features, prediction, or label, probabilities if there are any, and decision.

    A regressor's deviations follow its prediction, times `extras`.
    """
    kernel = model.kernel_
    if type(kernel.space) not in BASES:  # subclasses may have other features
        raise ValueError(f"Fit with space='euclidean' or 'sphere': {kernel.space!r} has no export.")
    # In float32, harmonics of high degree would be off by more than 1e-5.
    X = X.cast(np.float32 if kernel.space.is_vector_space else np.float64)
    if not kernel.space.is_vector_space:
        X = X / X.node("ReduceL2", [1])
    n_columns = kernel.space.n_columns(kernel.phase)
    factors = np.repeat(kernel.scales * np.sqrt(kernel.weights), n_columns)
    features = BASES[type(kernel.space)](X, kernel) * factors
    if kernel.linear_scale:
        features = features.node("Concat", linear_part(X, kernel), axis=1)
    if not hasattr(model, "coef_"):
        return [features]
    scores = features @ model.coef_.T + model.intercept_
    classes = getattr(model, "classes_", None)
    is_flat = model._flat if classes is None else len(classes) == 2
    outputs = [scores.node("Squeeze", [1]) if is_flat else scores]
    if classes is None:
        if extras:
            deviations = convert_posterior(model, features)
            for name, factors in extras.items():
                values = deviations * factors if name == "std" else None
                if values is None:  # limits of intervals
                    parts = deviations, scores.cast(np.float64)
                    axes = np.arange(2, factors.ndim + 1)
                    deviations, middle = (part.node("Unsqueeze", axes) for part in parts)
                    values = deviations * factors + middle
                outputs.append(values.node("Squeeze", [1]) if is_flat else values)
        return outputs
    scores = scores * np.array([-0.5, 0.5] if is_flat else [1.0])
    if hasattr(model, "predict_proba"):
        # Runtimes round Sigmoid coarsely near 0, but not Softmax.
        outputs.insert(0, (scores / model.temperature_).node("Softmax", axis=1))
    codes = scores.node("ArgMax", axis=1, keepdims=0)
    return [codes.constant(onnx_classes(classes)).node("Gather", codes), *outputs]


def convert_posterior(model: Any, features: Tensor) -> Tensor:
    """Return the deviations in units of that of the noise, of shape (n_samples, 1)."""
    posterior, features = model.posterior_, features.cast(np.float64)
    if posterior is None:
        return features.take([0]) * 0.0 + 1.0
    inverse = solve_triangular(posterior.unpack(), np.eye(len(posterior.mean)), lower=True)
    norms = ((features - posterior.mean) @ inverse.T).node("ReduceL2", [1])
    return (norms * norms + (1 + 1 / posterior.total_weight)).node("Sqrt")


def onnx_classes(classes: Array) -> Array:
    """Return the classes in a type that ONNX has and that holds them exactly."""
    types = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float32}
    stored: Array = classes.astype(types.get(classes.dtype.kind, object))
    if not np.array_equal(stored, classes):
        raise ValueError(f"ONNX can't hold the classes {classes}: fit with text, int64 or bool.")
    return stored


def waves(X: Tensor, kernel: Any) -> Tensor:
    """Return cosines, or cosines and sines in turn."""
    frequencies = kernel.frequencies.astype(np.float64)
    center = np.asarray(kernel.space.center, dtype=np.float64)
    angles = (X - center) @ frequencies.T
    # What float32 loses of the centre is a constant part of the angles.
    offsets = frequencies @ (center - center.astype(np.float32))
    if kernel.phase == "aligned":
        return (angles - (offsets + kernel.phases)).node("Cos") * 2**0.5
    angles = angles - offsets
    parts = angles.node("Cos").node("Concat", angles.node("Sin"), axis=1)
    return parts.take(np.arange(2 * len(frequencies)).reshape(2, -1).T.ravel())


def linear_part(X: Tensor, kernel: Any) -> Tensor:
    """Return the columns of the linear part, centred and scaled."""
    scale, center = float(kernel.linear_scale), kernel.linear_center
    if center is None:
        return X * scale
    center = center.astype(np.float64)
    # What float32 loses of the centre is subtracted last, as for waves.
    return (X - center) * scale - scale * (center - center.astype(X.dtype))


def zonal(X: Tensor, kernel: Any) -> Tensor:
    """Return zonal harmonics at points of norm one; see `spaces.gegenbauer.zonal`."""
    poles, degrees = poles_and_degrees(kernel.frequencies.astype(np.float64))
    return polynomials(X @ poles.T, 1.0, poles.shape[1] / 2 - 1, degrees)


def harmonics(X: Tensor, kernel: Any) -> Tensor:
    """Return harmonics at points of norm one; see `spaces.harmonics.harmonics`."""
    indices = kernel.frequencies.astype(int)
    degrees, odd = np.abs(indices), indices[:, 0] < 0
    columns = [X.take([k]) for k in range(indices.shape[1] + 1)]
    # On the circle sqrt(2) (x + iy)^l: polynomials of x of order 0, and of order 1 times y.
    squares = columns[0] * columns[0] + columns[1] * columns[1]
    values = polynomials(columns[0], squares, 1.0 * odd, degrees[:, 0] - odd)
    values = values * (columns[1] * (2**0.5 * odd) + (1.0 - odd))
    for level, column in enumerate(columns[2:], start=2):
        squares = squares + column * column
        lower, upper = degrees[:, level - 2], degrees[:, level - 1]
        values = values * polynomials(column, squares, lower + (level - 1) / 2, upper - lower)
    return values * constants(indices)


def polynomials(x: Tensor, squares: Any, orders: Any, degrees: Array) -> Tensor:
    """Return homogeneous orthonormal Gegenbauer polynomials of x and the square of the radius."""
    values = before = x * np.zeros(len(degrees)) + 1.0
    for j in range(1, int(degrees.max()) + 1):
        b, b_before = recurrence(j, orders), recurrence(j - 1, orders) if j > 1 else 0.0
        following = values * x / b - before * squares * (b_before / b)
        # A column keeps its value after its degree.
        before, values = values, x.constant(degrees >= j).node("Where", following, values)
    return values


BASES: dict[type, Any] = {Euclidean: waves, ZonalSphere: zonal, HarmonicSphere: harmonics}
CONVERTERS: dict[type, Any] = {
    **dict.fromkeys((FourierFeatures, FourierClassifier, FourierRegressor), convert_estimator),
    NumberEncoder: convert_numbers,
    SimpleImputer: convert_imputer,
    OneHotEncoder: convert_one_hot,
}
