"""From a Python function to the nodes of `ir`. What is not in the language is refused here, with file and line."""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from sensorsim.errors import InputError
from sensorsim.language import ir
from sensorsim.language.ir import Place
from sensorsim.language.primitive import Primitive
from sensorsim.language.refusals import BUILTINS, C_WORDS, INSTEAD, OPERATORS, SYMBOLS, instead, words
from sensorsim.language.source import assigned, find, scope
from sensorsim.language.types import STORAGE, Array, Below, Kind, Length, Q, Struct, grouped, word

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


class LanguageError(InputError):
    """Something that is not in the kernel language; the message names file and line and what to write instead."""


class Parsed(NamedTuple):
    """A kernel, read."""

    at: Place
    parameters: dict[str, Kind]
    result: Q | Below | None
    sizes: dict[str, ir.Expression]  # how long each array is, in the kernel's lengths
    body: tuple[ir.Statement, ...]
    names: dict[str, str]  # the type of every scalar name
    written: frozenset[str]  # the arrays that are stored to, here or in a kernel that is called
    used: dict[str, Any]  # what the global names mean
    records: dict[str, Struct]  # the parameters that are records; `parameters` has their fields, as `sensor.key`


def parse(function: Callable[..., Any]) -> Parsed:
    """Read a function; LanguageError where it leaves the language."""
    if not isinstance(function, FunctionType):
        raise LanguageError(f"{function!r} is no function; put @kernel() right above a `def`.")
    file, tree = function.__code__.co_filename, find(function)
    if tree is None:
        at = Place(file, function.__code__.co_firstlineno)
        what = f"the source of {function.__name__} is not to be found; write the kernel in a file or a notebook cell."
        raise LanguageError(f"{at}: {what}")
    return parse_tree(tree, file, scope(function), function.__annotations__)


def parse_tree(tree: ast.FunctionDef, file: str, scope: Mapping[str, Any], kinds: Mapping[str, Any]) -> Parsed:
    """Read the syntax tree of a function without running it.

    `scope` says what its global names mean, `kinds` is the kind of each parameter and of `return`.
    """
    return _Parser(tree, file, scope, kinds).parsed()


def fits(value: int, kind: str) -> bool:
    least, most = STORAGE[kind]
    return least <= value <= most


