"""Is a Python file that came with a package safe to load? Only if it does nothing but declare kernels.

A package carries copies of the kernels it was made from, and to load one is to run it. So a copy is read first: listed
names of sensorsim, typing and math, numbers, formats, and functions made of arithmetic and calls of each other pass; a
name or an attribute that could reach anything else does not. What was read is what runs, and it runs with the listed
builtins only and gets no module but math.
"""

import __future__

import ast
import builtins
import hashlib
import io
import math
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from sensorsim import language
from sensorsim._util.files import read_bounded
from sensorsim.errors import InputError
from sensorsim.language import load
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Below, Length, Q

BUILTINS = frozenset(
    {"abs", "all", "any", "bool", "dict", "divmod", "enumerate", "frozenset", "int", "len", "list", "max", "min", "pow"}
    | {"range", "reversed", "round", "set", "sorted", "sum", "tuple", "zip", "True", "False", "None"}
)
HIDDEN = frozenset(dir(builtins)) - BUILTINS - {"_"}  # not to be read, and not to be given another meaning either
ATTRIBUTES = frozenset({"lo", "hi", "bit_length"})  # of the spans that an interval rule is given
PUBLIC = "sensorsim.language"
RULES = (
    *("Flag", "Span", "add", "and_", "any_word", "as_word", "at_least", "corners", "either", "larger", "left", "mul"),
    *("negated", "not_", "number", "or_", "right", "signed", "smaller", "square", "sub", "truncated", "unsigned"),
    "xor",
)
IMPORTS = {
    "__future__": frozenset({"annotations"}),
    "math": frozenset(name for name in dir(math) if not name.startswith("_")),
    "typing": frozenset({"Any", "Final"}),
    # Kernels are declared with `kernel` only; a primitive brings C of its own, which would run.
    PUBLIC: frozenset(language.__all__) - {"Kernel", "LanguageError", "Primitive", "primitive"},
    "sensorsim.language.intervals": frozenset(RULES),
}
SHIPPED = re.compile(r"sensorsim\.kernels\.[a-z]\w*")
VALUES = (Kernel, Q, Array, Below, Length, int, float, str, tuple)  # what is taken from the kernels that ship
MOST_BYTES = 1 << 22
TEXT_ANNOTATIONS = __future__.annotations.compiler_flag
ALLOWED = (
    *(ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.FunctionDef, ast.arguments, ast.arg),
    *(ast.Return, ast.For, ast.While, ast.If, ast.Break, ast.Continue, ast.Pass, ast.Import, ast.ImportFrom, ast.alias),
    *(ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Tuple, ast.List),
    *(ast.Dict, ast.Set, ast.Subscript, ast.Slice, ast.Lambda, ast.Call, ast.keyword, ast.Starred, ast.Attribute),
    *(ast.GeneratorExp, ast.ListComp, ast.comprehension, ast.operator, ast.unaryop, ast.cmpop, ast.boolop),
    *(ast.expr_context,),
)


def complaint(path: Path) -> str | None:
    """What in the file is more than a declaration, with its line, or None."""
    found = _read(path, read_bounded(path, MOST_BYTES))
    return found if isinstance(found, str) else None


def load_vetted(path: Path, waiting: tuple[Path, ...] = ()) -> ModuleType:
    """The module of a copy, of the very bytes that were read; InputError where it does more than declare kernels.

    `load_file` gives the same module from then on. `waiting` are the files whose imports led here.
    """
    full = path.resolve()
    data = read_bounded(full, MOST_BYTES)
    tree = _read(full, data)
    if full in waiting:
        tree = f"{full.name}: imports itself in a circle"
    if isinstance(tree, str):
        raise InputError(f"{tree}, and to load it is to run it; give --trust if you know where it is from.")
    digest = hashlib.sha256(data).hexdigest()
    known, module = load._loaded.get(full, ("", None))
    if module is not None and known == digest:
        return module
    module = ModuleType(load._module_name(full))
    module.__file__ = str(full)
    vars(module)["__builtins__"] = _builtins((*waiting, full))
    with load._in_one_sentence(path, full):
        sys.modules[module.__name__] = module
        try:
            exec(compile(tree, str(full), "exec", dont_inherit=True), vars(module))
        except BaseException:
            del sys.modules[module.__name__]
            raise
    load._loaded[full] = digest, module
    return module


