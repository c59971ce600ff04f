import tempfile

import numpy as np
import pytest


@pytest.fixture
def values():
    """Samples in float32: 103 rows and 5 columns."""
    return np.random.default_rng(0).standard_normal((103, 5)).astype(np.float32)


@pytest.fixture
def temporary_folder(tmp_path, monkeypatch):
    """An empty folder for temporary files, as TMPDIR would set it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path
