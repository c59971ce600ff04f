"""The content of checkpoint files: arrays in bounded memory, and checks of what they hold."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom._utils.files import open_atomic
from notsorandom._utils.parameters import MAX_NUMBER
from notsorandom.data.rows import Array, row_norms
from notsorandom.game.problem import Problem
from notsorandom.game.state import (
    ACTIVE_SET_ARRAYS,
    ActiveSet,
    GameState,
    Move,
    Round,
)
from notsorandom.spaces.base import FiniteSpace, ResolvedSpace
from notsorandom.tuning.choice import Choice, FitConfig
from notsorandom.tuning.linear_trials import LINEAR_WEIGHTS

# Most bytes of the header, which has parameters and a few numbers.
MAX_HEADER_BYTES = 2**22
# Limits of the numbers of a game, which are far smaller: sums of squares of them are finite.
LIMITS = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e150}
# Rounding of the sum of the weights, and of the lengths of zonal frequencies.
SUM_TOLERANCE = 1e-3
SIZE_NAMES = {"validation_sizes_", "validation_losses_", "validation_scores_"}
# Columns of the trials' table, and the kinds of their data types.
TABLE_KINDS = {
    "spectrum": "U",
    "smoothing": "f",
    "n_columns": "i",
    "linear": "f",
    "C": "f",
    "n_components": "i",
    "loss": "f",
    "standard_error": "f",
    "temperature": "f",
}
# Arrays of the moves, in the order of Move.
MOVE_ARRAYS = ("frequencies", "phases", "coefficients")
STATUSES = ("complete", "stopped", "flat")


# The file: a NumPy archive, not compressed. Its array "header" is JSON, in which {"array": name}
# stands for another array.


def write_archive(path: Path, contents: dict[str, Any]) -> None:
    """Write nested dicts of plain values and arrays."""
    arrays: dict[str, Array] = {}
    header = extract_arrays(contents, "fit", arrays)
    text = json.dumps(header, default=lambda number: number.item()).encode()
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(f"the parameters take more than {MAX_HEADER_BYTES:,} bytes")
    with open_atomic(path) as file:
        np.savez(file, **arrays, header=np.frombuffer(text, dtype=np.uint8))  # type: ignore[arg-type]


def extract_arrays(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """Move the arrays of nested dicts to `arrays`; dicts with their names take their places."""
    if isinstance(value, dict):
        return {key: extract_arrays(part, f"{name}.{key}", arrays) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    return value


@contextmanager
def open_archive(path: Path) -> Iterator[tuple[zipfile.ZipFile, str]]:
    """Return an archive and its header; raise an error if it holds more bytes than the file."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        is_stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        total = sum(member.file_size for member in members)
        require(is_stored and total <= path.stat().st_size, "size of the arrays")
        header_size = archive.getinfo("header.npy").file_size
        require(header_size <= 2 * MAX_HEADER_BYTES, "size of the header")
        yield archive, read_array(archive, "header").tobytes().decode()


def read_fit(header: str) -> dict[str, str]:
    """Return the parameters and data digests in a header."""
    fit = json.loads(header)["fit"]
    require(all(type(text) is str for text in (*fit.keys(), *fit.values())), "fit")
    return dict(fit)


def read_contents(archive: zipfile.ZipFile, header: str) -> dict[str, Any]:
    """Return the header with its arrays."""
    arrays = {name[:-4]: read_array(archive, name[:-4]) for name in archive.namelist()}
    contents: dict[str, Any] = json.loads(
        header, object_hook=lambda part: arrays[part["array"]] if "array" in part else part
    )
    require(type(contents["seed"]) is int and 0 <= contents["seed"] < 2**31, "seed")
    return contents


def read_array(archive: zipfile.ZipFile, name: str) -> Array:
    """Return an array; its shape must match the bytes that there are."""
    content = archive.read(f"{name}.npy")
    file = io.BytesIO(content)
    require(np.lib.format.read_magic(file) == (1, 0), "format of an array")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    values = np.frombuffer(content, dtype, offset=file.tell())
    return values.reshape(shape, order="F" if is_fortran else "C").copy()


# The contents.


def require(condition: Any, name: str) -> None:
    """Raise ValueError unless a condition holds."""
    if not condition:
        raise ValueError(f"{name} is not valid")