def _read(path: Path, data: bytes) -> ast.Module | str:
    """The file's tree, or what is wrong with it."""
    try:
        if tokenize.detect_encoding(io.BytesIO(data).readline)[0] != "utf-8":  # Python would read another text
            return f"{path.name}:1: is no plain UTF-8"
        tree = ast.parse(data.decode("utf-8"), path.name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{path.name}: no Python that can be read ({type(error).__name__})"
    nodes = list(ast.walk(tree))
    known = BUILTINS | {name for node in nodes for name in _given(node)}
    owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        wrong = _bound_wrongly(node) or _wrong(node, known, path.parent)
        if isinstance(node, ast.Name) and node.id == "math" and id(node) not in owners:
            wrong = wrong or "uses math by itself"
        if wrong:
            return f"{path.name}:{getattr(node, 'lineno', 1)}: {wrong}"
    return tree


def _wrong(node: ast.AST, known: frozenset[str], folder: Path) -> str | None:
    match node:
        case ast.Import(names=names):
            return next((f"imports {each.name}" for each in names if each.name != "math"), None)
        case ast.ImportFrom(module=module, level=level, names=names):
            offered = _offered(module or "", folder) if not level else frozenset()
            wanted = {each.name for each in names} - ({"*"} if module == PUBLIC else set())
            if not offered or not wanted <= offered:
                return f"imports from {'.' * level}{module or ''}" + (f" {min(wanted - offered)}" if offered else "")
        case ast.Attribute(attr=attr, ctx=ast.Store() | ast.Del()):  # a format that ships would be another for all
            return f"changes the attribute {attr}"
        case ast.Attribute(value=value, attr=attr):
            of_math = isinstance(value, ast.Name) and value.id == "math" and attr in IMPORTS["math"]
            return None if of_math or attr in ATTRIBUTES else f"uses the attribute {attr}"
        case ast.Name(id=name):
            return None if name in known and not name.startswith("__") else f"uses {name}"
    return None if isinstance(node, ALLOWED) else f"uses {type(node).__name__}"


def _bound_wrongly(node: ast.AST) -> str | None:
    """A builtin outside the list, math, or a name that Python gives a meaning to stays what it is."""
    plain = isinstance(node, ast.Import) and all(each.asname is None for each in node.names)
    for name in _given(node):
        if name in HIDDEN or name.startswith("__") or (name == "math" and not plain):
            return f"{'defines' if isinstance(node, ast.FunctionDef) else 'gives a meaning to'} {name}"
    return None


def _given(node: ast.AST) -> Iterator[str]:
    """The names that a node gives a meaning to."""
    match node:
        case ast.ImportFrom(module=module, names=[ast.alias(name="*")]) if module == PUBLIC:
            yield from IMPORTS[PUBLIC]
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            yield from (each.asname or each.name for each in names)
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.FunctionDef(name=name):
            yield name


def _offered(module: str, folder: Path) -> frozenset[str]:
    """The names that a copy may import from a module: none of one that is not listed and no neighbour."""
    if module in IMPORTS:
        return IMPORTS[module]
    if SHIPPED.fullmatch(module):
        try:
            values = vars(import_module(module))
        except ImportError:
            return frozenset()
        return frozenset(name for name, each in values.items() if isinstance(each, VALUES) and not name.startswith("_"))
    beside = _neighbour(module, folder)
    try:
        return _defined(ast.parse(read_bounded(beside, MOST_BYTES))) if beside else frozenset()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def _neighbour(module: str, folder: Path) -> Path | None:
    """The copy in the same folder; one that is called as a module of Python or of ours is none."""
    path = folder / f"{module}.py"
    ours = module == "sensorsim" or module in sys.stdlib_module_names
    return path if module.isidentifier() and not ours and path.is_file() and not path.is_symlink() else None


def _defined(tree: ast.Module) -> frozenset[str]:
    """What a file's own statements give a name to, without what it imports."""
    nodes = (node for statement in tree.body for node in ast.walk(statement))
    own = (node for node in nodes if isinstance(node, ast.Name | ast.FunctionDef))
    return frozenset(name for node in own for name in _given(node) if not name.startswith("_"))


def _builtins(waiting: tuple[Path, ...]) -> dict[str, Any]:
    """All that a copy sees of Python, with an import that gives listed names and no modules."""
    folder = waiting[-1].parent

    def imported(name: str, *scopes_and_names: Any) -> Any:
        wanted, level = (*scopes_and_names, *(None,) * 4)[2:4]
        if name == "math" and not wanted and not level:
            return math
        offered = _offered(name, folder) if wanted and not level else frozenset()
        if not offered:
            raise ImportError(f"a copy in a package imports nothing from {name}")
        beside = None if name in IMPORTS or SHIPPED.fullmatch(name) else _neighbour(name, folder)
        values = vars(load_vetted(beside, waiting) if beside else import_module(name))
        given = {each: values[each] for each in offered if each in values}
        if name == PUBLIC:
            given["kernel"] = _kernel
        return SimpleNamespace(**given)

    return {name: getattr(builtins, name) for name in BUILTINS} | {"__import__": imported}


def _kernel(*given: Any, **options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """`kernel` for copies: a format that is text gets evaluated, so only text that was read with the file passes."""
    declare = language.kernel(*given, **options)

    def declared(function: Callable[..., Any]) -> Kernel:
        if isinstance(function, FunctionType) and not function.__code__.co_flags & TEXT_ANNOTATIONS:
            for name, kind in function.__annotations__.items():
                if isinstance(kind, str):
                    raise InputError(f"kernel {function.__name__} declares {name} by a text; name a format.")
        return declare(function)

    return declared
