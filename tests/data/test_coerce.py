"""Samples of any kind, coerced for a fit: the same rows, targets, weights and names."""

import threading
import time

import numpy as np
import pandas as pd
import pytest
from reference import CountingArray
from scipy import sparse

from notsorandom.data.checks import TableError
from notsorandom.data.coerce import read_arrow, read_lazily, read_source
from notsorandom.data.lazy import LazyArray

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'notsorandom[tables]'")
import pyarrow.dataset as ds  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

N_ROWS, WIDTH = 103, 5
UNLABELLED = pa.schema([(name, pa.float32()) for name in "abcde"])
FORMS = r"\(X, y\) or \(X, y, sample_weight\)"


# pyarrow


@pytest.fixture
def frame(values):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(values, columns=list("abcde"))
    frame["label"] = rng.choice(["yes", "no", "perhaps"], N_ROWS)
    frame["weight"] = rng.integers(1, 4, N_ROWS)
    return frame


def make_dataset(frame, folder):
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
def test_pyarrow_data_give_the_samples_back(frame, tmp_path, kind):
    dataset, whole = make_dataset(frame, tmp_path)
    X, y, weights, names = read_source(ARROWS[kind](dataset), "label", "weight")
    assert names == list("abcde")
    assert isinstance(X, np.memmap)
    assert X.dtype == np.float32
    assert y.dtype.kind == "U"
    np.testing.assert_array_equal(X, whole[names])
    np.testing.assert_array_equal(y, whole["label"])
    np.testing.assert_array_equal(weights, whole["weight"])
    given = np.arange(N_ROWS)
    X, y, weights, names = read_source(ARROWS[kind](dataset), "label", given)
    assert names == [*"abcde", "weight"]
    assert X.dtype == np.float64  # the weights are integers
    assert weights is given
    X, y, weights, names = read_source(ARROWS[kind](dataset.replace_schema(UNLABELLED)), "a")
    assert names == list("bcde")
    assert weights is None
    np.testing.assert_array_equal(y, whole["a"])
    np.testing.assert_array_equal(X, whole[names])


def test_an_index_of_pandas_is_left_out(frame):
    data = pa.Table.from_pandas(frame.drop(columns="weight").sort_values("a"))
    assert "__index_level_0__" in data.column_names
    assert read_source(data, "label")[3] == list("abcde")
    X, y, _, _ = read_source(pa.record_batch({"a": [1.0, 2.0], "y": [3, 4]}), "y")
    assert (X.tolist(), y.tolist()) == ([[1], [2]], [3, 4])


def test_many_columns_are_quick():
    data = pa.table({f"x{number}": [1.0] for number in range(40_000)})
    start = time.process_time()
    assert len(read_source(data, "x7")[3]) == 39_999
    assert time.process_time() - start < 5  # a quadratic check took 14 s


def test_an_iterator_is_read_in_the_calling_thread(frame):
    """A cursor of sqlite3, for one, works in no other."""
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
def test_targets_keep_their_type(values):
    y = read_source(pa.table({"x": [1.0, 2.0, 3.0], "y": values}), "y")[1]
    assert y.tolist() == values.to_pylist()
    assert y.dtype.kind in "biufU"


def table(**columns):
    return pa.table({"x": [1.0, 2.0], "label": ["a", "b"], **columns})


OTHER_BATCHES = iter([pa.record_batch({"x": [1.0], name: [0]}) for name in "yz"])
WRONG_DATA = [
    (table(), None, None, "y has type NoneType, but X is a pyarrow Table: give the name"),
    (table(), "labl", None, "X has no column 'labl'. Did you mean 'label'. It has"),
    (table(), "label", "w", "X has no column 'w'"),
    (table(s=["u", "v"]), "label", None, "X: column 's' has type string, .*tabular_pipeline"),
    (table(s=pa.array([1, 2], pa.timestamp("s"))), "label", None, "column 's' has type"),
    (table(), "label", "x", "X has no columns besides target and weights"),
    (table(), "label", "label", "or these are the same"),
    (table(w=["u", "v"]), "label", "w", "column 'w' has type string"),
    (table(), "label", [1.0], "inconsistent numbers of samples"),
    (table(s=[1, None]), "label", None, "column 's', row 2: the cell is empty"),
    (table(s=[np.inf, 1]), "label", None, "Block 1: X has inf in row 0, column 1"),
    (pa.table({"x": [1.0, 2], "y": ["a", None]}), "y", None, "column 'y', row 2: the cell"),
    (table(w=[1, None]), "label", "w", "column 'w', row 2: the cell is empty"),
    (table()[:0], "label", None, "There are no blocks with rows"),
    (pa.table([[1], [2], [3]], names=list("xxy")), "y", None, "more than one column"),
    (iter([]), "y", None, "The first block is a NoneType"),
    (iter([(1, 2)]), "y", None, "The first block is a tuple, but y is a column name"),
    (OTHER_BATCHES, "y", None, "X can't be read .*y.* does not exist"),
]


