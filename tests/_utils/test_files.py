"""Atomic writes: the old file or the new one, never a part of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from notsorandom._utils.files import check_output_path, open_atomic, write_atomic


def test_permissions_are_kept(tmp_path):
    path = tmp_path / "file"
    write_atomic(path, b"old")
    path.chmod(0o600)
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.slow
def test_partial_files_of_killed_writers_are_removed(tmp_path):
    """But not those of running processes, nor those of files with a longer name."""
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    names = [f".file.{killed.pid}-1.part", f".file.{os.getpid()}-1.part"]
    names += [f".file.more.{killed.pid}-1.part"]
    for name in names:
        (tmp_path / name).touch()
    write_atomic(tmp_path / "file", b"new")
    assert sorted(os.listdir(tmp_path)) == sorted([*names[1:], "file"])


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def interrupted_write():
        with open_atomic(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_write()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


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
    (tmp_path / "folder.html").mkdir()
    for bad in ("a.txt", tmp_path, tmp_path / "folder.html"):
        with pytest.raises(ValueError, match=r"ends in \.html or \.htm"):
            check_output_path(bad, ".html", ".htm")
    with pytest.raises(TypeError, match="path=None is not allowed"):
        check_output_path(None, ".html")
    with pytest.raises(FileNotFoundError, match="create it first"):
        check_output_path(tmp_path / "missing" / "a.html", ".html")


def test_case_of_the_suffix_does_not_matter(tmp_path):
    assert check_output_path(tmp_path / "OUT.CSV", ".csv") == tmp_path / "OUT.CSV"