def check_chosen(choice: Choice, config: FitConfig) -> None:
    """Raise an error unless trials could have made a choice."""
    require(type(choice.candidate.smoothing) is float, "smoothing")
    candidate = choice.candidate
    require(type(candidate.linear) is bool and config.allows(candidate), "candidate")
    weight, linear_c = choice.linear_weight, choice.linear_c
    if candidate.linear:
        require(weight in (*LINEAR_WEIGHTS, 1.0) and type(weight) is float, "linear_weight")
        require(type(linear_c) is float and 1 / MAX_NUMBER <= linear_c <= MAX_NUMBER, "linear_c")
    else:
        require(weight == 0 and linear_c is None, "linear_weight")
    for value in (choice.C, choice.temperature):
        require(type(value) is float and 1 / MAX_NUMBER <= value <= MAX_NUMBER, "C or temperature")
    require(config.C is None or choice.C in config.C, "C")
    if choice.n_components is not None:
        n_columns = config.space.n_columns(config.phase)
        sizes = range(n_columns, config.n_components + 1, n_columns)
        require(config.size != "given" and type(choice.n_components) is int, "n_components")
        require(choice.n_components in sizes, "n_components")
    if choice.sizes is not None:
        require(choice.n_components is not None and set(choice.sizes) == SIZE_NAMES, "sizes")
        check_columns(choice.sizes)
    held_out = {"losses": choice.held_out_losses, "counts": choice.held_out_counts}
    if config.calibrated and choice.table is not None:
        check_columns(held_out)
    else:
        require(set(held_out.values()) == {None}, "held_out")
    if choice.table is not None:
        require(set(choice.table) == set(TABLE_KINDS), "table")
        check_columns(choice.table)
        for name, kind in TABLE_KINDS.items():
            require(choice.table[name].dtype.kind == kind, name)
        for name in ("smoothing", "n_columns", "linear", "C", "n_components", "temperature"):
            require((choice.table[name] >= 0).all(), name)


def check_columns(table: Any) -> int:
    """Return the length of a dict of columns; raise an error unless they are equally long."""
    lengths = {len(column) for column in table.values()}
    require(len(lengths) == 1 and all(type(name) is str for name in table), "columns")
    for column in table.values():
        require(type(column) is np.ndarray and column.ndim == 1, "columns")
        require(column.dtype.kind in "ifU" and len(column) > 0, "columns")
    return lengths.pop()


def restore_state(
    parts: Any, config: FitConfig, space: ResolvedSpace, problem: Problem
) -> GameState:
    """Return the state of a game that isn't over; raise an error unless it could be one."""
    arrays, history = parts["active_set"], parts["history"]
    require(set(arrays) == set(ACTIVE_SET_ARRAYS), "active_set")
    check_frequencies(arrays, space, problem)
    active_set = ActiveSet.from_arrays(space.kind == "finite", arrays)
    n_rounds, n_plays = check_history(history, active_set), parts["n_plays"]
    n_frequencies = config.n_frequencies
    require(config.solver.has_rounds, "state")
    most: Any = getattr(config.solver, "n_rounds", "auto")
    require(len(active_set) < n_frequencies, "active_set")
    require(n_rounds < (n_frequencies if most == "auto" else most), "history")
    require(type(n_plays) is int and n_plays == history["plays"].sum() > 0, "n_plays")
    require(abs(arrays["weights"].sum() / n_plays - 1) < SUM_TOLERANCE, "weights")
    require(type(parts["flat"]) is bool, "flat")
    moves: tuple[Move, ...] = ()
    if problem.rows.is_local:
        for name, factor in (("dual", 1), ("dual_total", n_plays)):
            check_dual(parts[name], problem, factor)
    else:
        require(parts["dual"] is None and parts["dual_total"] is None, "dual")
        moves = restore_moves(parts["moves"], space, config.phase, problem, n_rounds)
    generator = np.random.default_rng(0).bit_generator
    generator.state = parts["random_state"]
    require(generator.state == parts["random_state"], "random_state")
    rounds = zip(*(history[name].tolist() for name in history), strict=True)
    restored = [dict(zip(history, values, strict=True)) for values in rounds]
    arrays = {"space": space, "active_set": active_set, "history": restored, "moves": moves}
    return GameState(**(parts | arrays))


