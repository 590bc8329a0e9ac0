"""The emitter: a kernel's own syntax tree, printed as a C99 function.

Values have the type of the primitive or kernel that made them; lengths and loop counters are uint32_t. The range check
proves that signed arithmetic never overflows, so plain `+ - *` are right. Whatever the emitter does not know is an
error with file and line: nothing is guessed.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sensorsim.export.ctext import C_TYPES, WIDTH, Expression, ascii_text, comment, fold, prose, storage
from sensorsim.kernels import formats
from sensorsim.kernels.formats import Array, Length
from sensorsim.kernels.language import Kernel, Primitive

OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.LShift: "<<", ast.RShift: ">>"}
SIGNED = {kind: kind.startswith("i") for kind in C_TYPES}


class EmitError(SyntaxError):
    """A kernel uses something that has no C form; the message names file and line."""


@dataclass
class Constants:
    """The named numbers that the kernels use, and whether as signed or unsigned words."""

    prefix: str
    values: dict[str, int] = field(default_factory=dict)
    uses: dict[str, set[bool]] = field(default_factory=dict)
    origins: dict[str, Path] = field(default_factory=dict)

    def macro(self, name: str) -> str:
        return self.prefix.upper() + name

    def use(self, kernel: Kernel, name: str, signed: bool) -> str:
        self.values[name] = kernel.resolve(name)
        self.origins.setdefault(name, kernel.path)
        uses = self.uses.setdefault(name, set())
        uses.add(signed)
        # A macro that is needed with both signs is defined signed, and cast where an unsigned one is wanted.
        return f"(uint32_t){self.macro(name)}" if uses == {True, False} and not signed else self.macro(name)

    def literal(self, name: str) -> str:
        """The right-hand side of its #define."""
        return number(self.values[name], signed=True in self.uses[name])


def number(value: int, signed: bool) -> str:
    """A C literal; large unsigned words, which are bit patterns, in hexadecimal."""
    if signed:
        return str(value)
    return f"0x{value:08X}U" if value > 0xFFFF and value & (value - 1) else f"{value}U"


def signature(kernel: Kernel, prefix: str, static: bool = False, inline: bool = False) -> str:
    """The function's head, one parameter per line where it would be too long."""
    result = C_TYPES[storage(kernel.result)] if kernel.result is not None else "void"
    start = f"{'static ' if static else ''}{'inline ' if inline else ''}{result} {prefix}{kernel.name}("
    parameters = [_parameter(kernel, name, kind) for name, kind in kernel.parameters.items()]
    line = start + ", ".join(parameters) + ")"
    if len(line) <= WIDTH:
        return line
    return start + "\n" + ",\n".join(f"    {parameter}" for parameter in parameters) + ")"


def function(kernel: Kernel, constants: Constants, head: str) -> str:
    """The whole function under the given head."""
    return head + "\n{\n" + "\n".join(fold(line) for line in _Body(kernel, constants).lines()) + "\n}\n"


def called(kernel: Kernel) -> list[Kernel]:
    """The kernels that this one calls, in the order of their calls."""
    found: dict[Kernel, None] = {}
    for node in ast.walk(kernel.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id != "range":
            target = kernel.function.__globals__.get(node.func.id)
            if isinstance(target, Kernel):
                found[target] = None
    return list(found)


def has_loop(kernel: Kernel) -> bool:
    return any(isinstance(node, ast.For) for node in ast.walk(kernel.tree))


def _parameter(kernel: Kernel, name: str, kind: Any) -> str:
    if isinstance(kind, Array):
        const = "" if name in written(kernel) else "const "
        return f"{const}{C_TYPES[storage(kind.element)]} {name}[]"
    return f"{C_TYPES[storage(kind)]} {name}"


@cache
def written(kernel: Kernel) -> frozenset[str]:
    """The arrays that the kernel, or a kernel it calls, stores to."""
    names = set()
    for node in ast.walk(kernel.tree):
        match node:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))]):
                names.add(name)
            case ast.Call(func=ast.Name(id=name), args=values):
                target = kernel.function.__globals__.get(name)
                if isinstance(target, Kernel):
                    passed = zip(target.parameters, values, strict=True)
                    names |= {v.id for p, v in passed if isinstance(v, ast.Name) and p in written(target)}
    return frozenset(names)


