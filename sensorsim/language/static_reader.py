"""Read the kernels that a Python file declares without running it.

Packages of sensorsim 0.2.0 carry kernels as Python alone. A file of imports, numbers, formats and kernels says what
they are without being run: numbers are computed here, kernels are parsed. A file that does more is refused.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sensorsim import language
from sensorsim._util.errors import InputError
from sensorsim._util.files import read_bounded
from sensorsim.language.ir_reader import StoredKernel
from sensorsim.language.kernel import Kernel
from sensorsim.language.parse import parse_tree
from sensorsim.language.primitive import Primitive
from sensorsim.language.types import Array, Below, Length, Port, Q, Struct, board, out, struct

MOST_BYTES = 1 << 22
MOST_STEPS = 1 << 20  # expressions that are computed
MOST_BITS = 4096  # of a number
LANGUAGE = "sensorsim.language"
SHIPPED = re.compile(r"sensorsim\.kernels\.[a-z]\w*")
VALUES = (Kernel, Primitive, Q, Array, Below, Length, Port, Struct, int, float, str, tuple)


def _range(*ends: int) -> range:
    if len(found := range(*ends)) > MOST_STEPS:
        raise ValueError
    return found


NAMES: dict[str, Any] = {one.__name__: one for one in (round, int, abs, min, max, sum, len, tuple)} | {"range": _range}
GROWING = ("factorial", "comb", "perm", "prod", "ldexp")
MATH = {name: one for name, one in vars(math).items() if name[0] != "_" and name not in GROWING}
CALLED = (Q, Below, Length, Array, Port, struct, board, out, *NAMES.values(), *filter(callable, MATH.values()))
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift},
    **{ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor},
}


def declared_kernels(path: Path, waiting: tuple[Path, ...] = ()) -> dict[str, Kernel]:
    """Return the kernels of a file by name; InputError, with the line, where the file must be run to know them."""
    return {name: one for name, one in _File(path, waiting).scope.items()
            if isinstance(one, StoredKernel) and one.at.file == str(path)}  # fmt: skip


class _File:
    """The names that a file gives a meaning to. `waiting` are the files whose imports led here."""

    def __init__(self, path: Path, waiting: tuple[Path, ...]) -> None:
        self.path, self.waiting, self.scope, self.steps = path, (*waiting, path), dict[str, Any](), 0
        try:
            tree = ast.parse(read_bounded(path, MOST_BYTES).decode("utf-8"), path.name)
            functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
            self.doc, self.kernels = ast.get_docstring(tree, clean=False), [node.name for node in functions]
            for node in tree.body:
                self.statement(node)
        except InputError:
            raise
        except (
            SyntaxError,
            ValueError,
            TypeError,
            ArithmeticError,
            LookupError,
            RecursionError,
            MemoryError,
            OSError,
        ) as error:
            raise self.refusal(None, f"cannot be read ({type(error).__name__})") from None

    def refusal(self, node: ast.AST | None, what: str) -> InputError:
        line = getattr(node, "lineno", 1)
        more = "which says what it means only when it is run; give --trust if you know where it is from"
        return InputError(f"{self.path.name}:{line}: {what}, {more}.")

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Import(names=[ast.alias(name="math", asname=None)]):
                self.scope["math"] = math
            case ast.ImportFrom(module=str(module), names=names, level=0):
                self.scope |= {each.asname or each.name: self.imported(node, module, each.name) for each in names}
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.scope[name] = self.value(value)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                several = [one.id for one in targets if isinstance(one, ast.Name)]
                self.scope |= dict(zip(several, self.value(value), strict=True))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self.scope[name] = self.value(value)
            case ast.FunctionDef(name=name, decorator_list=[ast.Call(func=ast.Name(id=mark), args=[], keywords=given)]):
                if self.scope.get(mark) is not language.kernel:
                    raise self.refusal(node, f"defines {name}")
                self.scope[name] = self.kernel(node, {one.arg or "": self.value(one.value) for one in given})
            case _:
                raise self.refusal(node, f"uses `{ast.unparse(node).splitlines()[0][:60]}`")

    def imported(self, node: ast.AST, module: str, name: str) -> Any:
        """Return a name of the language, of a file of kernels that ships, or of a file beside this one."""
        beside = self.path.parent / f"{module}.py"
        values: Mapping[str, Any] = {}
        if module in ("__future__", "typing"):
            return None
        if module == LANGUAGE:
            values = {one: getattr(language, one) for one in language.__all__ if one != "primitive"}
        elif module == "math":
            values = MATH
        elif SHIPPED.fullmatch(module) and find_spec(module) is not None:
            values = {one: value for one, value in vars(import_module(module)).items() if isinstance(value, VALUES)}
        elif module.isidentifier() and beside.is_file() and not beside.is_symlink() and beside not in self.waiting:
            values = _File(beside, self.waiting).scope
        if name not in values:
            raise self.refusal(node, f"imports {name} from {module}")
        return values[name]

    def kernel(self, node: ast.FunctionDef, given: Mapping[str, Any]) -> Kernel:
        usual: dict[str, Any] = {"step": None, "split": None, "exposes": {}, "lasting": False, "apart": False}
        kinds_of = {"step": str, "split": str, "exposes": dict, "lasting": bool, "apart": bool}
        if any(type(one) is not kinds_of.get(name) for name, one in given.items()):
            raise self.refusal(node, f"declares {node.name} with {', '.join(given)}")
        annotations = {one.arg: one.annotation for one in node.args.args} | {"return": node.returns}
        kinds = {name: None if kind is None else self.value(kind) for name, kind in annotations.items()}
        for name, kind in kinds.items():
            if isinstance(kind, str):
                raise self.refusal(node, f"declares {name} by a text")
        doc = ast.get_docstring(node, clean=False) or ""
        read = parse_tree(node, str(self.path), dict(self.scope), kinds)
        return StoredKernel(read, node.name, {**usual, **given, "doc": doc}, self.doc, self.kernels)

    def value(self, node: ast.expr, own: Mapping[str, Any] | None = None) -> Any:
        """Return what an expression is; `own` are the names of the comprehensions around it."""
        known = own or {}

        def below(one: ast.expr) -> Any:
            return self.value(one, own)

        self.steps += 1
        if self.steps > MOST_STEPS:
            raise self.refusal(node, "computes for too long")
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in known or name in self.scope or name in NAMES:
                return known.get(name, self.scope.get(name, NAMES.get(name)))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(one for part in parts for one in self.spread(part, own))
            case ast.Dict(keys=keys, values=values) if all(keys):
                return {below(key): below(value) for key, value in zip(keys, values, strict=True) if key}
            case ast.UnaryOp(op=ast.USub(), operand=one):
                return -self.number(below(one), node)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                return self.computed(node, op, below(left), below(right))
            case ast.Attribute(value=ast.Name(id="math"), attr=name) if self.scope.get("math") is math and name in MATH:
                return MATH[name]
            case ast.Attribute(value=one, attr="lo" | "hi" | "frac_bits" as name) if isinstance(below(one), Q | Length):
                return getattr(below(one), name)
            case ast.Subscript(value=one, slice=place) if isinstance(below(one), Q | Below | tuple):
                return below(one)[below(place)]
            case (
                ast.GeneratorExp(elt=elt, generators=[ast.comprehension() as loop])
                | ast.ListComp(elt=elt, generators=[ast.comprehension() as loop])
            ) if isinstance(loop.target, ast.Name) and not loop.ifs:
                return tuple(self.value(elt, {**known, loop.target.id: one}) for one in below(loop.iter))
            case ast.Call(func=target, args=given, keywords=named) if below(target) in CALLED:
                values = [one for part in given for one in self.spread(part, own)]
                return below(target)(*values, **{one.arg or "": below(one.value) for one in named})
        raise self.refusal(node, f"uses `{ast.unparse(node)[:60]}`")

    def spread(self, node: ast.expr, own: Mapping[str, Any] | None) -> Iterator[Any]:
        if isinstance(node, ast.Starred):
            yield from self.value(node.value, own)
        else:
            yield self.value(node, own)

    def computed(self, node: ast.expr, op: ast.operator, left: Any, right: Any) -> Any:
        """Return the result of an operator on numbers that cannot grow without end."""
        if isinstance(left, tuple) and isinstance(right, tuple) and isinstance(op, ast.Add):
            return left + right
        for one in (left, right):
            self.number(one, node)
        if isinstance(op, ast.Pow | ast.LShift) and abs(right) > MOST_BITS:
            raise self.refusal(node, "computes a number that is too large")
        return self.number(BINARY[type(op)](left, right), node)

    def number(self, value: Any, node: ast.expr) -> Any:
        if type(value) not in (int, float) or (isinstance(value, int) and value.bit_length() > MOST_BITS):
            raise self.refusal(node, "computes with what is no number, or one that is too large")
        return value
