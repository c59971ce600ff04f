"""Atomic writes: the old file or the new one, never a part of it."""

import os
import secrets
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from notsorandom._utils.files import PART_SECONDS, check_output_path, open_atomic, write_atomic


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    write_atomic(tmp_path / "new", b"new")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.skipif(os.name != "posix", reason="needs permissions of POSIX")
def test_a_private_file_is_never_readable_by_others(tmp_path):
    path = tmp_path / "file"
    path.touch()
    for mode in (0o600, 0o400, 0o664):
        path.chmod(mode)
        with open_atomic(path) as file:
            file.write(b"new")
            assert os.fstat(file.fileno()).st_mode & 0o777 == mode
        assert path.read_bytes() == b"new"
        assert path.stat().st_mode & 0o777 == mode


def test_only_old_partial_files_are_removed(tmp_path):
    """Whether the writer of a new one still runs can't be known: it may be in a container."""
    parts = []
    for name in ("file", "other"):
        with open_atomic(tmp_path / name):
            parts.append({path.name for path in tmp_path.iterdir()} - {"file", "other"})
    new, foreign = (part.pop() for part in parts)
    old = new.replace(".part", "")[:-1] + "x.part"
    unrelated = ".file.part"
    for name in (new, old, foreign, unrelated):
        (tmp_path / name).touch()
    for name in (old, foreign, unrelated):
        os.utime(tmp_path / name, (0, time.time() - PART_SECONDS - 10))
    write_atomic(tmp_path / "file", b"new")
    assert sorted(os.listdir(tmp_path)) == sorted(["file", "other", new, foreign, unrelated])


def test_the_temporary_file_follows_no_link(tmp_path, monkeypatch):
    monkeypatch.setattr(secrets, "token_hex", lambda n: "0" * 2 * n)
    victim, link = tmp_path / "victim", tmp_path / f".file.{'0' * 16}.part"
    victim.write_bytes(b"whole")
    link.symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_atomic(tmp_path / "file", b"new")
    assert victim.read_bytes() == b"whole"
    assert link.is_symlink()


def test_long_names(tmp_path):
    for name in ("x" * 250, "\u20ac" * 80):
        write_atomic(tmp_path / name, b"new")
        assert (tmp_path / name).read_bytes() == b"new"


REPLACE_FOR_EVER = """
import sys
from pathlib import Path
from notsorandom._utils.files import write_atomic
while True:
    for byte in b"ab":
        write_atomic(Path(sys.argv[1]), bytes([byte]) * 10**6)
"""


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path, rng):
    path = tmp_path / "file"
    for _ in range(8):
        path.write_bytes(b"a" * 10**6)
        process = subprocess.Popen([sys.executable, "-c", REPLACE_FOR_EVER, path])
        while path.read_bytes()[:1] == b"a":
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.wait()
        assert path.read_bytes() in (b"a" * 10**6, b"b" * 10**6)


@pytest.mark.parametrize("method", ["unlink", "replace"])
def test_an_open_file_is_neither_renamed_nor_removed(tmp_path, monkeypatch, method):
    """Windows refuses both. An interrupted write leaves the old file."""
    opened, original = [], getattr(Path, method)
    (tmp_path / "file").write_bytes(b"old")

    def if_closed(path, *arguments, **options):
        assert all(file.closed for file in opened)
        return original(path, *arguments, **options)

    monkeypatch.setattr(Path, method, if_closed)
    with suppress(KeyboardInterrupt), open_atomic(tmp_path / "file") as file:
        opened.append(file)
        file.write(b"new")
        if method == "unlink":
            raise KeyboardInterrupt
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == (b"old" if method == "unlink" else b"new")


def test_content_is_on_disk_before_the_file_is_renamed(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: (steps.append("fsync"), fsync(file)))
    monkeypatch.setattr(
        Path, "replace", lambda path, to: (steps.append("rename"), replace(path, to))
    )
    write_atomic(tmp_path / "file", b"new")
    assert steps[:2] == ["fsync", "rename"]


def test_output_paths(tmp_path):
    assert check_output_path(str(tmp_path / "a.html"), ".html", ".htm") == tmp_path / "a.html"
    assert check_output_path(tmp_path / "A.HTM", ".html", ".htm") == tmp_path / "A.HTM"
    (tmp_path / "folder.html").mkdir()
    for bad in ("a.txt", tmp_path, tmp_path / "folder.html"):
        with pytest.raises(ValueError, match=r"ends in \.html or \.htm"):
            check_output_path(bad, ".html", ".htm")
    with pytest.raises(TypeError, match="path=None is not allowed"):
        check_output_path(None, ".html")
    with pytest.raises(FileNotFoundError, match="create it first"):
        check_output_path(tmp_path / "missing" / "a.html", ".html")
