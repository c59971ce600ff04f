"""Samples that are not in memory: the same rows as in memory, and nothing left behind."""

import errno
import gc
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from notsorandom.data import (
    Chosen,
    Lazy,
    Prepared,
    Sliced,
    check_blocks,
    from_arrow,
    read_source,
    spooled,
)
from notsorandom.data.arrow import ArrowTable
from notsorandom.data.rows import Rows
from notsorandom.data.tables import TableError, open_table
from notsorandom.spaces.spherical import directions

N_ROWS, WIDTH = 103, 5
SHAPES = r"must be \(X, y\) or \(X, y, sample_weight\)"


class Stored:
    """As h5py has it: slices only, each of which is counted."""

    def __init__(self, values, chunks=None):
        self.values = values
        self.shape, self.dtype, self.chunks = values.shape, values.dtype, chunks
        self.reads = []

    def __getitem__(self, key):
        assert isinstance(key, slice), "only slices are asked for"
        self.reads.append((key.start, key.stop))
        return self.values[key].copy()


@pytest.fixture
def values():
    return np.random.default_rng(0).standard_normal((N_ROWS, WIDTH)).astype(np.float32)


def zarr_of(values, folder, chunks):
    zarr = pytest.importorskip("zarr")
    array = zarr.open(str(folder), mode="w", shape=values.shape, chunks=chunks, dtype=values.dtype)
    array[:] = values
    return array


def map_of(values, folder):
    np.save(folder / "X.npy", values)
    return np.load(folder / "X.npy", mmap_mode="r")


KINDS = {
    "zarr": lambda values, folder: Sliced(zarr_of(values, folder, (10, 2))),
    "zarr of one chunk": lambda values, folder: Sliced(zarr_of(values, folder, values.shape)),
    "zarr of rows": lambda values, folder: Sliced(zarr_of(values, folder, (1, WIDTH))),
    "no chunks": lambda values, folder: Sliced(Stored(values)),
    "chunks": lambda values, folder: Sliced(Stored(values, (7, WIDTH))),
    "map": lambda values, folder: Sliced(map_of(values, folder)),
    "chosen": lambda values, folder: Chosen(
        map_of(np.repeat(values, 2, axis=0), folder), np.arange(N_ROWS) * 2
    ),
    "chosen twice": lambda values, folder: Chosen(
        Chosen(Sliced(Stored(np.vstack([values[:4], values]), (7, 1))), np.arange(2, N_ROWS + 4)),
        np.arange(2, N_ROWS + 2),
    ),
    "prepared": lambda values, folder: Prepared(map_of(-values, folder), np.negative),
}


@pytest.fixture(params=KINDS)
def lazy(request, values, tmp_path):
    return KINDS[request.param](values, tmp_path)


# Rows by slices


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
def test_slices_are_those_of_the_array(lazy, values, key):
    for _ in range(2):  # the second time of what was kept
        read = lazy[key]
        assert type(read) is np.ndarray
        assert read.dtype == np.float32
        np.testing.assert_array_equal(read, values[key])


@pytest.mark.parametrize(
    "indices",
    [[], [0], [4, 4, 4], [102, 0, 50, -1, 50], list(range(40, 90)), list(range(0, N_ROWS, 9))],
    ids=str,
)
def test_gathered_rows_are_those_of_the_array(lazy, values, indices):
    np.testing.assert_array_equal(lazy[indices], values[np.array(indices, dtype=int)])
    mask = np.isin(np.arange(N_ROWS), indices)
    np.testing.assert_array_equal(lazy[mask], values[mask])


@pytest.mark.parametrize("read_bytes", [1, 200, 1000])
@pytest.mark.parametrize("held_bytes", [1, 150, 10_000])
def test_rows_are_the_same_however_they_are_read(values, monkeypatch, read_bytes, held_bytes):
    monkeypatch.setattr("notsorandom.data.lazy.READ_BYTES", read_bytes)
    monkeypatch.setattr("notsorandom.data.lazy.HELD_BYTES", held_bytes)
    rng = np.random.default_rng(1)
    for chunks in (None, (1, 1), (7, 5), (50, 5), (1000, 5)):
        lazy = Sliced(Stored(values, chunks))
        for _ in range(20):
            indices = rng.integers(-N_ROWS, N_ROWS, size=rng.integers(60))
            np.testing.assert_array_equal(lazy[indices], values[indices])
            start, stop = rng.integers(N_ROWS, size=2)
            np.testing.assert_array_equal(lazy[start:stop], values[start:stop])


