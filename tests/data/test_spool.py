"""Copies of samples in temporary files equal the samples, and leave no files."""

import errno
import gc
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pytest
from reference import CountingArray
from scipy import sparse

from notsorandom.data.spool import spool_array, spool_blocks

N_ROWS, WIDTH = 103, 5
FORMS = r"make it \(X, y\) or \(X, y, sample_weight\)"


CUTS = [[], [50], [1, 1, 2, 60], list(range(1, N_ROWS)), [0, 0, N_ROWS]]


def split(cuts, *arrays):
    return zip(*(np.split(array, cuts) for array in arrays), strict=True)


@pytest.mark.parametrize("cuts", CUTS, ids=len)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_give_the_samples_back(values, cuts, dtype, weighted):
    X, w = values.astype(dtype), np.arange(N_ROWS) / 7
    for y in (
        np.arange(N_ROWS),
        np.arange(N_ROWS) % 2 == 0,
        np.linspace(0, 1, N_ROWS, dtype=np.float32),
        np.array([f"class {number % 11}" for number in range(N_ROWS)]),
        np.array([f"class {number % 11}" for number in range(N_ROWS)], dtype=object),
        np.random.default_rng(1).standard_normal((N_ROWS, 3)),
    ):
        read, target, weights, _ = spool_blocks(
            split(cuts, X, y, w) if weighted else split(cuts, X, y)
        )
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


def test_texts_of_any_length_and_other_objects():
    blocks = [(np.eye(2), ["a", "b"]), (np.eye(2), ["a", "abcdefgh"])]
    assert spool_blocks(blocks)[1].tolist() == ["a", "b", "a", "abcdefgh"]
    blocks = [(np.eye(2), np.array([1, "b"], dtype=object)), (np.eye(2), ["a", "c"])]
    assert spool_blocks(blocks)[1].tolist() == [1, "b", "a", "c"]


def test_blocks_may_be_lists_data_frames_and_integers(values):
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
    ):
        read, y, _, names = spool_blocks([block, block])
        assert read.dtype == np.float64
        np.testing.assert_array_equal(read, np.vstack([X, X]))
        assert y.tolist() == 2 * ones
        assert names == (list("abcde") if block[0] is frame else None)


def test_targets_are_converted_to_the_wider_type_of_the_first_block():
    blocks = [(np.eye(2), [0.5, 1.5]), (np.eye(2), [1, 2])]
    assert spool_blocks(blocks)[1].tolist() == [0.5, 1.5, 1, 2]


def insert_block(number, **parts):
    """Four valid blocks of three rows, and one with other parts at a position."""
    blocks = [(np.eye(3), np.arange(3))] * 4
    other = {"X": np.eye(3), "y": np.arange(3)} | parts
    return [*blocks[: number - 1], tuple(other.values()), *blocks[number - 1 :]]


