"""Reads from sources which modules import which, whatever way they do it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.files import python_files


def imports_of(source: str, module: str = "") -> set[str]:
    """Dotted names of all that a source imports, at the top or inside functions.

    Besides import statements these are `import_module` with a constant, a lazy face's
    `loader(package, places)`, and attributes of a package that was imported whole, as in
    `import peakmem; peakmem.lab`. `module` is the source's own name, which it calls `__name__`.
    """
    tree = ast.parse(source)
    found, whole, attributes, dicts = set(), set(), [], _dicts(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            whole |= {alias.name for alias in node.names if alias.asname is None}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call):
            found |= _called(node, dicts, module)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            attributes.append((node.value.id, node.attr))
    return found | {f"{package}.{name}" for package, name in attributes if package in whole}


def _called(call: ast.Call, dicts: Mapping[str, Mapping[str, str]], module: str) -> set[str]:
    """The names that a call of `import_module` or of a lazy face's `loader` imports."""
    function = ast.unparse(call.func).rpartition(".")[2]
    if function in ("import_module", "__import__") and call.args:
        name = _constant(call.args[0], module)
        return {name} if name else set()
    if function != "loader" or len(call.args) != 2:
        return set()
    package, places = _constant(call.args[0], module), call.args[1]
    if not package:
        return set()
    table = _plain(places) if isinstance(places, ast.Dict) else dicts.get(ast.unparse(places), {})
    return {f"{package}.{place}.{name}" for name, place in table.items()}


def _constant(node: ast.expr, module: str) -> str:
    """The text of a constant or of `__name__`; "" of other expressions."""
    if isinstance(node, ast.Name) and node.id == "__name__":
        return module
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _dicts(tree: ast.Module) -> dict[str, dict[str, str]]:
    """The variables of a module that are dicts of constant texts."""
    return {
        ast.unparse(node.targets[0]): _plain(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
    }


def _plain(table: ast.Dict) -> dict[str, str]:
    return {
        _constant(key, ""): _constant(value, "")
        for key, value in zip(table.keys, table.values, strict=True)
        if key is not None
    }


def face_of(package: Path) -> dict[str, str]:
    """A package's public names that it imports itself, and their places."""
    face = package / "__init__.py"
    found = imports_of(face.read_text("utf-8"), package.name) if face.exists() else set()
    return {f"{package.name}.{name.rpartition('.')[2]}": name for name in found}


def modules_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """All modules of a package by their dotted names; a face has its folder's."""
    for file in python_files(folder):
        parts = file.relative_to(folder.parent).with_suffix("").parts
        yield ".".join(parts).removesuffix(".__init__"), file


def import_graph(*packages: Path) -> dict[str, set[str]]:
    """For each module of the packages, the modules of theirs that it imports."""
    files = {name: file for package in packages for name, file in modules_of(package)}
    return {
        module: {
            there
            for name in imports_of(file.read_text("utf-8"), module)
            if (there := _module(name, files)) and there != module
        }
        for module, file in files.items()
    }


def _module(name: str, files: Mapping[str, Path]) -> str:
    """The module that a dotted name is, or is in; "" if it is in none of them."""
    while name and name not in files:
        name = name.rpartition(".")[0]
    return name
