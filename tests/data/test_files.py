"""Data files: the same table in every format and dialect, whole and in blocks; clear errors."""

import gzip
import io
import os
import subprocess
import sys
import time
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from notsorandom.data.checks import TableError
from notsorandom.data.files import open_data_file, open_writer
from notsorandom.data.text import MISSING

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'notsorandom[tables]'")
import pyarrow.parquet as pq  # noqa: E402

N_ROWS = 37
NUMBERS = ["Größe", "net price", "n"]
TEXTS = ["city", "note", "day", "flag"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.standard_normal(N_ROWS).round(6) for name in NUMBERS[:2]})
    frame["n"] = rng.integers(-5, 100_000, N_ROWS)
    frame.loc[3, "net price"] = np.nan
    frame["city"] = rng.choice(["Zürich", "Łódź", "Genève"], N_ROWS)
    frame["note"] = [f'a; "b",\t|{number}\nc' for number in range(N_ROWS)]
    frame.loc[5, "note"] = None
    frame["day"] = pd.date_range("2020-01-30", periods=N_ROWS)
    frame["flag"] = rng.random(N_ROWS) < 0.5
    return frame


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def assert_same(frame, wanted):
    """Numbers as they are, other cells as text: dates, booleans and categories may be text."""
    assert list(frame) == list(wanted)
    for name in wanted:
        if wanted[name].dtype.kind in "if":
            np.testing.assert_array_equal(frame[name].to_numpy(float), wanted[name].to_numpy(float))
        else:
            assert to_texts(frame[name]) == to_texts(wanted[name])


def to_texts(column):
    return [None if pd.isna(cell) else str(cell).removesuffix(" 00:00:00") for cell in column]


def assert_blocks_equal(data, frame):
    """Blocks of any size, of any part of the columns, in any order."""
    for max_rows in (1, 7, N_ROWS, 1000):
        blocks = list(data.blocks(list(frame), TEXTS, max_rows))
        assert all(0 < len(block) <= max_rows for block in blocks)
        assert all(block[name].dtype.kind in "if" for block in blocks for name in NUMBERS)
        assert_same(pd.concat(blocks), frame)
    part = ["note", "n"]
    assert_same(pd.concat(list(data.blocks(part, ["note", "city"], 5))), frame[part])


# Formats and dialects


@pytest.mark.parametrize(
    ("delimiter", "decimal", "encoding", "ending", "dialect"),
    [
        (",", ".", "utf-8", ".csv", ""),
        (";", ",", "cp1252", ".csv", "semicolons, decimal commas, Windows-1252"),
        ("\t", ",", "utf-16", ".tsv", "tabs, decimal commas, UTF-16"),
        ("|", ".", "utf-8-sig", ".TXT", "vertical bars"),
        (";", ",", "utf-16-be", ".csv.gz", "semicolons, decimal commas, UTF-16"),
        (",", ".", "cp1252", ".csv.gz", "Windows-1252"),
    ],
)
def test_every_dialect_has_the_same_table(
    frame, write, delimiter, decimal, encoding, ending, dialect
):
    if encoding == "cp1252":
        frame["city"] = frame["city"].str.replace("Łódź", "Gda€sk")
    content = frame.to_csv(sep=delimiter, decimal=decimal, index=False).encode(encoding)
    content = b"\xfe\xff" + content if encoding == "utf-16-be" else content
    content = gzip.compress(content) if ending == ".csv.gz" else content
    data = open_data_file(write(f"table{ending}", content))
    assert data.is_frame
    assert data.columns == list(frame.columns)
    assert data.dialect == dialect
    whole = data.read()
    assert whole["flag"].dtype == bool
    assert_same(whole, frame)
    assert_blocks_equal(data, frame)


@pytest.mark.parametrize("head_bytes", [100, 1000, 10_000])
def test_how_much_is_read_at_once_does_not_matter(frame, write, head_bytes, monkeypatch):
    monkeypatch.setattr("notsorandom.data.text.HEAD_BYTES", head_bytes)
    many = pd.concat([frame] * 20, ignore_index=True)
    data = open_data_file(write("a.csv", many.to_csv(index=False)))
    assert_same(data.read(), many)
    for max_rows in (3, 50):
        assert_same(pd.concat(list(data.blocks(list(many), TEXTS, max_rows))), many)


