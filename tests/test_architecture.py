"""Imports go one way through the house, so that every room can be understood from those before."""

import ast
import subprocess
import sys
from pathlib import Path

import notsorandom

# A room may import those in its own row and in the rows above.
ORDER = [
    ["parallel", "progress", "parameters", "files", "devices"],
    ["rows", "splits"],
    ["tables", "sources", "tensors"],
    ["spaces"],
    ["search", "game"],
    ["kernel", "linear", "smoothing", "scoring", "packing"],
    ["passes", "streaming"],
    ["reweight", "stopping"],
    ["learning", "certify"],
    ["estimators"],
    ["models", "onnx_export"],
    ["dask"],
    ["datasets", "baselines"],
    ["inspection"],
    ["plots", "report"],
    ["experiments"],
    ["cli"],
]
# A model writes its own report, which is made of everything, and its own files.
BACK = {("estimators", "report"), ("estimators", "models"), ("estimators", "onnx_export")}
NEVER = {("game", "search"), ("search", "game")}
ROOT = Path(notsorandom.__file__).parent


def imports():
    for path in sorted(ROOT.rglob("*.py")):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("notsorandom."):
                yield room, node.module.split(".")[1]


def test_imports_go_one_way():
    level = {room: row for row, rooms in enumerate(ORDER) for room in rooms}
    seen = [
        (room, other) for room, other in imports() if room not in ("__init__", "__main__", other)
    ]
    seen = [pair for pair in seen if pair not in BACK]
    assert len(seen) > 20
    for room, other in seen:
        assert level[other] <= level[room], f"{room} imports {other}"
        assert (room, other) not in NEVER


def test_every_room_is_in_the_order():
    rooms = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")}
    assert rooms - {"__init__", "__main__"} == {room for row in ORDER for room in row}


def test_importing_does_not_pull_in_extras():
    # where there is pandas, scikit-learn imports it, and pandas imports pyarrow
    code = "import sys; sys.modules['pandas'] = None;"
    code += "import notsorandom, notsorandom.datasets, notsorandom.cli, notsorandom.data.tables;"
    code += "import notsorandom.data;"
    code += "extras = {'matplotlib', 'skimage', 'onnx', 'pyarrow', 'zarr', 'dask', 'torch'};"
    code += "assert not extras & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
