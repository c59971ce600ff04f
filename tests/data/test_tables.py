"""Data files: the same rows in every format and for every block size, and errors with places."""

import gzip
import io
import os
import re
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from notsorandom._utils.files import open_atomic
from notsorandom.data.rows import stack_blocks
from notsorandom.data.tables import TableError, feature_names, open_table, open_writer, read_all

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'notsorandom[files]'")
import pyarrow.feather as feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from notsorandom.data.tables.delimited import DelimitedTable  # noqa: E402

pytestmark = pytest.mark.usefixtures("quick_trials")

NAMES = ["age", "height", "weight"]
N_ROWS = 23


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((N_ROWS, 3)).round(9), columns=NAMES)
    frame["label"] = rng.choice(["yes", "no", "perhaps"], N_ROWS)
    frame["id"] = [f"row {number}" for number in range(N_ROWS)]
    return frame


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def stored(frame, folder, ending):
    """The features of a frame, and for named columns all of it, in a file of each kind."""
    path = folder / f"table{ending}"
    X = frame[NAMES].to_numpy()
    if ending == ".parquet":
        frame.to_parquet(path)
    elif ending in (".feather", ".arrow"):
        feather.write_feather(frame, path)
    elif ending == ".npy":
        np.save(path, X)
    elif ending == ".npz":
        np.savez_compressed(path, X=np.ascontiguousarray(X), y=frame["label"].to_numpy(dtype=str))
    elif ending == ".svm":
        dump_svmlight_file(X, np.arange(len(X)), str(path), zero_based=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in ending else ",")
    return path


ENDINGS = [
    ".csv",
    ".csv.gz",
    ".tsv",
    ".tsv.gz",
    ".parquet",
    ".feather",
    ".arrow",
    ".npy",
    ".npz",
    ".svm",
]


# Laws


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("max_rows", [1, 2, 7, N_ROWS, 1000, None])
def test_every_format_has_the_same_rows_for_every_block_size(frame, tmp_path, ending, max_rows):
    table = open_table(stored(frame, tmp_path, ending))
    blocks = list(table.blocks(NAMES, max_rows=max_rows))
    sizes = [len(block) for block in blocks]
    assert all(size == (max_rows or N_ROWS) for size in sizes[:-1])
    X = stack_blocks([block.X for block in blocks])
    if sparse.issparse(X):
        X = X.toarray()
    else:
        assert all(block.X.flags.c_contiguous for block in blocks)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X, frame[NAMES].to_numpy())


@pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".parquet"])
@pytest.mark.parametrize("max_rows", [3, None])
def test_columns_have_the_given_order_and_others_are_kept(frame, tmp_path, ending, max_rows):
    table = open_table(stored(frame, tmp_path, ending))
    assert table.columns == tuple(frame.columns)
    names = ["weight", "age"]
    blocks = list(table.blocks(names, "label", keep=["id", "label"], max_rows=max_rows))
    np.testing.assert_array_equal(stack_blocks([block.X for block in blocks]), frame[names])
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), frame["label"])
    for name in ("id", "label"):
        kept = [value for block in blocks for value in block.kept[name].tolist()]
        assert kept == frame[name].tolist()