def test_they_are_what_rows_are_made_of(lazy, values):
    assert lazy.shape == values.shape
    assert len(lazy) == N_ROWS
    assert lazy.ndim == 2
    assert isinstance(lazy, Lazy)
    np.testing.assert_allclose(Rows(lazy).mean(), values.mean(axis=0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(Rows(lazy).take(np.array([3, 1])).array, values[[3, 1]])


def test_they_can_be_pickled(lazy, values):
    lazy[3:5]
    again = pickle.loads(pickle.dumps(lazy))
    assert type(again) is type(lazy)
    np.testing.assert_array_equal(again[3:50], values[3:50])


def test_nobody_makes_an_array_of_all_by_mistake(lazy):
    with pytest.raises(TypeError, match=r"of shape \(103, 5\) is not made an array at once: take"):
        np.asarray(lazy)


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (3, "not by int"),
        ([0.5], "not by float64 of"),
        ([[1]], "not by int64 of"),
        ([True, False], "a mask of shape .103,.; not by bool of .2,."),
        ([103], "no row 103: there are 103 rows"),
        ([5, -104], "no row -104"),
        ("x", "not by str"),
    ],
    ids=str,
)
def test_rows_that_are_not_there(lazy, key, says):
    with pytest.raises(IndexError, match=says):
        lazy[key]


def test_types_are_those_that_are_computed_in():
    for dtype in (np.float32, np.float64, np.float16, np.int8, bool, ">f4", ">i8", np.longdouble):
        stored = np.arange(6).reshape(3, 2).astype(dtype)
        lazy = Sliced(Stored(stored, (2, 2)))
        wanted = np.float32 if dtype == np.float32 else np.float64
        for read in (lazy[1:], lazy[:2], lazy[[1, 2]]):
            assert read.dtype == lazy.dtype == np.dtype(wanted)
        np.testing.assert_array_equal(lazy[:], stored)
    with pytest.raises(ValueError, match=r"X is of type <U1: it must be of numbers"):
        Sliced(Stored(np.array([["a"]])))
    for shape in ((3,), (3, 2, 1)):
        with pytest.raises(ValueError, match=f"Expected 2D array, got {len(shape)}D array instead"):
            Sliced(Stored(np.zeros(shape)))


def test_an_array_that_shrinks_is_noticed(values):
    stored = Stored(values)
    lazy = Sliced(stored)
    stored.values = values[:50]
    with pytest.raises(ValueError, match=r"Rows 40 to 60 of X have shape \(10, 5\), but \(20, 5\)"):
        lazy[40:60]


