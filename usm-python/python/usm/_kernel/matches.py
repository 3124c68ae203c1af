"""`match` of numbers, as branches."""

import ast


class Branches(ast.NodeTransformer):
    """Replaces each `match` of a function by branches. `error` makes the error of a node."""

    def __init__(self, error):
        self.error = error

    def visit_Match(self, node):
        self.generic_visit(node)
        subject = node.subject.elts if isinstance(node.subject, ast.Tuple) else [node.subject]
        # No name of the source has a space.
        names = [f"match of line {node.lineno}_{node.col_offset}_{place}" for place in range(len(subject))]
        out = [self.set(name, value) for name, value in zip(names, subject)]
        chain = []
        for case in reversed(node.cases):
            tests, bound = [], []
            pattern = case.pattern
            if len(names) > 1 and isinstance(pattern, ast.MatchSequence) and len(pattern.patterns) == len(names):
                for part, name in zip(pattern.patterns, names):
                    self.pattern(part, name, tests, bound)
            elif len(names) == 1 or (isinstance(pattern, ast.MatchAs) and pattern.name is None):
                self.pattern(pattern, names[0], tests, bound)
            else:
                raise self.error(pattern, f"a pattern for {len(names)} numbers is needed here")
            if case.guard is not None and bound:
                # The names are bound before the condition is asked, and stay if it fails.
                flag = f"case of line {pattern.lineno}_{pattern.col_offset}"
                steps = [*bound, ast.If(case.guard, [self.set(flag, ast.Constant(True))], [])]
                if tests:
                    steps = [ast.If(conjunction(tests), steps, [])]
                choice = ast.If(ast.Name(flag, ast.Load()), case.body, chain)
                chain = [self.set(flag, ast.Constant(False)), *steps, choice]
                continue
            if case.guard is not None:
                tests.append(case.guard)
            if not tests:
                chain = bound + case.body
                continue
            chain = [ast.If(conjunction(tests), bound + case.body, chain)]
        for part in out + chain:
            for inner in ast.walk(part):
                if not hasattr(inner, "lineno"):
                    ast.copy_location(inner, node)
        return out + chain

    @staticmethod
    def set(name, value):
        return ast.Assign([ast.Name(name, ast.Store())], value)

    def pattern(self, pattern, name, tests, bound):
        """Adds the conditions of a pattern, and the names that it binds."""
        value = ast.Name(name, ast.Load())
        if isinstance(pattern, ast.MatchAs):
            if pattern.pattern is not None:
                self.pattern(pattern.pattern, name, tests, bound)
            if pattern.name is not None:
                bound.append(self.set(pattern.name, value))
        elif isinstance(pattern, ast.MatchValue):
            tests.append(ast.Compare(value, [ast.Eq()], [pattern.value]))
        elif isinstance(pattern, ast.MatchSingleton) and pattern.value is not None:
            tests.append(value if pattern.value else ast.UnaryOp(ast.Not(), value))
        elif isinstance(pattern, ast.MatchOr):
            cases = []
            for alternative in pattern.patterns:
                inner = []
                self.pattern(alternative, name, inner, bound)
                cases += inner
            if len(cases) == len(pattern.patterns):
                tests.append(ast.BoolOp(ast.Or(), cases))
        else:
            raise self.error(pattern, "a kernel matches numbers, `|`, names and `_`")


def conjunction(tests):
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