class _Parser:
    def __init__(self, tree: ast.FunctionDef, file: str, scope: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
        self.tree, self.name, self.file = tree, tree.name, file
        self.scope, self.kinds = scope, kinds
        self.used: dict[str, Any] = {}
        self.places: dict[int, Place] = {}
        self.records: dict[str, Struct] = {}
        self.names: dict[str, str] = {}
        self.counters: set[str] = set()
        self.written: set[str] = set()

    def parsed(self) -> Parsed:
        at = Place(self.file, self.tree.lineno)
        self.plain_name(self.name, self.tree)
        self.parameters = self.read_parameters()
        result = self.read_result()
        self.result = result
        self.locals = set(assigned(self.tree.body))
        self.arrays = {name: kind for name, kind in self.parameters.items() if isinstance(kind, Array)}
        sizes = {name: self.size(name, kind) for name, kind in self.arrays.items()}
        self.names = {name: word(kind) for name, kind in self.parameters.items() if not isinstance(kind, Array)}
        body = self.tree.body[1:] if ast.get_docstring(self.tree, clean=False) is not None else self.tree.body
        if not body:
            self.refuse(self.tree, "has no statement", "say what it does")
        given, statements = self.block(body, set(self.names))
        if result is not None and given is not None:
            self.refuse(self.tree, "does not return a value on every way through", "end each way with `return …`")
        written = frozenset(self.written)
        return Parsed(at, self.parameters, result, sizes, statements, self.names, written, self.used, self.records)

    # what is declared

    def read_parameters(self) -> dict[str, Kind]:
        given = self.tree.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.defaults or given.posonlyargs:
            self.refuse(self.tree, "has parameters that are no plain names", "give each a name and a format")
        found: dict[str, Kind] = {}
        for parameter in given.args:
            self.plain_name(parameter.arg, parameter)
            kind = self.annotation(parameter.arg, parameter)
            if isinstance(kind, Struct):
                self.records[parameter.arg] = kind
                found |= {f"{parameter.arg}.{field}": of for field, of in kind.fields.items()}
                continue
            if not isinstance(kind, Q | Below | Length | Array):
                what = "a format (Q), a Length, Below(…), or an array as X['n']"
                self.refuse(parameter, f"has the parameter {parameter.arg} without a format", f"declare it with {what}")
            found[parameter.arg] = kind
        for name, kind in found.items():
            element = kind.element if isinstance(kind, Array) else kind
            if isinstance(element, Below) and not isinstance(found.get(element.limit), Length):
                self.refuse(self.tree, f"has {name} below {element.limit}, which is no length of it", "name one")
            limit = found.get(element.limit) if isinstance(element, Below) else None
            if isinstance(element, Below) and isinstance(limit, Length) and limit.lo < 1:
                self.refuse(self.tree, f"has {name} below {element.limit}, which can be 0", "let it be 1 or more")
            if isinstance(kind, Length) and kind.at_most in found:
                self.refuse_circle(name, found)
            if isinstance(kind, Length) and kind.at_most is not None and kind.at_most not in found:
                found[name] = Length(kind.name, kind.lo, kind.hi, kind.about, None, kind.typical, kind.tests)
        return found

    def refuse_circle(self, name: str, found: Mapping[str, Kind]) -> None:
        """A length is at most another length, and that one not at most the first again."""
        passed, now = {name}, found[name]
        while isinstance(now, Length) and now.at_most is not None and now.at_most in found:
            if now.at_most in passed or not isinstance(found[now.at_most], Length):
                self.refuse(self.tree, f"has {name} at most {now.at_most}, which is no other length", "name one")
            passed.add(now.at_most)
            now = found[now.at_most]

    def read_result(self) -> Q | Below | None:
        kind = self.annotation("return", self.tree)
        if kind is None or isinstance(kind, Q):
            return kind
        if isinstance(kind, Below) and isinstance(self.parameters.get(kind.limit), Length):
            return kind
        self.refuse(self.tree, "returns something without a format", "declare `-> None` or a format (Q)")

    def annotation(self, name: str, node: ast.AST) -> Any:
        kind = self.kinds.get(name)
        if not isinstance(kind, str):
            return kind
        try:  # from __future__ import annotations: the text of the file that we are part of
            return eval(kind, dict(self.scope))
        except Exception as error:
            self.refuse(node, f"declares {name} as {kind}, which cannot be read ({error})", "use names of the module")

    def size(self, name: str, kind: Array) -> ir.Expression:
        """The declared length of an array: an index expression in the kernel's lengths."""
        own = {each: kind for each, kind in self.parameters.items() if isinstance(kind, Length)}
        try:
            plain = kind.length in own  # nearly always; to parse takes its time
            tree = ast.Name(kind.length, ast.Load()) if plain else ast.parse(kind.length.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            self.refuse(self.tree, f"has an array {name} of length {kind.length!r}", "write a number, n, 2 * n")
        for node in ast.walk(tree):
            node.lineno = self.tree.lineno  # type: ignore[attr-defined]
            if isinstance(node, ast.Name) and node.id not in own:
                self.refuse(self.tree, f"has an array {name} of length {kind.length}", f"make {node.id} a length of it")
        self.names = dict.fromkeys(own, "index")
        size = self.expression(tree, set(own))
        if size.type not in ("index", "const"):
            self.refuse(self.tree, f"has an array {name} of length {kind.length}", "write a number, n, 2 * n")
        if isinstance(size, ir.Const) and size.value < 1:
            self.refuse(self.tree, f"has an array {name} of length {size.value}", "give it a length of 1 or more")
        element = kind.element
        if isinstance(element, Q) and not all(element.lo <= entry <= element.hi for entry in kind.contents or ()):
            self.refuse(self.tree, f"has entries of {name} outside {element.lo} … {element.hi}", "widen the format")
        if kind.contents is not None and kind.written:
            self.refuse(self.tree, f"declares the constant table {name} as out(…)", "leave one of the two")
        return size

    # statements

    def block(self, nodes: Sequence[ast.stmt], given: set[str]) -> tuple[set[str] | None, tuple[ir.Statement, ...]]:
        """The statements, and the names that have a value after them; None where every way has left."""
        made: list[ir.Statement] = []
        now: set[str] | None = given
        for node in nodes:
            if now is None:
                self.refuse(node, "is never reached: every way has left before", "take it out")
            now, statement = self.statement(node, now)
            self.in_order(node, statement)
            made.append(statement)
        return now, tuple(made)

    def statement(self, node: ast.stmt, given: set[str]) -> tuple[set[str] | None, ir.Statement]:
        at = self.at(node)
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return given | {name}, self.let(node, name, self.expression(value, given))
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name() | ast.Attribute() as array, slice=place)], value=value
            ):
                return given, self.store(node, array, place, value, given)
            case ast.Assign(targets=[ast.Attribute() as field], value=value) if self.field(field) is not None:
                return given, self.store(node, field, None, value, given)
            case ast.For(target=ast.Name(id=name), orelse=[]):
                return given, self.loop(node, name, given)
            case ast.If(test=ast.BoolOp(op=op, values=[test, *more]), body=body, orelse=orelse):
                rest = more[0] if len(more) == 1 else ast.copy_location(ast.BoolOp(op, more), node)
                inner: list[ast.stmt] = [ast.copy_location(ast.If(rest, body, orelse), node)]
                ways = (inner, orelse) if isinstance(op, ast.And) else (body, inner)
                return self.statement(ast.copy_location(ast.If(test, *ways), node), given)
            case ast.If(test=test, body=body, orelse=orelse):
                flag = self.expression(test, given)
                if flag.type != "flag":
                    self.refuse(test, f"asks whether {ir.shown(flag)}", "compare with ge, lt, eq or ne")
                one, then = self.block(body, set(given))
                other, otherwise = self.block(orelse, set(given)) if orelse else (given, ())
                both = other if one is None else one if other is None else one & other
                return both, ir.If(at, "none", flag, then, otherwise)
            case ast.Expr(value=ast.Call() as value):
                call = self.expression(value, given)
                if not isinstance(call, ir.Call | ir.Ask):
                    self.refuse(node, f"computes {ir.shown(call)} and drops it", "give it a name or take it out")
                return given, ir.Do(at, "none", call)
            case ast.Return(value=value):
                return None, ir.Return(at, "none", self.returned(node, value, given))
            case ast.Break():
                return None, ir.Break(at, "none")
        self.refuse(node, f"uses {words(node)}", instead(node))

    def in_order(self, node: ast.stmt, made: ir.Statement) -> None:
        """A call that writes stands alone: C does not say when it would run among the parts of an expression."""
        alone = made.value if isinstance(made, ir.Let | ir.Return) else made.call if isinstance(made, ir.Do) else None
        for part in ir.walk(*(part for part in ir.parts(made) if not isinstance(part, ir.Statement))):
            if part is alone:
                continue
            if isinstance(part, ir.Call) and (part.kernel.written or part.kernel.asks):
                does = "writes an array" if part.kernel.written else "asks the board"
                what = f"calls {part.kernel.name}, which {does}, inside an expression"
                self.refuse(node, what, f"give its result a name first, as t = {part.kernel.name}(…)")
            if isinstance(part, ir.Ask):
                what = f"asks the board for {part.port.name} inside an expression"
                self.refuse(node, what, f"give its answer a name first, as t = {part.board}.{part.port.name}(…)")

    def let(self, node: ast.Assign, name: str, value: ir.Expression) -> ir.Let:
        self.plain_name(name, node)
        known = self.names.get(name)
        if name in self.arrays or name in self.records or isinstance(self.parameters.get(name), Length):
            self.refuse(node, f"gives a new value to the parameter {name}", "use another name")
        if name in self.counters:
            self.refuse(node, f"gives a new value to the loop counter {name}", "use another name")
        if value.type in ("none", "array"):
            self.refuse(node, f"gives {name} the value of a kernel that returns none", "call it alone")
        if value.type == "const" and known in (None, "index", "flag"):
            self.refuse(node, f"leaves open the type of {name}", f"write i32({ir.shown(value)}) or u32(…)")
        if known is not None and "i64" in (known, value.type) and known != value.type and value.type != "const":
            self.refuse(node, f"gives {name} a {value.type}, and it is a {known}", LONG)
        if known is not None and known != value.type and not {known, value.type} <= {*WORDS, "i64"}:
            self.refuse(node, f"gives {name} a {value.type}, and it is a {known}", "use another name")
        if known == "index" and value.type != "index":
            self.refuse(node, f"gives {name}, an index, the value {ir.shown(value)}", "use another name")
        if known is None:
            self.names[name] = value.type
        self.number(node, value, self.names[name])
        return ir.Let(self.at(node), self.names[name], name, value)

    def store(
        self, node: ast.Assign, target: ast.expr, place: ast.expr | None, value: ast.expr, given: set[str]
    ) -> ir.Store:
        made = self.word(value, self.expression(value, given))
        name, kind = self.array(node, target)
        if kind.contents is not None:
            self.refuse(node, f"stores to {name}, a constant table", "store to another array")
        if (place is None) != kind.cell:
            self.refuse(node, f"stores to {name} as what it is not", "write record.field = …, or array[i] = …")
        self.number(value, made, kind.storage)
        self.written.add(name)
        at = self.at(node)
        index = ir.Const(at, "const", 0) if place is None else self.place(place, given)
        return ir.Store(at, "none", name, index, made)

    def loop(self, node: ast.For, name: str, given: set[str]) -> ir.For:
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=[_] | [_, _] as ends, keywords=[]):
                pass
            case _:
                self.refuse(node, f"loops over `{ast.unparse(node.iter)}`", "write range(last) or range(first, last)")
        bounds = [self.expression(end, given) for end in ends]
        for end, bound in zip(ends, bounds, strict=True):
            if bound.type not in WORDS:
                self.refuse(end, f"loops to {ir.shown(bound)}", "give a length or a number")
        first = bounds[0] if len(bounds) == 2 else ir.Const(self.at(node), "const", 0)
        if name != "_":
            self.plain_name(name, node)
            if (
                name in self.parameters
                or name in self.records
                or self.names.get(name, "index") != "index"
                or name in given
            ):
                self.refuse(node, f"uses {name}, which has another value, as a loop counter", "use another name")
            self.names[name] = "index"
        self.counters.add(name)
        _, body = self.block(node.body, given | ({name} - {"_"}))
        self.counters.discard(name)
        return ir.For(self.at(node), "none", name, first, bounds[-1], body)

    def returned(self, node: ast.Return, value: ast.expr | None, given: set[str]) -> ir.Expression | None:
        if (value is None) != (self.result is None):
            self.refuse(node, "returns something else than it declares", "make `return` and `->` agree")
        if value is None or self.result is None:
            return None
        made = self.word(value, self.expression(value, given))
        self.number(value, made, self.result.storage)
        return made

    # expressions

    def expression(self, node: ast.expr, given: set[str]) -> ir.Expression:
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
        if name in given:
            return ir.Name(self.at(node), self.names[name], name)
        if name in self.arrays or name in self.records:
            self.refuse(node, f"uses the array {name} as a value", f"read one element, as {name}[i]")
        if name in self.locals:
            self.refuse(node, f"reads {name}, which has no value on some way here", "give it one on every way before")
        return self.constant(node, self.meaning(node), name)

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
        called = self.meaning(target)
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
        """Return the fields of a record that is passed on."""
        if not (isinstance(value, ast.Name) and self.records.get(value.id) == called.records[owner]):
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
        """Arrays of one call must not overlap where one of them is written: C would be free to reorder."""
        arrays = [(name, made.array) for name, made in zip(called.parameters, passed, strict=True)
                  if isinstance(made, ir.Whole)]  # fmt: skip
        for name, array in arrays:
            if name in called.written and sum(other == array for _, other in arrays) > 1:
                self.refuse(node, f"passes {array} twice to {called.name}, which writes it", "pass two arrays")

    # small checks

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
