"""Print a kernel as a C99 function.

Lengths, loop counters and flags are uint32_t; index arithmetic is modulo 2^32 and read as signed where a signed word is
wanted, which is exact because an index fits a signed word. The range check proves that signed arithmetic never
overflows and that no loop bound and no index that is shifted right is negative, so the plain operators are right.
Nothing is computed in `int`, which has 16 bits on some cores.
"""

from collections.abc import Iterator, Sequence

from sensorsim.language import ir
from sensorsim.language.c.comments import C_TYPES, Expression, comment, comments, fold, prose, with_prefix
from sensorsim.language.c.declarations import signature, space
from sensorsim.language.c.identifiers import Constants, Names, fresh, number, spelled
from sensorsim.language.c.operators import (
    form_of,
    in_order,
    is_atom,
    is_number,
    is_test,
    parted,
    starts,
    widened,
    zero_or_one,
)
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, grouped, word

SIGNED = {kind: kind.startswith("i") and kind != "index" for kind in C_TYPES}


def function(kernel: Kernel, names: Names, constants: Constants, lead: str = "") -> str:
    """Return the whole function, its signature after `lead`."""
    head = signature(kernel, names, lead)
    return head + "\n{\n" + "\n".join(fold(line) for line in _Body(kernel, names, constants).lines()) + "\n}\n"