def test_parquet_files(frame, tmp_path):
    frame["city"] = frame["city"].astype("category")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=5)
    data = open_data_file(path)
    assert data.dialect == ""
    assert_same(data.read(), frame)
    assert_same(data.read(["note", "n"]), frame[["note", "n"]])
    assert_blocks_equal(data, frame)


def test_blocks_have_fewer_rows_if_these_are_long(write, monkeypatch):
    data = open_data_file(write("a.csv", "a,s\n" + f"1.5,{'x' * 100}\n" * 40))
    for n_bytes, sizes in ((2**25, [17, 17, 6]), (1050, [10] * 4), (50, [1] * 40)):
        monkeypatch.setattr("notsorandom.data.files.FRAME_BYTES", n_bytes)
        assert [len(block) for block in data.blocks(["s"], ["s"], 17)] == sizes


def test_types_that_pandas_has_not(tmp_path):
    from datetime import time as clock
    from decimal import Decimal

    columns = {"d": [Decimal("1.5"), None], "t": [clock(12, 30), None], "none": [None, None]}
    pq.write_table(pa.table(columns | {"b": [True, None]}), tmp_path / "a.parquet")
    data = open_data_file(tmp_path / "a.parquet")
    frame = data.read()
    assert frame["d"].dtype == frame["none"].dtype == np.float64
    assert frame["t"][0].startswith("12:30")
    (block,) = data.blocks(["b", "d", "none"])
    assert block["b"].tolist() == [True, None]
    np.testing.assert_array_equal(block[["d", "none"]], [[1.5, np.nan], [np.nan] * 2])


def test_an_index_of_pandas(frame, tmp_path):
    shuffled = frame[NUMBERS].sort_values("n")
    shuffled.to_parquet(tmp_path / "a.parquet")
    assert open_data_file(tmp_path / "a.parquet").columns == NUMBERS
    named = shuffled.set_index("n")  # a column like others
    named.to_parquet(tmp_path / "a.parquet")
    data = open_data_file(tmp_path / "a.parquet")
    assert set(data.columns) == set(data.read().columns) == set(NUMBERS)
    for delimiter in ",\t":
        shuffled.to_csv(tmp_path / "a.csv", sep=delimiter)
        data = open_data_file(tmp_path / "a.csv")
        assert data.columns == ["Unnamed: 0", *NUMBERS]
        assert data.read(["Unnamed: 0"]).squeeze().tolist() == shuffled.index.tolist()


