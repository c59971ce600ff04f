"""The bytes of skops files: zip archives of arrays, and of a schema with a class for each part."""

from __future__ import annotations

import io
import json
import math
import re
import struct
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from sklearn.base import BaseEstimator

SCHEMA, METADATA = "schema.json", "notsorandom.json"
# Classes whose instances a file may have.
OUR_CLASSES = """estimators.features.FourierFeatures estimators.classifier.FourierClassifier
kernel.LearnedKernel estimators.regressor.FourierRegressor game.solvers.GradientSolver
estimators.degrees.DegreeKernel estimators.degrees.SphereKernel
tabular.cleaner.TableCleaner game.solvers.EquilibriumSolver tabular.numbers.NumberEncoder
tabular.pipeline.TabularPipeline
spaces.euclidean.Euclidean spaces.sphere.Sphere spaces.harmonic_sphere.HarmonicSphere
spaces.zonal_sphere.ZonalSphere search.ascent.Ascent search.langevin.Langevin
search.finite.Enumerate search.finite.Chain search.thorough.Thorough game.losses.QuadraticLoss
game.losses.LogisticLoss game.losses.QuantileLoss
linear.ridge.RidgePosterior tuning.conformal.HeldOutScores""".split()
# Of scikit-learn only what `tabular_pipeline` and a scaler or imputer before our estimators consist
# of. `io/steps.py` checks every attribute of these that ends in an index, a shape or compiled code.
SKLEARN_CLASSES = """pipeline.Pipeline compose._column_transformer.ColumnTransformer
compose._column_transformer.make_column_selector preprocessing._encoders.OneHotEncoder
preprocessing._data.StandardScaler preprocessing._data.MinMaxScaler
preprocessing._data.MaxAbsScaler preprocessing._data.RobustScaler impute._base.SimpleImputer
impute._base.MissingIndicator preprocessing._function_transformer.FunctionTransformer""".split()
# Functions that a file may name: those of ours that select columns and name them, and for a
# FunctionTransformer those of NumPy of one argument.
OUR_FUNCTIONS = [
    f"notsorandom.tabular.pipeline.{name}"
    for name in ("find_numbers", "find_categories", "name_category")
]
NUMPY_FUNCTIONS = """absolute cbrt exp expm1 log log10 log1p log2 negative reciprocal sign sqrt
square cos sin tan arctan arcsinh tanh""".split()
FUNCTIONS = [*OUR_FUNCTIONS, *(f"numpy.{name}" for name in NUMPY_FUNCTIONS)]
CLASSES = [f"notsorandom.{name}" for name in OUR_CLASSES]
CLASSES += [f"sklearn.{name}" for name in SKLEARN_CLASSES]
# Loaders of skops that only make data, and their classes.
ALLOWED = re.compile(
    r"(Json|List|Tuple|Set|Slice|Dict)Node builtins\.(str|list|tuple|set|slice|dict)|"
    r"TypeNode builtins\.(str|int|float|bool)|"
    r"(Type|NdArray)Node numpy\.(number|bool_?|str_|u?int(8|16|32|64)|float(16|32|64))|"
    r"NdArrayNode numpy\.ndarray|DTypeNode numpy\.dtype|"
    rf"FunctionNode ({'|'.join(map(re.escape, FUNCTIONS))})|"
    rf"ObjectNode ({'|'.join(map(re.escape, CLASSES))})"
)
# What skops doesn't trust by itself; nodes were checked before.
SKOPS_TYPES = [*CLASSES, *FUNCTIONS, "numpy.dtype", "numpy.number"]
BYTES_PER_VALUE = 24  # of a schema, of which spaces are a part: fewer would take much memory
SEPARATORS = f",{' ' * BYTES_PER_VALUE}", ": "
SCALARS = {str, int, float, bool, type(None)}
NAMES = "feature_names_in_"
MAX_HEADER = 500  # of an array; the parser nests as deeply as a header is long
ZIP_HEADER, MIN_LENGTH = b"PK\x03\x04", 128  # of a file in an archive: as long as an array's header


