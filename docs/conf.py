"""Sphinx configuration of the documentation site.

python -m sphinx -W --keep-going -b html docs docs/_build/html
"""

import inspect
import os
import re
import sys
from html import escape
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from sphinx.application import Sphinx
from sphinx.ext.autosummary import import_by_name
from sphinx_gallery.sorting import ExplicitOrder

from notsorandom import LearnedKernel, __version__

project = "notsorandom"
author = "The notsorandom developers"
copyright = "The notsorandom developers, BSD 3-Clause"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_sitemap",
    "sphinxext.opengraph",
    # Our own, in _ext.
    "api_links",
    "check_links",
    "mathml",
]
# Markdown fragments that pages include.
exclude_patterns = ["_build"]
toc_object_entries_show_parents = "hide"
nitpicky = True  # a reference to something that is not documented is a warning
default_role = "literal"
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of a class lists them
# Every parameter is documented, in the order of the signature, with a description...
numpydoc_validation_checks = {"PR01", "PR02", "PR03", "PR07"}
# ... except in what is for research. The estimators of notsorandom.dask have the parameters of
# the estimators in memory.
numpydoc_validation_exclude = {r"notsorandom\.(dask|data|game|search|spaces)\."}

# The order of the gallery; others follow.
EXAMPLES = "tables size kernel probabilities intervals regression images globe".split()
EXAMPLES += "text embeddings svc large".split()
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # Shown only: serve.py runs until it is stopped, tabarena.py needs AutoGluon.
    "filename_pattern": r"[/\\](?!serve|tabarena)\w+\.py$",
    "within_subsection_order": ExplicitOrder([f"{name}.py" for name in EXAMPLES] + ["*"]),
    "default_thumb_file": str(Path(__file__).parent / "windmill.png"),
    "backreferences_dir": "api/examples",
    "doc_module": ("notsorandom",),
    "reference_url": {"notsorandom": None},
    "abort_on_example_error": True,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "download_all_examples": True,
}

# Names of other libraries lead to their pages, where there is a network.
if os.environ.get("READTHEDOCS"):
    extensions.append("sphinx.ext.intersphinx")
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
}

html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "https://notsorandom.readthedocs.io/")
sitemap_url_scheme = "{link}"
sitemap_excludes = ["genindex.html", "search.html"]
ogp_site_url = html_baseurl
ogp_image = "_images/windmill.png"
ogp_social_cards = {"enable": False}
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = f"notsorandom {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": {
        "**": ["page-toc", "sg_download_links"],
        "index": [],
        "gallery/index": [],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system
# Without pages below them.
html_sidebars = {page: [] for page in ("index", "start", "when", "gallery/index")}


def skip_member(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool:
    """Leave out what scikit-learn documents itself, and methods for validated rows or views."""
    home = str(getattr(getattr(member, "fget", member), "__module__", ""))
    maps = {"column_map", "feature_map", "score_map", "wave_map"}
    internal = name in maps | {"device_features", "features_of", "restored", "scores"}
    of_kernel = str(getattr(member, "__qualname__", "")).startswith(LearnedKernel.__name__)
    return skip or home.startswith("sklearn.") or (internal and of_kernel)


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Give a page of the API reference the first sentence of its docstring as description."""
    if page.startswith("api/"):
        documented = import_by_name(page.removeprefix("api/"))[1]
        summary = " ".join(inspect.getdoc(documented).partition("\n\n")[0].split())
        summary = re.sub(r":\w+:`~?(.+?)`", r"\1", summary).translate({ord("`"): "", ord("\\"): ""})
        context["meta"] = (context["meta"] or {}) | {"og:description": summary}
        context["metatags"] += f'<meta name="description" content="{escape(summary)}" />'


def setup(app: Sphinx) -> None:
    """Connect the functions of this file."""
    app.connect("html-page-context", describe, priority=100)  # before opengraph
    app.connect("autodoc-skip-member", skip_member)
