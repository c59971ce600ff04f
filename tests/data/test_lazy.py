"""Rows that are read on demand equal the rows in memory, and few are in memory at a time."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import check_array

from notsorandom.data.lazy import LazyArray, validate_blocks
from notsorandom.data.rows import Rows
from notsorandom.spaces.sphere import directions

N_ROWS, WIDTH = 103, 5


def make_map(values, folder):
    np.save(folder / "X.npy", values)
    return np.load(folder / "X.npy", mmap_mode="r")


def choose_twice(values, folder):
    array = LazyArray(make_map(np.repeat(values, 2, axis=0), folder))
    return array.chosen(np.arange(0, 2 * N_ROWS, 2)[::-1]).chosen(np.arange(N_ROWS)[::-1])


KINDS = {
    "memory map": lambda values, folder: LazyArray(make_map(values, folder)),
    "some rows": choose_twice,
    "prepared": lambda values, folder: LazyArray(make_map(-values, folder)).prepared(np.negative),
    "prepared, some rows": lambda values, folder: (
        LazyArray(make_map(-values[::-1], folder))
        .chosen(np.arange(N_ROWS)[::-1])
        .prepared(lambda rows: 2 * rows)
        .prepared(lambda rows: rows / -2)
    ),
    "columns of a sparse array": lambda values, folder: LazyArray(
        sparse.csr_array(np.hstack([values, values])),
        lambda rows: rows.toarray()[:, :WIDTH],
        values,
    ),
}


@pytest.fixture(params=KINDS)
def lazy(request, values, tmp_path):
    return KINDS[request.param](values, tmp_path)


SLICES = [slice(None), slice(3, 58), slice(70, 200), slice(-3, None), slice(50, 50)]
SLICES += [slice(60, 50), slice(500, 600), slice(None, None, 7)]


@pytest.mark.parametrize("key", SLICES, ids=str)
def test_slices_equal_those_of_the_array(lazy, values, key):
    read = lazy[key]
    assert type(read) is np.ndarray
    assert read.dtype == lazy.dtype == np.float32
    np.testing.assert_array_equal(read, values[key])


@pytest.mark.parametrize("indices", [[], [0], [4, 4, 4], [102, 0, 50, 101, 50]], ids=str)
def test_rows_by_index_equal_those_of_the_array(lazy, values, indices):
    indices = np.array(indices, dtype=int)
    np.testing.assert_array_equal(lazy[indices], values[indices])
    mask = np.isin(np.arange(N_ROWS), indices)
    np.testing.assert_array_equal(lazy[mask], values[mask])


def test_rows_can_be_made_of_them(lazy, values):
    assert lazy.shape == values.shape
    assert len(lazy) == N_ROWS
    assert lazy.ndim == 2
    np.testing.assert_allclose(Rows(lazy).mean(), values.mean(axis=0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(Rows(lazy).take(np.array([3, 1])).array, values[[3, 1]])


def test_no_implicit_conversion_to_an_array(lazy):
    with pytest.raises(TypeError, match=r"of shape \(103, 5\) is not converted to an array"):
        np.asarray(lazy)


def test_float32_is_kept_and_other_types_become_float64(tmp_path):
    for dtype in (np.float32, np.float64, np.float16, np.int8, bool, ">f4", ">i8", np.longdouble):
        stored = np.arange(6).reshape(3, 2).astype(dtype)
        lazy = LazyArray(make_map(stored, tmp_path))
        wanted = np.float32 if dtype == np.float32 else np.float64
        for read in (lazy[1:], lazy[[1, 2]]):
            assert read.dtype == lazy.dtype == np.dtype(wanted)
        np.testing.assert_array_equal(lazy[:], stored)


def test_memory_of_reads_is_bounded(tmp_path, monkeypatch):
    n_rows, width = 40_000, 50
    X = np.random.default_rng(0).standard_normal((n_rows, width)).astype(np.float32)
    lazy = LazyArray(make_map(X, tmp_path)).prepared(directions)
    monkeypatch.setattr("notsorandom.data.lazy.CHECKED_BYTES", 2**18)
    tracemalloc.start()
    validate_blocks(lazy)
    validate_blocks(lazy.chosen(np.arange(0, n_rows, 3)))
    lazy[np.zeros(500, dtype=int)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**21 < X.nbytes / 3


@pytest.mark.parametrize(("bad", "what"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_validation_says_where_a_number_is_not_finite(values, tmp_path, monkeypatch, bad, what):
    monkeypatch.setattr("notsorandom.data.lazy.CHECKED_BYTES", 200)
    lazy = LazyArray(make_map(values, tmp_path))
    assert validate_blocks(lazy) is lazy
    values[77, 3] = bad
    for X in (values, values.astype(np.float16)):
        with pytest.raises(ValueError, match=f"Input X contains {what}, in row 77, column 3,"):
            validate_blocks(LazyArray(make_map(X, tmp_path)))


@pytest.mark.parametrize(("shape", "min_samples"), [((1, 3), 2), ((3, 0), 1)])
def test_too_few_rows_or_columns_have_the_error_of_scikit_learn(shape, min_samples, values):
    few = np.zeros(shape)
    with pytest.raises(ValueError, match="Found array with") as ours:
        validate_blocks(LazyArray(few), min_samples, "Model")
    with pytest.raises(ValueError, match="Found array with") as theirs:
        check_array(few, ensure_min_samples=min_samples, estimator="Model")
    assert str(ours.value) == str(theirs.value)