@pytest.mark.parametrize(
    ("content", "dialect", "values"),
    [
        ("a\n1\n2\n", "", {"a": [1, 2]}),
        ("a\n1,5\n2,25\n", "semicolons, decimal commas", {"a": [1.5, 2.25]}),
        ("a\nx, y\nz\n", "semicolons", {"a": ["x, y", "z"]}),
        ("a,b\r1,2\r3,4", "", {"a": [1, 3], "b": [2, 4]}),
        ("\n\r\na,b\n\n1,2\n\n\n3,4\n\n", "", {"a": [1, 3], "b": [2, 4]}),
        ('"a\nb","c, d"\n1,2\n', "", {"a\nb": [1], "c, d": [2]}),
        ("a, b ,c\n 1 , x, NA\n2, ?,3 \n", "", {"a": [1, 2], "b": ["x", None], "c": [None, 3]}),
        ("a,b\n1.5 ,   NA \n  2,x\n", "", {"a": [1.5, 2], "b": ["NA ", "x"]}),
        ('"a","b"\n"1",5,"x"\n"2",6,"y"\n', "row names in the first column",
         {"Unnamed: 0": [1, 2], "a": [5, 6], "b": ["x", "y"]}),
        ("a;b;c\n1,5;TRUE;x\n2,5;;\n3,5;False;1,5\n", "semicolons, decimal commas",
         {"a": [1.5, 2.5, 3.5], "b": [True, None, False], "c": ["x", None, "1.5"]}),
        ("a,b\n1,2,\n3,4,\n", "delimiters at the ends of rows",
         {"a": [1, 3], "b": [2, 4], "Unnamed: 2": [None, None]}),
        ("a;b\n1.234,5;1,5\n1.234.567;192.168.100.200\n7;21.01.2020\n",
         "semicolons, decimal commas",
         {"a": ["1234.5", "1234567", "7"], "b": ["1.5", "192.168.100.200", "21.01.2020"]}),
        ("a;b\n1,5;x\nNA ;y\n", "semicolons, decimal commas",
         {"a": ["1.5", "NA "], "b": ["x", "y"]}),
        ("sep=;\na;b\n1;2\n", "semicolons", {"a": [1], "b": [2]}),
        ("sep=|\r\na;b|c\r\n1|2\r\n", "vertical bars", {"a;b": [1], "c": [2]}),
        ("a,b,c\n1,2\n3,4,5\n", "", {"a": [1, 3], "b": [2, 4], "c": [None, 5]}),
        ('a,b\n1,5" pipe\n2,\n', "", {"a": [1, 2], "b": ['5" pipe', None]}),
        ("x (a;b),c;d\n1,2\n3,4\n", "", {"x (a;b)": [1, 3], "c;d": [2, 4]}),
        ("first, last;n\nA, B;1,5\nC, D;2,5\n", "semicolons, decimal commas",
         {"first, last": ["A, B", "C, D"], "n": [1.5, 2.5]}),
        ("a;b\n1.5;1,2\n2.5;x\n", "semicolons", {"a": [1.5, 2.5], "b": ["1,2", "x"]}),
        ("a;b\n1,234;x\n2,345;\n", "semicolons, decimal commas",
         {"a": [1.234, 2.345], "b": ["x", None]}),
        ("a;b\n1.234,5;1,5\n-2,5;1\n", "semicolons, decimal commas",
         {"a": ["1234.5", "-2.5"], "b": [1.5, 1]}),
        ("a\tb\n1,234\tx\n2,345\ty\n", "tabs", {"a": ["1,234", "2,345"], "b": ["x", "y"]}),
        ("a, b|c\nx|1,5\ny|2,5\n", "vertical bars, decimal commas",
         {"a, b": ["x", "y"], "c": [1.5, 2.5]}),
        ("a, b\n1.5\n2.5\n", "semicolons", {"a, b": [1.5, 2.5]}),
        ("t,u\n12:30,1\n09:15,2\n", "", {"t": ["12:30", "09:15"], "u": [1, 2]}),
        ("a,b\ntrue,1\nFALSE,0\nTrue,1\n", "", {"a": [True, False, True], "b": [1, 0, 1]}),
        ("a,b\n,\n,\n", "", {"a": [None, None], "b": [None, None]}),
        (b"a,b\n\xe9,\xe2\x82\xac\n", "Windows-1252", {"a": ["é"], "b": ["€"]}),
    ],
)  # fmt: skip
def test_variants_of_text(write, content, dialect, values):
    data = open_data_file(write("a.csv", content))
    assert data.dialect == dialect
    frame = data.read()
    assert list(frame) == data.columns == list(values)
    texts = [name for name in frame if frame[name].dtype.kind not in "if"]
    for got in (frame, pd.concat(list(data.blocks(data.columns, texts, 1)))):
        for name, wanted in values.items():
            cells = [None if pd.isna(cell) else cell for cell in got[name]]
            if got is not frame and isinstance(wanted[0], bool):
                cells = [cell and cell.lower() == "true" for cell in cells]
            assert cells == wanted


def test_missing_cells(write):
    cases = [case(text) for text in MISSING for case in (str, str.upper)] + ["NaN", "None", "N/A"]
    lines = "".join(f"{text},{text},1\n" for text in cases)
    data = open_data_file(write("a.csv", f"x,s,n\n1.5,u,1\n{lines}"))
    frame = data.read()
    assert frame["x"].dtype == np.float64
    (block,) = data.blocks(["x", "s", "n"], ["s"])
    for got in (frame, block):
        assert (
            got["x"].notna().tolist() == got["s"].notna().tolist() == [True] + [False] * len(cases)
        )