def test_only_chunks_that_are_needed_are_read(values):
    stored = Stored(values, (10, WIDTH))
    Sliced(stored)[[95, 12, 3, 14, 14, 45, 51]]
    touched = {row // 10 for start, stop in stored.reads for row in range(start, stop)}
    assert touched == {0, 1, 4, 5, 9}


def test_a_pass_in_small_slices_reads_every_chunk_once(values):
    for step in (1, 3, 10, 13, 25):
        stored = Stored(values, (10, WIDTH))
        lazy = Sliced(stored)
        for start in range(0, N_ROWS, step):
            lazy[start : start + step]
        assert sum(stop - start for start, stop in stored.reads) == N_ROWS
        stored.reads.clear()
        some = Chosen(Sliced(stored), np.arange(0, N_ROWS, 2))
        for start in range(0, len(some), step):
            some[start : start + step]
        assert sum(stop - start for start, stop in stored.reads) <= N_ROWS


def test_threads_read_the_same(values, tmp_path):
    lazy = Sliced(zarr_of(values, tmp_path, (10, WIDTH)))
    starts = np.random.default_rng(0).integers(N_ROWS, size=300)
    with ThreadPoolExecutor(4) as pool:
        for start, read in zip(starts, pool.map(lambda at: lazy[at : at + 4], starts), strict=True):
            np.testing.assert_array_equal(read, values[start : start + 4])


def test_what_is_kept_cannot_be_spoiled(values):
    lazy = Sliced(Stored(values, (10, WIDTH)))
    part = lazy[3:5]
    with pytest.raises(ValueError, match="read-only"):
        part[:] = 0
    np.testing.assert_array_equal(lazy[3:5], values[3:5])


def test_memory_of_reading_by_slices_is_bounded(monkeypatch):
    monkeypatch.setattr("notsorandom.data.lazy.READ_BYTES", 2**18)
    monkeypatch.setattr("notsorandom.data.lazy.HELD_BYTES", 2**18)
    n_rows, width = 40_000, 50
    values = np.random.default_rng(0).standard_normal((n_rows, width)).astype(np.float32)
    lazy = Prepared(Sliced(Stored(values, (300, width))), directions)
    chosen = Chosen(lazy, np.arange(0, n_rows, 3))
    few = np.random.default_rng(0).integers(n_rows, size=500)
    tracemalloc.start()
    check_blocks(lazy)
    check_blocks(chosen)
    lazy[few]
    lazy[np.zeros(500, dtype=int)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**21 < values.nbytes / 3


def test_prepared_rows_are_those_of_the_whole(values, tmp_path):
    lazy = Prepared(map_of(values, tmp_path), directions)
    np.testing.assert_array_equal(lazy[10:20], directions(values)[10:20])
    np.testing.assert_array_equal(lazy[[5, 5, 1]], directions(values)[[5, 5, 1]])
    assert lazy[5:5].shape == (0, WIDTH)


# Checks


def test_checks_say_where_a_number_is_missing(values, monkeypatch):
    monkeypatch.setattr("notsorandom.data.lazy.READ_BYTES", 200)
    lazy = Sliced(Stored(values, (10, WIDTH)))
    assert check_blocks(lazy) is lazy
    for bad, what in ((np.nan, "NaN"), (-np.inf, "infinity")):
        values[77, 3] = bad
        with pytest.raises(ValueError, match=f"Input X contains {what}, in row 77, column 3,"):
            check_blocks(Sliced(Stored(values, (10, WIDTH))))


def test_checks_count_as_scikit_learn_does(values, tmp_path):
    from sklearn.utils import check_array

    for shape, least in (((1, 3), (2, 1)), ((0, 3), (1, 1)), ((3, 0), (1, 1)), ((3, 1), (1, 2))):
        few = np.zeros(shape)
        with pytest.raises(ValueError, match="Found array with") as ours:
            check_blocks(Sliced(Stored(few)), *least, estimator="Model")
        with pytest.raises(ValueError, match="Found array with") as theirs:
            check_array(
                few, ensure_min_samples=least[0], ensure_min_features=least[1], estimator="Model"
            )
        assert str(ours.value) == str(theirs.value)
    with pytest.raises(ValueError, match="minimum of 2 is required by Stored"):
        check_blocks(Sliced(Stored(values[:1])), 2, estimator=Stored(values))
    with pytest.raises(ValueError, match=r"is required\.$"):
        check_blocks(Sliced(Stored(values[:1])), 2)


def test_checked_maps_are_of_floats(tmp_path):
    X = map_of(np.eye(3), tmp_path)
    assert check_blocks(X) is X
    X = check_blocks(map_of(np.eye(3, dtype=np.int8), tmp_path))
    assert isinstance(X, Sliced)
    assert X[:].dtype == np.float64
    X = np.eye(3, dtype=np.float16)
    X[1, 2] = np.inf
    with pytest.raises(ValueError, match="row 1, column 2"):
        check_blocks(map_of(X, tmp_path))


# Blocks laid aside

CUTS = [[], [50], [1, 1, 2, 60], list(range(1, N_ROWS)), [0, 0, N_ROWS]]


def pieces(cuts, *arrays):
    return zip(*(np.split(array, cuts) for array in arrays), strict=True)


@pytest.mark.parametrize("cuts", CUTS, ids=len)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_come_back_as_the_whole(values, cuts, dtype, weighted):
    X, w = values.astype(dtype), np.arange(N_ROWS) / 7
    for y in (
        np.arange(N_ROWS),
        np.arange(N_ROWS) % 2 == 0,
        np.linspace(0, 1, N_ROWS, dtype=np.float32),
        np.array([f"class {number % 11}" for number in range(N_ROWS)]),
        np.array([f"class {number % 11}" for number in range(N_ROWS)], dtype=object),
        np.random.default_rng(1).standard_normal((N_ROWS, 3)),
    ):
        read, target, weights = spooled(pieces(cuts, X, y, w) if weighted else pieces(cuts, X, y))
        assert isinstance(read, np.memmap)
        assert read.dtype == dtype
        assert not read.flags.writeable
        np.testing.assert_array_equal(read, X)
        np.testing.assert_array_equal(target, y)
        assert target.dtype.kind == ("U" if y.dtype == object else y.dtype.kind)
        if weighted:
            np.testing.assert_array_equal(weights, w)
        else:
            assert weights is None


def test_words_of_any_length_and_other_objects():
    blocks = [(np.eye(2), ["a", "b"]), (np.eye(2), ["a", "abcdefgh"])]
    assert spooled(blocks)[1].tolist() == ["a", "b", "a", "abcdefgh"]
    blocks = [(np.eye(2), np.array([1, "b"], dtype=object)), (np.eye(2), ["a", "c"])]
    assert spooled(blocks)[1].tolist() == [1, "b", "a", "c"]


def test_blocks_may_be_lists_frames_and_integers(values):
    X = np.rint(values * 10)
    frame = pd.DataFrame(X.astype(np.float64), columns=list("abcde")).astype({"b": int, "c": int})
    ones = [1] * N_ROWS
    for block in (
        (X.tolist(), ones),
        [X.astype(np.int8), ones],
        (X.astype(np.float16), ones),
        (X.astype(">f8"), ones),
        (np.asfortranarray(X.astype(float)), ones),
        (X.astype(object), ones),
        (frame, pd.Series(ones)),
        (pl.from_pandas(frame), pl.Series(ones)),
    ):
        read, y, _ = spooled([block, block])
        assert read.dtype == np.float64
        np.testing.assert_array_equal(read, np.vstack([X, X]))
        assert y.tolist() == 2 * ones
    _, _, _, names = read_source(iter([(frame, ones)]))
    assert names == list("abcde")
    assert read_source(iter([(X, ones)]))[3] is None


def test_targets_of_narrower_types_follow_wider_ones():
    blocks = [(np.eye(2), [0.5, 1.5]), (np.eye(2), [1, 2])]
    assert spooled(blocks)[1].tolist() == [0.5, 1.5, 1, 2]


def test_blocks_of_a_table(values, tmp_path):
    np.savez(tmp_path / "a.npz", X=values, y=np.arange(N_ROWS))
    X, y, _ = spooled(open_table(tmp_path / "a.npz").blocks(None, "y", max_rows=10))
    np.testing.assert_array_equal(X, values)
    np.testing.assert_array_equal(y, np.arange(N_ROWS))


def but(number, X=None, y=None, w=None):
    """Four good blocks of three rows, and one more among them."""
    blocks = [(np.eye(3), np.arange(3)) for _ in range(4)]
    blocks[number - 1 : number - 1] = [
        (
            np.eye(3) if X is None else X,
            np.arange(3) if y is None else y,
            *([] if w is None else [w]),
        )
    ]
    return blocks


NAN, INF = np.eye(3), np.eye(3)
NAN[2, 1], INF[0, 2] = np.nan, np.inf
FAULTS = {
    "width": (but(3, X=np.ones((3, 2))), "Block 3: X has 2 columns, but 3 in the first block"),
    "single": (but(2, X=np.eye(3, dtype="f4")), "Block 2: X is of float32, but of float64 in"),
    "double": (but(1, X=np.eye(3, dtype="f4")), "Block 2: X is of float64, but of float32 in"),
    "nan": (but(3, X=NAN), r"Block 3: X has nan in row 2, column 1, .* \(row 8 of all\): fill"),
    "infinite": (but(5, X=INF), r"Block 5: X has inf in row 0, column 2, .*\(row 12 of all"),
    "nan in y": (but(1, y=[0, 1, np.nan]), r"Block 1: y has nan in row 2, counted .* \(row 2 of"),
    "text": (but(2, X=[["a"] * 3] * 3), "Block 2: X is of type <U1: it must be of numbers"),
    "objects": (but(1, X=np.array([[1, "a"]], dtype=object)), "Block 1: X has what isn't a number"),
    "sparse": (but(1, X=sparse.eye_array(3)), "Block 1: X is sparse, .* give X.toarray"),
    "y of floats": (but(2, y=[0.5] * 3), "Block 2: y is of float64, but of int64 in the first"),
    "y of text": (but(2, y=["a"] * 3), "Block 2: y is of <U1, but of int64 in the first"),
    "y of two": (but(2, y=np.eye(3)[:, :2]), r"Block 2: y has shape \(3, 2\), but the first"),
    "short y": (but(2, y=[1]), "Block 2: X has 3 rows, but y has 1"),
    "short w": (but(1, w=[1]), "Block 1: X has 3 rows, but sample_weight has 1"),
    "nan in w": (but(1, w=[1, 1, np.nan]), "Block 1: sample_weight has nan in row 2"),
    "some weights": (but(2, w=[1] * 3), "Block 2 has some weights, but the first block has none"),
    "few weights": (but(1, w=[1] * 3), "Block 2 has no weights, but the first block has some"),
    "flat": (but(1, X=np.ones(3)), "Block 1: X has 1 dimensions and y 1, but X must have 2"),
    "deep y": (but(1, y=np.ones((3, 1, 1))), "X has 2 dimensions and y 3, but"),
    "wide w": (but(1, w=np.ones((3, 1))), "and the weights 2, but X must have 2"),
    "no y": ([(np.eye(3), None)], f"Block 1 has no y: it {SHAPES}"),
    "no pair": ([np.eye(3)], f"Block 1 is a ndarray: it {SHAPES}"),
    "four": ([(1, 2, 3, 4)], f"Block 1 is a tuple of 4: it {SHAPES}"),
    "batch": ([pa.record_batch({"a": [1]})], "or else the name of the target's column be given"),
    "none": ([], "There are no blocks with rows in them"),
    "no rows": ([(np.ones((0, 3)), []), ([], [])], "There are no blocks with rows in them"),
    "frames": (
        [(pd.DataFrame(np.eye(2), columns=names), [0, 1]) for names in (["a", "b"], ["b", "a"])],
        r"Block 2: X has columns \['b', 'a'\], but \['a', 'b'\] in the first",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_blocks_that_cannot_be_say_which_they_are(name, tmp_path):
    blocks, says = FAULTS[name]
    with pytest.raises(ValueError, match=says):
        spooled(iter(blocks), tmp_path)
    assert not os.listdir(tmp_path)


def test_a_folder_or_blocks_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder='.*none' is not a folder: make it first"):
        spooled([], tmp_path / "none")
    with pytest.raises(TypeError, match="int is not an iterable of blocks: give one"):
        spooled(3)


# Files


def held_files():
    """How many files without names this process has mapped."""
    with open("/proc/self/maps") as maps:
        return sum("(deleted)" in line for line in maps)


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@linux
def test_files_go_with_the_arrays(values, tmp_path):
    before = held_files(), len(os.listdir("/proc/self/fd"))
    X, y, w = spooled(pieces([50], values, np.arange(N_ROWS), np.ones(N_ROWS)), tmp_path)
    assert held_files() == before[0] + 3
    assert not os.listdir(tmp_path)
    part = X[5:10]
    del X, y, w
    gc.collect()
    np.testing.assert_array_equal(part, values[5:10])
    assert held_files() == before[0] + 1
    del part
    gc.collect()
    assert (held_files(), len(os.listdir("/proc/self/fd"))) == before


@linux
def test_files_go_when_something_fails(values, tmp_path):
    before = held_files(), len(os.listdir("/proc/self/fd"))

    def broken():
        yield values, np.arange(N_ROWS)
        raise RuntimeError("the network is down")

    with pytest.raises(RuntimeError, match="the network is down"):
        spooled(broken(), tmp_path)
    gc.collect()
    assert (held_files(), len(os.listdir("/proc/self/fd"))) == before
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="has no SIGKILL")
@pytest.mark.parametrize("when", ["between blocks", "afterwards"])
def test_files_go_with_a_process_that_is_killed(tmp_path, when):
    code = f"""
        import sys, time
        import numpy as np
        from notsorandom.data import spooled
        def blocks():
            for number in range(3):
                yield np.ones((1000, 10)), np.ones(1000)
                if number == 1 and {when == "between blocks"}:
                    print("ready", flush=True)
                    time.sleep(60)
        kept = spooled(blocks())
        print("ready", flush=True)
        time.sleep(60)
    """
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, env=environment
    )
    try:
        assert process.stdout.readline() == b"ready\n"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no disk that is always full")
def test_a_full_disk_says_what_to_do(values, tmp_path, monkeypatch):
    full = partial(open, "/dev/full", "w+b")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda buffering, **_: full(buffering=buffering))
    with pytest.raises(OSError, match=r"103 rows of them don't fit \(.* GB are free\)") as caught:
        spooled([(values, np.arange(N_ROWS))], tmp_path)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path)
    assert "Set the environment variable TMPDIR to a folder with more room" in str(caught.value)


