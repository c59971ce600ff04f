"""The bytes of skops files: zip archives of arrays, and of a schema with a class for each part."""

from __future__ import annotations

import io
import json
import math
import re
import struct
from collections.abc import Mapping
from typing import Any
from zipfile import ZipFile, ZipInfo

from numpy.lib import format as npy

SCHEMA, METADATA = "schema.json", "notsorandom.json"
# Classes whose instances a file may have.
OUR_CLASSES = """estimators.features.FourierFeatures estimators.classifier.FourierClassifier
kernel.LearnedKernel estimators.regressor.FourierRegressor game.solvers.GradientSolver
estimators.degrees.DegreeKernel estimators.degrees.SphereKernel
tabular.cleaner.TableCleaner game.solvers.EquilibriumSolver tabular.numbers.NumberEncoder
tabular.pipeline.TabularPipeline
spaces.euclidean.Euclidean spaces.sphere.Sphere spaces.harmonic_sphere.HarmonicSphere
spaces.zonal_sphere.ZonalSphere search.ascent.Ascent search.langevin.Langevin
search.finite.Enumerate search.finite.Chain game.losses.QuadraticLoss
game.losses.LogisticLoss game.losses.QuantileLoss
linear.ridge.RidgePosterior tuning.conformal.HeldOutScores""".split()
# The only function of ours: it makes names of columns.
OUR_FUNCTION = "notsorandom.tabular.pipeline.name_category"
OUR_NAMES = [f"notsorandom.{name}" for name in OUR_CLASSES]
# Classes of scikit-learn that compute with NumPy alone: forged attributes give an error at worst.
# The compiled code of trees, neighbours and kernel SVMs reads the memory that they point to.
SKLEARN_CLASSES = """Pipeline FeatureUnion ColumnTransformer TransformedTargetRegressor
make_column_selector FrozenEstimator SimpleImputer MissingIndicator KNNImputer StandardScaler
MinMaxScaler MaxAbsScaler RobustScaler Normalizer Binarizer PowerTransformer QuantileTransformer
KBinsDiscretizer OneHotEncoder OrdinalEncoder TargetEncoder LabelEncoder LabelBinarizer
FunctionTransformer VarianceThreshold SelectFromModel PCA TruncatedSVD Nystroem RBFSampler
LinearRegression Ridge RidgeCV RidgeClassifier RidgeClassifierCV Lasso LassoCV ElasticNet
ElasticNetCV BayesianRidge HuberRegressor LogisticRegression LogisticRegressionCV SGDClassifier
SGDRegressor LinearSVC LinearSVR VotingClassifier VotingRegressor StackingClassifier
StackingRegressor BaggingClassifier BaggingRegressor CalibratedClassifierCV _CalibratedClassifier
_SigmoidCalibration OneVsRestClassifier OneVsOneClassifier MultiOutputClassifier
MultiOutputRegressor""".split()
# What skops doesn't trust by itself, for ``skops.io.load``: it only holds data.
SKOPS_TYPES = [*OUR_NAMES, OUR_FUNCTION, "numpy.dtype", "numpy.number"]
SKOPS_TYPES += ["sklearn.utils._bunch.Bunch"]
SKOPS_TYPES += [f"sklearn.calibration.{name}" for name in SKLEARN_CLASSES if name[0] == "_"]
SKOPS_TYPES += ["sklearn.compose._column_transformer.make_column_selector"]
# Loaders of skops that only make data, and their classes. The only other functions that it trusts
# are ufuncs.
ALLOWED = re.compile(
    r"(Json|List|Tuple|Set|Slice|Dict)Node builtins\.(str|list|tuple|set|slice|dict)|"
    r"DictNode sklearn\.utils\._bunch\.Bunch|"
    r"TypeNode builtins\.(str|int|float|bool)|"
    r"(Type|NdArray)Node numpy\.(ndarray|number|bool_?|str_|u?int(8|16|32|64)|float(16|32|64))|"
    r"DTypeNode numpy\.dtype|"
    rf"FunctionNode ((numpy|scipy)\..+|{re.escape(OUR_FUNCTION)})|"
    rf"ObjectNode ({'|'.join(map(re.escape, OUR_NAMES))})|"
    rf"ObjectNode sklearn\.[\w.]+\.({'|'.join(SKLEARN_CLASSES)})"
)
BYTES_PER_VALUE = 24  # of a schema; skops writes 33, and fewer would take much memory
MAX_HEADER = 500  # of an array; the parser nests as deeply as a header is long
ZIP_HEADER, MIN_LENGTH = b"PK\x03\x04", 128  # of a file in an archive: as long as an array's header


def encode(value: Any) -> dict[str, bytes]:
    """Return the schema and the arrays of an object, by file name."""
    import skops.io

    with ZipFile(io.BytesIO(skops.io.dumps(value))) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    arrays: dict[str, bytes] = {}
    numbers: dict[Any, int] = {}

    def renumber(node: dict[str, Any]) -> dict[str, Any]:
        if isinstance(node.get("__loader__"), str):  # else the content of a node
            address, file = node.pop("__id__", None), node.get("file")  # an address in memory
            if file or node["__loader__"] == "TypeNode":
                node["__id__"] = numbers.setdefault(address, len(numbers) + 1)
            if file:
                node["file"] = f"{node['__id__']}.npy"
                arrays[node["file"]] = contents[file]
        return node

    schema = json.loads(contents[SCHEMA], object_hook=renumber)
    text = json.dumps(schema, indent=2).encode()
    check_schema(text)
    return {SCHEMA: text, **arrays}


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


def decode(data: bytes) -> Any:
    """Return the object in an archive, or raise an error before anything is made."""
    import skops.io

    files = unpack(data)
    check_schema(bytes(files[SCHEMA]))
    for name in files.keys() - {SCHEMA, METADATA}:
        check_array(name, files[name], len(data))
    return skops.io.loads(data, trusted=SKOPS_TYPES)


def check_schema(text: bytes) -> None:
    """Raise an error unless all nodes of a schema only make data."""
    if BYTES_PER_VALUE * sum(map(text.count, (b"[", b"{", b","))) > len(text):
        raise ValueError("its schema has too many values for its size")
    refused: set[str] = set()

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
                refused.add(name)
            elif node.get("file") != file or ("__id__" in node and not can_share):
                raise ValueError(f"an object of type {name} has a wrong number or file")
        return node.get("protocol")

    protocol = json.loads(text, object_hook=check_node)  # the outermost node comes last
    if refused:
        raise TypeError(
            f"model files can't have {', '.join(sorted(refused))}, only known classes of "
            "notsorandom, scikit-learn and NumPy"
        )
    if protocol < 2:  # there, the same loaders do other things
        raise ValueError(f"its schema has protocol {protocol!r}")


def check_array(name: str, content: Any, limit: int) -> None:
    """Raise ValueError unless an array file has exactly the numbers that its header announces."""
    header = io.BytesIO(content[: 2 * MAX_HEADER])
    if not re.fullmatch(r"[1-9]\d*\.npy", name) or npy.read_magic(header) != (1, 0):
        raise ValueError(f"its entry {name[:40]!r} is not an array")
    shape, _, dtype = npy.read_array_header_1_0(header, max_header_size=MAX_HEADER)
    is_whole = dtype.itemsize * math.prod(shape) == len(content) - header.tell()
    if not is_whole or dtype.itemsize == 0 or max(shape, default=0) > limit:
        raise ValueError(f"the array {name} has not the size that its header announces")