def test_types_are_found_over_all_rows(write):
    """Not from the first ones only, of which the dialect is found."""
    n_rows = 200_000
    lines = [f"{row},{row},{row}" for row in range(n_rows)]
    lines[-1] = "x,é,0.5"
    content = "\n".join(["a,b,c", *lines]).encode("cp1252")
    assert content.isascii() is False
    frame = open_data_file(write("a.csv", content)).read()
    assert [frame[name].iloc[-1] for name in "abc"] == ["x", "é", 0.5]
    assert [frame[name].iloc[0] for name in "abc"] == ["0", "0", 0.0]


def test_many_columns_are_quick(write):
    names = [f"column {number}" for number in range(40_000)]
    row = ",".join(["1.5" + "0" * 30] * len(names))  # a line is longer than what is parsed at once
    path = write("a.csv", f"{','.join(names)}\n{row}\n{row}\n")
    start = time.process_time()
    (block,) = open_data_file(path).blocks(names[5:9])
    assert time.process_time() - start < 5  # a quadratic check of the names took 14 s
    assert (block == 1.5).all(axis=None)
    assert list(block) == names[5:9]


# Errors


def error_of(path, max_rows=5, **options):
    """The error of opening a file, or of reading it in blocks."""

    def read():
        data = open_data_file(path, **options)
        if data.is_frame:
            return list(data.blocks(data.columns, (), max_rows))
        return data.read_matrix()

    with pytest.raises(TableError) as caught:
        read()
    return str(caught.value)


CHECKS_ALL = pytest.mark.skipif(
    tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1),
    reason="pandas before 3.1 doesn't count the cells in the first row of a block",
)


@pytest.mark.parametrize(
    ("n_rows", "line", "says"),
    [
        (90_010, "1,2,u,", "Expected 3 fields in line 90017, saw 4"),
        pytest.param(90_000, "1,2,u,", "Expected 3 fields in line 90007, saw 4", marks=CHECKS_ALL),
        (90_000, '1,2,"u', "EOF inside string"),
        (10, "1,2,u,", "row 11 below the header has 4 cells, but the header has 3: put cells"),
    ],
)
def test_errors_of_text_have_lines(write, n_rows, line, says):
    """The header is the second line; four empty lines come before the rows."""
    content = "\na,b,c\n\n\n\n\n" + "1,2,u\n" * n_rows + f"{line}\n" + "3,4,v\n" * 20
    path = write("a.csv", content)
    for max_rows in (500, 100_000):
        assert says in error_of(path, max_rows)
    with pytest.raises(TableError, match=says):
        open_data_file(path).read()


def test_lines_that_are_too_long(write, monkeypatch):
    monkeypatch.setattr("notsorandom.data.text.MAX_LINE_BYTES", 2**20)
    path = write("a.csv", "a,b\n" + "1,2\n" * 100_000 + f'3,"{"x" * 2**21}"\n')
    says = error_of(path, max_rows=2**16)
    assert "a line of more than 1,048,576 bytes, after line 100,001: is a quotation mark" in says


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", "", "is empty: give a file with rows"),
        ("a.csv", "\n\n", "has no rows below the header"),
        ("a.csv", "a,b\n", "has no rows below the header"),
        ("a.csv", "1.5,-2\n3,4\n", "line 1 has numbers, '1.5', '-2', but must have the names"),
        ("a.csv", "1,5;2\n3;4\n", "line 1 has numbers"),
        ("a.csv", "a,b,a\n1,2,3\n", "has more than one column 'a': rename"),
        ("a.csv", b"PAR1\0\0", "is not a text file"),
        ("a.csv.gz", "a,b\n1,2\n", "can't be read (Not a gzipped file"),
        # mtime=0: the content is part of the test's name, which must not depend on the time
        ("a.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], "can't be read (Compressed"),
        ("a.parquet", "PAR1 and so on", "can't be read (Parquet magic bytes not found"),
        ("a.npz", "PK and so on", "can't be read"),
        ("a.npy", "and so on", "can't be read"),
        ("a.svm", "# nothing\n\n", "has X of shape (0, "),
        ("a.svm", "1 1:2\n1 2:x\n", "can't be read"),
        ("a.svm", "x 1:2\n", "can't be read"),
        ("a.svm", "1 99999999999999:1\n", "a.svm"),
        ("a.svm", "1 2000000000:1\n", "takes over 2,147,483,648 bytes"),
        ("a.xlsx", "a", "is of an unknown format: it must end in .csv, .tsv"),
        ("a.npz.gz", "a", "a.npz.gz is of an unknown format"),
    ],
)
def test_files_that_are_not_tables(write, name, content, says):
    assert says in error_of(write(name, content))


