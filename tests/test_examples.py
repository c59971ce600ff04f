"""The examples, which are the pages of the gallery, run and draw."""

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
RUN = """
import runpy, sys
from matplotlib import pyplot
runpy.run_path(sys.argv[1], run_name="__main__")
for number in pyplot.get_fignums():
    pyplot.figure(number).savefig(f"{number}.png")
"""


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:notsorandom", "-c", RUN, str(example)],
        env=os.environ | {"MPLBACKEND": "agg"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout
    assert list(tmp_path.glob("*.png"))
