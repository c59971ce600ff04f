import sys

import pytest

from notsorandom import __version__, cli
from notsorandom._utils.progress import Progress
from notsorandom.experiments import demo


@pytest.fixture
def small_demo(monkeypatch, short_trials):
    monkeypatch.setattr(demo, "SIZES", (4, 8))
    monkeypatch.setattr(demo, "N_TRAIN", 300)
    monkeypatch.setattr(demo, "N_TEST", 500)
    monkeypatch.setattr(demo, "PICTURED", 8)


def test_demo(small_demo, tmp_path, capsys):
    picture = tmp_path / "picture.png"
    assert cli.main(["demo", "--output", str(picture)]) == 0
    shown = capsys.readouterr().out
    assert str(picture) in shown
    assert shown.count("%") == 4
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_names_the_extra(small_demo, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert cli.main(["demo", "--output", str(tmp_path / "picture.png")]) == 0
    assert "notsorandom[plot]" in capsys.readouterr().out


def test_demo_checks_the_folder_first(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["demo", "--output", str(tmp_path / "missing" / "picture.png")])
    assert stop.value.code == 2
    assert "doesn't exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--seed", "-1"], "--seed -1"), (["--output", "picture.txt"], "ends in .png")],
)
def test_demo_checks_its_arguments_first(arguments, message, capsys):
    with pytest.raises(SystemExit):
        cli.main(["demo", *arguments])
    assert message in capsys.readouterr().err


def test_interrupted_demo(monkeypatch, capsys):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run_demo", interrupt)
    assert cli.main(["demo"]) == 130


@pytest.mark.parametrize("arguments", [[], ["learn"]])
def test_unknown_commands(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2


def test_version(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert __version__ in capsys.readouterr().out


def test_progress_rewrites_one_line(capsys):
    with Progress(3, "work") as bar:
        for done in (1, 2, 3):
            bar.update(done, "going on")
    shown = capsys.readouterr().err
    assert "3/3" in shown
    assert shown.count("\n") == 1