def test_many_batches_of_text_give_the_same_rows(frame, tmp_path):
    many = pd.concat([frame] * 40, ignore_index=True)
    many["id"] = many["id"] + ',\n"and"'
    path = stored(many, tmp_path, ".csv")
    for max_rows in (11, 100, None):
        blocks = list(DelimitedTable(path, ",", 2048).blocks(NAMES, "label", ["id"], max_rows))
        np.testing.assert_array_equal(stack_blocks([block.X for block in blocks]), many[NAMES])
        kept = [value for block in blocks for value in block.kept["id"].tolist()]
        assert kept == many["id"].tolist()


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz", ".svm"])
def test_read_all(frame, tmp_path, ending):
    table = open_table(stored(frame.drop(columns="id"), tmp_path, ending))
    target = None if ending in (".npz", ".svm") else "label"
    X, y, names = read_all(table, target=target)
    assert names == (NAMES if target else None)
    np.testing.assert_array_equal(X.toarray() if sparse.issparse(X) else X, frame[NAMES])
    np.testing.assert_array_equal(y, np.arange(N_ROWS) if ending == ".svm" else frame["label"])


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfa,b\r\n1,2\r\n3,4\r\n",
        b"a,b\r1,2\r3,4",
        b"\n\na,b\n1,2\n\n3,4\n\n\n",
        b'"a","b"\n" 1","+2"\n"3",4.0e0',
        b"a,b,c\n1,2,\xff\n3,4,\xff\n",
        b'a,b,c\n1,2,5" pipe\n3,4,\n',
    ],
    ids=["bom and crlf", "cr", "blank lines", "quotes", "unread column", "inches"],
)
def test_variants_of_csv(write, content):
    (block,) = open_table(write("table.csv", content)).blocks(["a", "b"])
    np.testing.assert_array_equal(block.X, [[1, 2], [3, 4]])


def test_rows_may_be_longer_than_a_batch_of_text(write):
    names = [f"x{number}" for number in range(200)]
    row = ",".join(["1.5"] * 200)
    path = write("TABLE.CSV", f"{','.join(names)}\n{row}\n{row}\n")
    (block,) = DelimitedTable(path, ",", 64).blocks(names)
    np.testing.assert_array_equal(block.X, np.full((2, 200), 1.5))


def test_float32_is_kept_and_other_types_become_float64(tmp_path):
    X = np.arange(6).reshape(3, 2)
    for dtype in (np.float32, np.float16, np.int8, bool, ">f8", ">f4"):
        wanted = np.float32 if np.dtype(dtype).itemsize == 4 else np.float64
        np.save(tmp_path / "X.npy", np.asfortranarray(X.astype(dtype)))
        (block,) = open_table(tmp_path / "X.npy").blocks()
        assert block.X.dtype == np.dtype(wanted)
        np.testing.assert_array_equal(block.X, X.astype(dtype))
    columns = {"a": pa.array([1, 2], pa.float32()), "b": pa.array([3, 4], pa.float32())}
    pq.write_table(pa.table(columns | {"c.d": [True, False]}), tmp_path / "X.parquet")
    table = open_table(tmp_path / "X.parquet")
    assert next(table.blocks(["a", "b"])).X.dtype == np.float32
    mixed = next(table.blocks(["c.d", "a"])).X
    assert mixed.dtype == np.float64
    np.testing.assert_array_equal(mixed, [[1, 1], [0, 2]])


# Targets


@pytest.mark.parametrize(
    ("cells", "dtype", "values"),
    [
        ("1 0 +1", np.int64, [1, 0, 1]),
        ("1 0 0.5", np.float64, [1, 0, 0.5]),
        ("1 0 x", str, ["1", "0", "x"]),
        ("1 0 true", str, ["1", "0", "true"]),
        ("true False TRUE", bool, [True, False, True]),
        ("NA None yes", str, ["NA", "None", "yes"]),
        ("0x10 1 2", str, ["0x10", "1", "2"]),
        (f"1 2 {2**70}", str, ["1", "2", str(2**70)]),
        ("1 2.5 007", str, ["1", "2.5", "007"]),
        ("00 10 11", str, ["00", "10", "11"]),
        ("1 2.0 0", np.float64, [1.0, 2.0, 0.0]),
        ("0 -0 0.07", np.float64, [0.0, 0.0, 0.07]),
    ],
)
def test_a_target_in_text_has_one_type(write, cells, dtype, values):
    rows = "".join(f"1,{cell}\n" for cell in cells.split())
    table = DelimitedTable(write("table.csv", "x,y\n" + rows), ",", 32)
    for block, value in zip(table.blocks(["x"], "y", max_rows=1), values, strict=True):
        assert block.y.dtype.kind == np.dtype(dtype).kind
        assert block.y.tolist() == [value]


