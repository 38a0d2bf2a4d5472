"""The documentation site, as `make docs` builds it: `sphinx-build -c docs . build/site`.

The source is the whole repository, so a link between two files is the same on the site and in a clone.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "fedvote"
html_title = "fedvote"
root_doc = "docs/index"
include_patterns = ["docs/**.md", "C*.md", "examples/**.md", "results/README.md"]
exclude_patterns = [".*", "build", "dist", "peers", "results/[!R]*", "runs", "src", "tests", "examples/service"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_extensions.command_help",
    "sphinx_extensions.configuration_keys",
    "sphinx_extensions.docstrings",
    "sphinx_extensions.front_door",
    "sphinx_extensions.markers",
    "sphinx_extensions.mathml",
    "sphinx_extensions.part_names",
    "sphinx_extensions.toctrees",
]

# pages
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
highlight_language = "sh"  # of a block that names no language
suppress_warnings = ["misc.highlighting_failure"]  # TOML fragments with `...`
html_math_renderer = "mathml"
smartquotes = False  # `--set` stays as it is typed

# reference
default_role = "literal"  # docstrings have `names` in single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "description"
add_module_names = False

# looks: nothing is loaded from another host
html_theme = "furo"
html_static_path = ["sphinx_extensions/static"]
html_css_files = ["fedvote.css"]
html_favicon = "sphinx_extensions/static/favicon.svg"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "default"
pygments_dark_style = "github-dark"
