"""Read a Python function into the nodes of `ir`. Refuse, with file and line, what is not in the language."""

import ast
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, NamedTuple

from sensorsim.language import ir
from sensorsim.language.ir import Place
from sensorsim.language.parse_values import LONG, WORDS, Expressions, LanguageError, fits, instead, words
from sensorsim.language.types import Array, Below, Kind, Length, Q, Rest, Struct, grouped, word

__all__ = ["LanguageError", "Parsed", "fits", "parse", "parse_tree"]


class Parsed(NamedTuple):
    """A kernel as its readers see it."""

    at: Place
    parameters: dict[str, Kind]
    result: Q | Below | None
    sizes: dict[str, ir.Expression]  # how long each array is, in the kernel's lengths
    body: tuple[ir.Statement, ...]
    names: dict[str, str]  # the type of every scalar name
    written: frozenset[str]  # the arrays that are stored to, here or in a kernel that is called
    used: dict[str, Any]  # what the global names mean
    records: dict[str, Struct]  # the parameters that are records; `parameters` has their fields, as `sensor.key`


def parse(function: Callable[..., Any], name: str | None = None) -> Parsed:
    """Read a function under the name of its kernel; LanguageError where it leaves the language."""
    if not isinstance(function, FunctionType):
        raise LanguageError(f"{function!r} is no function; put @kernel() right above a `def`.")
    file, tree = function.__code__.co_filename, _find(function)
    if tree is None:
        at = Place(file, function.__code__.co_firstlineno)
        what = f"the source of {function.__name__} is not to be found; write the kernel in a file or a notebook cell."
        raise LanguageError(f"{at}: {what}")
    return parse_tree(tree, file, _scope(function), function.__annotations__, name)


def parse_tree(
    tree: ast.FunctionDef, file: str, scope: Mapping[str, Any], kinds: Mapping[str, Any], name: str | None = None
) -> Parsed:
    """Read the syntax tree of a function without running it.

    `scope` says what its global names mean, `kinds` is the kind of each parameter and of `return`.
    """
    return _Parser(tree, file, scope, kinds, name or tree.name).parsed()


class _Parser(Expressions):
    """Read one kernel: its parameters, its result and its statements."""

    def parsed(self) -> Parsed:
        """Read parameters, result and body."""
        at = Place(self.file, self.tree.lineno)
        self.plain_name(self.name, self.tree)
        self.parameters = self.read_parameters()
        result = self.read_result()
        self.result = result
        self.locals = set(_assigned(self.tree.body))
        self.arrays = {name: kind for name, kind in self.parameters.items() if isinstance(kind, Array)}
        sizes = {name: self.size(name, kind) for name, kind in self.arrays.items()}
        self.names = {name: word(kind) for name, kind in self.parameters.items() if not isinstance(kind, Array)}
        body = self.tree.body[1:] if ast.get_docstring(self.tree, clean=False) is not None else self.tree.body
        given, statements = self.block(body, set(self.names))
        if not statements:
            self.refuse(self.tree, "has no statement", "say what it does")
        if result is not None and given is not None:
            self.refuse(self.tree, "does not return a value on every way through", "end each way with `return …`")
        written = frozenset(self.written)
        return Parsed(at, self.parameters, result, sizes, statements, self.names, written, self.used, self.records)

    def read_parameters(self) -> dict[str, Kind]:
        """Return the kind of every parameter; a record as its fields, a pack as what it stands for."""
        given = self.tree.args
        if given.kwarg or given.kwonlyargs or given.defaults or given.posonlyargs:
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
        if given.vararg is not None:
            found |= self.read_pack(given.vararg, found)
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

    def read_pack(self, pack: ast.arg, before: Mapping[str, Kind]) -> dict[str, Kind]:
        """Return the parameters that `*bound: rest(draw, …)` stands for."""
        kind = self.annotation(pack.arg, pack)
        if not isinstance(kind, Rest):
            what = f"has the pack *{pack.arg} without a kernel that it is passed to"
            self.refuse(pack, what, f"declare *{pack.arg}: rest(kernel, 'names', 'of', 'the', 'others')")
        own = kind.kernel.parameters
        for name in kind.others:
            if name not in grouped(own):
                known = ", ".join(grouped(own))
                self.refuse(pack, f"leaves out {name}, which {kind.kernel.name} has not", f"name some of {known}")
        found = {name: one for name, one in own.items() if name.partition(".")[0] not in kind.others}
        for name in found:
            if name in before or "." in name:
                what = f"has in *{pack.arg} the parameter {name}, " + ("a record" if "." in name else "and one before")
                self.refuse(pack, what, f"leave it out, as rest({kind.kernel.name}, '{name}'), and pass it by name")
        self.packs[pack.arg] = tuple(found)
        return found

    def refuse_circle(self, name: str, found: Mapping[str, Kind]) -> None:
        """Check that a length is at most another length, and that one not at most the first again."""
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
        """Return the declared length of an array: an index expression in the kernel's lengths."""
        own = {each: kind for each, kind in self.parameters.items() if isinstance(kind, Length)}
        try:
            plain = kind.length in own  # nearly always; to parse takes its time
            tree = ast.Name(kind.length, ast.Load()) if plain else ast.parse(kind.length.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            self.refuse(self.tree, f"has an array {name} of length {kind.length!r}", "write a number, n, 2 * n")
        for node in ast.walk(tree):
            node.lineno, node.packed = self.tree.lineno, True  # type: ignore[attr-defined]
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

    def block(self, nodes: Sequence[ast.stmt], given: set[str]) -> tuple[set[str] | None, tuple[ir.Statement, ...]]:
        """Return the statements, and the names that have a value after them; None where every way has left."""
        made: list[ir.Statement] = []
        now: set[str] | None = given
        for node in self.declared(nodes):
            if now is None:
                self.refuse(node, "is never reached: every way has left before", "take it out")
            now, statement = self.statement(node, now)
            self.in_order(node, statement)
            made.append(statement)
        return now, tuple(made)

    def declared(self, nodes: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
        """Yield the statements that exist: of an `if` on a flag that was declared with the kernel, one way alone."""
        for node in nodes:
            flag = self.flag(node.test) if isinstance(node, ast.If) else None
            if isinstance(node, ast.If) and flag is not None:
                yield from self.declared(node.body if flag else node.orelse)
            else:
                yield node

    def flag(self, test: ast.expr) -> bool | None:
        """Return the bool that a name, or `not` of one, had when the kernel was declared; None for another test."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=below):
                flag = self.flag(below)
                return None if flag is None else not flag
            case ast.Name(id=name) if name not in self.locals and name not in self.parameters:
                value = self.scope.get(name)
                if isinstance(value, bool):
                    self.used[name] = value
                    return value
        return None

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
        """Refuse a call that writes inside an expression: C does not say when it would run."""
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


def _find(function: FunctionType) -> ast.FunctionDef | None:
    """Return the syntax tree of a function, with the line numbers of its file; None where there is no source."""
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
    first = function.__code__.co_firstlineno
    for node in _functions("".join(lines), function.__code__.co_filename) if lines else ():
        starts = {node.lineno, *(decorator.lineno for decorator in node.decorator_list)}
        if node.name == function.__name__ and first in starts:
            return node
    return None


def _scope(function: FunctionType) -> dict[str, Any]:
    """Return the names that a function sees: those of its module, and those it closes over."""
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
    """Yield every statement below these, without a look at expressions."""
    for node in body:
        yield node
        for field in ("body", "orelse", "handlers", "finalbody"):
            yield from _statements(getattr(node, field, ()))


def _assigned(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names that these statements give a value to."""
    for node in _statements(body):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.For) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))