class UntrustedError(ValueError):
    """A file has classes or functions that are not loaded by default."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = sorted(names)


class Files(dict[str, bytes]):
    """Files by name, in place of the archive that skops would write to."""

    def namelist(self) -> Files:
        """Return the names."""
        return self

    def writestr(self, name: str, content: Any) -> None:
        """Add a file."""
        self[name] = bytes(content)


def import_skops() -> Any:
    """Import skops.io; with it comes all of scikit-learn, but not torch, CuPy and Dask."""
    names = [f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "cupy", "dask")]
    blocked = [name for name in names if name not in sys.modules]
    if "skops.io" not in sys.modules:
        sys.modules |= dict.fromkeys(blocked)  # type: ignore[arg-type]  # None: not importable
    try:
        import skops.io
    finally:
        for name in blocked:
            if sys.modules.get(name, "") is None:
                del sys.modules[name]
    return skops.io


class Plain:
    """A list or dict that JSON can write as it is, and so has one node."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def get_state(self, context: Any) -> dict[str, Any]:
        """Return the node, as skops makes it for a string."""
        content = json.dumps(self.value, separators=SEPARATORS)
        kind = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
        return {**kind, "content": content, "is_json": True}


def compact(value: Any) -> Any:
    """Return a copy that skops writes with few nodes, however many columns there are."""
    if type(value) in (list, dict) and value:  # what is empty may be more than data to its owner
        parts = value.values() if type(value) is dict else value
        lists = [part for part in parts if type(part) is list]
        types = {*map(type, parts), *(type(each) for part in lists for each in part)}
        types -= {list} if type(value) is dict else set()
        if types <= SCALARS and {*map(type, value)} <= ({str} if type(value) is dict else SCALARS):
            return Plain(value)
    if type(value) in (list, tuple):
        return type(value)(map(compact, value))
    if type(value) is dict:
        return {name: compact(part) for name, part in value.items()}
    if isinstance(value, BaseEstimator):
        copied = object.__new__(type(value))
        names = vars(value).get(NAMES, np.ones(1))
        is_text = {*map(type, names)} <= {str}
        parts = vars(value) | ({NAMES: names.tolist()} if is_text else {})
        copied.__dict__ |= {name: compact(part) for name, part in parts.items()}
        return copied
    return value


def restore_names(model: Any) -> None:
    """Make arrays of the names of columns, which are lists in a file."""
    for part in walk(model):
        names = getattr(part, "__dict__", {}).get(NAMES)
        if isinstance(names, list):
            part.feature_names_in_ = np.array(names, dtype=object)


def encode(value: Any) -> dict[str, bytes]:
    """Return the schema and the arrays of an object, by file name."""
    import_skops()
    from skops.io._utils import SaveContext, _get_state, get_state

    _get_state.register(Plain)(Plain.get_state)
    contents, arrays = Files(), dict[str, bytes]()
    context = SaveContext(contents)  # holds all objects, so that their addresses stay different
    schema = get_state(compact(value), context) | {"protocol": context.protocol}
    numbers: dict[Any, int] = {}
    stack: list[Any] = [schema]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            if isinstance(part.get("__loader__"), str):  # else the content of a node
                renumber(part, numbers, contents, arrays)
            stack += reversed(part.values())
        elif isinstance(part, (list, tuple)):
            stack += reversed(part)
    return {SCHEMA: json.dumps(schema, separators=SEPARATORS).encode(), **arrays}


def renumber(
    node: dict[str, Any], numbers: dict[Any, int], contents: Files, arrays: dict[str, bytes]
) -> None:
    """Replace addresses in memory in a node by numbers, and names of modules that may differ."""
    address, file = node.pop("__id__", None), node.get("file")
    if file or node["__loader__"] == "TypeNode":
        node["__id__"] = numbers.setdefault(address, len(numbers) + 1)
    if file:
        node["file"] = f"{node['__id__']}.npy"
        arrays[node["file"]] = contents[file]
    is_function = node["__loader__"] == "FunctionNode" and node["__class__"] in NUMPY_FUNCTIONS
    if is_function and node["__module__"].partition(".")[0] == "numpy":
        node["__module__"] = "numpy"  # before NumPy 2.4, any module that has it


