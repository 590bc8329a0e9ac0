"""A loop whose number of rounds is a length, or large: what holds after any number of rounds."""

from typing import TYPE_CHECKING, Any

from sensorsim.language import ir
from sensorsim.language.bounds import Bounds
from sensorsim.language.intervals import Flag, Mask, Masked, Span, Value, as_word
from sensorsim.language.polynomial import Polynomial
from sensorsim.language.ranges.states import Cells, RangeError, State
from sensorsim.language.ranges.written import Written

if TYPE_CHECKING:
    from sensorsim.language.ranges.body import Body

STEADY = 4  # rounds in which a loop may settle by itself
MOST_ROUNDS = 5000  # a loop that neither settles nor grows evenly is followed this far


class Loop:
    """One loop whose number of rounds is not known, or large."""

    def __init__(self, body: "Body", node: ir.For, counter: str, certain: list[Polynomial], rounds: int) -> None:
        self.body, self.node, self.counter, self.rounds = body, node, counter, rounds
        self.certain = certain  # the rounds from the first to the one before the second do run, for every input
        self.check = body.check

    def run(self, entry: State) -> State:
        """The state after any number of rounds."""
        entry = State(self.unrelated(entry.names), entry.written)
        before, self.check.lenient = self.check.lenient, True
        kept = len(self.body.returned)
        try:
            inside, last = self.settle(entry)
            during, after = self.cells_written(entry, inside)
        finally:
            self.check.lenient = before
            del self.body.returned[kept:]
        self.round(State(inside, during))  # once more, now that it is known which cells are written when they are read
        return self.leave(State(last, after), entry)

    def unrelated(self, names: dict[str, Any]) -> dict[str, Any]:
        """The names, those that a round may change without what ties their first value to another value."""
        changed = {part.name for part in ir.walk(*self.node.body) if isinstance(part, ir.Let)}
        return {
            name: _alone(as_word(value)) if name in changed and not isinstance(value, Flag) else value
            for name, value in names.items()
        }

    def settle(self, entry: State) -> tuple[dict[str, Any], dict[str, Any]]:
        """The names at the start of any round, and after the last."""
        state = entry
        for _ in range(STEADY):
            now = self.joined_round(state)
            if self.settled(state, now):
                return state.names, state.names
            state = now
        return self.grown(entry, state) or self.followed(entry)

    def round(self, state: State) -> State | None:
        """The state after one round from this one."""
        inside = state.copy()
        for name, value in inside.names.items():
            if isinstance(value, Span):
                inside.names[name] = value.restarted()
        self.starts = {name: value.start for name, value in inside.names.items() if isinstance(value, Span)}
        if self.node.counter != "_":
            inside.names[self.node.counter] = self.check.symbol(self.counter)
        return self.body.block(self.node.body, inside)

    def joined_round(self, state: State) -> State:
        now = self.round(state)
        if now is None:  # every way through the body returns
            return state
        names = {name: self.with_round(value, now.names[name]) for name, value in state.names.items()}
        return State(names, state.written)

    def with_round(self, value: Any, now: Any) -> Any:
        """A value before a round or after it."""
        return (
            value
            if isinstance(value, Cells)
            else loosened(self.check.join(value, now), self.counter, self.check.bounds)
        )

    def settled(self, before: State, now: State) -> bool:
        return all(_says(value) == _says(now.names[name]) for name, value in before.names.items())

    def cells_written(self, entry: State, inside: dict[str, Any]) -> tuple[Written, Written]:
        """Which cells are written at the start of a round, and which after the last."""
        now = self.round(State(inside, entry.written))
        if now is None:
            return dict(entry.written), dict(entry.written)
        bounds, counter = self.check.bounds, Polynomial.variable(self.counter)
        first, last = self.certain
        during, after = {}, {}
        for owner, facts in entry.written.items():
            new = now.written[owner].since(facts)
            during[owner] = facts.and_also(new.swept(self.counter, first, counter, bounds))
            after[owner] = facts.and_also(new.swept(self.counter, first, last, bounds))
            if bounds.lowest(last - first) >= 1:
                after[owner] = after[owner].and_also(new.without(self.counter))
        return during, after

    def grown(self, entry: State, state: State) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The same, where the names that still change grow by a bounded amount in each round."""
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
                wide = {**names, **{name: self.stretched(entry.names[name], step, self.rounds - 1)
                                    for name, step in steps.items()}}  # fmt: skip
                last = self.round(State(wide, entry.written))
                if last is not None and self.confirmed(wide, last, steps):
                    return wide, {**wide, **{name: self.stretched(entry.names[name], step, self.rounds)
                                             for name, step in steps.items()}}  # fmt: skip
                names = self.joined_round(State(wide, entry.written)).names
        except RangeError:
            if self.rounds > MOST_ROUNDS:
                raise
        return None

    def same_after(self, value: Value, now: Value) -> bool:
        joined = self.with_round(value, now)
        if isinstance(value, Span) and isinstance(joined, Span):
            return value.known() == joined.known()
        return bool(value == joined)

    def stretched(self, start: Value, step: tuple[int, int], rounds: int) -> Span:
        span = as_word(start)
        return Span(span.lo + rounds * step[0], span.hi + rounds * step[1])

    def confirmed(self, wide: dict[str, Any], last: State, steps: dict[str, tuple[int, int]]) -> bool:
        """Whether a round from the widest state moves nothing further than it was taken to."""
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
        """The same, with the rounds run one after the other until nothing changes."""
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
        kept = {name: value for name, value in state.names.items() if name in entry.names}
        names = {name: loosened(value, self.counter, self.check.bounds) for name, value in kept.items()}
        return State(names, state.written)


def _says(value: Any) -> Any:
    """All that two values must share to say the same."""
    return value.known() if isinstance(value, Span) else value


def _alone(span: Span) -> Span:
    return Span(span.lo, span.hi, span.exact, span.above)


def loosened(value: Any, counter: str, bounds: Bounds) -> Any:
    """A value without what is said of it in terms of a loop's counter, which means nothing after the loop.

    What it does not exceed in terms of the counter it does not exceed at the counter's end.
    """
    if isinstance(value, Mask | Masked):
        return loosened(as_word(value), counter, bounds)
    if not isinstance(value, Span) or not _speaks(value, counter):
        return value
    exact = value.exact if value.exact is None or counter not in value.exact.names() else None
    above = [bound if counter not in bound.names() else bounds.without(bound, counter) for bound in value.uppers()]
    view = loosened(value.view, counter, bounds) if value.view is not None else None
    kept = dict.fromkeys(bound for bound in above if bound is not None and bound != exact and bound.number is None)
    return Span(value.lo, value.hi, exact, tuple(kept), view=view)


def _speaks(span: Span, counter: str) -> bool:
    said = [*span.uppers(), span.moved]
    return any(counter in each.names() for each in said) or (span.view is not None and _speaks(span.view, counter))
