"""Damaged and forged model files: every one must be refused cleanly, or be a sound model.

    python benchmarks/fuzz.py --files 100000

A few small models are saved; each file to load is one of them with something done to it: bits
flipped, an end cut off, headers exchanged, sizes lied about, anything in the header or the arrays
replaced and the digest made right again, or something else altogether under the name of a model.
Counts what came of it, by what was done. It fails at the first file that does anything but raise
FileFormatError or give a model that predicts; that takes more than a few seconds; that executes
what is in it; or that takes more memory than twice the file, and half a megabyte for what Python
itself takes.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import pickle
import signal
import tempfile
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import notsorandom
from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Sphere
from notsorandom.io.layout import KIND
from notsorandom.io.tensors import DIGEST, METADATA, new_digest

SECONDS = 5
# Modules, exceptions and their traces; small objects by the thousand.
ALLOWANCE = 2**19
# Stands for brackets in brackets in brackets.
DEEP = "deep"
Rng = np.random.Generator


def seeds(folder: Path, rng: Rng) -> list[bytes]:
    """Files of sound models, of all classes and spaces."""
    X = rng.normal(size=(60, 3))
    y = np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")
    names: dict[str, Any] = {"smoothing": 0.06, "random_state": 0}
    sphere = Sphere(normalize=True)
    wide = rng.normal(size=(60, 300))
    models = [
        FourierClassifier(8, **names).fit(X, y),
        FourierClassifier(8, class_weight={0: 2, 1: 1, 2: 1}, **names).fit(X, np.arange(60) % 3),
        FourierRegressor(8, phase="paired", **names).fit(X.astype(np.float32), X[:, :2]),
        FourierFeatures(8, early_stopping=True, **names).fit(X, y),
        FourierClassifier(8, space=sphere, search=notsorandom.Enumerate(2), **names).fit(X, y),
        FourierFeatures(8, space=Sphere("zonal", normalize=True), **names).fit(X, y),
        FourierClassifier(40, **names).fit(wide, y),
    ]
    return [
        model.save(folder / f"{number}.safetensors", {"accuracy": 0.9}).read_bytes()
        for number, model in enumerate(models)
    ]


def taken_apart(content: bytes) -> tuple[dict[str, Any], bytes]:
    """A file's header and data."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def put_together(header: dict[str, Any], data: bytes) -> bytes:
    """A file whose digest is right, whatever is in it."""
    header = copy.deepcopy(header)
    metadata = header.pop(METADATA, {})
    if isinstance(metadata, dict):
        metadata.pop(DIGEST, None)
        digest = new_digest(header, metadata)
        digest.update(data)
        metadata[DIGEST] = digest.hexdigest()
    text = json.dumps({METADATA: metadata, **header}).encode()
    return len(text).to_bytes(8, "little") + text + data


