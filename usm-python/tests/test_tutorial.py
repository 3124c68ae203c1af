"""The tutorial is a notebook whose cells run in their order."""

import ast
import json
import linecache
import pathlib

import usm

NOTEBOOK = pathlib.Path(__file__).parents[2] / "docs/python/tutorial.ipynb"


def shown(value):
    """The output that a notebook shows for the last line of a cell."""
    names = ("_repr_html_", "_repr_svg_")
    return next((getattr(value, name)() for name in names if hasattr(value, name)), repr(value))


def test_the_cells_run_in_their_order(capsys):
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4 and all(cell.get("outputs", []) == [] for cell in notebook["cells"])
    names, pictures, last = {"__name__": "tutorial"}, [], None
    try:
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] != "code":
                continue
            # Kernels read their source, as they do in a notebook.
            source, file = "".join(cell["source"]), f"<tutorial {number}>"
            linecache.cache[file] = (len(source), None, source.splitlines(True), file)
            tree = ast.parse(source)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, file, "exec"), names)
            if last is not None:
                pictures.append(shown(eval(compile(ast.Expression(last.value), file, "eval"), names)))
    finally:
        usm.history(0, lines=False)
    printed = capsys.readouterr().out
    assert "optimal: True" in printed and "[3.5, 3.5, 3.5, 3.5] proven" in printed and "no host view" in printed
    assert len(pictures) >= 8 and sum("<svg" in it for it in pictures) == 2 and sum("<table>" in it for it in pictures) >= 4
