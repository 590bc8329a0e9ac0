"""The source of a function, from Python's own line cache, which knows files and notebook cells alike."""

import ast
import linecache
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import FunctionType
from typing import Any


def find(function: FunctionType) -> ast.FunctionDef | None:
    """The function's own syntax tree, with the line numbers of its file; None where there is no source."""
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
    first = function.__code__.co_firstlineno
    for node in _functions("".join(lines), function.__code__.co_filename) if lines else ():
        starts = {node.lineno, *(decorator.lineno for decorator in node.decorator_list)}
        if node.name == function.__name__ and first in starts:
            return node
    return None


def scope(function: FunctionType) -> dict[str, Any]:
    """The names that a function sees: those of its module, and those it closes over."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    scope = dict(function.__globals__)
    for name, cell in cells.items():
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # not given yet: the kernel itself, or one below it
            scope.pop(name, None)
    return scope


@lru_cache(maxsize=64)
def _functions(text: str, file: str) -> tuple[ast.FunctionDef, ...]:
    return tuple(node for node in _statements(ast.parse(text, file).body) if isinstance(node, ast.FunctionDef))


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement below these, without a look at expressions."""
    for node in body:
        yield node
        for field in ("body", "orelse", "handlers", "finalbody"):
            yield from _statements(getattr(node, field, ()))


def assigned(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that these statements give a value to."""
    for node in _statements(body):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.For) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))
