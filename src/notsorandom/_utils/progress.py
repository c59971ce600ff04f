"""A progress bar on standard error."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

BAR_WIDTH = 24
# Seconds between two updates of the line: smooth to the eye, and too rare to cost time.
REFRESH = 0.1


class Progress:
    """A progress bar, as a context manager; a counter if `total` is 0, for unknown."""

    def __init__(self, total: int, title: str, shown: bool = True) -> None:
        self.total = total
        self.title = title
        self.shown = shown
        self._start = time.perf_counter()
        self._last_update = -REFRESH
        self._width = 0
        self._waiting: tuple[int, str] | None = None  # an update that was too early to be drawn

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._waiting is not None:
            self._draw(*self._waiting)
        if self._width:
            write("\n")

    def update(self, done: int, detail: str = "") -> None:
        """Draw the bar at `done` of `total` steps, followed by a detail."""
        if not self.shown:
            return
        if done != self.total and time.perf_counter() - self._start - self._last_update < REFRESH:
            self._waiting = done, detail
        else:
            self._draw(done, detail)

    def _draw(self, done: int, detail: str) -> None:
        self._last_update = seconds = time.perf_counter() - self._start
        self._waiting = None
        line = f"{self.title} {self._format(done, seconds)} {detail}"
        # A line that wraps can't be rewritten.
        line = line.rstrip()[: shutil.get_terminal_size().columns - 1]
        write("\r" + line.ljust(self._width))
        self._width = len(line)

    def _format(self, done: int, seconds: float) -> str:
        if not self.total:
            return f"{done:,} {format_seconds(seconds)}"
        share = min(1.0, done / self.total)
        bar = ("#" * round(share * BAR_WIDTH)).ljust(BAR_WIDTH, ".")
        left = f", {format_seconds(seconds / share - seconds)} left" if 0 < share < 1 else ""
        return f"[{bar}] {done}/{self.total} {format_seconds(seconds)}{left}"


@contextmanager
def progress_bar(total: int, title: str, verbose: int) -> Iterator[Callable[..., None]]:
    """Yield the update function of a progress bar, which does nothing unless `verbose`."""
    with Progress(total, title, shown=bool(verbose)) as bar:
        yield bar.update


def show_line(text: str) -> None:
    """Write a line to standard error."""
    write(f"{text}\n")


def write(text: str) -> None:
    """Write to standard error, if somebody reads it: a fit goes on without."""
    with suppress(AttributeError, OSError, ValueError):  # None, a broken pipe, a closed file
        sys.stderr.write(text)
        sys.stderr.flush()


def format_seconds(seconds: float) -> str:
    """Return a duration as text, such as 2.5s, 42s, 12min or 3h05."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    if seconds < 100:
        return f"{seconds:.0f}s"
    minutes = round(seconds / 60)
    return f"{minutes}min" if minutes < 100 else f"{minutes // 60}h{minutes % 60:02}"
