"""A table of results, as Markdown or as a section of a page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Cells with a caption above and notes below.

    Parameters
    ----------
    title, caption : str
    headers : tuple of str
        If empty, there are only notes.
    rows : tuple of tuples of str
        The best value is between double asterisks.
    notes : tuple of str
    """

    title: str
    caption: str = ""
    headers: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """Return the table as Markdown, with its title as a heading."""
        return f"## {self.title}\n\n{self.body()}"

    def body(self) -> str:
        """Return caption, table and notes as Markdown, with aligned columns."""
        parts = []
        if self.caption:
            parts.append(self.caption)
        if self.headers:
            columns = zip(self.headers, *self.rows, strict=True)
            widths = [max(len(cell) for cell in column) for column in columns]
            lines = [self.headers, tuple("-" * width for width in widths), *self.rows]
            parts.append(
                "\n".join(f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines)
            )
        if self.notes:
            parts.append("\n".join(f"- {note}" for note in self.notes))
        return "\n\n".join(parts)
