"""The site of the docs: MyST Markdown by Sphinx, mathematics as MathML, all of it offline."""

from __future__ import annotations

import sys
from pathlib import Path

import vitrify

sys.path.insert(0, str(Path(__file__).parent / "_site"))

project = "vitrify"
author = "the authors of vitrify"
version = release = vitrify.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "mathematics", "docstrings", "entries"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_site"]
suppress_warnings = ["misc.highlighting_failure", "ref.python"]  # drawings in sessions; names that two modules share

html_theme = "furo"
html_title = "vitrify"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_site" / "scorer.js")
html_math_renderer = "mathml"
html_copy_source = False
html_use_index = False  # the search finds names; an index of all of them on one page has 800 kB
html_show_sphinx = html_show_copyright = False

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_mock_imports = ["torch", "transformers"]  # of the files that exports carry
autodoc_preserve_defaults = True
maximum_signature_line_length = 100
python_use_unqualified_type_names = True
toc_object_entries = False
# Names of other libraries, whose pages are elsewhere; machinery and variables for types, which have none.
nitpick_ignore_regex = [
    ("py:.*", r"(?!vitrify\.).*"),
    ("py:.*", r"vitrify\.([a-z]\w*\.)*(_.*|[A-Z]|Choice|Node|Schema|Shape|Maker)"),
]