NAN, INF, SINGLE = np.eye(3), np.eye(3), np.eye(3, dtype=np.float32)
NAN[2, 1], INF[0, 2] = np.nan, np.inf
FRAMES = [pd.DataFrame(np.eye(2), columns=list(names)) for names in ("ab", "ba")]
WRONG_BLOCKS = [
    (insert_block(3, X=np.ones((3, 2))), "Block 3: the number of columns of X is 2, but 3 in the"),
    (insert_block(2, X=SINGLE), "Block 2: the type of X is 'float32', but 'float64' in"),
    (insert_block(1, X=SINGLE), "Block 2: the type of X is 'float64', but 'float32' in"),
    (insert_block(3, X=NAN), r"Block 3: X has nan in row 2, column 1, .* \(row 8 of all blocks\)"),
    (insert_block(5, X=INF), r"Block 5: X has inf in row 0, column 2, .*\(row 12 of all"),
    (insert_block(1, y=[0, 1, np.nan]), r"Block 1: y has nan in row 2, counted .* \(row 2 of"),
    (insert_block(2, X=[["a"] * 3] * 3), "Block 2: X has values that are not numbers"),
    (insert_block(1, X=np.array([[1, "a"]], dtype=object)), "Block 1: X has values that are not"),
    (insert_block(1, X=sparse.eye_array(3)), "Block 1: X is sparse, .* give X.toarray"),
    (insert_block(2, y=[0.5] * 3), "Block 2: y has type float64, but int64 in the first"),
    (insert_block(2, y=["a"] * 3), "Block 2: y has type <U1, but int64 in the first"),
    (insert_block(2, y=np.eye(3)[:, :2]), r"Block 2: the number of targets is \(2,\), but \(\)"),
    (insert_block(2, y=[1]), "Block 2: X has 3 rows, but y has 1"),
    (insert_block(1, w=[1]), "Block 1: X has 3 rows, but sample_weight has 1"),
    (insert_block(1, w=[1, 1, np.nan]), "Block 1: sample_weight has nan in row 2"),
    (insert_block(2, w=[1] * 3), "Block 2: the presence of sample_weight is True, but"),
    (insert_block(1, w=[1] * 3), "Block 2: the presence of sample_weight is False"),
    (insert_block(1, X=np.ones(3)), "Block 1: X has 1 dimensions, but must have 2"),
    (insert_block(1, y=np.ones((3, 1, 1))), "Block 1: y has 3 dimensions, but must have 1 or 2"),
    (insert_block(1, w=np.ones((3, 1))), "sample_weight has 2 dimensions, but must have 1"),
    ([(np.eye(3), None)], f"Block 1 is a tuple of 2: {FORMS}, with targets"),
    ([np.eye(3)], f"Block 1 is a ndarray: {FORMS}"),
    ([(1, 2, 3, 4)], f"Block 1 is a tuple of 4: {FORMS}"),
    ([], "There are no blocks with rows"),
    ([(np.ones((0, 3)), []), ([], [])], "There are no blocks with rows"),
    ([(frame, [0, 1]) for frame in FRAMES], r"Block 2: the list of column names is \['b', 'a'\], "),
]


@pytest.mark.parametrize(("blocks", "says"), WRONG_BLOCKS)
def test_errors_have_the_number_of_the_block(blocks, says, temporary_folder):
    with pytest.raises(ValueError, match=says):
        spool_blocks(iter(blocks))
    assert not os.listdir(temporary_folder)


# Arrays