def test_memory_of_laying_aside_is_that_of_a_block():
    def blocks():
        rng = np.random.default_rng(0)
        for _ in range(60):
            yield rng.standard_normal((2000, 50)), rng.standard_normal(2000)

    tracemalloc.start()
    X, y, _ = spooled(blocks())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert X.shape == (120_000, 50)
    assert y.shape == (120_000,)
    assert peak < X.nbytes / 12


# Arrow


@pytest.fixture
def frame(values):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(values, columns=list("abcde"))
    frame["label"] = rng.choice(["yes", "no", "perhaps"], N_ROWS)
    frame["weight"] = rng.integers(1, 4, N_ROWS)
    return frame


def dataset_of(frame, folder):
    for number in range(3):
        frame[number::3].to_parquet(
            folder / f"part {number}.parquet", index=False, row_group_size=9
        )
    order = np.concatenate([np.arange(number, N_ROWS, 3) for number in range(3)])
    return ds.dataset(folder), frame.iloc[order]


ARROWS = {
    "dataset": lambda data: data,
    "table": lambda data: data.to_table(),
    "scanner": lambda data: data.scanner(),
    "reader": lambda data: data.scanner().to_reader(),
    "batches": lambda data: iter(data.to_table().to_batches(max_chunksize=10)),
}


