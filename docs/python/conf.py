"""The site of the Python package: `cargo xtask site`."""

import usm

project = "usm"
author = "The usm authors"
version = release = usm.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["build"]
source_suffix = {".md": "markdown"}
html_theme = "alabaster"
html_theme_options = {"description": "Unified Shared Memory for Python", "page_width": "1100px"}
# Single backquotes of docstrings are code, as in the sources that they come from.
default_role = "code"
myst_heading_anchors = 3
# Links of the pages lead into the repository.
suppress_warnings = ["myst.xref_missing"]
autodoc_member_order = "groupwise"
autodoc_typehints = "description"
nitpicky = False


def _write_tutorial(app):
    """The notebook as a page: its text, and its code as blocks."""
    import json
    import pathlib

    folder = pathlib.Path(app.srcdir)
    cells = json.loads((folder / "tutorial.ipynb").read_text())["cells"]
    texts = ("".join(cell["source"]) for cell in cells)
    pages = (text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```" for cell, text in zip(cells, texts))
    (folder / "tutorial.md").write_text("\n\n".join(pages) + "\n")


def setup(app):
    app.connect("builder-inited", _write_tutorial)
