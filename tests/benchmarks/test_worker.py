import os

import pytest

from benchmarks.common import Worker

pytest.importorskip("resource")  # limits of CPU seconds


@pytest.mark.slow
def test_a_worker_returns_raises_and_is_replaced_above_the_limit():
    worker = Worker(eval, limit=1)
    assert worker("2 + 3") == 5
    assert worker("__import__('os').environ['OMP_NUM_THREADS']") == "1"
    assert worker("__import__('os').getpid()") != os.getpid()
    with pytest.raises(ZeroDivisionError):
        worker("1 / 0")
    with pytest.raises(TimeoutError, match="1 CPU seconds"):
        worker("sum(range(10**12))")
    assert worker("2 + 3") == 5
    with pytest.raises(ChildProcessError, match="code 7"):
        worker("__import__('os')._exit(7)")
