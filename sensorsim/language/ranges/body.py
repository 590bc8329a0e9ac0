"""Run a kernel on intervals, statement by statement."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sensorsim.language import intervals, ir
from sensorsim.language.arguments import polynomial
from sensorsim.language.intervals import Flag, Mask, Masked, Span, Value, as_word, number
from sensorsim.language.polynomial import OPERATORS, Polynomial
from sensorsim.language.primitive import Primitive
from sensorsim.language.ranges.facts import (
    Cells,
    Check,
    Facts,
    Proof,
    RangeError,
    State,
    Written,
    common_writes,
)
from sensorsim.language.ranges.loops import Loop, loosened
from sensorsim.language.ranges.rules import special_rule
from sensorsim.language.types import LIMITS, Array, Below, Kind, Length, power_of_two

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel

INDEX_RULES: dict[str, Callable[..., Span]] = {
    **{"+": intervals.add, "-": intervals.sub, "*": intervals.mul, "<<": intervals.left, ">>": intervals.right}
}
MOST_PARTS = 1 << 12  # values that `split` takes one at a time
REMEMBERED = (intervals.add, intervals.sub, intervals.mul, intervals.right, intervals.truncated, intervals.narrow)
HINTS = {  # what to write where a result leaves its type
    "i64": "; give a factor a narrower format, or shift each product, as asr64(mul64(a, b), 6)",
    **{name: f"; compare first (`if`), or write saturating_{name}" for name in ("add", "sub", "addu", "subu")},
    **dict.fromkeys(("mul", "mulu"), "; give a factor a narrower format, or write narrow(mul64(a, b), k)"),
}
UNROLL = 64  # loops of a known, small number of rounds run round by round


def prove(kernel: "Kernel") -> Proof:
    """Prove the kernel for all inputs within its declared formats, or raise RangeError."""
    check = Check()
    for name, length in kernel.lengths.items():
        check.bounds.length(name, length.lo, length.hi, length.at_most)
    names: dict[str, Any] = {name: check.symbol(name) for name in kernel.lengths}
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Array):
            size = polynomial(kernel.sizes[name])
            if check.bounds.lowest(size) < 1:
                raise RangeError(kernel.at, f"in {kernel.name}, the array {name} can be empty; see its length")
            if kind.contents is not None and check.bounds.highest(size) > len(kind.contents):
                raise RangeError(kernel.at, f"in {kernel.name}, the table {name} is shorter than it declares")
            names[name] = Cells(name, kind, check.declared(kind.element, names), size)
        elif not isinstance(kind, Length):
            names[name] = check.declared(kind, names)
    written = {name: Facts(()) for name, kind in kernel.arrays.items() if kind.written}
    result = run_kernel(check, kernel, names, written)[0]
    span = as_word(result) if result is not None else None
    return Proof(kernel.name, check.lines, (span.lo, span.hi) if span else None, check.operands)


def run_kernel(check: Check, kernel: "Kernel", names: dict[str, Any], written: Written) -> tuple[Value | None, Written]:
    """Run the kernel once, or once for each part of the parameter it splits: a word one bit length at a time, an index
    one value at a time. Return its result and what it has written."""
    if kernel.split is None:
        return Body(check, kernel, State(names, written)).result()
    returned: Value | None = None
    after: Written | None = None
    whole, kind = as_word(names[kernel.split]), kernel.parameters[kernel.split]
    if not isinstance(kind, Below | Length):
        lengths = [(0, 0), *((1 << bits, (2 << bits) - 1) for bits in range(32))]
        below = [(whole.lo, min(whole.hi, -1))] if whole.lo < 0 else []
        ends = [(max(lo, whole.lo), min(hi, whole.hi)) for lo, hi in lengths if whole.lo <= hi and lo <= whole.hi]
        parts = [Span(*end) for end in (*below, *ends)]
    elif whole.hi - whole.lo < MOST_PARTS:
        parts = [number(value) for value in range(whole.lo, whole.hi + 1)]
    else:
        text = f"in {kernel.name}, {kernel.split} can be {whole}, too many to split one by one; split a shorter one"
        raise RangeError(kernel.at, text)
    for part in parts:
        value, now = Body(check, kernel, State({**names, kernel.split: part}, dict(written))).result()
        returned = value if returned is None or value is None else check.join(returned, value)
        after = now if after is None else common_writes(after, now)
    assert after is not None
    return returned, after


class Body:
    """One kernel's body over one state."""

    def __init__(self, check: Check, kernel: "Kernel", state: State) -> None:
        self.check, self.kernel, self.state = check, kernel, state
        self.returned: list[tuple[Value | None, Written]] = []
        self.left: list[list[State]] = []  # for each loop in sight, the states in which it is left early
        self.cells_read: dict[Any, int] = {}

    def result(self) -> tuple[Value | None, Written]:
        after = self.block(self.kernel.body, self.state)
        if after is not None:
            self.returned.append((None, after.written))
        value: Value | None
        value, written = self.returned[0]
        for other, now in self.returned[1:]:
            value = value if value is None or other is None else self.check.join(value, other)
            written = common_writes(written, now)
        return value, written

    # statements: each gives the state after it, None where it returned

    def block(self, body: tuple[ir.Statement, ...], state: State) -> State | None:
        now: State | None = state
        for statement in body:
            if now is None:
                break
            now = self.statement(statement, now)
        return now

    def statement(self, node: ir.Statement, state: State) -> State | None:
        match node:
            case ir.Let(name=name, value=value):
                found = self.value(value, state)
                if node.type in ("u32", "i32", "i64"):
                    found = self.fits(node, found, node.type)
                state.names[name] = found
                self.check.note(node.at, found)
            case ir.Store(array=array, index=index, value=value):
                found = self.value(value, state)
                self.check.note(node.at, found)
                cells, at = self.cells(node, array, index, state)
                self.within(node, f"{array}[{ir.shown(index)}]", as_word(found), cells.kind.element, cells.element)
                if cells.owner in state.written and at.exact is not None:
                    state.written[cells.owner] = state.written[cells.owner].and_also((at.exact, at.exact + 1))
            case ir.Do(call=ir.Ask() as asked):
                self.ask(asked, state)
            case ir.Do(call=ir.Call() as call):
                self.call(call, state)
            case ir.Return(value=value):
                returned = None if value is None else self.value(value, state)
                if returned is not None and self.kernel.result is not None:
                    declared = self.check.declared(self.kernel.result, state.names)
                    self.within(node, "the result", as_word(returned), self.kernel.result, declared)
                    self.check.note(node.at, returned)
                self.returned.append((returned, dict(state.written)))
                return None
            case ir.Break():
                self.left[-1].append(state)
                return None
            case ir.If(test=test):
                return self.branch(node, self.value(test, state), state)
            case ir.For():
                return self.loop(node, state)
        return state

    def branch(self, node: ir.If, flag: Value, state: State) -> State | None:
        assert isinstance(flag, Flag)
        ways: list[State | None] = []
        for holds, body in ((True, node.then), (False, node.otherwise)):
            if flag.holds in (None, holds):
                side = state.copy()
                for name, value in state.names.items():  # what the comparison says of each name
                    if isinstance(value, Span):
                        span = self.check.learned(value, flag.true if holds else flag.false)
                        side.names[name] = span if span.lo <= span.hi else value
                ways.append(self.block(body, side))
        return ways[0] if len(ways) == 1 else self.check.joined(*ways)

    def loop(self, node: ir.For, state: State) -> State | None:
        first, last = as_word(self.value(node.first, state)), as_word(self.value(node.last, state))
        for end, span in ((node.first, first), (node.last, last)):
            if span.lo < 0:
                raise self.error(node, f"the loop bound `{ir.shown(end)}` can be {span}; it must not be negative")
        rounds = last.hi - first.lo
        if first.exact is not None and last.exact is not None:
            rounds = min(rounds, self.check.bounds.highest(last.exact - first.exact))
        if rounds <= 0:
            return state
        self.left.append([])
        try:
            after: State | None
            if first.lo == first.hi and last.lo == last.hi and rounds <= UNROLL:
                after = state.copy()
                for i in range(first.lo, last.hi):
                    if after is not None:
                        if node.counter != "_":  # which nobody reads, and which an outer loop may have too
                            after.names[node.counter] = number(i)
                        after = self.block(node.body, after)
                if after is not None and node.counter != "_":
                    after.names.pop(node.counter, None)
            else:
                after = self.repeated(node, first, last, rounds, state)
        finally:
            left = self.left.pop()
        for other in left:
            after = self.check.joined(after, State({name: other.names[name] for name in state.names}, other.written))
        return after

    def repeated(self, node: ir.For, first: Span, last: Span, rounds: int, state: State) -> State:
        """Return the state after a loop whose rounds are many or not known, unless it is left early."""
        self.check.fresh += 1
        counter = f"{node.counter}#{self.check.fresh}"
        start = first.exact if first.exact is not None else Polynomial.constant(first.lo)
        ends = (last.exact,) if last.exact is not None else last.limits()
        self.check.bounds.counter(counter, start, tuple(end - 1 for end in ends))
        kept = len(self.returned)
        certain = [span.exact if span.exact is not None else Polynomial.constant(edge)
                   for span, edge in ((first, first.hi), (last, last.lo))]  # fmt: skip
        try:
            return Loop(self, node, counter, certain, rounds).run(state)
        finally:
            for place, (value, written) in enumerate(self.returned[kept:], kept):
                facts = {owner: runs.without(counter) for owner, runs in written.items()}
                self.returned[place] = loosened(value, counter, self.check.bounds), facts
            self.check.bounds.forget(counter)

    # expressions

    def value(self, node: ir.Expression, state: State) -> Value:
        match node:
            case ir.Const(value=value):
                return number(value)
            case ir.Name(name=name):
                found: Value = state.names[name]
                return found
            case ir.Load(array=array, index=index):
                return self.load(node, array, index, state)
            case ir.Index():
                return self.index(node, state)
            case ir.Apply(primitive=primitive, operands=operands):
                return self.apply(node, primitive, [self.value(operand, state) for operand in operands], state)
            case ir.Call():
                result = self.call(node, state)
                assert result is not None
                return result
            case ir.Ask():
                return self.ask(node, state)
        raise TypeError(node)

    def index(self, node: ir.Index, state: State) -> Span:
        spans = [as_word(self.value(operand, state)) for operand in node.operands]
        if node.operator in ("<<", ">>"):
            count = spans[1]
            if not (count.lo >= 0 and count.hi <= 31):
                raise self.error(node, f"`{ir.shown(node)}` shifts by {count}; a count must be within 0 … 31")
            if spans[0].lo < 0:
                raise self.error(node, f"`{ir.shown(node)}` shifts {spans[0]}, which can be negative")
        if len(spans) == 1:
            made = intervals.negated(spans[0])
        else:
            made = INDEX_RULES[node.operator](*spans)
            exact = [span.exact for span in spans]
            if exact[0] is not None and exact[1] is not None:
                made.exact = OPERATORS[node.operator](exact[0], exact[1])
        span = self.check.refined(made)
        self.fits(node, span, "i32")
        return span

    def apply(self, node: ir.Apply, primitive: Primitive, values: list[Value], state: State) -> Value:
        for operand, value, kind in zip(node.operands, values, primitive.operands, strict=True):
            if kind != "flag" and primitive.operations and not isinstance(value, Flag):
                self.fits(operand, value, kind, f"`{primitive.name}` reads")
        if primitive.interval is None and primitive.result != "flag":
            raise self.error(
                node, f"the primitive {primitive.name} ({primitive.at}) has no interval rule; give interval=…"
            )
        words = [value if isinstance(value, Flag) else as_word(value) for value in values]
        wrong = self.asked(node, primitive, primitive.needs, words) if primitive.needs is not None else None
        if wrong:
            what = wrong if isinstance(wrong, str) else f"does not take {', '.join(map(str, words))}"
            raise self.error(node, f"`{primitive.name}` {what}")
        ranges = tuple((w.lo, w.hi) if isinstance(w, Span) else (0, 1) for w in words)
        seen = self.check.operands.get(node, ranges)
        self.check.operands[node] = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(seen, ranges, strict=True))
        result = self.rule(node, primitive, values, words, state)
        if isinstance(result, Span):
            result = self.check.refined(result)
            if not primitive.wraps and primitive.result != "flag":
                least, most = LIMITS[primitive.result]
                if not (least <= result.lo and result.hi <= most):
                    hint = HINTS.get(primitive.result if primitive.result == "i64" else primitive.name, "")
                    raise self.error(node, f"`{ir.shown(node)}` can be {result}, outside {primitive.result}{hint}")
        return result

    def rule(self, node: ir.Apply, primitive: Primitive, values: list[Value], words: list[Any], state: State) -> Value:
        rule = primitive.interval
        special = special_rule(self.check, rule, node, values, words, lambda part: as_word(self.value(part, state)))
        if special is not None:
            return special
        if rule is None:  # of a comparison: it may hold or not
            return Flag(None)
        # these look at masks and at what a word was before
        plain = rule not in (intervals.and_, intervals.not_, intervals.unsigned, intervals.signed)
        made: Value = self.asked(node, primitive, rule, words if plain else values)
        if primitive.result == "flag" and isinstance(made, Span):
            return Flag(None)
        if not isinstance(made, Span | Flag | Mask | Masked) or (
            isinstance(made, Span) and not (type(made.lo) is type(made.hi) is int and made.lo <= made.hi)
        ):
            what = f"the interval rule of {primitive.name} ({primitive.at}) gives {made}"
            raise self.error(node, f"{what}; it must give a Span of two whole numbers")
        if rule in REMEMBERED and isinstance(made, Span) and made.made is None:
            made.made = rule if rule is not intervals.narrow else intervals.right, tuple(words)
        return made

    def asked(self, node: ir.Apply, primitive: Primitive, rule: Callable[..., Any], words: Sequence[Any]) -> Any:
        """Call a rule; report the failure of a user's own rule as such."""
        try:
            return rule(*words)
        except Exception as error:
            what = f"a rule of {primitive.name} ({primitive.at}) fails: {type(error).__name__}: {error}"
            raise self.error(node, what) from error

    def call(self, node: ir.Call, state: State) -> Value | None:
        called = node.kernel
        written: Written = {}
        names: dict[str, Any] = {
            name: state.names[argument.array] if isinstance(argument, ir.Whole) else self.value(argument, state)
            for name, argument in zip(called.parameters, node.arguments, strict=True)
        }
        for (name, kind), argument in zip(called.parameters.items(), node.arguments, strict=True):
            if isinstance(argument, ir.Whole):
                self.passed(node, called, name, names)
                if names[name].owner in state.written:
                    written[names[name].owner] = state.written[names[name].owner]
            else:
                assert not isinstance(kind, Array)
                if isinstance(kind, Length) and as_word(names[name]).exact is None:
                    raise self.error(argument, f"the length {name} of {called.name} differs from way to way here")
                self.within(argument, f"{name} of {called.name}", as_word(names[name]), kind,
                            self.check.declared(kind, names))  # fmt: skip
                if isinstance(kind, Length) and kind.at_most is not None:
                    limit = as_word(names[kind.at_most]).exact
                    if limit is None or not self.check.at_most(as_word(names[name]), limit):
                        raise self.error(argument, f"{name} of {called.name} may exceed {kind.at_most}")
        result, after = run_kernel(self.check, called, names, written)
        state.written.update(after)
        return result

    def ask(self, node: ir.Ask, state: State) -> Span:
        """Return the answer of the board: anything that its contract allows. It may write the part it is given."""
        port = node.port
        for argument, kind in zip(node.arguments, port.takes, strict=True):
            span = as_word(self.value(argument, state))
            self.within(argument, f"{kind.name} of {port.name}", span, kind, self.check.declared(kind, state.names))
        if node.array is not None:
            assert port.buffer is not None
            cells = state.names[node.array]
            assert isinstance(cells, Cells)
            part = Polynomial.constant(node.first), Polynomial.constant(node.last)
            if self.check.bounds.lowest(cells.size - part[1]) < 0:
                raise self.error(node, f"`{ir.shown(node)}` reaches behind {node.array}, which has {cells.size} cells")
            allowed = self.check.declared(port.buffer.element, state.names)
            facts = state.written.get(cells.owner)
            if port.buffer.written:
                self.within(node, f"what {port.name} writes", allowed, cells.kind.element, cells.element)
                if facts is not None:
                    state.written[cells.owner] = facts.and_also(part)
            else:
                self.within(node, f"an element of {cells.owner}", cells.element, port.buffer.element, allowed)
                if facts is not None and not facts.cover(Span(node.first, node.last - 1), self.check.bounds):
                    raise self.error(node, f"`{ir.shown(node)}` may read what is not written")
        return self.check.declared(port.result, state.names)

    def passed(self, node: ir.Call, called: "Kernel", name: str, names: dict[str, Any]) -> None:
        """Check that an array argument is as long as the kernel declares, and holds what it declares."""
        cells: Cells = names[name]
        kind = called.parameters[name]
        assert isinstance(kind, Array)
        wanted = polynomial(called.sizes[name])
        for length in called.lengths:  # in two steps, because the two kernels may use one name for two lengths
            wanted = wanted.replace(length, Polynomial.variable(f"{length} passed"))
        for length in called.lengths:
            exact = as_word(names[length]).exact
            if exact is None:
                raise self.error(node, f"the length {length} of {called.name} differs from way to way here")
            wanted = wanted.replace(f"{length} passed", exact)
        if self.check.bounds.lowest(cells.size - wanted) < 0:
            raise self.error(node, f"{cells.owner} has {cells.size} elements, and {called.name} wants {wanted}")
        own = self.check.declared(kind.element, names)
        if not kind.written:
            self.within(node, f"an element of {cells.owner}", cells.element, kind.element, own)

    def cells(self, node: ir.Node, array: str, index: ir.Expression, state: State) -> tuple[Cells, Span]:
        """Return the array and the place in it, after a check that it is inside."""
        cells, at = state.names[array], as_word(self.value(index, state))
        assert isinstance(cells, Cells)
        if at.lo >= 0 and self.check.at_most(at, cells.size - 1):
            return cells, at
        size = str(cells.size) if cells.size.number is None else power_of_two(int(cells.size.number))
        text = f"the index `{ir.shown(index)}` of {array} can be {at}, and its length is {size}"
        if at.exact is None:
            raise self.error(node, f"{text}; compare it with the length first, as in `if ltu(i, n):`")
        for short in (cells.size - 1 - at.exact, at.exact):
            least = self.check.bounds.least(short)
            if least.value < 0 and least.at:
                where = ", ".join(f"{name} = {value}" for name, value in sorted(least.at.items()) if "#" not in name)
                raise self.error(node, f"{text}; it is not inside for {where}" if where else text)
        raise self.error(node, text)

    def load(self, node: ir.Load, array: str, index: ir.Expression, state: State) -> Span:
        cells, at = self.cells(node, array, index, state)
        if cells.kind.contents is not None:
            part = cells.kind.contents[at.lo : at.hi + 1]
            return Span(min(part), max(part), origin=self.cell(array, cells, at))
        facts = state.written.get(cells.owner)
        if facts is not None and not self.check.lenient and not facts.cover(at, self.check.bounds):
            raise self.error(node, f"{array}[{ir.shown(index)}] may be read before it is written")
        return Span(cells.element.lo, cells.element.hi, None, cells.element.above, self.cell(array, cells, at))

    def cell(self, array: str, cells: Cells, at: Span) -> int | None:
        """Return the origin of an element: one for all reads of a place, where the kernel does not write the array."""
        if array in self.kernel.written:
            return None
        place = (cells.owner, at.exact) if at.exact is not None else (cells.owner, at.origin, at.moved)
        return self.cells_read.setdefault(place, Span(0, 0).origin)

    def fits(self, node: ir.Node, value: Value, kind: str, what: str = "") -> Any:
        """Return the value, after a check that it is a word of this type."""
        if isinstance(value, Flag):
            return value
        span, (least, most) = as_word(value), LIMITS[kind]
        if not (least <= span.lo and span.hi <= most):
            text = f"`{ir.shown(node)}` can be {span}, outside {kind}"
            raise self.error(node, f"{what} {span}, which is not all {kind}" if what else text)
        return value

    def within(self, node: ir.Node, what: str, span: Span, kind: Kind, declared: Span) -> None:
        """Check a value where a format is declared."""
        inside = declared.lo <= span.lo and span.hi <= declared.hi
        if isinstance(kind, Below):
            inside = span.lo >= 0 and (inside if not declared.above else self.check.at_most(span, declared.above[0]))
        if not inside:
            limits = f"0 … {kind.limit}-1" if isinstance(kind, Below) else f"{declared.lo} … {declared.hi}"
            hint = "compare it with the length first" if isinstance(kind, Below) else "bound it with min and max"
            raise self.error(node, f"{what} can be {span} where {limits} is declared; {hint}, or declare it wider")

    def error(self, node: ir.Node, what: str) -> RangeError:
        return RangeError(node.at, f"in {self.kernel.name}, {what}")
