import json
import sys

import pytest

from notsorandom import __version__, cli
from notsorandom._utils.progress import Progress, format_seconds
from notsorandom.cli import commands


@pytest.fixture
def run_demo(monkeypatch, quick_trials, tmp_path, capsys):
    """Run the demo with few samples and features; return its result and the picture."""
    for name, value in {
        "DEMO_SIZES": (4, 8),
        "DRAWN_SIZE": 8,
        "N_TRAIN": 300,
        "N_TEST": 500,
    }.items():
        monkeypatch.setattr(commands, name, value)

    def run():
        assert cli.main(["demo", "--json", "-o", str(tmp_path / "picture.png")]) == 0
        return json.loads(capsys.readouterr().out), tmp_path / "picture.png"

    return run


def test_demo_compares_accuracies_and_draws_a_picture(run_demo):
    result, picture = run_demo()
    assert result["picture"] == str(picture)
    for size in (4, 8):
        scores = result[f"{size} features"]
        assert 0.4 < scores["random accuracy"] < scores["learned accuracy"] < 1
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_names_the_extra(run_demo, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "notsorandom[plot]" in run_demo()[0]["picture"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "-1"], "--seed: -1 is not allowed: give 0 to 2147483647"),
        (["--output", "picture.txt"], "ends in .png"),
        (["--output", "missing/picture.png"], "doesn't exist"),
    ],
)
def test_demo_checks_its_arguments_first(arguments, message, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(["demo", *arguments])
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "not enough memory"),
        (OSError(28, "No space left on device"), 1, "No space left"),
    ],
)
def test_errors_of_a_command(error, code, message, monkeypatch, capsys, tmp_path):
    def fail(*arguments, **parameters):
        raise error

    monkeypatch.setattr(commands, "make_windmill", fail)
    assert cli.main(["demo", "-o", str(tmp_path / "picture.png")]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["learn"], ["reproduce"]])
def test_unknown_commands(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == 2


def test_version(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert __version__ in capsys.readouterr().out


def test_progress_rewrites_one_line(capsys):
    with Progress(3, "work") as bar:
        for done in (1, 2, 3):
            bar.update(done, "gap 0.1")
    text = capsys.readouterr().err
    assert "3/3" in text
    assert text.count("\n") == 1


def test_progress_can_be_hidden(capsys):
    with Progress(1, "work", shown=False) as bar:
        bar.update(1)
    assert capsys.readouterr().err == ""


def test_format_seconds():
    numbers = (2.54, 42.0, 720.0, 11_100.0)
    assert [format_seconds(number) for number in numbers] == ["2.5s", "42s", "12min", "3h05"]
