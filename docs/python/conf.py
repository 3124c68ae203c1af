"""The site of the Python package: `cargo xtask site`."""

import ast
import contextlib
import io
import json
import linecache
import pathlib

import usm
import usm._kernel
from sphinx.util.docutils import SphinxDirective

project = "usm"
author = "The usm authors"
version = release = usm.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
# The guide of old links leads to the pages.
exclude_patterns = ["build", "guide.md"]
source_suffix = {".md": "markdown"}
html_theme = "alabaster"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
html_theme_options = {
    "description": "Unified Shared Memory for Python",
    "fixed_sidebar": True,
    "font_family": FONT,
    "head_font_family": FONT,
    "page_width": "1100px",
}
templates_path = ["_templates"]
html_static_path = ["_static"]
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
# The second is generated, for readers whose system asks for dark pages.
html_css_files = ["site.css", "dark_code.css"]
# Single backquotes of docstrings are code, as in the sources that they come from.
default_role = "code"
myst_heading_anchors = 3
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
nitpicky = False


def _write_tutorial(app):
    """The notebook as a page: its text, and its code with what it gives on this machine."""
    folder = pathlib.Path(app.srcdir)
    names, parts = {"__name__": "tutorial"}, []
    for number, cell in enumerate(json.loads((folder / "tutorial.ipynb").read_text())["cells"]):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
        else:
            parts += [f"```python\n{text}\n```", _result(text, f"<tutorial {number}>", names)]
    (folder / "tutorial.md").write_text("\n\n".join(filter(None, parts)) + "\n")


def _result(source, file, names):
    """What a notebook shows below a cell: printed lines, and the last value."""
    # Kernels read their source.
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, file, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), file, "eval"), names)
    text = f"```text\n{printed.getvalue()}```\n\n" if printed.getvalue() else ""
    shown = next((getattr(value, name)() for name in ("_repr_html_", "_repr_svg_") if hasattr(value, name)), None)
    if shown is not None:
        return f'{text}```{{raw}} html\n<div class="result">{shown}</div>\n```'
    return text if value is None else f"{text}```text\n{value!r}\n```"


def _write_dark_code(app, _error):
    """Colours of code on a dark page."""
    from pygments.formatters import HtmlFormatter

    static = pathlib.Path(app.outdir) / "_static"
    if static.exists():
        rules = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
        (static / "dark_code.css").write_text(f"@media (prefers-color-scheme: dark) {{\n{rules}\n}}\n")


def _read_types():
    """Signatures and types of attributes, which compiled code has in its stub alone."""
    signatures, types = {}, {}
    tree = ast.parse(pathlib.Path(usm.__file__).with_name("_usm.pyi").read_text())

    def read(node, prefix):
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                read(member, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            arguments = node.args
            for listed in (arguments.posonlyargs, arguments.args):
                if prefix and listed and listed[0].arg in ("self", "cls"):
                    del listed[0]
            returns = ast.unparse(node.returns) if node.returns else ""
            if any(isinstance(it, ast.Name) and it.id == "property" for it in node.decorator_list):
                types[prefix + node.name] = returns.replace("builtins.", "")
            else:
                name = prefix.rstrip(".") if node.name == "__new__" else prefix + node.name
                text = f"({ast.unparse(arguments)})".replace("builtins.", "")
                signatures.setdefault(name, (text, "" if node.name == "__new__" else returns.replace("builtins.", "")))

    for node in tree.body:
        read(node, "")
    return signatures, types


SIGNATURES, TYPES = _read_types()
# No program calls these classes.
MADE_BY_USM = {f"usm.{name}" for name in ("Arena", "Array", "Event", "Kernel", "KernelFunction", "KernelLaunch", "Plan")}


def _short(name):
    for module in ("usm._usm.", "usm.memory.", "usm.nrt.", "usm."):
        if name.startswith(module):
            return name[len(module) :]
    return name


def _add_signature(_app, _what, name, _obj, _options, signature, returns):
    if name in MADE_BY_USM:
        return "", ""
    return SIGNATURES.get(_short(name), (signature, returns))


def _add_type(_app, what, name, _obj, _options, lines):
    # What this module says of itself is for its authors.
    if name == "usm._kernel":
        lines.clear()
    if what in ("attribute", "property") and _short(name) in TYPES:
        lines.insert(0, f"``{TYPES[_short(name)]}``: " + (lines.pop(0) if lines else ""))


class KernelNames(SphinxDirective):
    """Lists the functions that kernels call, by their docstrings, which begin with a call."""

    def run(self):
        listed = []
        for name in usm._kernel.__all__:
            word = getattr(usm, name)
            members = [(f"{name}.", getattr(word, it)) for it in dir(word) if not it.startswith("_")]
            for prefix, it in members if type(word).__name__ == "Words" else [("", word)]:
                if type(it).__name__ == "Word" and it.__doc__.startswith("``"):
                    listed.append(f"- ``usm.{prefix}{it.__doc__[2:]}")
        assert len(listed) > 40, listed
        return self.parse_text_to_nodes("\n".join(listed))


def setup(app):
    app.add_directive("kernel-names", KernelNames)
    app.connect("builder-inited", _write_tutorial)
    app.connect("build-finished", _write_dark_code)
    app.connect("autodoc-process-signature", _add_signature)
    app.connect("autodoc-process-docstring", _add_type)
