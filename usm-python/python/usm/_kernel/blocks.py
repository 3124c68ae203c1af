"""Questions about blocks of a syntax tree: what they set, and where they end."""

import ast


def _has_in_loop(body, kind):
    """Whether a block has a statement of this kind that belongs to the loop around the block."""
    for node in body:
        if isinstance(node, kind):
            return True
        if isinstance(node, (ast.For, ast.While)):
            continue
        blocks = [getattr(node, "body", []), getattr(node, "orelse", []), *(case.body for case in getattr(node, "cases", []))]
        if any(_has_in_loop(block, kind) for block in blocks):
            return True
    return False


def leaves_loop(body):
    """Whether a block has a `break` of the loop around it."""
    return _has_in_loop(body, ast.Break)


def continues_loop(body):
    """Whether a block has a `continue` of the loop around it."""
    return _has_in_loop(body, ast.Continue)


def has_return(node):
    """Whether a statement is or contains a `return`."""
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))


def leaves(body):
    """Whether a block never continues after its end."""
    for node in body:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return True
        if isinstance(node, ast.If) and leaves(node.body) and leaves(node.orelse):
            return True
    return False


def sets(body, name):
    """Whether a block sets a variable."""
    for node in body:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Store):
                return True
    return False


def always_returns(body):
    """Whether every path through a block ends with a return."""
    for node in body:
        if isinstance(node, ast.Return) or (isinstance(node, ast.If) and always_returns(node.body) and always_returns(node.orelse)):
            return True
    return False


def needs_flag(body):
    """Whether a return is in a loop, or under a condition whose branches may both continue."""
    for node in body:
        if isinstance(node, (ast.For, ast.While)):
            if has_return(node):
                return True
        elif isinstance(node, ast.If) and has_return(node):
            if not always_returns(node.body) and not always_returns(node.orelse):
                return True
            if needs_flag(node.body) or needs_flag(node.orelse):
                return True
    return False
