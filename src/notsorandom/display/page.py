"""Self-contained HTML pages of text and figures."""

from __future__ import annotations

import base64
import io
import json
import re
import string
import warnings
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from notsorandom import __version__
from notsorandom._utils.files import check_output_path, write_atomic
from notsorandom.data.rows import Array
from notsorandom.display.figures import BLUE, RED, import_pyplot
from notsorandom.display.images import PANELS, GameDisplay
from notsorandom.display.inspection import GameSnapshot
from notsorandom.display.results import format_share

PAGE_SUFFIXES = (".html", ".htm")
# Colours of matplotlib's output that follow the page's light or dark scheme.
THEME = {
    "#000000": "currentColor",
    "#ffffff": "var(--panel)",
    RED: "var(--red)",
    BLUE: "var(--blue)",
}
# A confusion matrix of more classes takes the whole width of the page, and longer names of classes
# are written upright there.
NARROW_CLASSES, NARROW_LETTERS = 6, 3
# Pixels per inch of images within SVG figures.
IMAGE_DPI = 144
# Pixels along each side of a frame of the slider, and points where functions are evaluated.
FRAME_PIXELS, FRAME_RESOLUTION = 320, 80
FRAME_DPI = 100


def section(title: str, body: str, note: str = "") -> str:
    """Return a section of a page: HTML below a title and a note, which are text."""
    note = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{note}{body}</section>"


def write_page(path: str | Path, title: str, subtitle: str, sections: Sequence[str]) -> Path:
    """Write a page and return its path; a failure leaves an old file unchanged."""
    path = check_output_path(path, *PAGE_SUFFIXES)
    template = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    text = string.Template(template).substitute(
        title=escape(title),
        subtitle=escape(subtitle),
        sections="\n".join(sections),
        footer=f"Made by notsorandom {__version__}.",
    )
    write_atomic(path, text.encode())
    return path


def fold(title: str, sections: Sequence[str]) -> str:
    """Return sections that are shown when their title is clicked."""
    body = f'<div class="sections">{"".join(sections)}</div>'
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def facts_section(title: str, facts: Sequence[tuple[str, str]], note: str = "") -> str:
    """Return a section of names and values."""
    items = [f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts]
    return section(title, f'<dl class="facts">{"".join(items)}</dl>', note)


def figures_section(title: str, figures: Sequence[tuple[str, Any]], note: str = "") -> str:
    """Return a section of captions and matplotlib figures; the figures are closed."""
    body = ""
    for caption, figure in figures:
        image = svg(figure, caption or title)
        body += f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"
    return section(title, f'<div class="panels figures">{body}</div>', note)


def bars_section(
    title: str, shares: Sequence[tuple[str, float]], note: str = "", caption: str = ""
) -> str:
    """Return a section with a bar for each name and share."""
    largest = max((share for _, share in shares), default=0) or 1.0
    lines = [
        f'<tr><th>{escape(name)}</th><td><span style="width: {100 * share / largest:.1f}%"></span>'
        f"</td><td>{format_share(share)}</td></tr>"
        for name, share in shares
    ]
    body = f'<table class="bars">{"".join(lines)}</table><p class="note">{escape(caption)}</p>'
    return section(title, body, note)


def matrix_section(title: str, names: Sequence[str], counts: Array, note: str = "") -> str:
    """Return a section with a confusion matrix, of shape (n_actual, n_predicted)."""
    headers = [f"<th>{escape(name)}</th>" for name in names]
    lines = [f'<th></th><th colspan="{len(names) + 2}">predicted</th>']
    lines.append(f"<th>actual</th>{''.join(headers)}<th>recall</th><th>precision</th>")
    for k, (header, row) in enumerate(zip(headers, counts, strict=True)):
        # Shaded by the share of the actual class, lightly, so that numbers stay readable.
        cells = [f'<td style="--shade: {0.6 * n / max(row.sum(), 1):.3f}">{n:,}</td>' for n in row]
        for total in (row.sum(), counts[:, k].sum()):
            cells.append(f"<td>{format_share(counts[k, k] / total) if total else '-'}</td>")
        lines.append(f"{header}{''.join(cells)}")
    rows = "".join(f"<tr>{line}</tr>" for line in lines)
    kind = "wide" if len(names) > NARROW_CLASSES else "scroll"
    steep = " steep" if kind == "wide" and max(map(len, names)) > NARROW_LETTERS else ""
    body = f'<div class="{kind}"><table class="matrix{steep}">{rows}</table></div>'
    return section(title, body, note)


def svg(figure: Any, label: str) -> str:
    """Return a matplotlib figure as an SVG element, and close the figure."""
    pyplot = import_pyplot()
    content = io.StringIO()
    # Text stays text, and equal figures give equal pages.
    settings = {"svg.fonttype": "none", "svg.hashsalt": "notsorandom"}
    with pyplot.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser has other fonts
        figure.savefig(content, format="svg", dpi=IMAGE_DPI, metadata={"Date": None})
    pyplot.close(figure)
    text = content.getvalue()
    text = re.sub("<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    for color, themed in THEME.items():
        text = text.replace(color, themed)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def game_section(X: Array, y: Array, snapshots: Sequence[GameSnapshot]) -> str:
    """Return a section with a slider through the rounds of a game on the plane."""
    titles = escape(json.dumps([snapshot.title for snapshot in snapshots]))
    slider = (
        '<div class="slider"><button type="button">play</button><input type="range" min="0" '
        f'max="{len(snapshots) - 1}" value="0" aria-label="round" data-titles="{titles}">'
        "<output></output></div>"
    )
    panels = "".join(
        f'<figure><div class="frame" role="img" aria-label="{name}" style="--row: {row}"></div>'
        f"<figcaption>{name}</figcaption></figure>"
        for row, name in enumerate(PANELS)
    )
    style = f"--count: {len(snapshots)}; --round: 0; --frames: url({frames(X, y, snapshots)})"
    return section(
        "Game, round by round",
        f'<div class="game" style="{style}">{slider}<div class="panels">{panels}</div></div>',
        "Samples are drawn by their dual weight. New frequencies are peaks of the potential; dots "
        "are the frequencies found so far. The decision function is computed by a "
        "linear model on their features.",
    )


def frames(X: Array, y: Array, snapshots: Sequence[GameSnapshot]) -> str:
    """Draw all rounds of a game in one image, one column per snapshot; return it as a data URL."""
    side = FRAME_PIXELS / FRAME_DPI
    figure = import_pyplot().Figure(figsize=(side * len(snapshots), 3 * side))
    axes = figure.subplots(
        3,
        len(snapshots),
        squeeze=False,
        gridspec_kw={"left": 0, "right": 1, "bottom": 0, "top": 1, "wspace": 0, "hspace": 0},
    )
    display = GameDisplay(X, y, snapshots).plot(axes, resolution=FRAME_RESOLUTION)
    for axis in display.axes_.flat:
        axis.set_title("")
        axis.set_axis_off()
    content = io.BytesIO()
    figure.savefig(content, format="webp", dpi=FRAME_DPI, transparent=True)
    return f"data:image/webp;base64,{base64.b64encode(content.getvalue()).decode()}"