def test_a_target_has_the_given_type(write, tmp_path):
    table = open_table(write("table.csv", "x,y\n1,1\n2,0\n"))
    for kind, values in (("U5", ["1", "0"]), ("f8", [1.0, 0.0]), ("i4", [1, 0]), ("O", ["1", "0"])):
        (block,) = table.blocks(["x"], "y", target_type=np.dtype(kind))
        assert block.y.tolist() == values
    with pytest.raises(TableError, match="Row #2: '1' is not true or false"):
        list(table.blocks(["x"], "y", target_type=np.dtype(bool)))
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=np.array([1.0, 0.0]))
    table = open_table(tmp_path / "a.npz")
    (block,) = table.blocks(None, "y", target_type=np.dtype(int))
    assert block.y.dtype == np.int64
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=[0.5, 1.0])
    with pytest.raises(
        TableError, match=r"target has type float64, with values such as 0\.5, but the model's"
    ):
        list(open_table(tmp_path / "a.npz").blocks(None, "y", target_type=np.dtype(int)))
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=["cat", "dog"])
    with pytest.raises(TableError, match="target has type <U3, with values such as 'cat'"):
        list(open_table(tmp_path / "a.npz").blocks(None, "y", target_type=np.dtype(int)))


@pytest.mark.parametrize(
    ("texts", "dtype", "values"),
    [
        (["True", " false"], bool, [True, False]),
        (["0", "1"], bool, "'0'"),
        (["true", ""], bool, "''"),
        (["1", "-2.0"], int, [1, -2]),
        (["1", "1.5"], int, r"'1\.5'"),
        (["1", "1_0"], int, "'1_0'"),
        (["0", str(2**63)], int, f"'{2**63}'"),
        (["0", "9" * 5000], int, "'9999"),
        (["1e3", "0"], float, [1000.0, 0.0]),
        (["1", "1_0"], float, "'1_0'"),
        (["1", "inf"], float, "'inf'"),
        (["1", "1e999"], float, "'1e999'"),
    ],
)
def test_texts_are_converted_or_refused(tmp_path, texts, dtype, values):
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=texts)
    blocks = open_table(tmp_path / "a.npz").blocks(None, "y", target_type=np.dtype(dtype))
    if isinstance(values, str):
        with pytest.raises(TableError, match=f"such as {values}.* but the model's target has"):
            next(blocks)
        return
    y = next(blocks).y
    assert y.dtype == np.dtype(dtype)
    assert y.tolist() == values


def test_integers_with_a_decimal_point_can_be_classes(write):
    table = open_table(write("table.csv", "x,y\n1,1.0\n2,-2.\n3,+3\n"))
    (block,) = table.blocks(["x"], "y", target_type=np.dtype(int))
    assert block.y.dtype == np.int64
    assert block.y.tolist() == [1, -2, 3]


def test_targets_of_parquet_keep_their_type(tmp_path):
    for values in ([1, 2], [0.5, 1.0], [True, False], ["a", "b"], pd.Categorical(["a", "b"])):
        pd.DataFrame({"x": [1.0, 2.0], "y": values}).to_parquet(tmp_path / "a.parquet")
        (block,) = open_table(tmp_path / "a.parquet").blocks(["x"], "y")
        assert block.y.tolist() == list(values)
        assert block.y.dtype.kind in "ifbU"
    arrays = [pa.array(np.array([1, 2], np.float16))]
    if int(pa.__version__.split(".")[0]) >= 20:  # before, Parquet has no views
        arrays.append(pa.array(["a", "b"], pa.string_view()))
    for values in arrays:
        pq.write_table(pa.table({"x": [1.0, 2.0], "y": values}), tmp_path / "a.parquet")
        assert open_table(tmp_path / "a.parquet").schema.field("y").type == values.type
        (block,) = open_table(tmp_path / "a.parquet").blocks(["x"], "y", ["y"])
        assert block.y.tolist() == values.to_pylist() == block.kept["y"].to_pylist()
        assert block.y.dtype in (np.dtype("U1"), np.float64)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_floats_of_other_sizes_become_float64(tmp_path, dtype):
    X = np.array([[1, 2], [3, 4]], dtype=dtype)
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "a.npz", X=X, y=X[:, 1])
    for name, target in (("a.npy", "1"), ("a.npz", "1"), ("a.npz", "y")):
        (block,) = open_table(tmp_path / name).blocks(None, target)
        assert block.X.dtype == block.y.dtype == np.float64
        assert block.y.tolist() == [2, 4]


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="the same")
def test_numbers_too_large_for_float64_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([["1", "1e999"]], dtype=np.longdouble))
    assert "column 1 (counted from 0), row 1: inf is not" in error_of(tmp_path / "a.npy")