class _Body:
    """One kernel's body, printed."""

    def __init__(self, kernel: Kernel, constants: Constants) -> None:
        self.kernel, self.constants = kernel, constants
        self.kinds: dict[str, str] = {}  # of scalars: parameters, locals, loop counters
        self.arrays: dict[str, str] = {}  # of elements
        for name, kind in kernel.parameters.items():
            if isinstance(kind, Array):
                self.arrays[name] = storage(kind.element)
            else:
                self.kinds[name] = storage(kind)
        self.counters = {name for name, kind in kernel.parameters.items() if isinstance(kind, Length)}
        self.comments = _comments(kernel.path)
        self.last = 0

    def lines(self) -> Iterator[str]:
        body = self.kernel.tree.body
        start = 1 if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
        self.last = body[0].end_lineno or 0 if start else self.kernel.tree.lineno
        used = {node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)}
        for name in self.kernel.parameters:
            if name not in used:
                yield f"    (void){name}; /* says how long an array is */"
        yield from self.block(body[start:], "    ")

    def block(self, statements: list[ast.stmt], indent: str) -> Iterator[str]:
        own: set[str] = set()  # names declared in this block
        for place, node in enumerate(statements):
            for line in range(self.last + 1, node.lineno + 1):
                if line in self.comments:
                    yield comment(prose(self.comments[line], self.constants.prefix), indent)
            self.last = max(self.last, node.lineno)
            for name in _names_needed_later(node, statements[place + 1 :]):
                if name not in self.kinds:  # first given a value inside an inner block, read after it
                    self.kinds[name] = self.kind_of(name, node)
                    own.add(name)
                    yield f"{indent}{C_TYPES[self.kinds[name]]} {name} = 0;"
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                yield indent + self.assign(node, node.targets[0].id, own)
            else:
                yield from self.statement(node, indent)
        for name in own:
            del self.kinds[name]

    def kind_of(self, name: str, node: ast.stmt) -> str:
        """The type that the first assignment below `node` gives to a name."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name) and inner.targets[0].id == name:
                return _wide(self.expression(inner.value).kind)
        raise self.error(node, f"{name} has no value")

    def assign(self, node: ast.Assign, name: str, own: set[str]) -> str:
        value = self.expression(node.value)
        if name in self.kinds:
            return f"{name} = {self.convert(value, self.kinds[name], node)};"
        if value.kind == "const":
            raise self.error(node, f"`{ast.unparse(node)}` leaves open the type; write i32(…) or u32(…)")
        self.kinds[name] = _wide(value.kind)
        if isinstance(node.value, ast.BinOp):
            self.counters.add(name)
        own.add(name)
        const = "const " if _assignments(self.kernel, name) == 1 else ""
        return f"{const}{C_TYPES[self.kinds[name]]} {name} = {self.convert(value, self.kinds[name], node)};"

    def statement(self, node: ast.stmt, indent: str) -> Iterator[str]:
        match node:
            case ast.Expr(value=ast.Call() as call):
                yield f"{indent}{self.expression(call).text};"
            case ast.Return(value=ast.expr() as value) if self.kernel.result is not None:
                yield f"{indent}return {self.convert(self.expression(value), storage(self.kernel.result), node)};"
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                place = self.expression(target)
                yield f"{indent}{place.text} = {self.convert(self.expression(value), place.kind, node)};"
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=ends), orelse=[]):
                yield from self.loop(node, name, ends, indent)
            case ast.If(test=test, body=body, orelse=orelse):
                yield f"{indent}if ({self.condition(test)}) {{"
                yield from self.block(body, indent + "    ")
                if orelse:
                    yield f"{indent}}} else {{"
                    yield from self.block(orelse, indent + "    ")
                yield f"{indent}}}"
            case _:
                raise self.unknown(node)

    def loop(self, node: ast.For, name: str, ends: list[ast.expr], indent: str) -> Iterator[str]:
        if len(ends) > 2:
            raise self.unknown(node)
        for end in ends:
            self.not_negative(end)
        first, last = ["0U"] * (2 - len(ends)) + [self.convert(self.expression(end), "u32", end) for end in ends]
        counter = "round" if name == "_" else name
        if counter in self.kinds:
            raise self.error(node, f"the loop counter {name} has another value already")
        self.kinds[counter] = "u32"
        self.counters.add(counter)
        yield f"{indent}for (uint32_t {counter} = {first}; {counter} < {last}; {counter}++) {{"
        yield from self.block(node.body, indent + "    ")
        yield f"{indent}}}"
        del self.kinds[counter]

    def not_negative(self, end: ast.expr) -> None:
        """A loop bound is unsigned in C, so a difference in it must be of a length and less than its least value."""
        for node in ast.walk(end):
            match node:
                case ast.BinOp(left=ast.Name(id=name), op=ast.Sub(), right=ast.Constant(value=int(value))):
                    kind = self.kernel.parameters.get(name)
                    if not (isinstance(kind, Length) and kind.lo >= value):
                        raise self.error(node, f"the loop bound `{ast.unparse(end)}` may be negative")
                case ast.BinOp(op=ast.Sub()) | ast.UnaryOp():
                    raise self.error(node, f"the loop bound `{ast.unparse(end)}` may be negative")

    def condition(self, test: ast.expr) -> str:
        value = self.expression(test)
        if value.kind != "flag":
            raise self.error(test, f"`{ast.unparse(test)}` is no comparison")
        return value.text

    def expression(self, node: ast.expr) -> Expression:
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return Expression(str(value), "const")
            case ast.Name(id=name) if name in self.kinds:
                return Expression(name, self.kinds[name])
            case ast.Name(id=name) if isinstance(self.kernel.function.__globals__.get(name), int):
                return Expression(name, "const")
            case ast.Subscript(value=ast.Name(id=name), slice=place) if name in self.arrays:
                index = self.convert(self.expression(place), "u32", place)
                return Expression(f"{name}[{index}]", self.arrays[name])
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
                return Expression(str(-value), "const")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                self.needs_index(operand)
                return Expression(f"-{self.convert(self.expression(operand), 'i32', node, operand=True)}", "i32", False)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                self.needs_index(left, right)
                a, b = (self.convert(self.expression(side), "u32", node, operand=True) for side in (left, right))
                return Expression(f"{a} {OPERATORS[type(op)]} {b}", "u32", False)
            case ast.Call(func=ast.Name(id=name), args=values, keywords=[]):
                return self.call(node, self.kernel.function.__globals__.get(name), values)
        raise self.unknown(node)

    def call(self, node: ast.Call, target: Any, values: list[ast.expr]) -> Expression:
        if isinstance(target, Kernel):
            passed = [
                self.argument(kind, value) for kind, value in zip(target.parameters.values(), values, strict=True)
            ]
            kind = storage(target.result) if target.result is not None else "void"
            return Expression(f"{self.constants.prefix}{target.name}({', '.join(passed)})", kind)
        if not isinstance(target, Primitive):
            raise self.unknown(node)
        if not target.c:
            raise self.error(node, f"the primitive {target.name} has no C form")
        if not target.operations:  # a cast, needed only where the type is another
            return Expression(self.convert(self.expression(values[0]), target.result, node, cast=True), target.result)
        sources = [self.expression(value) for value in values]
        template = self.template(target, sources)
        plain = template.startswith(self.constants.prefix)  # a call: its operands are arguments
        operands = [
            self.convert(source, kind, value, operand=not plain)
            for source, kind, value in zip(sources, target.operands, values, strict=True)
        ]
        text = template.format(*operands)
        cast = re.fullmatch(r"\(u?int32_t\)(\w+|)\([^()]*(\([^()]*\)[^()]*)*\)", template) is not None
        return Expression(text, target.result, atom=plain or cast)

    def template(self, target: Primitive, operands: list[Expression]) -> str:
        """The primitive's C form; the one for small operands where the types alone say that they are."""
        small = target.c_below_2_31 and all(self.below_2_31(operand) for operand in operands)
        form: str = target.c_below_2_31 if small else target.c
        return form.replace("ss_", self.constants.prefix)

    def below_2_31(self, value: Expression) -> bool:
        if value.kind != "const":
            return value.kind in ("u8", "u16")
        literal = value.text.lstrip("-").isdecimal()
        number = int(value.text) if literal else int(self.kernel.resolve(value.text))
        return 0 <= number < 2**31

    def argument(self, kind: Any, value: ast.expr) -> str:
        if isinstance(kind, Array):
            if not (isinstance(value, ast.Name) and self.arrays.get(value.id) == storage(kind.element)):
                raise self.error(value, f"`{ast.unparse(value)}` is no array of {storage(kind.element)}")
            return value.id
        return self.convert(self.expression(value), storage(kind), value)

    def convert(self, value: Expression, kind: str, node: ast.AST, operand: bool = False, cast: bool = False) -> str:
        """The expression as a value of type `kind`; as an `operand`, with parentheses where it needs them."""
        if value.kind == "const":
            signed = SIGNED[kind]
            if value.text.lstrip("-").isdecimal():
                literal = number(int(value.text), signed)
                return f"({literal})" if literal.startswith("-") and operand else literal
            return self.constants.use(self.kernel, value.text, signed)
        if value.kind == "void" or ("flag" in (value.kind, kind) and value.kind != kind):
            raise self.error(node, f"`{value.text}` is {value.kind}, not {kind}")
        if value.kind == kind:
            return value.operand if operand else value.text
        widened = SIGNED[value.kind] == SIGNED[kind] and int(value.kind[1:]) < int(kind[1:])
        if widened and not operand and not cast:
            return value.text  # C widens by itself, except that an operand would be widened to int
        return f"({C_TYPES[kind]}){value.operand}"

    def needs_index(self, *operands: ast.expr) -> None:
        """Operators are for lengths and loop counters; values need a primitive, which says whether it wraps."""
        for operand in operands:
            if isinstance(operand, ast.Name) and operand.id in self.kinds and operand.id not in self.counters:
                raise self.error(operand, f"`{operand.id}` is a value; use a primitive, not an operator")
            if isinstance(operand, ast.Subscript | ast.Call):
                raise self.error(operand, f"`{ast.unparse(operand)}` is a value; use a primitive, not an operator")

    def unknown(self, node: ast.AST) -> EmitError:
        return self.error(node, f"`{ast.unparse(node)}` has no C form")

    def error(self, node: ast.AST, what: str) -> EmitError:
        line = getattr(node, "lineno", self.kernel.tree.lineno)
        return EmitError(f"{self.kernel.path.name}:{line}: in {self.kernel.name}, {what}")


def _wide(kind: str) -> str:
    """The type of a local that holds such a value: words, whatever the memory holds."""
    return kind if kind in ("flag", "const", "void") else kind[0] + "32"


def _assignments(kernel: Kernel, name: str) -> int:
    return sum(
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
        for node in ast.walk(kernel.tree)
    )


def _names_needed_later(node: ast.stmt, rest: list[ast.stmt]) -> list[str]:
    """The names that an inner block of `node` assigns and a later statement reads."""
    if not isinstance(node, ast.For | ast.If):
        return []
    given = {
        inner.targets[0].id: None
        for inner in ast.walk(node)
        if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name)
    }
    read = {inner.id for later in rest for inner in ast.walk(later) if isinstance(inner, ast.Name)}
    return [name for name in given if name in read]


@cache
def _comments(path: Path) -> dict[int, str]:
    """The source's own comments by line."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline)
    return {token.start[0]: ascii_text(token.string.lstrip("# ")) for token in tokens if token.type == tokenize.COMMENT}


def constant_comment(constants: Constants, name: str) -> str:
    """The remark that stands beside a constant where it is defined, or nothing."""
    for path in (constants.origins[name], Path(formats.__file__)):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
                return _comments(path).get(node.lineno, "")
    return ""