@pytest.mark.parametrize("kind", ARROWS)
@pytest.mark.parametrize("small", [False, True])
def test_what_is_pyarrows_comes_back_as_the_whole(frame, tmp_path, monkeypatch, kind, small):
    if small:
        monkeypatch.setattr("notsorandom.data.arrow.BATCH_BYTES", 300)
        monkeypatch.setattr("notsorandom.data.tables.table.BLOCK_BYTES", 300)
    dataset, whole = dataset_of(frame, tmp_path)
    X, y, weights, names = read_source(ARROWS[kind](dataset), "label", "weight")
    assert names == list("abcde")
    assert isinstance(X, np.memmap)
    assert X.dtype == np.float32
    assert y.dtype.kind == "U"
    np.testing.assert_array_equal(X, whole[names])
    np.testing.assert_array_equal(y, whole["label"])
    np.testing.assert_array_equal(weights, whole["weight"])
    given = np.arange(N_ROWS)
    X, y, weights, names = from_arrow(ARROWS[kind](dataset), "label", given)
    assert names == [*"abcde", "weight"]
    assert X.dtype == np.float64  # with integers beside it
    assert weights is given
    X, y, weights, names = from_arrow(ARROWS[kind](dataset.replace_schema(UNLABELLED)), "a")
    assert names == list("bcde")
    assert weights is None
    np.testing.assert_array_equal(y, whole["a"])
    np.testing.assert_array_equal(X, whole[names])