@pytest.mark.parametrize(("target", "column"), [("0", 0), ("-1", 2), ("1", 1)])
def test_a_column_of_an_array_is_the_target(frame, tmp_path, target, column):
    X = frame[NAMES].to_numpy()
    rest, y, names = read_all(open_table(stored(frame, tmp_path, ".npy")), target=target)
    np.testing.assert_array_equal(y, X[:, column])
    np.testing.assert_array_equal(rest, np.delete(X, column, axis=1))
    assert names is None


# LIBSVM


LIBSVM = "# a comment\n+1 1:0.5 3:2 # more\n\n-1 qid:3 2:1e3\n-1\n+1 4:7\n"


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("max_rows", [1, 2, None])
def test_libsvm_blocks_equal_the_whole(write, shift, max_rows):
    content = LIBSVM if shift else LIBSVM.replace("4:7", "0:7")
    path = write("table.svm", content)
    X, y = load_svmlight_file(str(path))
    table = open_table(path)
    assert table.zero_based == (shift == 0)
    blocks = list(table.blocks(target=table.default_target, max_rows=max_rows))
    assert all(block.X.format == "csr" and block.y.dtype == np.int64 for block in blocks)
    np.testing.assert_array_equal(
        stack_blocks([block.X for block in blocks]).toarray(), X.toarray()
    )
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)


def test_libsvm_columns_equal_those_of_the_model(write):
    path = write("new.svm", "0 2:1\n0 3:1\n")
    for zero_based, column in ((True, 2), (False, 1), (None, 1)):
        first = next(open_table(path, zero_based).blocks(10, max_rows=1))
        assert first.X.shape == (1, 10)
        assert first.X.indices.tolist() == [column]
    with pytest.raises(TableError, match="line 2: there is a column 3, but 2 columns are expected"):
        list(open_table(path).blocks(2))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("2:1 3:4", "line 3: the label '2:1' is not a finite number: start"),
        ("cat 2:1", "line 3: the label 'cat' is not a finite number"),
        ("1 2:x", "line 3: '2:x' is not a column number and a finite value"),
        ("1 2:nan", "line 3: '2:nan' is not a column number and a finite value"),
        ("1 2:1 x", "line 3: 'x' is not a column number and a finite value"),
        ("nan 2:1", "line 3: the label 'nan' is not"),
        ("1 3:1 2:1", "line 3: column 2 follows column 3: sort"),
        ("1 0:1", "line 3: there is a column 0, but column numbers"),
        ("1 99999999999999:1", "line 3: there is a column 99999999999999, but"),
    ],
)
def test_libsvm_errors_have_lines(write, line, says):
    path = write("table.svm", f"1 1:2\n# comment\n{line}\n1 1:3\n")
    with pytest.raises(TableError, match=says):
        list(open_table(path, zero_based=False).blocks(9))
    if "0:" not in line:
        with pytest.raises(TableError, match=says):
            list(open_table(path).blocks(None, "label"))


# Memory


