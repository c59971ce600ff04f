"""Random damage to model files.

Each function of `DAMAGES` takes the content of a valid file, a generator, and the content of
another valid file, and returns the content of a damaged one.
"""

import copy
import io
import json
import os
import pickle
import struct
import warnings
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from notsorandom.io.archive import METADATA, SCHEMA, pack

# Variable of the environment with the path of a file that forged files try to create.
MARKER = "NOTSORANDOM_MARKER"


def unzip(content):
    """Return the files in an archive."""
    with ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def change(content, function, name=SCHEMA):
    """Return a file whose schema or metadata were changed by a function."""
    files = unzip(content)
    value = json.loads(files[name])
    function(value)
    return pack(files | {name: json.dumps(value, indent=2).encode()})


def array_bytes(array):
    """Return an array as the content of a .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def pick(rng, values):
    """Return one of several values, of any types."""
    values = list(values)
    return values[rng.integers(len(values))]


def arrays_of(files):
    """Return the names of the arrays in an archive."""
    return [name for name in files if name.endswith(".npy")]


# Damage.


def flip_bits(content, rng, other):
    """Change some bits of the file, or of a part whose checksum is made correct again."""
    files = unzip(content)
    name = pick(rng, files)
    is_part = rng.random() < 0.5
    changed = np.frombuffer(files[name] if is_part else content, np.uint8).copy()
    for place in rng.integers(len(changed), size=rng.integers(1, 9)):
        changed[place] ^= np.uint8(1 << rng.integers(8))
    return pack(files | {name: changed.tobytes()}) if is_part else changed.tobytes()


def cut(content, rng, other):
    """Leave out a part, or append something."""
    first, last = np.sort(rng.choice(len(content), size=2, replace=False))
    changes = [content[:first], content[:first] + content[last:], content + rng.bytes(9)]
    return bytes(pick(rng, changes))


def swap_parts(content, rng, other):
    """Take some parts from another file, or from another place of the same one."""
    files, others = unzip(content), unzip(other)
    for name in rng.permutation(list(files))[: rng.integers(1, 4)]:
        source = others if rng.random() < 0.5 else files
        names = arrays_of(source) if name.endswith(".npy") else [name]
        files[name] = source[pick(rng, names)]
    return pack(files)


def trick_zip(content, rng, other):
    """Use the zip format in other ways than `pack`: compressed, repeated, overlapping and so on."""
    files = unzip(content)
    name = pick(rng, files)
    kind = rng.integers(6)
    if kind == 1:  # a bomb
        bomb = arrays_of(files)[0]
        files[bomb] = files[bomb][:128] + bytes(2**24)
    entries = list(files.items())
    if kind == 2:
        entries.append((name, files[pick(rng, files)]))
    if kind == 3:
        extra = pick(rng, ["../x", "/x", "x.py", "0.npy", "1.npz", "schema.json/x", "x/"])
        entries.append((extra, b"content" * 30))
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # repeated names
        for each, data in entries:
            archive.writestr(ZipInfo(each), data, ZIP_DEFLATED if kind < 2 else ZIP_STORED)
    changed = bytearray(buffer.getvalue())
    if kind >= 4:  # a wrong size or place in the directory
        entry = pick(rng, [k for k in range(len(changed)) if changed[k : k + 4] == b"PK\x01\x02"])
        field, form = pick(rng, [(20, "<I"), (24, "<I"), (42, "<I"), (10, "<H"), (8, "<H")])
        value = pick(rng, [0, 1, 40, 1000, 65535, 2**31, 2**32 - 1])
        struct.pack_into(form, changed, entry + field, value % 2 ** (8 * struct.calcsize(form)))
        if kind == 5:
            struct.pack_into("<I", changed, entry + 42, 0)
    return bytes(changed)


def change_array(content, rng, other):
    """Forge the header of an array."""
    files = unzip(content)
    name = pick(rng, arrays_of(files))
    array = np.load(io.BytesIO(files[name]))
    start = 10 + int.from_bytes(files[name][8:10], "little")
    sizes = [0, 1, 2, 3, 8, -1, 10**6, 2**31, 2**63, 10**30]
    shape = tuple(pick(rng, sizes) for _ in range(rng.integers(0, 4)))
    types = ["<f8", "<f4", "<i8", "|b1", "<U3", "|O", "|V8", "<U0", "<c16", "<M8[ns]", "x"]
    header = {
        "descr": pick(rng, [array.dtype.str, pick(rng, types)]),
        "fortran_order": bool(rng.integers(2)),
        "shape": pick(rng, [array.shape, shape]),
    }
    text = pick(rng, [repr(header), repr(header)[:-1] + ", }", "(" * 5000, "-" * 9000 + "1"])
    data = text.encode() + b"\n"
    magic = b"\x93NUMPY" + pick(rng, [b"\x01\x00", b"\x02\x00", b"\x09\x00"])
    files[name] = magic + struct.pack("<H", len(data) % 2**16) + data + files[name][start:]
    return pack(files)


def change_numbers(content, rng, other):
    """Change numbers in arrays."""
    files = unzip(content)
    values = [np.nan, np.inf, -1.0, 0.0, 1e30, 1e300, -1e-30, 0.5, 3.0, 1e5]
    for name in rng.permutation(arrays_of(files))[: rng.integers(1, 4)]:
        array = np.load(io.BytesIO(files[name]))
        if array.dtype.kind in "fiu" and array.size:
            with np.errstate(all="ignore"):
                value = np.array(pick(rng, values)).astype(array.dtype)
            array.flat[rng.integers(array.size)] = value
            if rng.random() < 0.3:
                flat = array.ravel()
                array = pick(rng, [flat, array[..., None], flat[:1], array.astype(str)])
        files[name] = array_bytes(array)
    return pack(files)


def change_schema(content, rng, other):
    """Replace, move or delete values anywhere in the schema."""

    def function(schema):
        for _ in range(rng.integers(1, 4)):
            parent, key = random_place(schema, rng)
            kind = rng.integers(4)
            if kind == 0:
                del parent[key]
            elif kind == 3:
                parent[key] = random_value(rng)
            else:
                source = schema if kind == 2 else json.loads(unzip(other)[SCHEMA])
                other_parent, name = random_place(source, rng)
                parent[key] = copy.deepcopy(other_parent[name])

    if rng.random() < 0.02:
        nested = pick(rng, [b"[" * 10**5, b'{"a":' * 5000, b"[" + b"[]," * 10**5 + b"[]]"])
        return pack(unzip(content) | {SCHEMA: nested})
    return change(content, function)


def change_values(content, rng, other):
    """Change numbers, strings and flags of the schema, and nothing else."""
    values = [None, True, False, 0, 1, -1, 2, 3, 5, 64, 10**6, 2**31, 2**63, 0.5, 1e308, 10**10]
    values += ["", "auto", "paired", "squared", "hinge", "x", float("nan"), float("inf")]

    def function(schema):
        nodes = [node for node in nodes_of(schema) if node["__loader__"] == "JsonNode"]
        for _ in range(rng.integers(1, 4)):
            forged = [json.dumps(pick(rng, values)), pick(rng, nodes)["content"]]
            pick(rng, nodes)["content"] = pick(rng, forged)

    return change(content, function)


def change_metadata(content, rng, other):
    """Change the description of the file."""
    values = [None, 3, -1, "x", [], {}, {"a": "b"}, "unit", "missing", 5, float("nan"), "9.0"]

    def function(metadata):
        name = pick(rng, metadata)
        metadata[name] = pick(rng, values)
        if rng.random() < 0.2:
            del metadata[name]

    return change(content, function, METADATA)


def plant_code(content, rng, other):
    """Put nodes into the schema that would execute something."""

    def function(schema):
        parent, key = random_place(schema, rng, only_nodes=True)
        parent[key] = pick(rng, dangerous_nodes(parent[key]))

    return change(content, function)


def replace_content(content, rng, other):
    """Replace all of the file."""
    archive = io.BytesIO()
    np.savez(archive, a=np.zeros(3))
    contents = [b"", rng.bytes(500), b"PK\x03\x04" + rng.bytes(100), b"a,b,c\n1,2,3\n"]
    contents += [pickle.dumps(Payload()), archive.getvalue(), b"{}"]
    contents += [pack({}), pack({METADATA: b"{}"}), pack({SCHEMA: b"null", METADATA: b"[]"})]
    return bytes(pick(rng, contents))


DAMAGES = [flip_bits, cut, swap_parts, trick_zip, change_array, change_numbers]
DAMAGES += [change_schema, change_values, change_metadata, plant_code, replace_content]


# Parts of schemas.


def nodes_of(value):
    """Return all nodes of a schema."""
    is_container = isinstance(value, dict | list)
    children = (value.values() if isinstance(value, dict) else value) if is_container else ()
    found = [node for child in children for node in nodes_of(child)]
    return [value, *found] if isinstance(value, dict) and "__loader__" in value else found


def random_place(value, rng, only_nodes=False):
    """Return a container in a schema and one of its keys, on demand the key of a node."""
    places, stack = [], [value]
    while stack:
        parent = stack.pop()
        for key in list(parent) if isinstance(parent, dict) else range(len(parent)):
            child = parent[key]
            if not only_nodes or (isinstance(child, dict) and "__loader__" in child):
                places.append((parent, key))
            if isinstance(child, dict | list):
                stack.append(child)
    return pick(rng, places)


def random_value(rng):
    """Return a value that is likely to be wrong."""
    values = [None, True, -1, 0, 1, 2, 5, 10**30, 1e308, "", "null", "NaN", [], {}, "[]"]
    values += [json_node(value) for value in (None, -1, 0, 10**6, 2**40, 0.5, "auto", "x" * 1000)]
    values += ["builtins", "numpy", "float64", "ndarray", "dict", "list", "ObjectNode", "1.npy"]
    values += ["TreeNode", "MethodNode", "SetNode", "CachedNode", "SparseMatrixNode", "BytesNode"]
    values += ["sklearn.preprocessing._data", "StandardScaler", "FourierRegressor", "Euclidean"]
    return pick(rng, values)


def make_node(name, loader, **parts):
    """Return a node of a schema."""
    module, _, kind = name.rpartition(".")
    return {"__class__": kind, "__module__": module, "__loader__": loader, **parts}


def json_node(value):
    """Return the node of a number or string."""
    return make_node("builtins.str", "JsonNode", content=json.dumps(value), is_json=True)


def list_node(content):
    """Return the node of a list."""
    return make_node("builtins.list", "ListNode", content=content)


def dangerous_nodes(node):
    """Return nodes that execute something, unless they are refused."""
    command = f"touch {os.environ.get(MARKER, os.devnull)}"
    arguments = make_node("builtins.tuple", "TupleNode", content=[json_node(command)])
    system = make_node("os.system", "FunctionNode")
    empty = make_node("builtins.tuple", "TupleNode", content=[])
    keywords = make_node("builtins.dict", "DictNode", content={}, key_types=list_node([]))
    partial = {"func": system, "args": arguments, "kwds": keywords, "namespace": keywords}
    found = []
    for name in ("os.system", "builtins.eval", "builtins.exec", "subprocess.Popen", "posix.system"):
        found += [make_node(name, loader) for loader in ("FunctionNode", "TypeNode", "ObjectNode")]
        found += [make_node(name, "ConstructorFromReduceNode", content=arguments)]
        found += [make_node(name, "ListNode", content=[json_node(command)])]
        found += [make_node(name, "NdArrayNode", type="json", content=[], shape=empty)]
        found += [make_node(name, "LossNode", content=keywords, __reduce__={"args": arguments})]
        keys = list_node([make_node(name, "TypeNode")])
        found += [make_node("builtins.dict", "DictNode", content={command: node}, key_types=keys)]
    found += [make_node("functools.partial", "PartialNode", content=partial)]
    found += [make_node("operator.methodcaller", "OperatorFuncNode", attrs=arguments)]
    found += [make_node("operator.call", "OperatorFuncNode", attrs=arguments)]
    method = {"func": "system", "obj": make_node("os.PathLike", "ObjectNode")}
    found += [make_node("os.PathLike", "MethodNode", content=method)]
    tree = {"args": arguments}
    found += [make_node("sklearn.tree._tree.Tree", "TreeNode", content=keywords, __reduce__=tree)]
    found += [make_node("sklearn.svm._classes.SVC", "ObjectNode", content=keywords)]
    return found


class Payload:
    """An object that creates a file when its pickle is opened."""

    def __reduce__(self):
        return os.system, (f"touch {os.environ.get(MARKER, os.devnull)}",)