UNLABELLED = pa.schema([(name, pa.float32()) for name in "abcde"])


def test_batches_are_blocks_too(frame):
    batches = pa.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=10)
    for blocks in (batches, iter(batches)):
        X, y, weights = spooled(blocks, target="label", sample_weight="weight")
        np.testing.assert_array_equal(X, frame[list("abcde")])
        np.testing.assert_array_equal(y, frame["label"])
        np.testing.assert_array_equal(weights, frame["weight"])
    X, y, _, _ = read_source(pa.record_batch({"a": [1.0, 2.0], "y": [3, 4]}), "y")
    assert (X.tolist(), y.tolist()) == ([[1], [2]], [3, 4])


def test_batches_are_asked_for_in_the_thread_they_are_given_in(frame):
    """A cursor of sqlite3, for one, knows no other."""
    threads = set()

    def batches():
        for batch in pa.Table.from_pandas(frame, preserve_index=False).to_batches(5):
            threads.add(threading.get_ident())
            yield batch

    read_source(batches(), "label")
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array(["a", "b", "a"], pa.large_string()),
        pa.array([1, 2, 1], pa.int8()),
        pa.array([1, 2, 1], pa.int64()).dictionary_encode(),
        pa.array([True, False, True]),
        pa.array([0.5, 1, 2]),
    ],
    ids=lambda values: str(values.type),
)
def test_targets_of_arrow_stay_what_they_are(values):
    y = read_source(pa.table({"x": [1.0, 2.0, 3.0], "y": values}), "y")[1]
    assert y.tolist() == values.to_pylist()
    assert y.dtype.kind in "biufU"


def table(**columns):
    return pa.table({"x": [1.0, 2.0], "label": ["a", "b"], **columns})


