"""Find what holds after any number of rounds of a loop whose number of rounds is a length, or large."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sensorsim.language import intervals, ir
from sensorsim.language.intervals import Flag, Mask, Masked, Span, Value, as_word
from sensorsim.language.polynomial import Bounds, Polynomial, Range
from sensorsim.language.ranges.facts import Cells, Facts, RangeError, State, Written, common_writes

if TYPE_CHECKING:
    from sensorsim.language.ranges.body import Body

Names = tuple[dict[str, Any], dict[str, Any]]  # at the start of any round, and after the last
STEADY = 4  # rounds in which a loop may settle by itself
FEW = 64  # rounds that are followed with the counter's own number, where nothing else will do
MOST_ROUNDS = 5000  # a loop that neither settles nor grows evenly is followed this far


class Loop:
    """One loop whose number of rounds is not known, or large."""

    def __init__(self, body: "Body", node: ir.For, counter: str, certain: list[Polynomial], rounds: int) -> None:
        self.body, self.node, self.counter, self.rounds = body, node, counter, rounds
        self.certain = certain  # the rounds from the first to the one before the second do run, for every input
        self.check = body.check
        self.range = body.check.bounds.symbols[counter]
        self.changed = {part.name for part in ir.walk(*node.body) if isinstance(part, ir.Let)}
        self.longer: dict[str, Range] = {}
        for end in self.range.last:
            self.longer.update(body.check.bounds.longer(end + 1 - self.range.first))
        self.begins: list[dict[str, Any]] = []  # the names at the start of each round, where rounds ran one by one

    def run(self, entry: State) -> State:
        """Return the state after any number of rounds."""
        # names that a round may change lose the relations of their first value to other values
        names = dict(entry.names)
        for name in self.changed & names.keys():
            if not isinstance(value := names[name], Flag):
                span = as_word(value)
                names[name] = Span(span.lo, span.hi, span.exact, span.above, under=span.under)
        entry = State(names, entry.written)
        before, self.check.lenient = self.check.lenient, True
        kept = len(self.body.returned)
        try:
            inside, last = self.settle(entry)
            during, after = self.cells_written(entry, inside)
        finally:
            self.check.lenient = before
            del self.body.returned[kept:]
            self.body.left[-1].clear()
        for _ in self.rounds_from(State(inside, during)):
            pass  # once more, now that it is known which cells are written when they are read
        self.body.left[-1] = [
            self.leave(State(names, {owner: facts.without(self.counter) for owner, facts in written.items()}), entry)
            for names, written in self.body.left[-1]
        ]
        return self.leave(State(last, after), entry)

    def settle(self, entry: State) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the names at the start of any round, and after the last."""
        state = entry
        seen = dict(self.check.lines), dict(self.check.operands)
        try:
            for _ in range(STEADY):
                now = self.joined_round(state)
                if self.settled(state, now):
                    return state.names, state.names
                state = now
            found = self.grown(entry, state)
        except RangeError as error:
            return self.first_of(error, seen, entry, self.climbed, self.one_by_one)
        if found is not None:
            return self.tightened(entry, found)
        return self.first_of(None, seen, entry, self.climbed, self.one_by_one, self.followed)

    def first_of(
        self, error: RangeError | None, seen: Any, entry: State, *ways: Callable[[State], Names | None]
    ) -> Names:
        """Return the result of the first method that proves something; raise the first error if none does."""
        for way in ways:
            self.check.lines, self.check.operands = map(dict, seen)  # what a failed attempt has noted goes
            try:
                found = way(entry)
                if found is not None:
                    return found if self.begins else self.tightened(entry, found)
            except RangeError as other:
                error = error or other
        assert error is not None
        raise error

    def tightened(self, entry: State, found: Names) -> Names:
        """Narrow a result of `settle` by running the rounds one by one, if they are few."""
        if self.rounds > FEW >> 1 or any(isinstance(part, ir.For | ir.Call) for part in ir.walk(*self.node.body)):
            return found
        try:
            close = self.one_by_one(entry)
        except RangeError:
            close = None
        self.begins = []
        if close is None:
            return found
        inside, last = ({name: value.narrowed(close[0][name].lo, close[0][name].hi)
                         if isinstance(value, Span) and isinstance(close[0][name], Span) else value
                         for name, value in names.items()} for names in found)  # fmt: skip
        return inside, last

    def climbed(self, entry: State) -> Names | None:
        """Settle names that grow in step with the counter, by induction from each round to the next."""
        names, steps, ceilings = dict(entry.names), dict[str, tuple[int, int]](), dict[str, list[Span]]()
        for turn in range(4 * STEADY):
            wide = {**names, **{name: self.stretched(entry.names[name], step, True) for name, step in steps.items()}}
            now = self.round(State(wide, entry.written))
            if now is None:
                return None
            changed = False
            for name, value in wide.items():
                moved = now.names[name]
                if isinstance(value, Cells) or (name not in steps and self.same_after(value, moved)):
                    continue
                if name in steps and self.in_step(entry.names[name], steps[name], moved, self.starts[name]):
                    continue
                changed = True
                drifts = isinstance(moved, Span) and moved.start == self.starts.get(name)
                step = moved.drift if isinstance(moved, Span) and drifts else None
                if step is None and turn >= STEADY and name not in ceilings:
                    ceilings[name] = self.ceilings(name, entry)
                if step is None and turn >= STEADY and ceilings[name]:  # does a comparison hold it?
                    names[name] = _under(as_word(self.with_round(value, moved)), ceilings[name].pop(0), wider=True)
                    continue
                if step is None and turn >= STEADY and isinstance(value, Span):  # it does not settle: guess
                    now_at = as_word(self.with_round(value, moved))
                    step = now_at.lo - value.lo, now_at.hi - value.hi
                    if name in steps:
                        return None
                if step is None:
                    names[name] = self.with_round(value, moved)
                else:
                    before = steps.get(name, (0, 0))
                    steps[name] = min(before[0], step[0]), max(before[1], step[1])
            if not changed:
                after = {name: self.stretched(entry.names[name], step, False) for name, step in steps.items()}
                return self.held(entry, (wide, {**wide, **after}), steps)
        return None

    def ceilings(self, name: str, entry: State) -> list[Span]:
        """Return the numbers and lengths that a round compares a name with, and one less and one more."""
        found: list[Span] = []
        for test in ir.walk(*self.node.body):
            if not isinstance(test, ir.Apply) or test.primitive.result != "flag" or len(test.operands) != 2:
                continue
            for one, other in (test.operands, test.operands[::-1]):
                own, names = (
                    {part.name for part in ir.walk(side) if isinstance(part, ir.Name)} for side in (one, other)
                )
                plain = all(isinstance(part, ir.Const | ir.Name | ir.Index) for part in ir.walk(other))
                if name in own and plain and other.type in ("const", "index") and names <= entry.names.keys():
                    found.append(as_word(self.body.value(other, entry)))
        return [intervals.add(span, intervals.number(by)) for by in (-1, 0, 1) for span in found]

    def held(self, entry: State, found: Names, steps: dict[str, tuple[int, int]]) -> Names:
        """Narrow a result of `settle` where a comparison stops a name from growing."""
        inside, last = found
        for name in steps:
            for ceiling in self.ceilings(name, entry):
                close = _under(inside[name], ceiling)
                if ceiling.exact is None or not self.check.at_most(as_word(entry.names[name]), ceiling.exact):
                    continue
                now = self.round(State({**inside, name: close}, entry.written))
                if now is None or not self.check.at_most(as_word(now.names[name]), ceiling.exact):
                    continue
                inside, last = ({**names, name: _under(names[name], ceiling)} for names in (inside, last))
                break
        return inside, last

    def in_step(self, start: Value, step: tuple[int, int], now: Value, mark: int | None) -> bool:
        """Return whether a round has moved a name no further than its step."""
        if not isinstance(now, Span):
            return False
        drifts = now.start == mark
        base, done = as_word(start), Polynomial.variable(self.counter) - self.range.first + 1
        low = drifts and now.drift[0] >= step[0]
        high = drifts and now.drift[1] <= step[1]
        return (low or self.check.at_least(now, _floor(base) + done * step[0])) and (
            high or self.check.at_most(now, _ceiling(base) + done * step[1])
        )

    def one_by_one(self, entry: State) -> Names | None:
        """Settle a loop of few rounds by running each with its own number as counter."""
        first = self.range.first.number
        if not isinstance(first, int) or self.rounds > FEW:
            return None
        state, inside, begins = entry, entry.names, list[dict[str, Any]]()
        for turn in range(self.rounds):
            begins.append(state.names)
            now = self.round(state, first + turn)
            if now is None:
                break
            bounds = self.check.bounds
            names = {name: value if isinstance(value, Cells) else loosened(now.names[name], self.counter, bounds)
                     for name, value in state.names.items()}  # fmt: skip
            state = State(names, entry.written)
            inside = {name: value if isinstance(value, Cells) else self.check.join(value, names[name])
                      for name, value in inside.items()}  # fmt: skip
        self.begins = begins
        return inside, inside

    def rounds_from(self, state: State) -> Iterator[State | None]:
        """Run a round from this state; if rounds ran one by one, each of them with its own names."""
        if not self.begins:
            yield self.round(state)
        first = self.range.first.number
        for turn, names in enumerate(self.begins):
            assert isinstance(first, int)
            yield self.round(State(names, state.written), first + turn)

    def round(self, state: State, turn: int | None = None) -> State | None:
        """Return the state after one round from this one; `turn` is the counter's number, if it is known."""
        inside = state.copy()
        for name, value in inside.names.items():
            if isinstance(value, Span):
                inside.names[name] = value.restarted()
        self.starts = {name: value.start for name, value in inside.names.items() if isinstance(value, Span)}
        if self.node.counter != "_":
            symbol = self.check.symbol(self.counter)
            inside.names[self.node.counter] = symbol if turn is None else symbol.narrowed(turn, turn)
        return self.within_round(inside)

    def within_round(self, state: State) -> State | None:
        """Run the body, with the lengths at which there is a round at all."""
        if not self.longer:
            return self.body.block(self.node.body, state)
        bounds = self.check.bounds
        before = {name: bounds.symbols[name] for name in self.longer}
        known, bounds.known = bounds.known, {}
        bounds.symbols.update(self.longer)
        try:
            return self.body.block(self.node.body, state)
        finally:
            bounds.symbols.update(before)
            bounds.known = known

    def joined_round(self, state: State) -> State:
        now = self.round(state)
        if now is None:  # every way through the body returns
            return state
        names = {name: self.with_round(value, now.names[name]) for name, value in state.names.items()}
        return State(names, state.written)

    def with_round(self, value: Any, now: Any) -> Any:
        """Join a value before a round with the value after it."""
        if isinstance(value, Cells):
            return value
        return loosened(self.check.join(value, now), self.counter, self.check.bounds)

    def settled(self, before: State, now: State) -> bool:
        return all(_content(value) == _content(now.names[name]) for name, value in before.names.items())

    def cells_written(self, entry: State, inside: dict[str, Any]) -> tuple[Written, Written]:
        """Return which cells are written at the start of a round, and which after the last."""
        rounds = [now for now in self.rounds_from(State(inside, entry.written)) if now is not None]
        if not rounds:
            return dict(entry.written), dict(entry.written)
        now = rounds[0]
        for other in rounds[1:]:
            now = State(now.names, common_writes(now.written, other.written))
        bounds, counter = self.check.bounds, Polynomial.variable(self.counter)
        first, last = self.certain
        during, after = {}, {}
        for owner, facts in entry.written.items():
            new = Facts(tuple(run for run in now.written[owner].runs if run not in facts.runs))
            during[owner] = facts.and_also(*new.swept(self.counter, first, counter, bounds).runs)
            after[owner] = facts.and_also(*new.swept(self.counter, first, last, bounds).runs)
            if bounds.lowest(last - first) >= 1:
                after[owner] = after[owner].and_also(*new.without(self.counter).runs)
        return during, after

    def grown(self, entry: State, state: State) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Settle names that grow by a bounded amount in each round; None if they do not."""
        names = dict(state.names)
        try:
            for _ in range(STEADY):
                now = self.round(State(names, entry.written))
                if now is None:
                    return None
                steps: dict[str, tuple[int, int]] = {}
                for name, value in names.items():
                    if isinstance(value, Cells) or self.same_after(value, now.names[name]):
                        continue
                    moved = now.names[name]
                    if not isinstance(moved, Span) or moved.start != self.starts.get(name):
                        return None
                    steps[name] = min(0, moved.drift[0]), max(0, moved.drift[1])
                if not steps:
                    return names, names
                wide = {**names, **{name: self.stretched(entry.names[name], step, True)
                                    for name, step in steps.items()}}  # fmt: skip
                last = self.round(State(wide, entry.written))
                if last is not None and self.confirmed(wide, last, steps):
                    after = {name: self.stretched(entry.names[name], step, False) for name, step in steps.items()}
                    return self.held(entry, (wide, {**wide, **after}), steps)
                names = self.joined_round(State(wide, entry.written)).names
        except RangeError:
            if self.rounds > MOST_ROUNDS:
                raise
        return None

    def same_after(self, value: Value, now: Value) -> bool:
        return bool(_content(value) == _content(self.with_round(value, now)))

    def stretched(self, start: Value, step: tuple[int, int], inside: bool) -> Span:
        """Return a name that a round moves by `step` at most: at the start of any round, or after the last."""
        span, ends = as_word(start), self.range
        rounds = self.rounds - 1 if inside else self.rounds
        many = [Polynomial.variable(self.counter) - ends.first]
        if not inside:  # where there may be no round, the ends of the counter say nothing
            many = [end + 1 - ends.first for end in ends.last]
            many = [done for done in many if self.check.bounds.lowest(done) >= 0]
        under, above = (
            tuple(bound for bound in (end + done * by for done in many) if bound.number is None)
            for end, by in ((_floor(span), step[0]), (_ceiling(span), step[1]))
        )
        made = Span(span.lo + rounds * step[0], span.hi + rounds * step[1], None, above, under=under)
        return self.check.refined(made)

    def confirmed(self, wide: dict[str, Any], last: State, steps: dict[str, tuple[int, int]]) -> bool:
        """Return whether a round from the widest state moves no name further than its step."""
        for name, value in wide.items():
            if isinstance(value, Cells):
                continue
            now = last.names[name]
            if name in steps:
                low, high = steps[name]
                if not isinstance(now, Span) or now.start != self.starts[name]:
                    return False
                if now.drift[0] < low or now.drift[1] > high:
                    return False
            elif not self.same_after(value, now):
                return False
        return True

    def followed(self, entry: State) -> tuple[dict[str, Any], dict[str, Any]]:
        """Settle by running the rounds one after the other until nothing changes."""
        before = state = entry
        for _ in range(min(self.rounds, MOST_ROUNDS)):
            before, state = state, self.joined_round(state)
            if self.settled(before, state):
                return before.names, state.names
        if self.rounds > MOST_ROUNDS:
            text = f"the values of this loop still change after {MOST_ROUNDS} of up to {self.rounds} rounds"
            raise self.body.error(self.node, f"{text}; bound them with min_ or max_, or shorten it")
        return before.names, state.names

    def leave(self, state: State, entry: State) -> State:
        names = {
            name: loosened(state.names[name], self.counter, self.check.bounds) if name in self.changed else value
            for name, value in entry.names.items()
        }
        return State(names, state.written)


def _content(value: Any) -> Any:
    """Return what two values must share to say the same."""
    return value.known() if isinstance(value, Span) else value


def _under(value: Span, ceiling: Span, wider: bool = False) -> Span:
    """Bound a value by a ceiling; `wider` drops all other bounds."""
    limits = () if ceiling.exact is None or ceiling.exact.number is not None else (ceiling.exact,)
    if wider:
        return Span(value.lo, max(value.lo, ceiling.hi), None, limits)
    return value.with_bounds(value.lo, max(value.lo, min(value.hi, ceiling.hi)), (*value.above, *limits), value.under)


def _ceiling(span: Span) -> Polynomial:
    return span.exact if span.exact is not None else Polynomial.constant(span.hi)


def _floor(span: Span) -> Polynomial:
    return span.exact if span.exact is not None else Polynomial.constant(span.lo)


def loosened(value: Any, counter: str, bounds: Bounds) -> Any:
    """Remove a loop's counter, which means nothing after the loop, from what is known about a value.

    A bound in terms of the counter becomes the bound at the counter's end.
    """
    if isinstance(value, Mask | Masked):
        return loosened(as_word(value), counter, bounds)
    if isinstance(value, Flag):
        return Flag(value.holds)
    if not isinstance(value, Span):
        return value
    if not _speaks(value, counter):
        value = value.with_bounds(value.lo, value.hi, value.above, value.under)
        value.over, value.made = (), None  # which may speak of it
        return value
    exact = value.exact if value.exact is None or counter not in value.exact.names() else None
    above = [bound if counter not in bound.names() else bounds.without(bound, counter) for bound in value.uppers()]
    negated = [bounds.without(-bound, counter) if counter in bound.names() else -bound for bound in value.lowers()]
    under = [None if bound is None else -bound for bound in negated]
    view = loosened(value.view, counter, bounds) if value.view is not None else None
    kept = [tuple(dict.fromkeys(bound for bound in found if bound is not None and bound != exact
                                and bound.number is None)) for found in (above, under)]  # fmt: skip
    return Span(value.lo, value.hi, exact, kept[0], view=view, under=kept[1])


def _speaks(span: Span, counter: str) -> bool:
    said = [*span.uppers(), *span.under, span.moved]
    return any(counter in each.names() for each in said) or (span.view is not None and _speaks(span.view, counter))
