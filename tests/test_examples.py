"""The examples, which are the pages of the gallery, run and draw."""

import os
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
# serve.py runs until it is stopped, and has tests of its own; tabarena.py needs AutoGluon.
LEFT_OUT = {"serve"} if find_spec("autogluon") else {"serve", "tabarena"}
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem not in LEFT_OUT)
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


def test_without_autogluon_the_example_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "autogluon", None)
    with pytest.raises(SystemExit, match=r"pip install autogluon\.tabular"):
        runpy.run_path(str(FOLDER / "tabarena.py"), run_name="__main__")