ARROW_FAULTS = {
    "no target": (
        table(),
        None,
        None,
        "y is nothing, but X is a Table of pyarrow's: give the name",
    ),
    "other target": (table(), "labl", None, "X has no column 'labl'. Did you mean 'label'. It has"),
    "other weights": (table(), "label", "w", "X has no column 'w'"),
    "words": (
        table(s=["u", "v"]),
        "label",
        None,
        "X: column 's' is of type string, not of numbers",
    ),
    "times": (table(s=pa.array([1, 2], pa.timestamp("s"))), "label", None, "column 's' is of type"),
    "alone": (table(), "label", "x", "X has no column but the target to learn from"),
    "twice": (table(), "label", "label", "column 'label' is both target and sample_weight"),
    "weights": (table(w=["u", "v"]), "label", "w", "column 'w' is of type string, but weights are"),
    "few weights": (table(), "label", [1.0], "inconsistent numbers of samples"),
    "empty": (table(s=[1, None]), "label", None, "column 's', row 2: the cell is empty: fill it"),
    "infinite": (table(s=[np.inf, 1]), "label", None, "column 's', row 1: inf is not finite"),
    "no label": (table(y=["a", None]), "y", None, "column 'label' is of type string, not"),
    "no y": (pa.table({"x": [1.0, 2], "y": ["a", None]}), "y", None, "column 'y', row 2: the cell"),
    "no weight": (table(w=[1, None]), "label", "w", "Block 1: sample_weight has nan in row 1"),
    "no rows": (table()[:0], "label", None, "There are no blocks with rows in them"),
    "lists": (table(y=[[1], [2]]), "y", None, "column 'label' is of type string"),
    "same names": (pa.table([[1], [2], [3]], names=list("xxy")), "y", None, "more than one column"),
    "an index": (table(__index_level_0__=[1, 2]), "label", None, "as an index written by pandas"),
    "no batches": (iter([]), "y", None, "There are no record batches: give some"),
    "no batch": (iter([(1, 2)]), "y", None, "Block 1 is a tuple, but as y is the name of a column"),
    "other batches": (
        iter([pa.record_batch({"x": [1.0], name: [0]}) for name in "yz"]),
        "y",
        None,
        "Block 2: its schema is x: double, z: int64, but that of the first is x: double, y: int64",
    ),
}


@pytest.mark.parametrize("name", ARROW_FAULTS)
def test_what_of_pyarrows_cannot_be(name):
    X, y, weights, says = ARROW_FAULTS[name]
    with pytest.raises(ValueError, match=says):
        read_source(X, y, weights)


def test_a_dataset_must_be_told_its_target(frame, tmp_path):
    dataset, _ = dataset_of(frame, tmp_path)
    for y, given in ((None, "nothing"), (np.ones(N_ROWS), "a ndarray")):
        for data in (dataset, dataset.scanner(), dataset.scanner().to_reader()):
            with pytest.raises(ValueError, match=f"y is {given}, .* one of 'a', 'b', 'c'"):
                read_source(data, y)


def test_datasets_of_every_kind(frame, tmp_path):
    """Filtered, parted by folders, with columns of other types here and there, of text."""
    data = pa.Table.from_pandas(frame, preserve_index=False)
    folder = tmp_path / "folders"
    ds.write_dataset(
        data,
        folder,
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("weight", pa.int64())]), flavor="hive"),
    )
    dataset = ds.dataset(folder, partitioning="hive")
    whole = dataset.to_table().to_pandas()
    ds.write_dataset(data, tmp_path / "text", format="csv")
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    doubles = data.schema.set(1, pa.field("b", pa.float64()))
    pq.write_table(data[:40], mixed / "0.parquet")
    short = doubles.set(6, pa.field("weight", pa.int16()))
    pq.write_table(data[40:].cast(short), mixed / "1.parquet")
    for given, frame_of in (
        (dataset, whole),
        (dataset.filter(ds.field("a") > 0), whole[whole["a"] > 0]),
        (ds.dataset(tmp_path / "text", format="csv"), frame),
        (ds.dataset(mixed, schema=doubles), frame),
        (ds.dataset([ds.dataset(mixed / "0.parquet"), ds.dataset(mixed / "0.parquet")]), None),
        (ds.dataset(data), frame),
    ):
        frame_of = pd.concat([frame[:40]] * 2) if frame_of is None else frame_of
        X, y, weights, names = read_source(given, "label", "weight")
        np.testing.assert_allclose(X, frame_of[names], rtol=1e-6)
        np.testing.assert_array_equal(y, frame_of["label"])
        np.testing.assert_array_equal(weights, frame_of["weight"])