def test_large_row_groups_are_not_held_in_memory(tmp_path):
    X = np.random.default_rng(0).standard_normal((200_000, 50))
    table = pa.table({f"x{number}": column for number, column in enumerate(X.T)})
    options = {"use_dictionary": False, "data_page_size": 2**14}  # a page is held of each column
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=len(X), **options)
    del table
    before = pa.total_allocated_bytes()
    most = 0
    for _ in open_table(tmp_path / "a.parquet").blocks(max_rows=1000):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < X.nbytes / 2


# Errors: what was found, where, and what to do


def error_of(path, features=("a", "b"), target=None, **options):
    with pytest.raises(TableError) as caught:
        list(open_table(path).blocks(list(features), target, **options))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("x,2,u", "In column 'a': Row #13: CSV conversion error to double: invalid value 'x'"),
        ("1_0,2,u", "In column 'a': Row #13: .* invalid value '1_0'"),
        ("1,,u", "In column 'b': Row #13: .* invalid value ''"),
        ("1,NA,u", "In column 'b': Row #13: .* invalid value 'NA'"),
        ("nan,2,u", "In column 'a': Row #13: nan is not a finite number"),
        ("-inf,2,u", "In column 'a': Row #13: -inf is not a finite number"),
        ("1,2", "Row #13: Expected 3 columns, got 2"),
        ("1,2,u,", "Row #13: Expected 3 columns, got 4"),
        (b"\xff,2,u", "In column 'a': Row #13: .* invalid value"),
        ('1,2,"u', "a quoted cell is not closed"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_errors_of_csv_have_rows(write, line, says, ending):
    """The header is row 1; a row of two lines, and three empty lines, come before the error."""
    line = line if isinstance(line, bytes) else line.encode()
    before = b"a,b,c\n" + b'1,2,"u\nv"\n\n\n\n' + b"1,2,u\n" * 10
    content = before + line + b"\n" + b"3,4,v\n" * 20
    content = gzip.compress(content) if ending == "csv.gz" else content
    path = write(f"table.{ending}", content)
    for max_rows in (1, 5, None):
        assert re.search(says, error_of(path, max_rows=max_rows))


def test_errors_of_a_csv_target_have_rows(write):
    for cells, dtype, says in [
        ("1 2 NA", None, "In column 'y': Row #4: 'NA' is not an integer"),
        ("1 1.5 2", int, "In column 'y': Row #3: '1.5' is not an integer"),
        ("1 x 2", float, "In column 'y': Row #3: 'x' is not a number"),
    ]:
        rows = "".join(f"1,{cell}\n" for cell in cells.split())
        path = write("table.csv", "a,y\n" + rows)
        target_type = None if dtype is None else np.dtype(dtype)
        assert says in error_of(path, ["a"], "y", target_type=target_type)
    path = write("table.csv", "a,y\n1,u\n2, \n3,v\n")
    assert "In column 'y': Row #3: ' ' is not text" in error_of(path, ["a"], "y")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "\n\n", "is empty"),
        ("a.csv", "a,b\n", "has a header but no rows"),
        ("a.csv", "1.5,-2\n3,4\n", "line 1 has numbers, '1.5', '-2', but must have"),
        ("a.csv", "a;b\n3;4\n", "a .csv file needs commas between cells"),
        ("a.tsv", "a,b\n3,4\n", "a .tsv file tabs"),
        ("a.csv", "a,b,a\n1,2,3\n", "has more than one column 'a'"),
        ("a.csv", "a,b\n1,2\n".encode("utf-16"), "line 1 is not UTF-8 text"),
        ("a.csv.gz", "a,b\n1,2\n", "is damaged"),
        ("a.parquet", "PAR1 and so on", "can't be read; it may be damaged"),
        ("a.npz", "PK and so on", "can't be read as NumPy data"),
        ("a.npy", "and so on", "can't be read as NumPy data"),
        ("a.svm", "# nothing\n\n", "has no rows with features"),
        ("a.xlsx", "a", "is of an unknown format: give a file that ends in .csv, .csv.gz, .tsv"),
    ],
)
def test_files_that_are_not_tables(write, name, content, says):
    assert says in error_of(write(name, content))


