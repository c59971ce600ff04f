import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from notsorandom.cli import main

MODELS = {
    "iris": "iris.csv --target species",
    "reals": "reals.parquet --target z",
    "arrays": "arrays.npz",
    "hinge": "arrays.npz --loss hinge",
    "sparse": "sparse.libsvm",
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Data files, and models fitted to them by the command ``fit``."""
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'notsorandom[all]'")
    folder = tmp_path_factory.mktemp("commands")
    flowers = load_iris(as_frame=True)
    frame = flowers.data.set_axis(["sepal", "breadth", "petal", "width"], axis=1)
    frame["petal"] *= 1000  # units of their own
    frame.insert(2, "species", flowers.target_names[flowers.target])
    frame.to_csv(folder / "iris.csv", index=False)
    X = np.random.default_rng(0).normal(size=(200, 3))
    reals = pd.DataFrame(X, columns=["a", "b", "c"]).assign(z=np.sin(2 * X[:, 0]) + X[:, 1])
    reals.to_parquet(folder / "reals.parquet", index=False)
    dates = reals.assign(d=pd.date_range("2020-01-01", periods=200), text=X[:, 0].astype(str))
    dates.to_parquet(folder / "dates.parquet", index=False)
    labels = (np.cos(2 * X[:, 0]) > 0.3).astype(int)
    np.savez(folder / "arrays.npz", X=X, y=labels)
    np.save(folder / "array.npy", X)
    dump_svmlight_file(X, labels, str(folder / "sparse.libsvm"), zero_based=False)
    for name, arguments in MODELS.items():
        data, *others = arguments.split()
        command = ["fit", str(folder / data), *others, "-o", str(folder / f"{name}.skops")]
        command += ["--n-components", "20", "--smoothing", "0.06", "--C", "3", "--quiet"]
        assert main(command) == 0
    return folder


@pytest.fixture
def run(folder, capsys, monkeypatch, tmp_path):
    """Run a command line in an empty folder; return what it printed, parsed if it is JSON.

    Names of files in `folder` stand for their paths. The error is returned if `code` is not 0.
    """
    monkeypatch.chdir(tmp_path)

    def command(line, code=0):
        arguments = [
            str(folder / part) if (folder / part).is_file() and not Path(part).exists() else part
            for part in shlex.split(line)
        ]
        try:
            found = main(arguments)
        except SystemExit as ended:
            found = ended.code
        printed = capsys.readouterr()
        assert found == code, printed.err
        if code:
            return printed.err
        return json.loads(printed.out) if "--json" in arguments else printed.out

    return command
