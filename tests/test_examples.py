"""The examples run, say something, and end in a picture."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ENDLESS = {"serve"}  # it has tests of its own
EXAMPLES = sorted(
    path
    for path in (Path(__file__).parent.parent / "examples").glob("*.py")
    if path.stem not in ENDLESS
)


def run(example, picture):
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning:notsorandom", str(example), str(picture)],
        env=os.environ | {"MPLBACKEND": "agg"},
        cwd=picture.parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """Runs of the examples that are asked for, two at a time: these are long, and of their own."""
    asked = [
        item.callspec.params["example"]
        for item in request.session.items
        if item.path == request.path
    ]
    pool = ThreadPoolExecutor(2)
    pictures = {path: tmp_path_factory.mktemp(path.stem) / "picture.png" for path in asked}
    yield {path: (pool.submit(run, path, picture), picture) for path, picture in pictures.items()}
    pool.shutdown(cancel_futures=True)  # some are left if the tests were stopped


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, runs):
    running, picture = runs[example]
    result = running.result()
    assert result.returncode == 0, result.stderr
    assert "picture.png" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
