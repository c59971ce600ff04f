"""Progress bars: one line on standard error, which is rewritten."""

import io
import sys

import numpy as np
import pytest

from notsorandom import FourierClassifier
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


class BrokenPipe(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize("kind", ["none", "closed", "broken"])
def test_a_fit_does_without_somebody_who_reads_the_bar(kind, monkeypatch):
    """As in a window without a console, or behind a pipe whose reader has ended."""
    stream = None if kind == "none" else BrokenPipe() if kind == "broken" else io.StringIO()
    if kind == "closed":
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = FourierClassifier("auto", max_components=20, smoothing=0.1, verbose=1)
    assert len(model.fit(X, X[:, 0] > 0).coef_) == 1
