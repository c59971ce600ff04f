"""Records of experiments, and the runner that writes them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from worker_functions import double, exit_at_once

from experiments.records import RecordError, Records, git_source, latest, matching
from experiments.runner import limited_threads, run_missing

ROOT = Path(__file__).parents[2]
CAPTURED = {"capture_output": True, "text": True}
CONFIGS = [{"kind": "test", "number": number} for number in range(5)]
# In this process, and in worker processes.
JOBS = [1, pytest.param(2, marks=pytest.mark.slow)]


def test_written_records_are_read(tmp_path):
    records = Records(tmp_path / "run")
    assert records.read() == []
    written = [records.append(config, {"x": 1.5}, 0.25) for config in CONFIGS]
    assert records.read() == written
    assert written[0]["outcome"] == {"x": 1.5}
    assert {"numpy", "scikit-learn", "notsorandom"} <= set(written[0]["versions"])


def test_records_name_the_commit(tmp_path):
    """That of the checkout, as git itself says; "unknown" in a copy without one."""
    command = ["git", "rev-parse", "HEAD"]
    run = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    commit = Records(tmp_path).append(CONFIGS[0], {}, 0.0)["versions"]["commit"].rstrip("+")
    assert run.stdout.startswith(commit) if run.returncode == 0 else commit == "unknown"
    assert len(commit) >= 7


def test_records_name_the_source(tmp_path, monkeypatch):
    """Git's hash of the package's folder, whatever changes elsewhere."""

    def git(*arguments):
        names = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
        return subprocess.run(["git", *names, *arguments], cwd=tmp_path, check=True, **CAPTURED)

    package = tmp_path / "src" / "package"
    package.mkdir(parents=True)
    monkeypatch.setattr("notsorandom.__file__", str(package / "__init__.py"))
    source = git_source.__wrapped__  # without the cache
    assert source() == "unknown"
    (package / "__init__.py").write_text("x = 1")
    (tmp_path / "page").write_text("old")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    tree = git("rev-parse", "HEAD:src/package").stdout.strip()
    (tmp_path / "page").write_text("new")
    assert tree.startswith(source())
    assert len(source()) >= 7
    (package / "new.py").touch()
    assert tree.startswith(source().removesuffix("+"))
    assert source().endswith("+")


def test_missing_ignores_the_order_of_keys(tmp_path):
    records = Records(tmp_path)
    records.append(CONFIGS[3], {}, 0.0)
    assert records.missing([CONFIGS[3], CONFIGS[4]]) == [CONFIGS[4]]
    assert records.missing([{"number": 3, "kind": "test"}]) == []


@pytest.mark.parametrize("rest", [b'{"config": {"ki', b'{"config": {}}', b"\xff\xfe", b"\n\n"])
def test_an_incomplete_last_line_and_empty_lines_are_dropped(tmp_path, rest):
    """Kills and editors leave files like this."""
    records = Records(tmp_path)
    first = records.append(CONFIGS[0], {}, 0.0)
    records.path.write_bytes(b"\n" + records.path.read_bytes() + rest)
    assert records.read() == [first]
    second = records.append(CONFIGS[1], {}, 0.0)
    assert records.read() == [first, second]
    records.path.write_bytes(records.path.read_bytes().rstrip(b"\n"))
    third = records.append(CONFIGS[2], {}, 0.0)
    assert records.read() == [first, second, third]


def test_a_folder_is_locked_against_a_second_run(tmp_path):
    pytest.importorskip("fcntl", reason="needs a POSIX system")
    with (
        Records(tmp_path).lock(),
        pytest.raises(OSError, match="in use by another run"),
        Records(tmp_path).lock(),
    ):
        pass
    with Records(tmp_path).lock():
        pass


def test_an_invalid_line_is_reported_with_its_number(tmp_path):
    records = Records(tmp_path)
    records.append(CONFIGS[0], {}, 0.0)
    records.path.write_bytes(b"garbage\n" + records.path.read_bytes())
    with pytest.raises(RecordError, match=r"records.jsonl, line 1 is not a record"):
        records.read()


def test_the_last_record_of_a_configuration_counts(tmp_path):
    records = Records(tmp_path)
    for number, value in ((0, 1), (1, 2), (0, 3)):
        records.append(CONFIGS[number], {"x": value}, 0.0)
    assert [record["outcome"]["x"] for record in latest(records.read())] == [3, 2]
    found = matching(records.read(), [CONFIGS[1], CONFIGS[4], CONFIGS[0]])
    assert [record["outcome"]["x"] for record in found] == [2, 3]


@pytest.mark.parametrize("n_jobs", JOBS)
def test_only_missing_configurations_are_run(tmp_path, n_jobs, capsys):
    records = Records(tmp_path)
    records.append(CONFIGS[2], {"double": "recorded"}, 0.0)
    run_missing(CONFIGS, records, double, n_jobs)
    found = matching(records.read(), CONFIGS)
    assert [record["outcome"]["double"] for record in found] == [0, 2, "recorded", 6, 8]
    if n_jobs == 2:
        share = str(max(1, os.cpu_count() // 2))
        assert {record["outcome"].get("threads", share) for record in found} == {share}
    assert "4 of 4 runs" in capsys.readouterr().err
    run_missing(CONFIGS, records, lambda config: pytest.fail("ran again"), n_jobs)


@pytest.mark.parametrize("n_jobs", JOBS)
def test_a_failure_is_raised_with_its_configuration(tmp_path, n_jobs):
    records = Records(tmp_path)
    configs = [*CONFIGS, {"kind": "test", "number": -1}, {"kind": "test", "number": 7}]
    with pytest.raises(RuntimeError, match="negative") as raised:
        run_missing(configs, records, double, n_jobs, verbose=False)
    assert "'number': -1" in raised.value.__notes__[0]
    if n_jobs == 1:
        assert records.missing(configs) == configs[5:]


@pytest.mark.slow
def test_a_killed_worker_is_reported(tmp_path):
    with pytest.raises(ChildProcessError, match="fewer --jobs"):
        run_missing(CONFIGS, Records(tmp_path), exit_at_once, 2, verbose=False)


def test_limited_threads_restores_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with limited_threads(3):
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "3"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


# Six runs. The first two end at once, the others when the file "continue" exists.
SCRIPT = """
import os, sys, time
from pathlib import Path
from experiments.records import Records
from experiments.runner import run_missing

