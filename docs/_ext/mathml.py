"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

# A function before its argument, unless that is in parentheses: TeX has a thin space there.
FUNCTION = re.compile(r"(<mi>(?:arg|cos|exp|log|sin|tan)</mi>)(?=<m(?!o\b))")


def to_mathml(node: nodes.Element, display: str) -> str:
    """Return the formula of a node as MathML; one that can't be converted is a warning."""
    formula = node.astext()
    try:
        result = convert(formula, display=display)
    except Exception as error:  # the converter has many of its own, without a common class
        logger.warning("formula %r: %r", formula, error, location=node)
        return ""
    if "\\" in result:  # unknown commands are left as they are
        logger.warning("formula %r has an unknown command", formula, location=node)
    return FUNCTION.sub(r'\1<mspace width="0.17em"/>', result)


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    translator.body.append(to_mathml(node, "inline"))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    translator.body.append(f'<div class="math">{to_mathml(node, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer; ``html_math_renderer`` selects it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
