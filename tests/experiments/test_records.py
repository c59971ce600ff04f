import subprocess
from pathlib import Path

import pytest

from experiments.records import RecordError, Records, latest, matching

CONFIGS = [{"kind": "test", "number": number} for number in range(5)]


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


def test_missing_ignores_the_order_of_keys(tmp_path):
    records = Records(tmp_path)
    records.append(CONFIGS[3], {}, 0.0)
    assert records.missing([CONFIGS[3], CONFIGS[4]]) == [CONFIGS[4]]
    assert records.missing([{"number": 3, "kind": "test"}]) == []


@pytest.mark.parametrize("partial", [b'{"config": {"ki', b'{"config": {}}', b"\xff\xfe"])
def test_an_incomplete_last_line_is_dropped(tmp_path, partial):
    records = Records(tmp_path)
    first = records.append(CONFIGS[0], {}, 0.0)
    with records.path.open("ab") as file:
        file.write(partial)
    assert records.read() == [first]
    second = records.append(CONFIGS[1], {}, 0.0)
    assert records.read() == [first, second]


def test_a_missing_newline_and_empty_lines_are_accepted(tmp_path):
    """Editors leave files like this."""
    records = Records(tmp_path)
    written = [records.append(config, {}, 0.0) for config in CONFIGS[:2]]
    records.path.write_bytes(b"\n\n" + records.path.read_bytes().rstrip(b"\n"))
    assert records.read() == written
    written.append(records.append(CONFIGS[2], {}, 0.0))
    assert records.read() == written


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
