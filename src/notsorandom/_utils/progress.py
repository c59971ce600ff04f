"""A progress bar for fits that a person waits for."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import TextIO

BAR_WIDTH = 24
# Seconds between two drawings: often enough to look alive, too seldom to cost anything.
REFRESH = 0.1


class Progress:
    """A line on standard error that is rewritten as the work goes on; silent if not `shown`.

    If the total isn't known, and so given as 0, it counts.
    """

    def __init__(
        self, total: int, title: str, shown: bool = True, stream: TextIO | None = None
    ) -> None:
        self.total = total
        self.title = title
        self.shown = shown
        self.stream = stream if stream is not None else sys.stderr
        self.began = time.perf_counter()
        self._drawn = -REFRESH
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.shown and self._width:
            self.stream.write("\n")
            self.stream.flush()

    def update(self, done: int, detail: str = "") -> None:
        """Draw the bar at `done` of the total, with a word on the state of things."""
        seconds = time.perf_counter() - self.began
        if not self.shown or (done != self.total and seconds - self._drawn < REFRESH):
            return
        self._drawn = seconds
        line = f"{self.title} {self._stand(done, seconds)} {detail}"
        # A line that wraps can't be rewritten.
        line = line.rstrip()[: shutil.get_terminal_size().columns - 1]
        self.stream.write("\r" + line.ljust(self._width))
        self.stream.flush()
        self._width = len(line)

    def _stand(self, done: int, seconds: float) -> str:
        if not self.total:
            return f"{done:,} {duration(seconds)}"
        share = min(1.0, done / self.total)
        bar = ("#" * round(share * BAR_WIDTH)).ljust(BAR_WIDTH, ".")
        left = f", {duration(seconds / share - seconds)} left" if share > 0 else ""
        return f"[{bar}] {done}/{self.total} {duration(seconds)}{left}"


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    if seconds < 100:
        return f"{seconds:.0f}s"
    minutes = round(seconds / 60)
    return f"{minutes}min" if minutes < 100 else f"{minutes // 60}h{minutes % 60:02}"
