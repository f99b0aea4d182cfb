"""The import graph of `src/`, read from the source without running it."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class SourceTree:
    """All modules below one folder and what each of them imports, in functions too."""

    root: Path

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Every module by its dotted name."""
        return {self._name(path): path for path in sorted(self.root.rglob("*.py"))}

    @cached_property
    def imports(self) -> dict[str, frozenset[str]]:
        """For each module the modules of ours and the top-level names of others that it imports."""
        return {name: frozenset(self._imports_of(name)) for name in self.modules}

    def way_to(self, start: str, forbidden: tuple[str, ...]) -> list[str] | None:
        """The shortest chain of imports from `start` to a forbidden name, or None."""
        ways = deque([[start]])
        seen = {start}
        while ways:
            way = ways.popleft()
            for target in sorted(self.imports[way[-1]] - seen):
                seen.add(target)
                if is_under(target, forbidden):
                    return [*way, target]
                if target in self.modules:
                    ways.append([*way, target])
        return None

    def reached(self, start: str) -> set[str]:
        """Everything that `start` brings in where the packages it lies in are empty."""
        empty = set(_parents(start))
        new = self.imports[start] - empty
        found = set[str]()
        while new:
            found |= new
            new = frozenset().union(*(self.imports.get(name, ()) for name in new)) - found - empty
        return found

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _imports_of(self, name: str) -> Iterator[str]:
        yield from _parents(name)
        tree = ast.parse(self.modules[name].read_text())
        package = name if self.modules[name].name == "__init__.py" else name.rpartition(".")[0]
        for target in _imported_names(tree, package):
            ours = target.split(".")[0] in {module.split(".")[0] for module in self.modules}
            if not ours:
                yield target
                continue
            # `from package import name` may name a module or something in one.
            module = target if target in self.modules else target.rpartition(".")[0]
            yield module
            yield from _parents(module)


def is_under(name: str, prefixes: tuple[str, ...]) -> bool:
    """Whether `name` is one of `prefixes` or lies within one."""
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def _parents(name: str) -> list[str]:
    """Importing a.b.c runs a and a.b first."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _imported_names(tree: ast.AST, package: str) -> Iterator[str]:
    for node in _walk_without_type_checking(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                upper = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*upper, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _imports_by_name(node):
            yield ast.literal_eval(node.args[0])


def _walk_without_type_checking(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under `if TYPE_CHECKING:`, which never run."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            yield from (node for other in child.orelse for node in ast.walk(other))
            continue
        yield child
        yield from _walk_without_type_checking(child)


def _imports_by_name(call: ast.Call) -> bool:
    called = ast.unparse(call.func).rpartition(".")[2]
    return called in ("import_module", "__import__") and isinstance(call.args[0], ast.Constant)
