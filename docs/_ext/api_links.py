"""The first mention of a name of the library in a Markdown page leads to the API reference."""

import importlib

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

MODULES = ["notsorandom.baselines", "notsorandom.datasets", "notsorandom.display", "notsorandom"]
TARGETS = {
    name: f"{module}.{name}"
    for module in MODULES
    for name in importlib.import_module(module).__all__
    if name[0].isalpha() and not name.isupper()  # no constants
}


class LinkNames(SphinxTransform):
    """Turns ``FourierClassifier(...)`` and ``FourierClassifier.fit`` into links, once per page."""

    default_priority = 500

    def apply(self) -> None:
        """Replace the names in a page."""
        if not self.document["source"].endswith(".md"):
            return
        linked = set()
        for node in list(self.document.findall(nodes.literal)):
            name = node.astext().partition("(")[0].removeprefix("notsorandom.")
            head, dot, method = name.partition(".")
            ignored = isinstance(node.parent, nodes.title | nodes.reference | pending_xref)
            if head not in TARGETS or name in linked or ignored:
                continue
            linked.add(name)
            target = f"{TARGETS[head]}{dot}{method}"
            link = pending_xref(
                refdomain="py", reftype="obj", reftarget=target, refdoc=self.env.docname
            )
            node.replace_self(link)
            link += node


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
