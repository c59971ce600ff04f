"""After a build: every link inside of the site has a target, and no page needs a network."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


class Page(HTMLParser):
    """Collects the links and the anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.resources: set[str] = set()  # what a browser loads by itself
        self.anchors: set[str] = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what the tag links to and which anchors it has."""
        values = {name: value for name, value in attributes if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a":
            self.links |= {values["href"]} if "href" in values else set()
        elif tag == "link":
            self.resources |= {values["href"]} if "href" in values else set()
        else:
            self.resources |= {values["src"]} if "src" in values else set()


def check(app: Sphinx, error: Exception | None) -> None:
    """Warn of dead links and of resources that are not in the folder."""
    if error or app.builder.format != "html":
        return
    root = Path(app.outdir)
    paths = [path for path in root.rglob("*.html") if "_static" not in path.parts]
    pages = {path: Page(path) for path in paths}
    for path, page in pages.items():
        for link in sorted(page.links | page.resources):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.resources and parts.scheme != "data":
                    logger.warning("%s loads %s from the network", path.relative_to(root), link)
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                logger.warning("%s links to %s, which is no file", path.relative_to(root), link)
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                logger.warning("%s links to %s, which has no anchor", path.relative_to(root), link)


def setup(app: Sphinx) -> dict[str, bool]:
    """Check after the last page is written."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