def pack(files: Mapping[str, Any]) -> bytes:
    """Return a zip archive of files that are not compressed."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(ZipInfo(name), content)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, memoryview]:
    """Return the files in an archive; raise ValueError unless `pack` makes these bytes of them."""
    files: dict[str, memoryview] = {}
    end, length = 0, MIN_LENGTH
    while data.startswith(ZIP_HEADER, end) and length >= MIN_LENGTH:
        length, name_length = struct.unpack_from("<IH", data, end + 22)
        start = end + 30 + name_length
        end = start + length
        files[data[start - name_length : start].decode()] = memoryview(data)[start:end]
    if pack(files) != data:  # so nothing is compressed, repeated or shared either
        raise ValueError("its bytes are not as they were written")
    return files


def decode(data: bytes, trusted: Collection[str] = ()) -> Any:
    """Return the object in an archive, or raise an error before anything is made."""
    files = unpack(data)
    untrusted = check_schema(bytes(files[SCHEMA])).difference(trusted)
    if untrusted:
        raise UntrustedError(untrusted)
    for name in files.keys() - {SCHEMA, METADATA}:
        check_array(name, files[name], len(data))
    model = import_skops().loads(data, trusted=[*SKOPS_TYPES, *trusted])
    restore_names(model)
    return model


def walk(model: Any) -> Iterator[Any]:
    """Yield an object and all that it consists of, each once."""
    seen: set[int] = set()
    stack = [model]
    while stack:
        part = stack.pop()
        if type(part) in SCALARS or id(part) in seen or isinstance(part, (str, type)):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            stack += part.values()
        elif isinstance(part, (list, tuple, set)):
            stack += part
        elif isinstance(part, np.ndarray) and part.dtype == object:
            stack += part.ravel().tolist()
        stack += getattr(part, "__dict__", {}).values()


def check_schema(text: bytes) -> set[str]:
    """Return the names of classes and functions in a schema that are not loaded by default."""
    if BYTES_PER_VALUE * sum(map(text.count, (b"[", b"{", b","))) > len(text):
        raise ValueError("its schema has too many values for its size")
    untrusted: set[str] = set()

    def check_node(node: dict[str, Any]) -> Any:
        loader = node.get("__loader__")
        if isinstance(loader, str):  # else the content of a node
            name = f"{node['__module__']}.{node['__class__']}"
            # Only arrays and types have a number: skops would follow any number of paths to other
            # shared objects. An array has the number of its file, which skops would copy for
            # another number.
            is_array = loader == "NdArrayNode" and node["type"] == "numpy"
            file = f"{node['__id__']:d}.npy" if is_array else None
            can_share = is_array or loader == "TypeNode"
            if not ALLOWED.fullmatch(f"{loader} {name}"):
                untrusted.add(name)
            if node.get("file") != file or ("__id__" in node and not can_share):
                raise ValueError(f"an object of type {name} has a wrong number or file")
        return node.get("protocol")

    protocol = json.loads(text, object_hook=check_node)  # the outermost node comes last
    if protocol < 2:  # there, the same loaders do other things
        raise ValueError(f"its schema has protocol {protocol!r}")
    return untrusted


def check_array(name: str, content: Any, limit: int) -> None:
    """Raise ValueError unless an array file has exactly the numbers that its header announces."""
    header = io.BytesIO(content[: 2 * MAX_HEADER])
    if not re.fullmatch(r"[1-9]\d*\.npy", name) or npy.read_magic(header) != (1, 0):
        raise ValueError(f"its entry {name[:40]!r} is not an array")
    shape, _, dtype = npy.read_array_header_1_0(header, max_header_size=MAX_HEADER)
    is_whole = dtype.itemsize * math.prod(shape) == len(content) - header.tell()
    if not is_whole or dtype.itemsize == 0 or max(shape, default=0) > limit:
        raise ValueError(f"the array {name} has not the size that its header announces")
