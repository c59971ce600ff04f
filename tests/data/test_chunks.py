"""What the workers of a cluster run on a chunk, without a cluster."""

import os
import pickle
import subprocess
import sys
from functools import partial
from itertools import chain, pairwise

import numpy as np
import pytest

from notsorandom.data import chunks
from notsorandom.data.chunks import Blocks, add_all, add_pairs, add_runs, group_parts, run_task
from notsorandom.data.rows import Rows


def float_sums(X):
    return X.sum(axis=0), X.T @ X


@pytest.mark.parametrize("n_blocks", [1, 5, 16, 50])
@pytest.mark.parametrize("n_chunks", [1, 2, 3, 7])
def test_sums_have_the_digits_of_rows_in_memory_for_any_chunks(rng, n_blocks, n_chunks):
    X = rng.standard_normal((8 * n_blocks - 3, 3)) * 10.0 ** rng.integers(-6, 6, size=3)
    expected = Rows(X, block_rows=8).sum_blocks(float_sums)
    results = [float_sums(X[start : start + 8]) for start in range(0, len(X), 8)]
    ends = [0, *np.sort(rng.choice(n_blocks + 1, size=n_chunks - 1)), n_blocks]
    pairs = []
    for first, last in pairwise(ends):
        if last > first:
            pairs += add_runs(results[first:last], first, n_blocks)
    for total, exact in zip(add_all(pairs), expected, strict=True):
        np.testing.assert_array_equal(total, exact)


def test_large_sums_of_a_chunk_are_added(rng, monkeypatch):
    monkeypatch.setattr(chunks, "BLOCK_SUM_BYTES", 8)
    results = [float_sums(rng.standard_normal((4, 2))) for _ in range(6)]
    pairs = add_runs(results[:4], 0, 6) + add_runs(results[4:], 4, 6)
    assert len(pairs) == 2
    (pair,) = pickle.loads(add_pairs(pickle.dumps([one]) for one in pairs))
    np.testing.assert_allclose(pair[1][1], np.sum([gram for _, gram in results], axis=0))


def test_parts_and_functions_of_columns_are_read_like_arrays(rng):
    X = rng.standard_normal((20, 2))
    parts = Blocks(None, [X[:8], X[8:9], X[9:]])
    doubled = Blocks(lambda _, one, other: one + other, [parts, X])
    for first in range(20):
        for last in range(first + 1, 21):
            np.testing.assert_array_equal(parts[first:last], X[first:last])
            np.testing.assert_array_equal(doubled[first:last], 2 * X[first:last])
    assert (parts.shape, parts.dtype) == (X.shape, X.dtype)


def test_chunks_are_neighbouring_parts_of_about_equal_sizes():
    assert group_parts([8, 8, 8, 8], 2) == [[0, 1], [2, 3]]
    assert group_parts([8] * 9 + [72], 2) == [list(range(9)), [9]]
    assert group_parts([80, 8], 5) == [[0], [1]]
    assert list(chain(*group_parts([3, 5, 2, 7, 1, 9], 3))) == list(range(6))


def total_before(results):
    return [sum(results)] * len(results)


def test_a_stage_of_a_chain_is_given_what_the_stage_before_returned(rng):
    X = rng.standard_normal((40, 2))
    rows, calls = Rows(X, block_rows=8), []

    def record(X, total):
        calls.append(total)
        return len(X)

    stages = [(None, len), (total_before, record)]
    assert rows.chain(stages) == [[8] * 5, [8] * 5]
    assert calls == [40] * 5
    settings = ([0], 40, 8, X.dtype, np.geterr())
    step = pickle.dumps((operator_sum, total_before, *settings))
    before = [pickle.dumps([8, 8]), pickle.dumps([8, 8, 8])]
    assert pickle.loads(run_task("map_blocks", step, 24, 16, None, before, X[16:])) == [48] * 3


def operator_sum(X, total):
    return len(X) + total


FAULTS = """
import resource
import numpy as np
from notsorandom.data.chunks import reserve_memory
if {reserve}:
    reserve_memory()
def count():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        one = np.ones(2**18, dtype=np.uint8) + np.ones(2**18, dtype=np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
count()
print(count())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="about glibc")
def test_memory_for_temporary_arrays_is_kept():
    """With Dask's setting of glibc, without which nothing needs to be kept."""
    environ = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536"}
    run = partial(subprocess.run, env=environ, capture_output=True, check=True, text=True)
    without, kept = (
        int(run([sys.executable, "-c", FAULTS.format(reserve=reserve)]).stdout)
        for reserve in (False, True)
    )
    assert kept < 100 < 5000 < without