def test_missing_files(tmp_path):
    assert "doesn't exist" in error_of(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder, a pipe or a device" in error_of(tmp_path / "folder.csv")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npy", ".svm"])
def test_pipes_are_refused(tmp_path, ending):
    path = tmp_path / f"pipe{ending}"
    os.mkfifo(path)
    assert "give an ordinary file" in error_of(path)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_missing_columns(frame, tmp_path, ending):
    path = stored(frame, tmp_path, ending)
    says = error_of(path, ["age", "hieght"])
    assert "has no column 'hieght'. Did you mean 'height'? It has 'age', 'height'" in says
    assert "has no column 'labl'. Did you mean 'label'?" in error_of(path, ["age"], "labl")
    assert "has no columns 'p', 'q'. It has" in error_of(path, ["p", "age", "q"])
    assert "has no column 'z'" in error_of(path, ["age"], keep=["z"])
    assert "'age' is both target and feature" in error_of(path, ["age"], "age")
    with pytest.raises(TableError, match=r"the target column is not given\. Give one of 'age', "):
        read_all(open_table(path))
    with pytest.raises(TableError, match="has 3 feature columns, but the model was fitted with 2"):
        open_table(path).blocks(2, "label", keep=["id"])
    X = next(open_table(path).blocks(3, "label", keep=["id"])).X
    np.testing.assert_array_equal(X, frame[NAMES])


def test_an_index_of_pandas_is_not_learned_from(frame, tmp_path):
    frame[NAMES].to_csv(tmp_path / "a.csv")
    with pytest.raises(
        TableError, match="column 1 has the name '', so it looks like an index written by pandas"
    ):
        read_all(open_table(tmp_path / "a.csv"), target="age")
    assert len(next(open_table(tmp_path / "a.csv").blocks(NAMES))) == N_ROWS


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_level_of_an_index_is_not_learned_from(frame, tmp_path, ending):
    shuffled = frame[NAMES].sort_values("age")
    shuffled.to_parquet(tmp_path / "a.parquet")
    pq.read_table(tmp_path / "a.parquet").to_pandas(ignore_metadata=True).to_csv(
        tmp_path / "a.csv", index=False
    )
    table = open_table(tmp_path / f"a{ending}")
    with pytest.raises(TableError, match=r"column 4 has the name '__index_level_0__'.*index=False"):
        feature_names(table, "age")
    with pytest.raises(TableError, match="looks like an index written by pandas"):
        read_all(table, target="age")
    assert feature_names(table, "__index_level_0__") == NAMES
    X, _, names = read_all(table, ["__index_level_0__", "height"], "age")
    assert names == ["__index_level_0__", "height"]
    np.testing.assert_array_equal(X[:, 0], shuffled.index)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("ending", [".csv.gz", ".parquet", ".npz", ".npy"])
def test_truncated_files(frame, tmp_path, ending, share):
    path = stored(pd.concat([frame] * 100), tmp_path, ending)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert re.search("is damaged|can't be read", error_of(path, NAMES))


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_files_with_a_hole(frame, tmp_path, ending):
    path = stored(pd.concat([frame] * 100), tmp_path, ending)
    content = bytearray(path.read_bytes())
    content[300:900] = bytes(600)
    path.write_bytes(content)
    assert re.search("is damaged|can't be read", error_of(path, NAMES))


