"""Read the expressions of a kernel: names, loads, index arithmetic, primitives, calls of kernels and of the board."""

import ast
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from sensorsim._util.errors import InputError
from sensorsim.language import ir
from sensorsim.language.ir import Place
from sensorsim.language.primitive import Primitive
from sensorsim.language.types import STORAGE, Array, Kind, Length, Struct, grouped, word

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel

PYTHON: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}
LONG = "write narrow(total, k) to shift it back to an i32, or i64(a) to widen a word"
WORDS = ("u32", "i32", "index", "const")  # what may stand where a word is wanted


OPERATORS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.LShift: "<<", ast.RShift: ">>"}
INSTEAD = {  # what to write where Python's operator is no part of the language
    **{"+": "add(a, b) or addu(a, b)", "-": "sub(a, b) or subu(a, b)", "*": "mul(a, b) or mulu(a, b)"},
    **{"<<": "shl(a, k) or shlu(a, k)", ">>": "asr(a, k) or shru(a, k)", "//": "div(a, b), divu(a, b), or n >> 1"},
    **{"/": "div(a, b) or divu(a, b)", "&": "and_(a, b)", "|": "or_(a, b)", "^": "xor(a, b)", "~": "not_(a)"},
    **{"%": "subu(a, mulu(divu(a, b), b))", "**": "the number, or a constant of the module"},
}
SYMBOLS: dict[type[ast.AST], str] = {
    **OPERATORS,
    **{ast.FloorDiv: "//", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Mod: "%"},
    **{ast.Pow: "**", ast.MatMult: "@", ast.Invert: "~", ast.Not: "not", ast.UAdd: "+"},
}
BUILTINS = {  # what strangers reach for
    **{"abs": "max_(a, sub(0, a))", "min": "min_(a, b) or minu(a, b)", "max": "max_(a, b) or maxu(a, b)"},
    **{"len": "the array's length, a parameter", "int": "i32(a) or u32(a)", "sum": "a loop with add(total, x[i])"},
    **{"divmod": "divu(a, b) and subu(a, mulu(divu(a, b), b))", "pow": "a loop, or the number", "print": "nothing"},
}
KEYWORDS = (
    "auto bool break case char const continue default do double else enum extern false float for goto if inline int "
    "long register restrict return short signed sizeof static struct switch true typedef union unsigned void volatile "
    "while asm main"
)
C_WORDS = frozenset(KEYWORDS.split())


class LanguageError(InputError):
    """Something is not in the kernel language; the message names file and line and what to write instead."""


def fits(value: int, kind: str) -> bool:
    """Return whether a number fits a storage type."""
    least, most = STORAGE[kind]
    return least <= value <= most


