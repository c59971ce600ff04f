"""Arrays that are read on demand have the same rows as in memory, and bounded reads."""

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reference import CountingArray
from sklearn.utils import check_array

from notsorandom.data.lazy import LazyArray, PreparedArray, RowSubset, SlicedArray, validate_blocks
from notsorandom.data.rows import Rows
from notsorandom.spaces.sphere import directions

pytestmark = pytest.mark.usefixtures("quick_trials")

N_ROWS, WIDTH = 103, 5


@pytest.fixture
def values():
    return np.random.default_rng(0).standard_normal((N_ROWS, WIDTH)).astype(np.float32)


def make_zarr(values, folder, chunks):
    zarr = pytest.importorskip("zarr", reason="needs zarr: pip install 'notsorandom[all]'")
    array = zarr.open(str(folder), mode="w", shape=values.shape, chunks=chunks, dtype=values.dtype)
    array[:] = values
    return array


def make_map(values, folder):
    np.save(folder / "X.npy", values)
    return np.load(folder / "X.npy", mmap_mode="r")


KINDS = {
    "zarr": lambda values, folder: SlicedArray(make_zarr(values, folder, (10, 2))),
    "zarr, one chunk": lambda values, folder: SlicedArray(make_zarr(values, folder, values.shape)),
    "zarr, one row per chunk": lambda values, folder: SlicedArray(
        make_zarr(values, folder, (1, WIDTH))
    ),
    "no chunks": lambda values, folder: SlicedArray(CountingArray(values)),
    "chunks": lambda values, folder: SlicedArray(CountingArray(values, (7, WIDTH))),
    "memory map": lambda values, folder: SlicedArray(make_map(values, folder)),
    "subset": lambda values, folder: RowSubset(
        make_map(np.repeat(values, 2, axis=0), folder), np.arange(N_ROWS) * 2
    ),
    "subset of a subset": lambda values, folder: RowSubset(
        RowSubset(
            SlicedArray(CountingArray(np.vstack([values[:4], values]), (7, 1))),
            np.arange(2, N_ROWS + 4),
        ),
        np.arange(2, N_ROWS + 2),
    ),
    "prepared": lambda values, folder: PreparedArray(make_map(-values, folder), np.negative),
}


@pytest.fixture(params=KINDS)
def lazy(request, values, tmp_path):
    return KINDS[request.param](values, tmp_path)


@pytest.mark.parametrize(
    "key",
    [
        slice(None),
        slice(0, 10),
        slice(3, 58),
        slice(20, 23),
        slice(70, 200),
        slice(-3, None),
        slice(50, 50),
        slice(60, 50),
        slice(500, 600),
        slice(None, None, 7),
        slice(None, None, -3),
    ],
    ids=str,
)
def test_slices_equal_those_of_the_array(lazy, values, key):
    for _ in range(2):  # the second time from the cache
        read = lazy[key]
        assert type(read) is np.ndarray
        assert read.dtype == np.float32
        np.testing.assert_array_equal(read, values[key])


@pytest.mark.parametrize(
    "indices",
    [[], [0], [4, 4, 4], [102, 0, 50, 101, 50], list(range(40, 90)), list(range(0, N_ROWS, 9))],
    ids=str,
)
def test_rows_by_index_equal_those_of_the_array(lazy, values, indices):
    np.testing.assert_array_equal(lazy[indices], values[np.array(indices, dtype=int)])
    mask = np.isin(np.arange(N_ROWS), indices)
    np.testing.assert_array_equal(lazy[mask], values[mask])


@pytest.mark.parametrize("read_bytes", [1, 200, 1000])
@pytest.mark.parametrize("cache_bytes", [1, 150, 10_000])
def test_sizes_of_reads_and_cache_change_no_row(values, read_bytes, cache_bytes):
    rng = np.random.default_rng(1)
    for chunks in (None, (1, 1), (7, 5), (50, 5), (1000, 5)):
        lazy = SlicedArray(CountingArray(values, chunks), read_bytes, cache_bytes)
        for _ in range(20):
            indices = rng.integers(N_ROWS, size=rng.integers(60))
            np.testing.assert_array_equal(lazy[indices], values[indices])
            start, stop = rng.integers(N_ROWS, size=2)
            np.testing.assert_array_equal(lazy[start:stop], values[start:stop])


