"""Forged model files: small ones that would take much memory, or make commands fail."""

import io
import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import notsorandom
from notsorandom import FourierRegressor, tabular_pipeline
from notsorandom.cli import main
from notsorandom.io.archive import SCHEMA, pack, unpack

rng = np.random.default_rng(0)
X, y = rng.normal(size=(100, 3)), np.arange(100) % 2
PARAMETERS = {"n_components": 10, "C": 1.0, "smoothing": 0.06, "random_state": 0}
# Prints the memory above that of loading the honest file, in bytes.
CHILD = """
import resource, sys, warnings, notsorandom
warnings.simplefilter("ignore")
notsorandom.load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    notsorandom.load(sys.argv[2])
except notsorandom.FileFormatError:
    pass
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


def read(path):
    return {name: bytes(part) for name, part in unpack(path.read_bytes()).items()}


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0))
    return file.getvalue()


def check_memory(honest, forged):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, honest, forged], capture_output=True, text=True, check=True
    )
    size, grown = forged.stat().st_size, int(done.stdout)
    assert grown <= 4 * size + 20e6, f"{size:,} bytes took {grown:,} more"


@pytest.fixture
def table_model(tmp_path):
    frame = pd.DataFrame({"a": X[:, 0], "c": np.array(["u", "v"])[y], "k": 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = tabular_pipeline("classifier", **PARAMETERS).fit(frame, y)
    return notsorandom.save(model, tmp_path / "table.skops")


@pytest.mark.slow
def test_format_of_feature_names(table_model, tmp_path):
    """ColumnTransformer formats any template, also one with a width of 30 million letters."""
    files = read(table_model)
    template = "{feature_name} ({transformer_name})"
    schema = files[SCHEMA].decode().replace(template, "{feature_name:>30000000}")
    assert template not in schema
    forged = tmp_path / "forged.skops"
    forged.write_bytes(pack({**files, SCHEMA: schema.encode()}))
    check_memory(table_model, forged)


def test_arguments_of_functions_are_no_arrays(tmp_path):
    """An array would be combined with every row: `where` of a ufunc, for example."""
    step = FunctionTransformer(np.sin, kw_args={"where": np.ones((1, 3), bool)})
    with pytest.raises(ValueError, match="kw_args"):
        notsorandom.save(make_pipeline(step, Ridge()).fit(X, y), tmp_path / "m.skops")
    step = FunctionTransformer(np.sin, kw_args={"casting": "same_kind"})
    assert notsorandom.save(make_pipeline(step, Ridge()).fit(X, y), tmp_path / "m.skops").exists()


@pytest.mark.slow
def test_intercepts_of_regressors(tmp_path):
    """Intercepts of another shape would be combined with all rows and outputs."""
    model = FourierRegressor(**PARAMETERS).fit(X, rng.normal(size=(100, 2000)))
    honest = notsorandom.save(model, tmp_path / "honest.skops")
    files = read(honest)
    for name, part in files.items():
        if name.endswith(".npy") and np.load(io.BytesIO(part)).shape == (2000,):
            forged = tmp_path / "forged.skops"
            forged.write_bytes(pack({**files, name: npy(np.ones((10_000, 1, 1)))}))
            check_memory(honest, forged)


def test_inspect_of_forged_file_has_no_traceback(table_model, tmp_path):
    files = read(table_model)
    schema = json.loads(files[SCHEMA])

    def forge(node):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if key == "left_out_":
                node[key] = {
                    "__class__": "list",
                    "__module__": "builtins",
                    "__loader__": "ListNode",
                    "content": [],
                }
                return True
            if isinstance(value, dict | list) and forge(value):
                return True
        return False

    assert forge(schema)
    forged = tmp_path / "forged.skops"
    forged.write_bytes(pack({**files, SCHEMA: json.dumps(schema, indent=2).encode()}))
    assert main(["inspect", str(forged)]) == 1


@pytest.mark.parametrize("name", ["Ridge", "PCA"])
def test_models_of_short_names_can_be_saved(name, tmp_path):
    model = {"Ridge": Ridge, "PCA": PCA}[name]().fit(X, y)
    path = notsorandom.save(model, tmp_path / "m.skops")
    assert type(notsorandom.load(path)).__name__ == name