class Expressions:
    """The names in sight of one kernel, and the reader of expressions over them."""

    parameters: dict[str, Kind]
    arrays: dict[str, Array]
    locals: set[str]

    def __init__(
        self, tree: ast.FunctionDef, file: str, scope: Mapping[str, Any], kinds: Mapping[str, Any], name: str
    ) -> None:
        self.tree, self.file, self.scope, self.kinds, self.name = tree, file, scope, kinds, name
        self.used: dict[str, Any] = {}
        self.places: dict[int, Place] = {}
        self.records: dict[str, Struct] = {}
        self.packs: dict[str, tuple[str, ...]] = {}
        self.names: dict[str, str] = {}
        self.counters: set[str] = set()
        self.written: set[str] = set()

    def expression(self, node: ast.expr, given: set[str]) -> ir.Expression:
        """Return the node of an expression, where the names in `given` have a value."""
        at = self.at(node)
        match node:
            case ast.Constant(value=value) if type(value) is int:
                return ir.Const(at, "const", value, getattr(node, "named", None))  # a name: of a tree made from data
            case ast.Name(id=name):
                return self.name_of(node, name, given)
            case ast.Attribute() if (field := self.field(node)) is not None:
                if not self.arrays[field].cell:
                    self.refuse(node, f"uses the array {field} as a value", f"read one element, as {field}[i]")
                return ir.Load(at, word(self.arrays[field]), field, ir.Const(at, "const", 0))
            case ast.Attribute():
                return self.constant(node, self.meaning(node), ast.unparse(node))
            case ast.Subscript(value=ast.Name() | ast.Attribute() as array, slice=place):
                name, kind = self.array(node, array)
                return ir.Load(at, word(kind), name, self.place(place, given))
            case ast.Call(func=ast.Attribute(value=ast.Attribute() as owner, attr=port), args=values, keywords=[]) if (
                board := self.field(owner)
            ) is not None:
                return self.ask(node, board, port, values, given)
            case ast.UnaryOp(op=ast.USub(), operand=below):
                return self.index(node, "-", [below], given)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return self.index(node, OPERATORS[type(op)], [left, right], given)
            case ast.BinOp(left=ast.Constant(value=int(base)), op=ast.Pow(), right=ast.Constant(value=int(power))):
                if base <= 2 and power <= 32:  # a number: 2**15
                    return ir.Const(at, "const", base**power)
                self.refuse(node, f"uses {ast.unparse(node)}", "name the number as a constant of the module")
            case ast.BinOp(op=op) | ast.UnaryOp(op=op) if type(op) in SYMBOLS:
                symbol = SYMBOLS[type(op)]
                self.refuse(node, f"uses `{symbol}`", f"write {INSTEAD.get(symbol, 'it with primitives')}")
            case ast.Call(func=target, args=values, keywords=[]):
                return self.call(node, target, values, given)
            case ast.Call():
                self.refuse(node, f"names the arguments of `{ast.unparse(node)}`", "pass them in order, without names")
            case ast.Compare() | ast.BoolOp():
                hint = "write ge(a, b), lt(a, b), eq(a, b), ne(a, b), or geu, ltu, equ, neu of unsigned words"
                if isinstance(node, ast.BoolOp):
                    hint = "write `if a and b:` or `if a or b:`; elsewhere, selectu(flag, 1, 0) makes a word of a flag"
                self.refuse(node, f"compares with `{ast.unparse(node)}`", hint)
        self.refuse(node, f"uses {words(node)}", instead(node))

    def name_of(self, node: ast.Name, name: str, given: set[str]) -> ir.Expression:
        self.refuse_packed(node, name)
        if name in given:
            return ir.Name(self.at(node), self.names[name], name)
        if name in self.arrays or name in self.records:
            self.refuse(node, f"uses the array {name} as a value", f"read one element, as {name}[i]")
        if name in self.locals:
            self.refuse(node, f"reads {name}, which has no value on some way here", "give it one on every way before")
        return self.constant(node, self.meaning(node), name)

    def refuse_packed(self, node: ast.expr, name: str) -> None:
        """Refuse to name a parameter that is part of a pack: Python knows the pack alone."""
        for pack, names in self.packs.items():
            if name == pack:
                self.refuse(node, f"uses the pack {pack} as a value", f"pass it on, as kernel(x, *{pack})")
            if name in names and not hasattr(node, "packed"):
                self.refuse(node, f"names {name}, a part of *{pack}", f"declare it before *{pack}, or pass *{pack} on")

    def spread(self, values: list[ast.expr]) -> list[ast.expr]:
        """Return the arguments of a call with the parts of a pack in the pack's place."""
        found: list[ast.expr] = []
        for value in values:
            match value:
                case ast.Starred(value=ast.Name(id=name)) if name in self.packs:
                    for part in self.packs[name]:
                        made = ast.copy_location(ast.Name(part, ast.Load()), value)
                        made.packed = True  # type: ignore[attr-defined]
                        found.append(made)
                case ast.Starred():
                    self.refuse(value, f"spreads `{ast.unparse(value)}`", "spread the pack of its own parameters")
                case _:
                    found.append(value)
        return found

    def constant(self, node: ast.expr, value: Any, name: str) -> ir.Const:
        if type(value) is not int:
            what = "a kernel or primitive" if callable(value) else f"a {type(value).__name__}"
            self.refuse(node, f"uses {name}, which is {what} and no whole number", "call it, or name a whole number")
        return ir.Const(self.at(node), "const", value, name.rpartition(".")[2])

    def meaning(self, node: ast.expr) -> Any:
        """Return what a global name means, or an attribute of a module."""
        from sensorsim.language.kernel import Kernel

        match node:
            case ast.Constant(value=Primitive() | Kernel() as found):  # in a tree that was made from data
                return found
            case ast.Name(id=name):
                if name == self.name and name not in self.scope:
                    self.refuse(node, "calls itself, and the language has no recursion", "write a loop")
                if name in BUILTINS and name not in self.scope:
                    self.refuse(node, f"uses {name}, which is Python's own", f"write {BUILTINS[name]}")
                if name not in self.scope:
                    self.refuse(node, f"uses {name}, which is not known here", "define or import it above")
                self.used[name] = self.scope[name]
                return self.scope[name]
            case ast.Attribute(value=ast.Name(id=name) as owner, attr=attribute) if name not in self.names:
                module = self.meaning(owner)
                if isinstance(module, ModuleType) and hasattr(module, attribute):
                    return getattr(module, attribute)
        self.refuse(node, f"uses `{ast.unparse(node)}`", "name a kernel, a primitive or a whole number of the module")

    def index(self, node: ast.expr, operator: str, below: list[ast.expr], given: set[str]) -> ir.Expression:
        made = [self.expression(part, given) for part in below]
        for part, operand in zip(below, made, strict=True):
            if operand.type not in ("index", "const"):
                instead = "sub(0, a)" if len(below) == 1 else INSTEAD[operator]
                self.refuse(part, f"uses `{operator}` on {ir.shown(operand)}, a value", f"write {instead}")
        values = [operand.value for operand in made if isinstance(operand, ir.Const)]
        if len(values) == len(made):  # a number: what Python makes of it, and no operation
            if operator in ("<<", ">>") and not 0 <= values[1] < 32:
                self.refuse(node, f"shifts by {values[1]}", "shift by 0 … 31")
            return ir.Const(self.at(node), "const", -values[0] if len(values) == 1 else PYTHON[operator](*values))
        return ir.Index(self.at(node), "index", operator, tuple(made))

    def place(self, node: ast.expr, given: set[str]) -> ir.Expression:
        if isinstance(node, ast.Slice | ast.Tuple):
            self.refuse(node, f"uses the index `{ast.unparse(node)}`", "give one index")
        made = self.word(node, self.expression(node, given))
        if isinstance(made, ir.Const) and made.value < 0:
            self.refuse(node, f"uses the index {made.value}", "count from 0; the last element is a[n - 1]")
        return made

    def call(self, node: ast.Call, target: ast.expr, values: list[ast.expr], given: set[str]) -> ir.Expression:
        from sensorsim.language.kernel import Kernel

        if isinstance(target, ast.Name) and target.id in self.locals | set(self.parameters):
            self.refuse(node, f"calls {target.id}, a name of its own", "use another name for the value")
        called, values = self.meaning(target), self.spread(values)
        wanted = called.operands if isinstance(called, Primitive) else grouped(getattr(called, "parameters", {}))
        if not isinstance(called, Primitive | Kernel):
            what = f"calls `{ast.unparse(target)}`, which is neither a kernel nor a primitive"
            self.refuse(node, what, "declare it with @kernel(), or write it with primitives")
        if len(values) != len(wanted):
            self.refuse(node, f"calls {called.name} with {len(values)} arguments", f"give it {len(wanted)}")
        if isinstance(called, Primitive):
            return self.apply(node, called, values, given)
        passed: list[ir.Expression | ir.Whole] = []
        for (owner, names), value in zip(grouped(called.parameters).items(), values, strict=True):
            if owner in called.records:
                passed += self.record(called, owner, names, value)
            else:
                passed.append(self.argument(called, owner, called.parameters[owner], value, given))
        self.no_alias(node, called, passed)
        kind = word(called.result) if called.result is not None else "none"
        return ir.Call(self.at(node), kind, called, tuple(passed))

    def apply(self, node: ast.Call, called: Primitive, values: list[ast.expr], given: set[str]) -> ir.Apply:
        operands = [self.expression(value, given) for value in values]
        for value, operand, kind in zip(values, operands, called.operands, strict=True):
            if (kind == "flag") != (operand.type == "flag") or operand.type in ("none", "array"):
                self.refuse(value, f"gives {called.name} {ir.shown(operand)}, a {operand.type}", f"give it a {kind}")
            if operand.type == "i64" != kind:
                self.refuse(value, f"gives {called.name} {ir.shown(operand)}, an i64", LONG)
            # the casts take any number of either sign
            self.number(value, operand, kind if called.operations else None)
        return ir.Apply(self.at(node), called.result, called, tuple(operands))

    def record(self, called: "Kernel", owner: str, names: list[str], value: ast.expr) -> list[ir.Whole]:
        """Return the fields of a record that is passed on; it may have more than the called kernel asks for."""
        mine = self.records.get(value.id) if isinstance(value, ast.Name) else None
        if not isinstance(value, ast.Name) or mine is None or not mine.extends(called.records[owner]):
            what = f"passes `{ast.unparse(value)}` as the record {owner} of {called.name}"
            self.refuse(value, what, f"pass a {called.records[owner].name}")
        own = [value.id + name.removeprefix(owner) for name in names]
        self.written |= {mine for mine, name in zip(own, names, strict=True) if name in called.written}
        return [ir.Whole(self.at(value), "array", name) for name in own]

    def ask(self, node: ast.Call, board: str, port: str, values: list[ast.expr], given: set[str]) -> ir.Ask:
        """Return a call of the board, checked against its contract."""
        known = {one.name: one for one in self.arrays[board].ports}
        if port not in known:
            self.refuse(node, f"asks {board} for {port}", f"ask for {', '.join(known) or 'a field of its own'}")
        asked = known[port]
        if len(values) != len(asked.takes) + (asked.buffer is not None):
            self.refuse(node, f"asks for {port} with {len(values)} arguments", f"give what {port} takes")
        passed = [self.word(value, self.expression(value, given)) for value in values[: len(asked.takes)]]
        for value, made, taken in zip(values, passed, asked.takes, strict=False):
            self.number(value, made, taken.storage)
        at, result = self.at(node), word(asked.result)
        if asked.buffer is None:
            return ir.Ask(at, result, asked, board, tuple(passed), None, 0, 0)
        match values[-1]:
            case ast.Subscript(value=array, slice=ast.Slice(lower=lower, upper=upper, step=None)) if lower and upper:
                name, kind = self.array(node, array)
                ends = [self.expression(end, given) for end in (lower, upper)]
            case _:
                self.refuse(values[-1], f"passes `{ast.unparse(values[-1])}` to {port}", "pass a part, as bytes[0:32]")
        numbers = [end.value for end in ends if isinstance(end, ir.Const)]
        if len(numbers) != 2 or not 0 <= numbers[0] < numbers[1] or kind.storage != asked.buffer.storage:
            self.refuse(values[-1], f"passes `{ast.unparse(values[-1])}` to {port}", "pass a part, as bytes[0:32]")
        if asked.buffer.written:
            self.written.add(name)
        return ir.Ask(at, result, asked, board, tuple(passed), name, numbers[0], numbers[1])

    def argument(
        self, called: "Kernel", name: str, kind: Kind, value: ast.expr, given: set[str]
    ) -> ir.Expression | ir.Whole:
        if isinstance(kind, Array):
            passed = self.field(value) if isinstance(value, ast.Attribute) else getattr(value, "id", None)
            self.refuse_packed(value, passed or "")
            if passed not in self.arrays or self.arrays[passed].cell:
                self.refuse(
                    value, f"passes `{ast.unparse(value)}` as the array {name} of {called.name}", "name an array"
                )
            own = self.arrays[passed]
            if own.storage != kind.storage:
                what = f"passes {passed} ({own.storage}) as {name} of {called.name}, which is {kind.storage}"
                self.refuse(value, what, "use the same storage")
            if kind.contents is not None and own.contents != kind.contents:
                self.refuse(value, f"passes {passed} as the constant table {name} of {called.name}", "pass the same")
            if name in called.written:
                if own.contents is not None:
                    self.refuse(value, f"lets {called.name} write to {passed}, a constant table", "pass another array")
                self.written.add(passed)
            return ir.Whole(self.at(value), "array", passed)
        made = self.word(value, self.expression(value, given))
        if isinstance(kind, Length) and made.type not in ("index", "const"):
            what = f"passes {ir.shown(made)}, a value, as the length {name} of {called.name}"
            self.refuse(value, what, "pass a length, a loop counter or a number")
        self.number(value, made, kind.storage)
        return made

    def no_alias(self, node: ast.AST, called: "Kernel", passed: Iterable[ir.Expression | ir.Whole]) -> None:
        """Refuse a call whose arrays overlap where one of them is written: C would be free to reorder."""
        arrays = [(name, made.array) for name, made in zip(called.parameters, passed, strict=True)
                  if isinstance(made, ir.Whole)]  # fmt: skip
        for name, array in arrays:
            if name in called.written and sum(other == array for _, other in arrays) > 1:
                self.refuse(node, f"passes {array} twice to {called.name}, which writes it", "pass two arrays")

    def word(self, node: ast.AST, made: ir.Expression) -> ir.Expression:
        if made.type == "i64":
            self.refuse(node, f"uses {ir.shown(made)}, an i64, where a word is wanted", LONG)
        if made.type not in WORDS:
            self.refuse(
                node, f"uses {ir.shown(made)}, a {made.type}, where a word is wanted", "use selectu(flag, a, b)"
            )
        return made

    def number(self, node: ast.AST, made: ir.Expression, kind: str | None) -> None:
        if isinstance(made, ir.Const) and kind in STORAGE and not fits(made.value, kind):
            least, most = STORAGE[kind]
            self.refuse(node, f"uses {made.value} where {least} … {most} fits", "use another type or number")
        if isinstance(made, ir.Const) and kind is None and not -(2**31) <= made.value < 2**32:
            self.refuse(node, f"uses {made.value}, which is no 32-bit word", "use a smaller number")

    def array(self, node: ast.AST, target: ast.expr) -> tuple[str, Array]:
        """Return the array that an expression names, and its kind."""
        name = self.field(target) if isinstance(target, ast.Attribute) else getattr(target, "id", None)
        self.refuse_packed(target, name or "")
        if name not in self.arrays or self.arrays[name].ports:
            self.refuse(
                node, f"indexes {ast.unparse(target)}, which is no array of it", "make it a parameter, as X['n']"
            )
        return name, self.arrays[name]

    def field(self, node: ast.expr) -> str | None:
        """Return the name of a record's field, as sensor.key; None where the expression is none."""
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=field) if owner in self.records:
                if f"{owner}.{field}" not in self.parameters:
                    own = ", ".join(self.records[owner].fields)
                    self.refuse(node, f"uses {owner}.{field}, which the record has not", f"its fields are {own}")
                return f"{owner}.{field}"
        return None

    def plain_name(self, name: str, node: ast.AST) -> None:
        if name == "range":
            self.refuse(node, "uses the name range, which loops need", "use another name")
        if name in C_WORDS or not name.isascii() or name.startswith("__"):
            self.refuse(node, f"uses the name {name}, which C cannot have", "use another name")

    def at(self, node: ast.AST) -> Place:
        line = getattr(node, "lineno", self.tree.lineno)
        if line not in self.places:
            self.places[line] = Place(self.file, line)
        return self.places[line]

    def refuse(self, node: ast.AST, what: str, instead: str) -> NoReturn:
        raise LanguageError(f"{self.at(node)}: kernel {self.name} {what}; {instead}.")


def words(node: ast.AST) -> str:
    text = ast.unparse(node).split("\n")[0]
    return f"`{text if len(text) <= 60 else text[:57] + '…'}`"


def instead(node: ast.AST) -> str:
    match node:
        case ast.While():
            return "loop with `for i in range(n)`, which always ends, and leave it early with `break`"
        case ast.Continue() | ast.Pass():
            return "turn the condition around (ge and lt) and put the rest of the block under it"
        case ast.AugAssign() | ast.AnnAssign() | ast.Assign():
            return "write `name = primitive(name, …)` or `array[i] = …`, one at a time"
        case ast.For():
            return "leave out `else:`, and loop with one name over range(…)"
        case ast.IfExp():
            return "write selectu(flag, a, b), min_ or max_"
        case ast.Constant():
            return "use whole numbers"
    return "use names, numbers, a[i], primitives, kernels, for, if and return"
