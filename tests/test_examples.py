"""The examples run, print the path of a picture, and write it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# serve.py runs until it is stopped, and has tests of its own.
EXAMPLES = sorted(
    path
    for path in (Path(__file__).parent.parent / "examples").glob("*.py")
    if path.stem != "serve"
)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    picture = tmp_path / "picture.png"
    result = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:notsorandom", str(example), str(picture)],
        env=os.environ | {"MPLBACKEND": "agg"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "picture.png" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