@pytest.mark.parametrize(("X", "y", "weights", "says"), WRONG_DATA)
def test_errors_of_pyarrow_data(X, y, weights, says):
    with pytest.raises(ValueError, match=says):
        read_source(X, y, weights)


def test_a_dataset_needs_the_name_of_the_target(frame, tmp_path):
    dataset, _ = make_dataset(frame, tmp_path)
    for y, given in ((None, "NoneType"), (np.ones(N_ROWS), "ndarray")):
        for data in (dataset, dataset.scanner(), dataset.scanner().to_reader()):
            with pytest.raises(ValueError, match=f"y has type {given}, .* one of 'a', 'b', 'c'"):
                read_source(data, y)


def test_kinds_of_datasets(frame, tmp_path):
    """Filtered, partitioned, with different column types in different files, of CSV files."""
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


def test_error_of_a_damaged_file(frame, tmp_path):
    dataset, _ = make_dataset(frame, tmp_path)
    path = tmp_path / "part 1.parquet"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(TableError, match=r"X can't be read .* is it damaged"):
        read_source(dataset, "label")


def test_error_of_a_cell_in_a_dataset_of_text(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,y\n" + "1,2,0\n" * 200_000 + "1,x,1\n")
    with pytest.raises(TableError, match=r"X can't be read .*Row #200002.*invalid value 'x'"):
        read_source(ds.dataset(tmp_path, format="csv"), "y")


def test_a_dataset_is_not_held_in_memory(tmp_path):
    columns = {f"x{number}": np.random.default_rng(number).random(600_000) for number in range(20)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=10_000)
    pool = pa.default_memory_pool()
    before, most, n_rows = pool.bytes_allocated(), [], 0
    for X, _ in read_arrow(ds.dataset(tmp_path), "x3")[1]:
        most.append(pool.bytes_allocated() - before)
        n_rows += len(X)
    assert n_rows == 600_000
    assert max(most) < 600_000 * 20 * 8 / 2


# Other samples


def test_samples_in_memory_are_returned_unchanged(values, tmp_path):
    y = np.arange(N_ROWS)
    for X in (
        values,
        values.tolist(),
        tuple(values.tolist()),
        np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=values.shape),
        sparse.csr_array(values),
        sparse.csr_matrix(values),
        pd.DataFrame(values),
        pa.table({"a": y}),
        np.float64(3.0),
        3,
        None,
        "text",
        {1: 2},
        {1, 2},
    ):
        read = read_source(X, y, y)
        assert all(one is other for one, other in zip(read, (X, y, y, None), strict=True))
        assert (read_lazily(X) is X) == (not isinstance(X, np.memmap))


def test_arrays_outside_of_memory_are_copied_to_a_memory_map(values):
    stored = CountingArray(values, (10, WIDTH))
    targets = CountingArray(np.arange(N_ROWS), (10,))
    assert isinstance(read_lazily(stored), LazyArray)
    np.testing.assert_array_equal(read_lazily(stored)[:], values)
    for y in (np.arange(N_ROWS), list(range(N_ROWS)), targets):
        X, read, weights, names = read_source(stored, y, targets)
        assert isinstance(X, np.memmap)
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


class BlockSource:
    """Can be iterated over, but is not an array."""

    def __iter__(self):
        yield np.eye(2), [0, 1]
        yield [np.eye(2), [0, 1]]

    def __len__(self):
        return 2


def test_iterators_are_spooled():
    for X in (
        iter(BlockSource()),
        (block for block in BlockSource()),
        BlockSource(),
        map(tuple, BlockSource()),
    ):
        X, y, weights, names = read_source(X)
        assert isinstance(X, np.memmap)
        np.testing.assert_array_equal(X, np.vstack([np.eye(2)] * 2))
        assert y.tolist() == [0, 1, 0, 1]
        assert weights is names is None
    for arguments, name in (
        ((BlockSource(), [0, 1]), "y"),
        ((BlockSource(), None, [1, 1]), "sample_weight"),
    ):
        with pytest.raises(
            ValueError, match=f"{name} is given, but X is an iterator of blocks, .* {FORMS}"
        ):
            read_source(*arguments)
