"""Is a Python file that came with a package safe to load? Only if it does nothing but declare kernels.

A package carries copies of the kernels it was made from, and to load one is to run it. So a copy is read first: imports
from sensorsim and math, numbers, formats, and functions made of arithmetic and calls of each other pass; a name or an
attribute that could reach anything else does not.
"""

import ast
from collections.abc import Container, Iterator
from pathlib import Path

from sensorsim import language

BUILTINS = frozenset(
    {"abs", "all", "any", "bool", "dict", "divmod", "enumerate", "frozenset", "int", "len", "list", "max", "min", "pow"}
    | {"range", "reversed", "round", "set", "sorted", "sum", "tuple", "zip", "True", "False", "None", "Any"}
)
ATTRIBUTES = frozenset({"lo", "hi", "bit_length"})  # of the spans that an interval rule is given
PUBLIC = "sensorsim.language"
MODULES = ("__future__", "math", "typing", PUBLIC, "sensorsim.language.intervals")
ALLOWED = (
    *(ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.FunctionDef, ast.arguments, ast.arg),
    *(ast.Return, ast.For, ast.While, ast.If, ast.Break, ast.Continue, ast.Pass, ast.Import, ast.ImportFrom, ast.alias),
    *(
        ast.Constant,
        ast.Name,
        ast.BinOp,
        ast.UnaryOp,
        ast.Compare,
        ast.BoolOp,
        ast.IfExp,
        ast.Tuple,
        ast.List,
        ast.Dict,
    ),
    *(ast.Set, ast.Subscript, ast.Slice, ast.Lambda, ast.Call, ast.keyword, ast.Starred, ast.Attribute),
    *(ast.GeneratorExp, ast.ListComp, ast.comprehension, ast.operator, ast.unaryop, ast.cmpop, ast.boolop),
    *(ast.expr_context,),
)


def complaint(path: Path, beside: Container[str]) -> str | None:
    """What in the file is more than a declaration, with its line, or None; `beside` are the names of its neighbours."""
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (SyntaxError, ValueError, RecursionError) as error:
        return f"{path.name}: no Python that can be read ({type(error).__name__})"
    known = BUILTINS | {name for node in ast.walk(tree) for name in _given(node)}
    for node in ast.walk(tree):
        wrong = _wrong(node, known, beside)
        if wrong:
            return f"{path.name}:{getattr(node, 'lineno', 1)}: {wrong}"
    return None


def _wrong(node: ast.AST, known: Container[str], beside: Container[str]) -> str | None:
    match node:
        case ast.Import(names=names):
            return next((f"imports {each.name}" for each in names if each.name != "math"), None)
        case ast.ImportFrom(module=module, level=level, names=names):
            ours = module in MODULES or (module or "").startswith("sensorsim.kernels.") or module in beside
            star = any(each.name == "*" for each in names) and module != PUBLIC
            if level or not ours or star or any(each.name.startswith("_") for each in names):
                return f"imports from {'.' * level}{module or ''}"
        case ast.Attribute(value=value, attr=attr):
            of_math = isinstance(value, ast.Name) and value.id == "math" and not attr.startswith("_")
            return None if of_math or attr in ATTRIBUTES else f"uses the attribute {attr}"
        case ast.Name(id=name):
            return None if name in known and not name.startswith("__") else f"uses {name}"
        case ast.FunctionDef(name=name) if name.startswith("__"):
            return f"defines {name}"
    return None if isinstance(node, ALLOWED) else f"uses {type(node).__name__}"


def _given(node: ast.AST) -> Iterator[str]:
    """The names that a node gives a meaning to; one that hides a builtin function is no way around the list."""
    match node:
        case ast.ImportFrom(module=module, names=[ast.alias(name="*")]) if module == PUBLIC:
            yield from language.__all__
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            yield from (each.asname or each.name for each in names)
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.FunctionDef(name=name):
            yield name