def test_paths_that_are_not_files(tmp_path):
    for path in (tmp_path / "none.csv", "-"):
        assert "doesn't exist" in error_of(path)
    (tmp_path / "folder.csv").mkdir()
    paths = [tmp_path / "folder.csv"]
    if os.name == "posix":
        os.mkfifo(tmp_path / "pipe.csv")
        paths += [tmp_path / "pipe.csv", "/dev/stdin"]
    for path in paths:
        assert "is no ordinary file" in error_of(path)


def test_columns_that_are_missing(frame, tmp_path, write):
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    for path in (tmp_path / "a.parquet", write("a.csv", frame.to_csv(index=False))):
        data = open_data_file(path)
        for read in (data.read, data.blocks):  # blocks don't wait until they are read
            with pytest.raises(TableError, match=r"no column 'citi'. Did you mean 'city'"):
                read(["n", "citi"])
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "b.parquet")
    assert "more than one column 'a'" in error_of(tmp_path / "b.parquet")
    pq.write_table(pa.table({"a": [1.0]})[:0], tmp_path / "b.parquet")
    assert "has no rows or no columns" in error_of(tmp_path / "b.parquet")


@pytest.mark.parametrize("ending", [".parquet", ".npz", ".npy", ".csv.gz"])
def test_damaged_files(tmp_path, ending):
    X = np.random.default_rng(0).standard_normal((500, 3)).round(6)
    path = tmp_path / f"a{ending}"
    if ending in (".npy", ".npz"):
        np.save(path, X) if ending == ".npy" else np.savez_compressed(path, X=X)
    else:
        frame = pd.DataFrame(X, columns=list("abc"))
        frame.to_parquet(path) if ending == ".parquet" else frame.to_csv(path, index=False)
    content = path.read_bytes()
    for share in (0.3, 0.9, 0.999):
        path.write_bytes(content[: int(share * len(content))])
        assert "can't be read" in error_of(path)
    if ending in (".npz", ".csv.gz"):  # with a checksum
        path.write_bytes(content[:300] + bytes(600) + content[900:])
        assert "can't be read" in error_of(path)