def test_groups_of_rows_that_a_dataset_leaves_out_stay_out(tmp_path):
    pq.write_table(
        pa.table({"x": np.arange(20.0), "y": range(20)}), tmp_path / "a", row_group_size=5
    )
    (fragment,) = ds.dataset(tmp_path / "a").get_fragments()
    dataset = ds.FileSystemDataset(
        [fragment.subset(row_group_ids=[1, 3])],
        fragment.physical_schema,
        fragment.format,
        fragment.filesystem,
    )
    X, y, _, _ = read_source(dataset, "y")
    assert y.tolist() == X[:, 0].tolist() == [*range(5, 10), *range(15, 20)]


def test_a_damaged_file_is_told(frame, tmp_path):
    dataset, _ = dataset_of(frame, tmp_path)
    path = tmp_path / "part 1.parquet"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(TableError, match=r"X can't be read \(.*\): mend it"):
        read_source(dataset, "label")


def test_a_dataset_is_never_held_whole(tmp_path):
    columns = {f"x{number}": np.random.default_rng(number).random(300_000) for number in range(20)}
    pq.write_table(
        pa.table(columns), tmp_path / "a.parquet", use_dictionary=False, data_page_size=2**14
    )
    pool = pa.default_memory_pool()
    before, most, n_rows = pool.bytes_allocated(), [], 0
    for X, _ in ArrowTable(ds.dataset(tmp_path)).weighted_blocks("x3"):
        most.append(pool.bytes_allocated() - before)
        n_rows += len(X)
    assert n_rows == 300_000
    assert max(most) < 300_000 * 20 * 8 / 2


# The front door


def test_what_is_in_memory_goes_through(values, tmp_path):
    torch = pytest.importorskip("torch")
    dask = pytest.importorskip("dask.array")
    y = np.arange(N_ROWS)
    for X in (
        values,
        values.tolist(),
        tuple(values.tolist()),
        map_of(values, tmp_path),
        sparse.csr_array(values),
        sparse.csr_matrix(values),
        pd.DataFrame(values),
        pl.DataFrame(values),
        pa.table({"a": y}),
        torch.from_numpy(values),
        dask.from_array(values),
        np.float64(3.0),
        3,
        None,
        "text",
        {1: 2},
        {1, 2},
        Sliced(Stored(values)),
        Chosen(values, [1, 2]),
    ):
        target = y[: len(X)] if isinstance(X, Chosen) else y
        read = read_source(X, target, target)
        assert read[0] is X
        assert read[1] is target
        assert read[2] is target
        assert read[3] is None


def test_arrays_that_are_not_in_memory_are_sliced(values, tmp_path):
    stored = zarr_of(values, tmp_path / "X", (10, WIDTH))
    targets = zarr_of(np.arange(N_ROWS), tmp_path / "y", (10,))
    for y in (np.arange(N_ROWS), list(range(N_ROWS)), targets, Stored(np.arange(N_ROWS))):
        X, read, weights, names = read_source(stored, y, targets)
        assert isinstance(X, Sliced)
        assert names is None
        np.testing.assert_array_equal(X[:], values)
        np.testing.assert_array_equal(read, np.arange(N_ROWS))
        assert type(weights) is np.ndarray
        np.testing.assert_array_equal(weights, np.arange(N_ROWS))
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        read_source(stored)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        read_source(stored, [1, 2])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        read_source(stored, targets, [1, 2])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        read_source(targets, targets)


class Source:
    """Can be gone through, but is no array."""

    def __iter__(self):
        yield np.eye(2), [0, 1]
        yield [np.eye(2), [0, 1]]

    def __len__(self):
        return 2


def test_iterators_are_laid_aside(tmp_path):
    for X in (iter(Source()), (block for block in Source()), Source(), map(tuple, Source())):
        X, y, weights, names = read_source(X, folder=tmp_path)
        assert isinstance(X, np.memmap)
        np.testing.assert_array_equal(X, np.vstack([np.eye(2)] * 2))
        assert y.tolist() == [0, 1, 0, 1]
        assert weights is names is None
    for arguments, name in (((Source(), [0, 1]), "y"), ((Source(), None, [1, 1]), "sample_weight")):
        with pytest.raises(
            ValueError, match=f"{name} is given beside an iterator of blocks, .* {SHAPES}"
        ):
            read_source(*arguments)
