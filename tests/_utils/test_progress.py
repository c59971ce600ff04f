"""Progress bars: one line on standard error, which is rewritten."""

import pytest

from notsorandom._utils.progress import Progress, format_seconds


@pytest.mark.parametrize(("total", "shown"), [(3, "3/3"), (0, "3 ")])
def test_one_line_is_rewritten(total, shown, capsys):
    with Progress(total, "work") as bar:
        for done in (1, 2, 3):
            bar.update(done, f"gap {done}")
    text = capsys.readouterr().err
    assert shown in text
    assert text.rstrip().endswith("gap 3")  # the last update is drawn, however soon it comes
    assert text.find("\n") == len(text) - 1


def test_progress_can_be_hidden(capsys):
    with Progress(1, "work", shown=False) as bar:
        bar.update(1)
    assert capsys.readouterr().err == ""


def test_format_seconds():
    numbers = (2.54, 42.0, 720.0, 11_100.0)
    assert [format_seconds(number) for number in numbers] == ["2.5s", "42s", "12min", "3h05"]