def test_missing_packages(write, tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.eye(2))
    for package in ("pyarrow", "pandas"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            for name in ("a.csv", "a.parquet"):
                with pytest.raises(
                    ImportError, match=rf"{package}: .*pip install 'notsorandom\[tables\]'"
                ):
                    open_data_file(write(name, "a,b\n1,2\n"))
            assert open_data_file(tmp_path / "a.npy").read_matrix()[0].shape == (2, 2)


# Size


def test_tables_that_are_too_large(frame, write, tmp_path):
    text = frame.to_csv(index=False).encode()
    frame.to_parquet(tmp_path / "a.parquet")
    X = frame[NUMBERS].to_numpy()
    np.savez(tmp_path / "a.npz", X=X)
    for path in (write("a.csv", text), write("a.csv.gz", gzip.compress(text))):
        assert len(open_data_file(path, max_bytes=8 * frame.size + len(text)).read()) == N_ROWS
    write("long.csv", "a,b\n" + f"{'x' * 200},y\n" * 20)
    few = write("few.csv", "a,b\n" + ",\n" * 100)  # 2 bytes of text for 16 of numbers
    open_data_file(few, max_bytes=1616).read()
    for path, size in ((few, 1615), *((tmp_path / name, 500) for name in os.listdir(tmp_path))):
        data = open_data_file(path, max_bytes=size)
        with pytest.raises(TableError, match=r"over [0-9,]+ bytes in memory: .*--max-bytes"):
            data.read() if data.is_frame else data.read_matrix()
        if data.is_frame:  # no limit
            assert len(pd.concat(list(data.blocks(data.columns)))) > 10


BOMBS = {
    "a.csv.gz": "gzip.open(path, 'wb', 1).write(b'a,b\\n' + b'1,2\\n' * 100_000_000)",
    "b.csv.gz": "gzip.open(path, 'wb', 1).write(b'a,b\\n1,' + b'2' * 100_000_000)",
    "a.npz": "np.savez_compressed(path, X=np.zeros((50_000, 1000)))",
    "a.parquet": "pq.write_table(pa.table({'a': np.zeros(50_000_000)}), path)",
}
MEASURE = """
import gzip, resource, sys
import numpy as np, pandas, pyarrow as pa, pyarrow.parquet as pq
from notsorandom.data.files import TableError, open_data_file
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    data = open_data_file(sys.argv[1], max_bytes=50_000_000)
    data.read() if data.is_frame else data.read_matrix()
except TableError as error:
    print(error)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="measures memory as POSIX systems do")
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_take_little_memory(tmp_path, name):
    path = tmp_path / name
    exec(BOMBS[name], {"path": path, "gzip": gzip, "np": np, "pa": pa, "pq": pq})
    assert path.stat().st_size < 5_000_000
    command = [sys.executable, "-c", MEASURE, str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    *error, megabytes = output.splitlines()
    assert "bytes" in error[0]  # the limit
    assert int(megabytes) < 300


def test_an_array_shorter_than_its_header_says(tmp_path):
    """Nothing is allocated for what the header says."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(800))
    assert "can't be read" in error_of(tmp_path / "a.npz")


# Matrices


def test_matrices(tmp_path):
    X = np.random.default_rng(0).standard_normal((9, 3)).round(3)
    y = np.array(list("abcabcabc"))
    np.save(tmp_path / "a.npy", X)
    np.savez_compressed(tmp_path / "a.npz", X=X, y=y, other=X)
    data = open_data_file(tmp_path / "a.npy")
    assert not data.is_frame
    assert (data.columns, data.dialect) == ([], "")
    samples, target = data.read_matrix()
    assert isinstance(samples, np.memmap)
    assert target is None
    np.testing.assert_array_equal(samples, X)
    samples, target = open_data_file(tmp_path / "a.npz").read_matrix()
    np.testing.assert_array_equal(samples, X)
    np.testing.assert_array_equal(target, y)
    for labels, kind in ((np.arange(9), "i"), (np.arange(9) / 2, "f")):
        for zero_based in (True, False):
            path = tmp_path / "a.svm"
            dump_svmlight_file(X, labels, str(path), zero_based=zero_based)
            samples, target = open_data_file(path).read_matrix()
            assert sparse.issparse(samples)
            np.testing.assert_array_equal(samples.toarray(), X)
            np.testing.assert_array_equal(target, labels)
            assert target.dtype.kind == kind
    path.write_text("1 2:5\n")
    for zero_based, column in ((True, 2), (False, 1)):
        samples, _ = open_data_file(path).read_matrix(n_features=7, zero_based=zero_based)
        assert samples.shape == (1, 7)
        assert samples[0, column] == 5


def test_errors_of_matrices(tmp_path):
    X = np.zeros((9, 2))
    for arrays, says in [
        ({"data": X}, "can't be read ('X is not a file in the archive')"),
        ({"X": X, "y": X[:3, 0]}, "and y of shape (3,) and type float64: X must be numbers"),
        ({"X": X, "y": X}, "and y of shape (9, 2)"),
        ({"X": X, "y": X[:, 0].astype(object)}, "can't be read (Object arrays cannot be loaded"),
        ({"X": X, "y": X[:, 0].astype("S1")}, "type |S1: X must be"),
        ({"X": X[0]}, "X of shape (2,) and type float64"),
        ({"X": X[:0]}, "X of shape (0, 2)"),
        ({"X": X.astype("U3")}, "type <U3"),
        ({"X": X.astype(object)}, "Object arrays cannot be loaded"),
    ]:
        np.savez(tmp_path / "a.npz", **arrays)
        assert says in error_of(tmp_path / "a.npz")
        if "X" in arrays and "y" not in arrays:
            np.save(tmp_path / "a.npy", arrays["X"])
            assert says in error_of(tmp_path / "a.npy") or arrays["X"].dtype == object


# Writing


def test_predictions_can_be_read_back(tmp_path, capsys):
    frames = [
        pd.DataFrame({"a, b": ["x", None], "label": ["u", 'y,"z']}),
        pd.DataFrame({"a, b": ["c"], "label": ["w"]}, index=[7]),
    ]
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet", None):
        write_frames(path, frames)
    text = '"a, b","label"\n"x","u"\n,"y,""z"\n"c","w"\n'
    assert (tmp_path / "a.csv").read_text() == text
    assert capsys.readouterr().out == text
    for name in ("a.csv", "a.parquet"):
        assert_same(open_data_file(tmp_path / name).read(), pd.concat(frames))


@pytest.fixture(params=["a.csv", "a.parquet"])
def output(request, tmp_path):
    return tmp_path / request.param


def write_frames(path, frames):
    with open_writer(path) as write:
        for frame in frames:
            write(frame)


def test_a_column_that_is_empty_at_first(output):
    cells = [None, "x", None]
    frames = (pd.DataFrame({"a": [cell], "n": [1]}).astype({"a": object}) for cell in cells)
    write_frames(output, frames)
    assert to_texts(open_data_file(output).read()["a"]) == cells


def test_floats_are_written_with_all_their_digits(output):
    rng = np.random.default_rng(0)
    P = rng.standard_normal((1200, 2)) * 10.0 ** rng.integers(-300, 300, (1200, 2))
    write_frames(output, (pd.DataFrame(part, columns=["p", "q"]) for part in (P[:5], P[5:])))
    if output.suffix == ".csv":  # pandas before 3.1 doesn't read all digits
        found = np.loadtxt(output, delimiter=",", skiprows=1)
    else:
        found = pd.read_parquet(output)
    np.testing.assert_array_equal(found, P)


def test_the_old_file_is_unchanged_until_all_is_written(output):
    def frames():
        yield pd.DataFrame({"a": np.ones(3)})
        assert output.read_text() == "old"
        raise KeyboardInterrupt

    output.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_frames(output, frames())
    assert output.read_text() == "old"
    assert os.listdir(output.parent) == [output.name]


def test_files_that_cannot_be_written(tmp_path):
    for path, error, says in (
        (tmp_path / "a.xlsx", ValueError, r"that ends in \.csv or \.parquet"),
        (tmp_path / "none" / "a.csv", FileNotFoundError, "doesn't exist: create it first"),
    ):
        with pytest.raises(error, match=says), open_writer(path):
            pass


def test_blocks_have_fewer_rows_where_rows_are_longer(write, monkeypatch):
    monkeypatch.setattr("notsorandom.data.text.HEAD_BYTES", 2**12)
    data = open_data_file(write("a.csv", "a,b\n" + "1,u\n" * 10**4 + f"1,{'u' * 2000}\n" * 10**4))
    frames = list(data.blocks(["a", "b"], ["b"], 5000))
    assert sum(map(len, frames)) == 2 * 10**4
    assert len(frames[-2]) < len(frames[0]) / 100


def test_a_block_of_rows_that_are_suddenly_long_is_refused(write, monkeypatch):
    monkeypatch.setattr("notsorandom.data.text.MAX_BLOCK_BYTES", 2**20)
    data = open_data_file(write("a.csv", "a,b\n" + "1,u\n" * 10**5 + f"1,{'u' * 2000}\n" * 2000))
    with pytest.raises(TableError, match="many times longer than the first rows"):
        list(data.blocks(["a", "b"], ["b"]))
    assert len(data.read()) == 102_000  # as a whole, the limit is that of the file


def test_text_of_typed_columns_counts_in_the_limit(tmp_path):
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(200, np.int32)), ["u" * 10**5])
    table = pa.table({"a": np.arange(200.0), "c": text})
    pq.write_table(table, tmp_path / "t.parquet", store_schema=False)
    with pytest.raises(TableError, match="max-bytes"):
        open_data_file(tmp_path / "t.parquet", max_bytes=10**7).read()