class _Body:
    """Print the body of one kernel."""

    def __init__(self, kernel: Kernel, names: Names, constants: Constants) -> None:
        self.kernel, self.names, self.constants = kernel, names, constants
        self.spelled = spelled(kernel, names.prefix)
        self.kinds = {name: "u32" if kind == "index" else kind for name, kind in kernel.names.items()}
        for name, kind in kernel.parameters.items():
            if not isinstance(kind, Array):
                self.kinds[name] = kind.storage
        self.declared = set(kernel.parameters)
        self.ends = 0  # ends of loops that have a name
        self.lets = [node for node in kernel.nodes if isinstance(node, ir.Let)]
        self.read = _read(*kernel.body)
        self.starts = starts(kernel)
        self.pointers: dict[tuple[str, str], str] = {}  # by name and array: the part of the array that begins there
        self.comments, self.spoken = comments(kernel.at.file), names.spoken(kernel)
        self.last = self.comments.body_of(kernel)

    def lines(self) -> Iterator[str]:
        kernel = self.kernel
        sizes = {part.name for size in kernel.sizes.values() for part in ir.walk(size) if isinstance(part, ir.Name)}
        stored = {node.array for node in kernel.nodes if isinstance(node, ir.Store)}
        for name in dict.fromkeys(let.name for let in self.lets):
            wide = word(kernel.parameters[name]) if name in kernel.parameters else ""
            if wide and self.kinds[name] != wide:  # a parameter that gets new values, which need a word
                copy = fresh(f"{self.spelled[name]}_now", set(self.spelled.values()))
                yield f"    {C_TYPES[wide]} {copy} = {self.spelled[name]};"
                self.spelled[name], self.kinds[name] = copy, wide
        for owner, fields in grouped(kernel.parameters).items():
            if not (self.read | stored) & set(fields):
                why = "says how long an array is" if owner in sizes else "not used"
                yield f"    (void){self.spelled.get(owner, owner)}; /* {why} */"
        yield from self.block(kernel.body, "    ")

    # statements

    def block(self, statements: Sequence[ir.Statement], indent: str) -> Iterator[str]:
        own: set[str] = set()  # names declared in this block
        for place, node in enumerate(statements):
            for line in range(self.last + 1, node.at.line + 1):
                if node.at.file == self.kernel.at.file and line in self.comments.at:
                    said = prose(self.comments.at[line], self.spoken)
                    yield from [comment(said, indent)] if said else []
            self.last = max(self.last, node.at.line)
            for name in _needed_later(node, statements[place + 1 :]):
                if name not in self.declared:  # first given a value inside an inner block, read after it
                    own.add(name)
                    self.declared.add(name)
                    zero = number(0, SIGNED[self.kinds[name]])
                    yield f"{indent}{C_TYPES[self.kinds[name]]} {self.spelled[name]} = {zero};"
            if isinstance(node, ir.Let):
                own |= {node.name} - self.declared
                yield from (indent + line for line in self.let(node, _read(*statements[place + 1 :])))
            else:
                yield from self.statement(node, indent)
        self.declared -= own

    def statement(self, node: ir.Statement, indent: str) -> Iterator[str]:
        match node:
            case ir.Store(array=array, index=index, value=value):
                kind = self.kernel.arrays[array]
                place = "" if kind.cell else f"[{self.text(index, 'u32')}]"
                yield f"{indent}{self.spelled[array]}{place} = {self.text(value, kind.storage)};"
            case ir.For():
                yield from self.loop(node, indent)
            case ir.If(test=test, then=then, otherwise=otherwise):
                yield f"{indent}if ({self.condition(test)}) {{"
                yield from self.block(then, indent + "    ")
                if otherwise:
                    yield f"{indent}}} else {{"
                    yield from self.block(otherwise, indent + "    ")
                yield f"{indent}}}"
            case ir.Do(call=call):
                ignored = "" if isinstance(call, ir.Call) and call.kernel.result is None else "(void)"
                yield f"{indent}{ignored}{self.expression(call).text};"
            case ir.Break():
                yield f"{indent}break;"
            case ir.Return(value=value):
                result = self.kernel.result
                yield f"{indent}return {self.text(value, result.storage)};" if value and result else f"{indent}return;"

    def let(self, node: ir.Let, read_later: set[str]) -> Iterator[str]:
        name, spelling, kind = node.name, self.spelled[node.name], self.kinds[node.name]
        value = self.text(node.value, kind)
        if name in self.declared:
            yield f"{spelling} = {value};" if value != spelling else f"(void){spelling}; /* as it is */"
            return
        self.declared.add(name)
        const = "const " if sum(let.name == name for let in self.lets) == 1 else ""
        yield f"{const}{C_TYPES[kind]} {spelling} = {value};"
        if name not in read_later:
            yield f"(void){spelling}; /* not used */"
        for array in self.starts.get(name, ()):
            pointer = fresh(f"{self.spelled[array]}_at_{spelling}", {*self.spelled.values(), *self.pointers.values()})
            self.pointers[name, array] = pointer
            kind = f"{space(self.kernel, array, self.names)}{C_TYPES[self.kernel.arrays[array].storage]}"
            yield f"const {kind} *const {pointer} = &{self.spelled[array]}[{spelling}];"

    def loop(self, node: ir.For, indent: str) -> Iterator[str]:
        name = node.counter
        counter = fresh("round", set(self.spelled.values()), "{}{}") if name == "_" else self.spelled[name]
        first = self.text(node.first, "u32")
        last = self.text(node.last, "u32", operand=True, beside_word=True)  # neither end is ever negative
        changed = {part.name for part in ir.walk(*node.body) if isinstance(part, ir.Let)}
        moves = any(
            isinstance(part, ir.Load | ir.Call) or (isinstance(part, ir.Name) and part.name in changed)
            for part in ir.walk(node.last)
        )
        if moves:  # a kernel looks at the end once, C in every round
            self.ends += 1
            name_of_end = fresh(f"end{self.ends}", {*self.kernel.parameters, *self.kernel.names}, "{}_{}")
            yield f"{indent}const uint32_t {name_of_end} = {self.text(node.last, 'u32')};"
            last = name_of_end
        test = f"{counter} < {last}"
        outside = dict(self.spelled), dict(self.kinds)
        self.spelled[name], self.kinds[name] = counter, "u32"
        yield f"{indent}for (uint32_t {counter} = {first}; {test}; {counter}++) {{"
        yield from self.block(node.body, indent + "    ")
        yield f"{indent}}}"
        self.spelled, self.kinds = outside

    def condition(self, test: ir.Expression) -> str:
        match test:  # of unsigned words, where C has a plainer word for it
            case ir.Apply(primitive=target, operands=(one, ir.Const(value=1))) if target.name == "geu":
                return f"{self.text(one, 'u32', operand=True, beside_word=True)} != 0U"
            case ir.Apply(primitive=target, operands=(ir.Const(value=0), one)) if target.name == "geu":
                return f"{self.text(one, 'u32', operand=True, beside_word=True)} == 0U"
        if isinstance(test, ir.Apply) and is_test(self.kernel, test):
            return self.apply(test, as_test=True).text
        value = self.expression(test)
        return f"{value.operand} != 0U"

    # expressions

    def expression(self, node: ir.Node) -> Expression:
        match node:
            case ir.Name(name=name):
                return Expression(self.spelled[name], self.kinds[name])
            case ir.Load(array=array, index=index):
                kind, (start, rest) = self.kernel.arrays[array].storage, parted(index)
                if self.kernel.arrays[array].cell:
                    return Expression(self.spelled[array], kind)
                if (start, array) in self.pointers:
                    place = "0U" if rest is None else self.text(rest, "u32")
                    return Expression(f"{self.pointers[start, array]}[{place}]", kind)
                return Expression(f"{self.spelled[array]}[{self.text(index, 'u32')}]", kind)
            case ir.Whole(array=array):
                return Expression(self.spelled[array], "array")
            case ir.Index(operands=(one,)):
                return Expression(f"-{self.text(one, 'i32', operand=True)}", "i32", atom=False)
            case ir.Index(operator=operator, operands=(left, right)):
                a = self.text(left, "u32", operand=True, wide=operator in ("<<", ">>"))
                return Expression(f"{a} {operator} {self.text(right, 'u32', operand=True)}", "u32", atom=False)
            case ir.Call(kernel=called, arguments=values):
                given = dict(zip(called.parameters.items(), values, strict=True))
                passed = {}
                for (name, wanted), value in given.items():
                    owner, _, field = name.partition(".")
                    if field:  # a record is passed by its own name
                        assert isinstance(value, ir.Whole)
                        passed[owner] = value.array.partition(".")[0]
                    else:
                        passed[name] = self.text(value, "array" if isinstance(wanted, Array) else wanted.storage)
                kind = called.result.storage if called.result is not None else "none"
                return Expression(f"{self.names.called(called)}({', '.join(passed.values())})", kind)
            case ir.Ask():
                return self.ask(node)
            case ir.Apply():
                return self.apply(node)
        raise TypeError(node)

    def ask(self, node: ir.Ask) -> Expression:
        """Call the board with its handle, the arguments, the bytes and their count."""
        port, board = node.port, self.spelled[node.board]
        pairs = zip(node.arguments, port.takes, strict=True)
        passed = [f"{board}.board", *(self.text(argument, kind.storage) for argument, kind in pairs)]
        if node.array is not None:
            passed += [f"&{self.spelled[node.array]}[{node.first}U]", f"{node.last - node.first}U"]
        text = f"{board}.{port.name}({', '.join(passed)})"
        return Expression(f"(uint32_t){text}" if port.fails else text, node.type)

    def apply(self, node: ir.Apply, as_test: bool = False) -> Expression:
        target = node.primitive
        if not target.operations and len(node.operands) == 1:  # a cast, needed only where the type is another
            return self.cast(node.operands[0], target.result)
        plain = zero_or_one(node)
        if plain is not None:
            condition = self.expression(node.operands[0])
            text = condition.text if plain else f"1U - {condition.operand}"
            return Expression(text, "u32", atom=plain and condition.atom)
        form, given = form_of(self.kernel, node, as_test), in_order(node)
        wide, call = widened(form, given), is_atom(form) and form.startswith("ss_")
        operands = [
            self.text(operand, kind, operand=not call, wide=place in wide, beside_word=f"_t){{{place}}}" in form)
            for place, (operand, kind) in enumerate(zip(given, target.operands, strict=True))
        ]
        text = with_prefix(form, self.names.prefix).format(*operands)
        if target.result == "flag" and not as_test and not call:
            return Expression(f"(uint32_t)({text})", "flag")
        return Expression(text, target.result, atom=is_atom(form))

    def cast(self, node: ir.Expression, kind: str) -> Expression:
        """Read a word with the other sign. A number is written as what it becomes."""
        if not isinstance(node, ir.Const):
            made = self.expression(node)
            return Expression(self.text(node, kind, cast=True), kind, atom=made.kind != kind or made.atom)
        signed = SIGNED[kind]
        fits = -(2**31) <= node.value < 2**31 if signed else node.value >= 0
        if fits:
            return Expression(self.text(node, kind), kind, atom=node.value >= 0)
        if node.name is None:
            wrapped = node.value % 2**32 - (2**32 if signed and node.value % 2**32 >= 2**31 else 0)
            return Expression(number(wrapped, signed), kind, atom=wrapped >= 0)
        return Expression(f"({C_TYPES[kind]}){self.constants.use(node, not signed)}", kind)

    def text(
        self,
        node: ir.Node,
        kind: str,
        operand: bool = False,
        cast: bool = False,
        wide: bool = False,
        beside_word: bool = False,
    ) -> str:
        """Write an expression as a value of type `kind`; as an `operand`, in parentheses if it needs them.

        A `cast` is written in any case; a `wide` number has one too. `beside_word`: what it meets is a whole word.
        """
        if isinstance(node, ir.Const):
            signed = SIGNED[kind]
            literal = self.constants.use(node, signed) if node.name else number(node.value, signed)
            literal = f"({literal})" if literal.startswith("-") and (operand or wide) else literal
            return f"({C_TYPES[kind]}){literal}" if wide and not literal.startswith("(uint32_t)") else literal
        value = self.expression(node)
        if wide and is_number(node):
            return f"({C_TYPES[kind]}){value.operand}"
        if value.kind == kind or kind in ("array", "flag"):
            return value.operand if operand else value.text
        if kind == "u32" and not beside_word and value.kind in ("i8", "i16"):
            return f"(0U + (uint32_t){value.operand})"  # without the sum gcc warns of a sign that the cast has settled
        widens = SIGNED[value.kind] == SIGNED[kind] and int(value.kind[1:]) < int(kind[1:])
        if widens and (beside_word or not operand) and not cast:  # C widens by itself, but an operand to int
            return value.operand if operand else value.text
        return f"({C_TYPES[kind]}){value.operand}"


def _read(*nodes: ir.Node) -> set[str]:
    """Return the names whose value is used: scalars that are read, arrays that are read or passed on."""
    found: set[str] = set()
    for node in ir.walk(*nodes):
        match node:
            case ir.Name(name=name) | ir.Load(array=name) | ir.Whole(array=name):
                found.add(name)
            case ir.Ask(board=name, array=array):
                found |= {name, array or name}
    return found


def _needed_later(node: ir.Statement, rest: Sequence[ir.Statement]) -> list[str]:
    """Return the names that an inner block of `node` assigns and a later statement reads."""
    if not isinstance(node, ir.For | ir.If):
        return []
    given = dict.fromkeys(inner.name for inner in ir.walk(node) if isinstance(inner, ir.Let))
    read = _read(*rest)
    return [name for name in given if name in read]
