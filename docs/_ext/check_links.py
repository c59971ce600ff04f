"""After a build: every link inside of the site has a target, and no page needs a network."""

from collections.abc import Iterator
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
        elif tag == "link" and values.get("rel") != "canonical":  # where the page is published
            self.resources |= {values["href"]} if "href" in values else set()
        else:
            self.resources |= {values["src"]} if "src" in values else set()


def find_problems(root: Path) -> Iterator[str]:
    """Yield dead links of the pages in a folder, and resources that are not in the folder."""
    paths = [path for path in root.resolve().rglob("*.html") if "_static" not in path.parts]
    pages = {path: Page(path) for path in paths}
    for path, page in pages.items():
        name = path.relative_to(root.resolve())
        for link in sorted(page.links | page.resources):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.resources and parts.scheme != "data":
                    yield f"{name} loads {link} from the network"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{name} links to {link}, but there is no such file"
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name} links to {link}, but there is no such anchor"


def check(app: Sphinx, error: Exception | None) -> None:
    """Warn of each problem."""
    if error is None and app.builder.format == "html":
        for problem in find_problems(Path(app.outdir)):
            logger.warning(problem)


def setup(app: Sphinx) -> dict[str, bool]:
    """Check after the last page is written."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
