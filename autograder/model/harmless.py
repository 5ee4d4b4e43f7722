"""Finds the nodes of a statement that mention a name or a text without using it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from autograder.model.expressions import called_name, dotted_name
from autograder.model.module_names import binds_a_root, bound_name

__all__ = ["given_away", "harmless_nodes", "plain_text"]

# Calls whose string arguments can't be format codes.
_PLAIN_TEXT = frozenset(
    {"Decimal", "Fraction", "count", "endswith", "find", "float", "format", "fromhex", "index"}
    | {"int", "join", "namedtuple", "partition", "print", "replace", "rpartition", "rsplit"}
    | {"split", "startswith", "strip"}
)
# Calls that query a type without converting anything.
_QUESTIONS = frozenset({"isinstance", "issubdtype", "issubclass", "finfo"})


def harmless_nodes(
    statement: ast.stmt,
    nodes: Sequence[ast.AST],
    names: set[str],
    *,
    annotations: bool,
    docstrings: bool,
) -> set[ast.AST]:
    """Return the nodes of a statement that mention a name without using it.

    They are type queries, imports of names that the solution never uses, and, unless the solution
    reads them, `annotations` and `docstrings`.
    """
    roots: list[ast.AST | None] = []
    casting = _casting(nodes)
    # `np.finfo(np.float32).max` is a number, but `np.finfo(np.float32).dtype` can convert others.
    converts = {n.value for n in nodes if isinstance(n, ast.Attribute) and n.attr == "dtype"}
    for node in nodes:
        if isinstance(node, (ast.arg, ast.AnnAssign)) and annotations:
            roots.append(node.annotation)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and annotations:
            roots.append(node.returns)
        elif isinstance(node, ast.Compare):
            # `x.dtype == np.float32` only compares; `np.float32(x) == y` casts, so calls count.
            roots += [side for side in (node.left, *node.comparators) if side not in casting]
        elif (
            isinstance(node, ast.Call) and called_name(node) in _QUESTIONS and node not in converts
        ):
            roots += [argument for argument in node.args[-1:] if argument not in casting]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and docstrings:
            roots.append(node.value)
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        # `import torch.utils.checkpoint` binds `torch`, and each use of that is checked itself.
        roots += [a for a in statement.names if bound_name(a) not in names or binds_a_root(a)]
    binding = {node for node in nodes if isinstance(node, ast.NamedExpr)}
    return _with_all_below(root for root in roots if root is not None) - _with_all_below(binding)


def plain_text(nodes: Sequence[ast.AST]) -> set[ast.AST]:
    """Return the nodes of texts that can't be format codes, such as keys and parsed numbers."""
    found: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.FormattedValue) and node.format_spec:
            found |= {node.format_spec, *ast.iter_child_nodes(node.format_spec)}
        elif isinstance(node, ast.Dict):
            found |= {key for key in node.keys if key}
        elif isinstance(node, (ast.Subscript, ast.MatchValue)):
            found.add(node.slice if isinstance(node, ast.Subscript) else node.value)
        elif isinstance(node, ast.keyword) and node.arg == "order":
            found.add(node.value)
        elif isinstance(node, ast.List):
            fields = [item for item in node.elts if isinstance(item, ast.Tuple)]
            found |= {field.elts[0] for field in fields if _is_named(field)}
        elif isinstance(node, ast.Call) and called_name(node) in _PLAIN_TEXT:
            lists = [a for a in node.args if isinstance(a, (ast.List, ast.Tuple))]
            found |= {*node.args, *(item for one in lists for item in one.elts)}
    return found


def _is_named(field: ast.Tuple) -> bool:
    """Tell whether this is a record's field: its name, followed by its code or C type."""
    if len(field.elts) < 2:
        return False
    kind = field.elts[1]
    is_code = isinstance(kind, ast.Constant) and isinstance(kind.value, str)
    return is_code or dotted_name(kind).rpartition(".")[2].startswith("c_")


def _with_all_below(roots: Iterable[ast.AST]) -> set[ast.AST]:
    """All nodes of these trees, which may overlap."""
    found: set[ast.AST] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += ast.iter_child_nodes(node)
    return found


def _casting(nodes: Sequence[ast.AST]) -> set[ast.AST]:
    """The nodes that convert a value or contain such a node; `nodes` has parents first."""
    found: set[ast.AST] = set()
    for node in reversed(nodes):
        if (isinstance(node, ast.Call) and called_name(node) != "dtype") or any(
            child in found for child in ast.iter_child_nodes(node)
        ):
            found.add(node)
    return found


def given_away(statement: ast.stmt) -> set[ast.AST]:
    """Return the nodes of a statement except the targets that it sets, which use nothing."""
    nodes = list(ast.walk(statement))
    targets = [
        node
        for node in nodes
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)
    ]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    first = [call.args[0] for call in calls if called_name(call) == "setattr" and call.args]
    return set(nodes) - _with_all_below([*targets, *first])