def test_errors_of_parquet_have_rows(tmp_path):
    path = tmp_path / "a.parquet"
    columns = {"a": [1.0] * 9, "b": [1] * 9, "y": ["u"] * 9, "z": [1.0] * 9}
    for name, value, says in [
        ("a", None, "column 'a', row 6: the cell is empty"),
        ("b", None, "column 'b', row 6: the cell is empty"),
        ("a", -np.inf, "column 'a', row 6: -inf is not a finite number"),
        ("y", None, "column 'y', row 6: the cell is empty"),
        ("y", "", "column 'y', row 6: the cell is empty"),
        ("y", " ", "column 'y', row 6: the cell is empty"),
        ("z", np.inf, "column 'z', row 6: inf is not a finite number"),
    ]:
        values = [*columns[name][:5], value, *columns[name][6:]]
        pq.write_table(pa.table(columns | {name: values}), path)
        assert says in error_of(path, target=name if name in "yz" else "y", max_rows=2)
    pd.DataFrame(columns | {"when": pd.Timestamp("2020-01-01")}).to_parquet(path)
    assert "column 'y' has type" in error_of(path, ["a", "y"])
    assert "column 'when' has type timestamp" in error_of(path, ["a"], "when")
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), path)
    assert "has more than one column 'a'" in error_of(path)
    pq.write_table(pa.table({"a": [1.0]}).slice(0, 0), path)
    assert "has columns but no rows" in error_of(path)


def test_errors_of_arrays_have_rows(tmp_path):
    path = tmp_path / "a.npy"
    X = np.zeros((9, 3))
    for array, says in [
        (X[0], "has shape (3,) and type float64: it must have two dimensions"),
        (X[:, :1], "has 1 feature column, but the model was fitted with 2: give a file"),
        (X, "has 3 feature columns, but the model was fitted with 2: give a file"),
        (X[:0], "has shape (0, 3) and type float64: it must have two dimensions"),
        (X.astype("U3"), "type <U3: it must have"),
        (np.zeros(3, dtype=[("a", float)]), "two dimensions"),
        (X.astype(object), "can't be read as NumPy data without Python objects"),
    ]:
        np.save(path, array)
        assert says in error_of(path)
    X[5, 1] = np.nan
    np.save(path, X)
    says = error_of(path, ["a", "b", "c"], max_rows=2)
    assert "column 1 (counted from 0), row 6: nan is not a finite number" in says
    assert "has no column '3'. Give a column number from 0 to 2, or -1" in error_of(
        path, target="3"
    )
    assert "has no column 'label'. Give a column number" in error_of(path, target="label")
    assert "has no column names, so 'id' can't be kept" in error_of(path, keep=["id"])
    with pytest.raises(TableError, match=r"the target column is not given\. Give a column number"):
        read_all(open_table(path))


def test_an_error_has_its_row_in_a_long_array(tmp_path):
    X = np.zeros((100_000, 3))
    X[90_000, 2] = np.inf
    np.save(tmp_path / "a.npy", X)
    assert "column 2 (counted from 0), row 90001: inf" in error_of(tmp_path / "a.npy", "abc")


def test_an_archive_with_a_truncated_array(tmp_path):
    array = io.BytesIO()
    np.save(array, np.zeros((9, 2)))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", array.getvalue()[:-8])
    assert "can't be read as NumPy data" in error_of(tmp_path / "a.npz")


def test_errors_of_archives(tmp_path):
    path = tmp_path / "a.npz"
    X = np.zeros((9, 2))
    for arrays, says in [
        ({"data": X}, "has no array X (it has data): write it with np.savez(path, X=X, y=y)"),
        (
            {"X": X, "y": X[:3, 0]},
            "array y has shape (3,) and type float64: it must have shape (9,)",
        ),
        ({"X": X, "y": X}, "array y has shape (9, 2)"),
        (
            {"X": X, "y": X[:, 0].astype(object)},
            "can't be read as NumPy data without Python objects",
        ),
        ({"X": X, "y": X[:, 0].astype("S1")}, "type |S1: it must have"),
        ({"X": X, "y": np.full(9, np.nan)}, "target, row 1: nan is not a finite number"),
        ({"X": X[0]}, "has shape (2,) and type float64: it must have two dimensions"),
    ]:
        np.savez(path, **arrays)
        assert says in error_of(path, target="y")


