"""Follow machine code along all of its paths, and join those that meet again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sensorsim.proof import bitvectors as bv
from sensorsim.proof.bitvectors import Bits, known
from sensorsim.proof.memory_model import Event, State, UndecidedError, merge

if TYPE_CHECKING:
    from sensorsim.proof.pcode_machine import PcodeMachine

MOST_STEPS = 4_000_000


def run_paths(machine: PcodeMachine, start: State, stop: int, most_paths: int = 256) -> list[State]:
    """Return the states of all paths from `start` to `stop`.

    Paths that meet again in one place are joined. So that they meet, the one goes on that is deepest in calls and,
    of these, the one that is furthest back in the code.
    """
    ended: list[State] = []
    waiting = [start]
    steps = 0
    while waiting:
        waiting.sort(key=partial(_order, machine), reverse=True)
        state = waiting.pop()
        others = {one.pc: one for one in waiting}
        forked = None
        while state.pc != stop and forked is None:
            steps += 1
            if steps > MOST_STEPS:
                raise UndecidedError(f"more than {MOST_STEPS:,} instructions")
            if state.pc in machine.outside:
                machine.outside[state.pc](state)
            else:
                forked = machine.step(state)
            if forked is None and state.pc in others:
                break
        if forked is not None:
            waiting.append(forked)
        elif state.pc != stop:
            forked = state
            for other in waiting:
                if other.pc == state.pc and join(machine, other, state):
                    forked = None
                    break
            if forked is None:
                continue
        if state.pc == stop:
            if not any(join(machine, other, state) for other in ended):
                ended.append(state)
        else:
            waiting.append(state)
        if len(waiting) + len(ended) > most_paths:
            raise UndecidedError(f"more than {most_paths} paths")
    return ended


def _order(machine: PcodeMachine, state: State) -> tuple[int, int]:
    return _depth(machine, state), state.pc


def _depth(machine: PcodeMachine, state: State) -> int:
    """Return the stack pointer, 0 where it is not known."""
    return 0 if machine.stack is None else machine.get(state, machine.stack).number or 0


def join(machine: PcodeMachine, first: State, second: State) -> bool:
    """Let the first path stand for both, where they are alike but for data; return whether they are."""
    if (
        _depth(machine, first) != _depth(machine, second)
        or first.executed[first.pc] != second.executed[second.pc]
        or [(one.name, len(one.inputs)) for one in first.events]
        != [(one.name, len(one.inputs)) for one in second.events]
    ):
        return False
    for mine, theirs in ((first.registers, second.registers), (first.memory, second.memory)):
        for address, value in mine.cell.items():
            other = theirs.cell.get(address)
            if other is None or value.number is None or other.number is None or value.number == other.number:
                continue
            if any(_is_place(machine, one.number) for one in (value, other)) and address < 1 << 40:
                return False
    common = 0
    for one, other in zip(first.path, second.path, strict=False):
        if one is not other:
            break
        common += 1
    sides = []
    for state in (first, second):
        held = known(1, 1)
        for one in state.path[common:]:
            held = bv.conjunction(held, one)
        sides.append(bv.named(held))
    chosen = sides[1]
    first.path = [*first.path[:common], bv.disjunction(*sides)]

    def note(value: Bits) -> Bits:
        return machine.recognition.recognised(first, bv.named(value)) if value.width == machine.pointer else value

    merge(first.registers, second.registers, chosen, machine._unset, note)
    merge(first.memory, second.memory, chosen, machine.byte, note)
    first.executed |= second.executed
    first.leaks |= second.leaks
    first.facts = {key: fact for key, fact in first.facts.items() if second.facts.get(key) == fact}
    first.events = [
        Event(one.name, tuple(bv.select(chosen, b, a) for a, b in zip(one.inputs, other.inputs, strict=True)))
        for one, other in zip(first.events, second.events, strict=True)
    ]
    return True


def _is_place(machine: PcodeMachine, number: int | None) -> bool:
    """Return whether a number may be an address: of code or of anything else in memory."""
    return number is not None and any(region.start <= number < region.end for region in machine.regions)