def moves_to_arrays(moves: tuple[Move, ...]) -> dict[str, Array]:
    """Return the moves of all rounds as arrays, by name."""
    return {
        "sizes": np.array([len(move.phases) for move in moves]),
        "steps": np.array([move.step for move in moves], dtype=np.float64),
    } | {name: np.concatenate([getattr(move, name) for move in moves]) for name in MOVE_ARRAYS}


def restore_moves(
    parts: Any, space: ResolvedSpace, phase: str, problem: Problem, n_rounds: int
) -> tuple[Move, ...]:
    """Return the moves that :func:`moves_to_arrays` gave; raise an error unless they are some."""
    require(set(parts) == {"sizes", "steps", *MOVE_ARRAYS}, "moves")
    sizes, steps, coefficients = parts["sizes"], parts["steps"], parts["coefficients"]
    require(sizes.shape == steps.shape == (n_rounds,) and sizes.dtype.kind == "i", "moves")
    require((sizes > 0).all() and sizes.sum() == len(parts["phases"]), "moves")
    check_frequencies(parts, space, problem, ("phases",))
    shape = (len(parts["phases"]), space.n_columns(phase), problem.n_tasks)
    require(coefficients.shape == shape, "moves")
    for values in (steps, coefficients):
        require(values.dtype.kind == "f", "moves")
        require((np.abs(values) <= LIMITS[problem.dtype]).all(), "moves")
    ends = np.cumsum(sizes)[:-1]
    cut = (np.split(parts[name], ends) for name in MOVE_ARRAYS)
    return tuple(Move(*each) for each in zip(*cut, steps.tolist(), strict=True))


def check_frequencies(
    arrays: Any,
    space: ResolvedSpace,
    problem: Problem,
    names: tuple[str, ...] = ACTIVE_SET_ARRAYS[1:],
) -> None:
    """Raise an error unless arrays have frequencies of the space, with their numbers."""
    frequencies, limit = arrays["frequencies"], LIMITS[problem.dtype]
    n_features = problem.rows.n_features
    require(frequencies.ndim == 2 and len(frequencies) > 0, "frequencies")
    require(space.n_features(frequencies) == n_features, "frequencies")
    if isinstance(space, FiniteSpace):
        known = space.all_frequencies(n_features)
        allowed = {one.tobytes() for one in known}
        require(frequencies.dtype == known.dtype, "frequencies")
        require(all(one.tobytes() in allowed for one in frequencies), "frequencies")
        is_distinct = len({one.tobytes() for one in frequencies}) == len(frequencies)
        require(is_distinct or "weights" not in names, "frequencies")  # moves may repeat them
    else:
        require(frequencies.dtype == problem.dtype, "frequencies")
        require((np.abs(frequencies) <= limit).all(), "frequencies")
    if not (space.is_vector_space or isinstance(space, FiniteSpace)):  # poles times degrees
        norms = row_norms(frequencies.astype(np.float64))
        degrees = np.rint(norms)
        require((abs(norms - degrees) < SUM_TOLERANCE).all() and degrees.min() >= 1, "frequencies")
        require(degrees.max() <= getattr(space, "max_degree", math.inf), "frequencies")
    for name in names:
        values = arrays[name]
        require(values.dtype.kind == "f" and values.shape == frequencies.shape[:1], name)
        require((np.abs(values) <= limit).all(), name)
        require(name == "phases" or (values >= 0).all(), name)


def check_dual(dual: Any, problem: Problem, factor: int = 1) -> None:
    """Raise an error unless an array has dual variables, or sums of `factor` of them."""
    require(dual.shape == tuple(problem.targets.shape) and dual.dtype == problem.dtype, "dual")
    require((np.abs(dual) <= factor * LIMITS[problem.dtype]).all(), "dual")


def check_history(history: Any, active_set: Any) -> int:
    """Return the number of rounds of a history; raise an error unless it is one."""
    types = {field.name: "i" if field.type == "int" else "f" for field in fields(Round)}
    require({name: column.dtype.kind for name, column in history.items()} == types, "history")
    n_rounds, counts = check_columns(history), history["n_frequencies"]
    require(counts[-1] == len(active_set) and (np.diff(counts) >= 0).all(), "history")
    require(counts[0] > 0 and (history["plays"] > 0).all(), "history")
    return n_rounds