def test_missing_pyarrow(write, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(ImportError, match=r"pyarrow: .* pip install 'notsorandom\[files\]'"):
            open_table(write(name, "a,b\n1,2\n"))
    with (
        pytest.raises(ImportError, match="Writing Parquet needs pyarrow"),
        open_writer(tmp_path / "b.parquet"),
    ):
        pass
    np.save(tmp_path / "a.npy", np.eye(2))
    assert len(next(open_table(tmp_path / "a.npy").blocks())) == 2


# Writing


def predictions():
    yield {"id": pa.array(["a", None]), "label": np.array(["x", 'y,"z'])}
    yield {"id": pa.array(["c"]), "label": np.array(["w"])}


def test_predictions_can_be_read_back(tmp_path, capsys):
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet", None):
        with open_writer(path) as write:
            for columns in predictions():
                write(columns)
    text = 'id,label\na,x\n,"y,""z"\nc,w\n'
    assert (tmp_path / "a.csv").read_text() == text
    assert capsys.readouterr().out == text
    read = pq.read_table(tmp_path / "a.parquet").to_pydict()
    assert read == {"id": ["a", None, "c"], "label": ["x", 'y,"z', "w"]}


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npy"])
def test_floats_are_written_with_all_their_digits(tmp_path, ending):
    P = np.random.default_rng(0).standard_normal((1200, 2))
    path = tmp_path / f"a{ending}"
    with open_writer(path) as write:
        for start in (0, 5):
            part = P[start : 5 if start == 0 else None]
            write({"p": part[:, 0], "q": part[:, 1]})
    (block,) = open_table(path).blocks(["p", "q"])
    np.testing.assert_array_equal(block.X, P)


def test_an_array_of_one_column_has_one_dimension(tmp_path):
    with open_writer(tmp_path / "a.npy") as write:
        for size in (3, 10, 10_000):
            write({"label": np.full(size, "cat")})
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.full(10_013, "cat"))
    with open_writer(tmp_path / "b.npy") as write:
        write({"label": np.array(["cat"])})
        write({"label": np.array(["mouse"])})
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), ["cat", "mouse"])
    with (
        open_writer(tmp_path / "b.npy") as write,
        pytest.raises(TableError, match="have the types"),
    ):
        write({"label": np.array(["cat"]), "p": np.ones(1)})


def test_objects_that_are_text_are_written_as_text(tmp_path):
    with open_writer(tmp_path / "a.npy") as write:
        write({"label": np.array(["mouse", "ox"], dtype=object)})
        write({"label": np.array(["cat"], dtype=object)})
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), ["mouse", "ox", "cat"])
    with open_writer(tmp_path / "a.npy") as write:
        write({"a": np.array(["mouse"], dtype=object), "b": np.array(["ox"], dtype=object)})
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), [["mouse", "ox"]])
    with (
        open_writer(tmp_path / "b.npy") as write,
        pytest.raises(TableError, match="the types object"),
    ):
        write({"label": np.array(["cat", 1], dtype=object)})


def write_and_stop(path):
    with open_writer(path) as write:
        write({"a": np.ones(3)})
        assert path.read_text() == "old"
        raise KeyboardInterrupt


def test_the_old_file_is_unchanged_until_all_is_written(tmp_path):
    for ending in (".csv", ".parquet", ".npy"):
        path = tmp_path / f"a{ending}"
        path.write_text("old")
        with pytest.raises(KeyboardInterrupt):
            write_and_stop(path)
        assert path.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "a.npy", "a.parquet"]
    with open_atomic(tmp_path / "a.csv") as file:
        file.write(b"new")
        assert (tmp_path / "a.csv").read_text() == "old"
    assert (tmp_path / "a.csv").read_text() == "new"


def test_files_that_cannot_be_written(tmp_path):
    for path, error, says in (
        (tmp_path / "a.xlsx", ValueError, r"that ends in \.csv or \.parquet or \.npy"),
        (tmp_path / "none" / "a.csv", FileNotFoundError, "doesn't exist: create it first"),
    ):
        with pytest.raises(error, match=says), open_writer(path):
            pass