def test_rows_can_be_made_of_them(lazy, values):
    assert lazy.shape == values.shape
    assert len(lazy) == N_ROWS
    assert lazy.ndim == 2
    assert isinstance(lazy, LazyArray)
    np.testing.assert_allclose(Rows(lazy).mean(), values.mean(axis=0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(Rows(lazy).take(np.array([3, 1])).array, values[[3, 1]])


def test_pickle(lazy, values):
    lazy[3:5]
    again = pickle.loads(pickle.dumps(lazy))
    assert type(again) is type(lazy)
    np.testing.assert_array_equal(again[3:50], values[3:50])


def test_no_implicit_conversion_to_an_array(lazy):
    with pytest.raises(TypeError, match=r"of shape \(103, 5\) is not converted to an array"):
        np.asarray(lazy)


def test_float32_is_kept_and_other_types_become_float64():
    for dtype in (np.float32, np.float64, np.float16, np.int8, bool, ">f4", ">i8", np.longdouble):
        stored = np.arange(6).reshape(3, 2).astype(dtype)
        lazy = SlicedArray(CountingArray(stored, (2, 2)))
        wanted = np.float32 if dtype == np.float32 else np.float64
        for read in (lazy[1:], lazy[:2], lazy[[1, 2]]):
            assert read.dtype == lazy.dtype == np.dtype(wanted)
        np.testing.assert_array_equal(lazy[:], stored)
    with pytest.raises(ValueError, match=r"X has type <U1: it must have numbers"):
        SlicedArray(CountingArray(np.array([["a"]])))
    for shape in ((3,), (3, 2, 1)):
        with pytest.raises(ValueError, match=f"Expected 2D array, got {len(shape)}D array instead"):
            SlicedArray(CountingArray(np.zeros(shape)))


def test_an_array_that_shrinks_is_an_error(values):
    stored = CountingArray(values)
    lazy = SlicedArray(stored)
    stored.values = values[:50]
    with pytest.raises(ValueError, match=r"Rows 40 to 60 of X have shape \(10, 5\), but the shape"):
        lazy[40:60]


def test_only_needed_chunks_are_read(values):
    stored = CountingArray(values, (10, WIDTH))
    SlicedArray(stored)[[95, 12, 3, 14, 14, 45, 51]]
    touched = {row // 10 for start, stop in stored.reads for row in range(start, stop)}
    assert touched == {0, 1, 4, 5, 9}


def test_a_pass_in_small_slices_reads_each_chunk_once(values):
    for step in (1, 3, 10, 13, 25):
        stored = CountingArray(values, (10, WIDTH))
        lazy = SlicedArray(stored)
        for start in range(0, N_ROWS, step):
            lazy[start : start + step]
        assert sum(stop - start for start, stop in stored.reads) == N_ROWS
        stored.reads.clear()
        some = RowSubset(SlicedArray(stored), np.arange(0, N_ROWS, 2))
        for start in range(0, len(some), step):
            some[start : start + step]
        assert sum(stop - start for start, stop in stored.reads) <= N_ROWS


def test_threads_read_the_same(values, tmp_path):
    lazy = SlicedArray(make_zarr(values, tmp_path, (10, WIDTH)))
    starts = np.random.default_rng(0).integers(N_ROWS, size=300)
    with ThreadPoolExecutor(4) as pool:
        for start, read in zip(starts, pool.map(lambda at: lazy[at : at + 4], starts), strict=True):
            np.testing.assert_array_equal(read, values[start : start + 4])


def test_the_cache_is_read_only(values):
    lazy = SlicedArray(CountingArray(values, (10, WIDTH)))
    part = lazy[3:5]
    with pytest.raises(ValueError, match="read-only"):
        part[:] = 0
    np.testing.assert_array_equal(lazy[3:5], values[3:5])


def test_memory_of_reads_is_bounded():
    n_rows, width = 40_000, 50
    values = np.random.default_rng(0).standard_normal((n_rows, width)).astype(np.float32)
    lazy = PreparedArray(SlicedArray(CountingArray(values, (300, width)), 2**18, 2**18), directions)
    chosen = RowSubset(lazy, np.arange(0, n_rows, 3))
    few = np.random.default_rng(0).integers(n_rows, size=500)
    tracemalloc.start()
    validate_blocks(lazy, read_bytes=2**18)
    validate_blocks(chosen, read_bytes=2**18)
    lazy[few]
    lazy[np.zeros(500, dtype=int)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**21 < values.nbytes / 3


def test_prepared_rows_equal_those_of_the_whole(values, tmp_path):
    lazy = PreparedArray(make_map(values, tmp_path), directions)
    np.testing.assert_array_equal(lazy[10:20], directions(values)[10:20])
    np.testing.assert_array_equal(lazy[[5, 5, 1]], directions(values)[[5, 5, 1]])
    assert lazy[5:5].shape == (0, WIDTH)


# Validation


def test_validation_says_where_a_number_is_not_finite(values):
    lazy = SlicedArray(CountingArray(values, (10, WIDTH)))
    assert validate_blocks(lazy, read_bytes=200) is lazy
    for bad, what in ((np.nan, "NaN"), (-np.inf, "infinity")):
        values[77, 3] = bad
        with pytest.raises(ValueError, match=f"Input X contains {what}, in row 77, column 3,"):
            validate_blocks(SlicedArray(CountingArray(values, (10, WIDTH))), read_bytes=200)


def test_too_few_rows_or_columns_have_the_error_of_scikit_learn():
    for shape, min_samples in (((1, 3), 2), ((0, 3), 1), ((3, 0), 1)):
        few = np.zeros(shape)
        with pytest.raises(ValueError, match="Found array with") as ours:
            validate_blocks(SlicedArray(CountingArray(few)), min_samples, "Model")
        with pytest.raises(ValueError, match="Found array with") as theirs:
            check_array(few, ensure_min_samples=min_samples, estimator="Model")
        assert str(ours.value) == str(theirs.value)


def test_validated_memory_maps_have_floats(tmp_path):
    X = make_map(np.eye(3), tmp_path)
    assert validate_blocks(X) is X
    X = validate_blocks(make_map(np.eye(3, dtype=np.int8), tmp_path))
    assert isinstance(X, SlicedArray)
    assert X[:].dtype == np.float64
    X = np.eye(3, dtype=np.float16)
    X[1, 2] = np.inf
    with pytest.raises(ValueError, match="row 1, column 2"):
        validate_blocks(make_map(X, tmp_path))