@pytest.mark.parametrize("chunks", [None, (7, 2), (50, WIDTH), (1000, WIDTH)])
@pytest.mark.parametrize("n_bytes", [1, 300, 2**20])
def test_an_array_is_copied_in_blocks_of_whole_chunks(values, monkeypatch, chunks, n_bytes):
    monkeypatch.setattr("notsorandom.data.spool.COPIED_BYTES", n_bytes)
    array = CountingArray(values, chunks)
    copied = spool_array(array)
    assert isinstance(copied, np.memmap)
    assert not copied.flags.writeable
    np.testing.assert_array_equal(copied, values)
    chunk, row_bytes = (chunks or [1])[0], values.nbytes // N_ROWS
    for start, stop in array.reads:
        assert start % chunk == 0
        assert stop - start <= max(chunk, n_bytes // row_bytes)
    assert [start for start, _ in array.reads][1:] == [stop for _, stop in array.reads][:-1]
    monkeypatch.setattr("notsorandom.data.spool.MAX_CHUNK_BYTES", 40)  # two rows
    array = CountingArray(values, chunks)
    np.testing.assert_array_equal(spool_array(array), values)
    assert max(stop - start for start, stop in array.reads) <= max(1, n_bytes // row_bytes)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "?", ">f4", ">i8", "g"])
def test_copies_keep_float32_and_convert_other_types_to_float64(dtype):
    stored = np.arange(6).reshape(3, 2).astype(dtype)
    copied = spool_array(CountingArray(stored))
    assert copied.dtype == np.dtype("f4" if dtype == "f4" else "f8")
    np.testing.assert_array_equal(copied, stored)


NOT_COPIED = [
    (np.array([["a"]]), "X has type <U1: it must have numbers"),
    (np.zeros(3), "Expected 2D array, got 1D array instead"),
    (np.zeros((3, 2, 1)), "Expected 2D array, got 3D array instead"),
    (np.diag([1, 1, np.nan]), "Input X contains NaN, in row 2, column 2,"),
    (np.diag([1, np.inf, 1]), "Input X contains infinity, in row 1, column 1,"),
]


@pytest.mark.parametrize(("stored", "says"), NOT_COPIED, ids=range(len(NOT_COPIED)))
def test_errors_of_arrays(stored, says, temporary_folder, monkeypatch):
    monkeypatch.setattr("notsorandom.data.spool.COPIED_BYTES", 1)
    with pytest.raises(ValueError, match=says):
        spool_array(CountingArray(stored))
    assert not os.listdir(temporary_folder)


def test_an_array_that_shrinks_is_an_error(values):
    stored = CountingArray(values)
    stored.values = values[:50]
    with pytest.raises(ValueError, match=r"Rows 0 to 103 of X have shape \(50, 5\), but the shape"):
        spool_array(stored)


def test_empty_arrays_have_no_file():
    for shape in ((0, 3), (3, 0)):
        assert spool_array(CountingArray(np.zeros(shape))).shape == shape


def test_the_bytes_are_said_on_demand(values, capsys):
    spool_array(CountingArray(values), verbose=1)
    assert "] 103/103 " in (shown := capsys.readouterr().err)
    assert shown.endswith(" 2,060 bytes\n")
    spool_blocks(split([50], values, np.arange(N_ROWS)), verbose=1)
    assert capsys.readouterr().err.endswith("s 2,884 bytes\n")
    spool_array(CountingArray(values))
    spool_blocks(split([50], values, np.arange(N_ROWS)))
    assert capsys.readouterr().err == ""


# Files


def count_unnamed_files():
    """Count the files without names that this process has mapped."""
    with open("/proc/self/maps") as maps:
        return sum("(deleted)" in line for line in maps)


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def leaves_nothing(temporary_folder):
    """The test leaves no open files, and none in the folder for temporary files."""

    def count():
        gc.collect()
        return count_unnamed_files(), len(os.listdir("/proc/self/fd"))

    before = count()
    yield before[0]
    assert count() == before
    assert not os.listdir(temporary_folder)


@linux
def test_files_vanish_with_the_arrays(values, leaves_nothing):
    X, y, w, _ = spool_blocks(split([50], values, np.arange(N_ROWS), np.ones(N_ROWS)))
    assert count_unnamed_files() == leaves_nothing + 3
    part = X[5:10]
    del X, y, w
    gc.collect()
    np.testing.assert_array_equal(part, values[5:10])
    assert count_unnamed_files() == leaves_nothing + 1


@linux
def test_files_vanish_after_an_error(values, leaves_nothing):
    def broken():
        yield values, np.arange(N_ROWS)
        raise RuntimeError("the network is down")

    with pytest.raises(RuntimeError, match="the network is down"):
        spool_blocks(broken())


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="has no SIGKILL")
@pytest.mark.parametrize("when", ["between blocks", "afterwards"])
def test_files_vanish_with_a_killed_process(tmp_path, when):
    code = f"""
        import sys, time
        import numpy as np
        from notsorandom.data.spool import spool_blocks
        def blocks():
            for number in range(3):
                yield np.ones((1000, 10)), np.ones(1000)
                if number == 1 and {when == "between blocks"}:
                    print("ready", flush=True)
                    time.sleep(60)
        kept = spool_blocks(blocks())
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
def test_error_of_a_full_disk(values, temporary_folder, monkeypatch):
    full = partial(open, "/dev/full", "w+b")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda buffering, **_: full(buffering=buffering))
    with pytest.raises(
        OSError, match=r"103 rows of X don't fit on the disk \(.* GB are free\)"
    ) as caught:
        spool_blocks([(values, np.arange(N_ROWS))])
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(temporary_folder)
    assert "Set the environment variable TMPDIR to a folder with more space" in str(caught.value)


def test_memory_is_that_of_a_block():
    def blocks():
        rng = np.random.default_rng(0)
        for _ in range(60):
            yield rng.standard_normal((2000, 50)), rng.standard_normal(2000)

    tracemalloc.start()
    X, y, _, _ = spool_blocks(blocks())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert X.shape == (120_000, 50)
    assert y.shape == (120_000,)
    assert peak < X.nbytes / 12