def flipped(content: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """Some bits, anywhere or in the header, are not what they were."""
    changed = np.frombuffer(content, np.uint8).copy()
    end = len(changed) if rng.random() < 0.5 else min(len(changed), 4000)
    for place in rng.integers(end, size=rng.integers(1, 9)):
        changed[place] ^= np.uint8(1 << rng.integers(8))
    return changed.tobytes()


def cut(content: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """An end, or a piece, is missing, or there is more than there should be."""
    first, last = np.sort(rng.integers(len(content) + 1, size=2))
    kind = rng.integers(3)
    if kind == 0:
        return content[:first]
    if kind == 1:
        return content[:first] + content[last:]
    return content + rng.bytes(int(rng.integers(1, 100)))


def exchanged(content: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """The header of another file; its digest right, or not."""
    header, data = taken_apart(content)
    other, _ = taken_apart(others[rng.integers(len(others))])
    if rng.random() < 0.5:
        return put_together(other, data)
    mixed = {name: entry for name, entry in header.items() if name != METADATA}
    return put_together({**mixed, METADATA: other[METADATA]}, data)


def lied(content: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """Sizes, shapes, types and places that aren't so, with a digest that is right."""
    if rng.random() < 0.2:
        return int(rng.integers(2**63)).to_bytes(8, "little") + content[8:]
    header, data = taken_apart(content)
    names = [name for name in header if name != METADATA]
    entry = header[names[rng.integers(len(names))]]
    key = ("shape", "data_offsets", "dtype")[rng.integers(3)]
    if key == "dtype":
        entry[key] = str(rng.choice(["F64", "F32", "I64", "I32", "U8", "BOOL", "F16", "C64", ""]))
    else:
        entry[key] = [huge(rng) for _ in range(rng.integers(0, 4))]
    return put_together(header, data)


def huge(rng: Rng) -> Any:
    """A size, out of a nightmare perhaps."""
    return [0, 1, -1, 3, 8, 10**6, 2**31, 2**63, 10**30, True, 0.5, "8", None][rng.integers(13)]


def forged(content: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """Something else somewhere in what the header says of the model, with a right digest."""
    header, data = taken_apart(content)
    told = json.loads(header[METADATA][KIND])
    for _ in range(rng.integers(1, 4)):
        place, key = any_place(told, rng)
        kind = rng.integers(3)
        if kind == 0:
            del place[key]
        elif kind == 1:
            place[key] = any_value(rng, told)
        else:
            other, name = any_place(told, rng)
            place[key] = copy.deepcopy(other[name])
        if not told:
            break
    depth = int(rng.integers(1, 4000))
    header[METADATA][KIND] = json.dumps(told).replace(f'"{DEEP}"', "[" * depth + "]" * depth)
    return put_together(header, data)


def any_place(told: Any, rng: Rng) -> tuple[Any, Any]:
    """A container somewhere in a nested value, and a key of it."""
    place, key = told, list(told)[rng.integers(len(told))]
    while isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.8:
        place = place[key]
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = keys[rng.integers(len(keys))]
    return place, key


def any_value(rng: Rng, told: Any) -> Any:
    """Something that shouldn't be there."""
    values: list[Any] = [None, True, -1, 0, 1, 2, 10**30, 1e308, -1e-308, "", "nan", "auto", [], {}]
    values += [{"number": "nan"}, {"number": "inf"}, {"object": "Euclidean", "parameters": {}}]
    values += [{"array": "kernel.frequencies", "dtype": "f8"}, {"array": "coef_", "dtype": "O"}]
    values += [{"object": "os.system", "parameters": {"command": "true"}}, {"pairs": [[1, 2]]}]
    values += ["FourierRegressor", "FourierFeatures", "squared", "paired", "x" * 1000, DEEP]
    return values[rng.integers(len(values))]


def scrambled(content: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """Other numbers in the arrays, with a right digest."""
    header, data = taken_apart(content)
    changed = np.frombuffer(data, np.uint8).copy()
    start = int(rng.integers(len(changed)))
    size = int(rng.integers(1, 64))
    wild = np.array([np.nan, np.inf, -1.0, 0.0, 1e300, -1e-300, 0.5, 3.0])
    with np.errstate(over="ignore"):
        part = rng.choice(wild, size=8).astype(rng.choice(["f4", "f8"])).tobytes()
    filling = part if rng.random() < 0.5 else rng.bytes(size)
    filling = filling[: len(changed) - start]
    changed[start : start + len(filling)] = np.frombuffer(filling, np.uint8)
    return put_together(header, changed.tobytes())


def disguised(content: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """Something else altogether."""
    bomb = b'{"a":' * int(rng.integers(1, 5000))
    many = b"[" + b"[]," * int(rng.integers(1, 5000)) + b"[]]"
    kinds = [
        b"",
        rng.bytes(int(rng.integers(0, 5000))),
        pickle.dumps(Payload()),
        b"PK\x03\x04" + rng.bytes(100),
        b"a,b,c\n1,2,3\n",
        len(bomb).to_bytes(8, "little") + bomb,
        len(many).to_bytes(8, "little") + many,
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (4).to_bytes(8, "little") + b"null",
    ]
    return kinds[rng.integers(len(kinds))]


class Payload:
    """What a pickle would execute."""

    marker = ""

    def __reduce__(self) -> Any:
        return os.mkdir, (self.marker,)


WAYS: list[Callable[[bytes, Rng, list[bytes]], bytes]] = [
    flipped,
    cut,
    exchanged,
    lied,
    forged,
    scrambled,
    disguised,
]


def outcome_of(path: Path) -> str:
    """Load a file: refused, or a model that predicts; whatever else comes of it is raised."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        model = notsorandom.load(path)
    except notsorandom.FileFormatError:
        model = None
    peak = tracemalloc.get_traced_memory()[1] - before
    size = path.stat().st_size
    if peak > 2 * size + ALLOWANCE:
        raise AssertionError(f"{peak:,} bytes of memory for a file of {size:,}")
    if model is None:
        return "refused"
    X = np.random.default_rng(0).normal(size=(3, model.n_features_in_))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = model.transform(X) if hasattr(model, "transform") else model.predict(X)
    assert len(made) == 3
    return "sound"


def fuzz(
    n_files: int, seed: int = 0, tell: Callable[[str], None] = lambda line: None
) -> Counter[str]:
    """Load so many damaged files; count what came of them by what was done to them."""
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Payload.marker = str(folder / "executed")
        files = seeds(folder, rng)
        path = folder / "mutant.safetensors"
        tracemalloc.start()
        try:
            for number in range(n_files):
                way = WAYS[number % len(WAYS)]
                content = way(files[rng.integers(len(files))], rng, files)
                path.write_bytes(content)
                signal.alarm(SECONDS)
                try:
                    counts[f"{way.__name__}, {outcome_of(path)}"] += 1
                except BaseException:
                    kept = Path(f"mutant-{seed}-{number}.safetensors").resolve()
                    kept.write_bytes(content)
                    tell(f"file {number} ({way.__name__}) is kept as {kept}")
                    raise
                finally:
                    signal.alarm(0)
                assert not Path(Payload.marker).exists(), "a file was executed"
                if (number + 1) % 10_000 == 0:
                    tell(f"{number + 1:,} files")
        finally:
            tracemalloc.stop()
    return counts


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = fuzz(options.files, options.seed, print)
    for name in sorted(counts):
        print(f"{name}: {counts[name]:,}")
    print(f"{sum(counts.values()):,} files, each refused or sound")


if __name__ == "__main__":
    main()