FOLDER = Path(sys.argv[1])

def run(config):
    (FOLDER / f"pid-{os.getpid()}").touch()
    while config["number"] >= 2 and not (FOLDER / "continue").exists():
        time.sleep(0.01)
    return {}

if __name__ == "__main__":
    configs = [{"number": number} for number in range(6)]
    run_missing(configs, Records(FOLDER), run, int(sys.argv[2]))
"""


def start_script(folder, n_jobs):
    (folder / "script.py").write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(folder / "script.py"), str(folder), str(n_jobs)],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def is_running(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return state.stdout.strip() != "" and "Z" not in state.stdout


def no_worker_is_running(folder):
    pids = [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]
    return not any(map(is_running, pids))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_a_stopped_run_continues_where_it_stopped(tmp_path, n_jobs, how):
    records = Records(tmp_path)
    process = start_script(tmp_path, n_jobs)
    wait_until(lambda: len(records.read()) == 2)
    if how == "interrupted":
        os.killpg(process.pid, signal.SIGINT)  # a terminal signals the whole group
    else:
        process.kill()
    # The unfinished runs would never end.
    assert process.wait(timeout=60) != 0
    wait_until(lambda: no_worker_is_running(tmp_path))
    before = records.read()
    assert len(before) == 2
    with records.path.open("ab") as file:
        file.write(b'{"config"')  # an incomplete line, as a kill can leave it
    (tmp_path / "continue").touch()
    assert start_script(tmp_path, n_jobs).wait(timeout=60) == 0
    after = records.read()
    assert after[:2] == before
    assert sorted(record["config"]["number"] for record in after) == list(range(6))
