"""Recognise values of the kernel among those that machine code computes, so that both are written alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bitwuzla import Kind

from sensorsim.proof import bitvectors as bv
from sensorsim.proof.bitvectors import Bits, Solver, manager
from sensorsim.proof.memory_model import State

LEAST_SAMPLES = 2  # that go a path, for a guess which values are equal on it
SECONDS, SECONDS_ON_A_PATH = 2.0, 1.0  # for a question that need not be answered


class Recognition:
    """Values that the kernel computes, found again by their samples and then proved to be equal."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.values: dict[tuple[int, tuple[int, ...]], list[Bits]] = {}  # by width and samples
        self.by_place: dict[tuple[int, ...], dict[Any, list[Bits]]] = {}  # the same by some of the samples
        self.equal: set[tuple[Any, Any]] = set()  # values of the kernel and of the code that are equal on every path
        self.unequal: set[tuple[Any, Any]] = set()  # not seen to be equal

    def expect(self, values: Iterable[Bits]) -> None:
        """Note values of the kernel, which the code may compute too."""
        for value in values:
            found = self.values.setdefault((value.width, value.samples), [])
            if not any(one is value for one in found):
                found.append(value)

    def recognised(self, path: State, value: Bits) -> Bits:
        """Return the kernel's own value where this one is proved to equal it: what follows is then written alike."""
        if value.number is not None or not self.values:
            return value
        hint = self._likely(value, self.values.get((value.width, value.samples), ()))
        if hint is not None:
            key = (hint.term, value.term)
            if hint.term == value.term or key in self.equal:
                return hint
            if key not in self.unequal:
                differ = [manager.mk_term(Kind.DISTINCT, [hint.term, value.term])]
                if self.solver.check(differ, SECONDS, depths=(0, 1, 4))[0] is False:
                    self.equal.add(key)
                    return hint
                self.unequal.add(key)
        hint = self._likely(value, self._on_path(path, value))
        if hint is None:
            return value
        key = (hint.term, value.term)
        if key not in path.facts:  # a path that forks keeps its facts: its conditions only grow
            differ = [manager.mk_term(Kind.DISTINCT, [hint.term, value.term])]
            path.facts[key] = self.solver.check(differ, SECONDS_ON_A_PATH, path.path, (3, 6))[0] is False
        return hint if path.facts[key] else value

    def _likely(self, value: Bits, alike: Sequence[Bits]) -> Bits | None:
        """Return the kernel's value that has most inputs in common with this one."""
        own = bv.leaves(bv.meaning(value))

        def likeness(one: Bits) -> int:
            return len(own & bv.leaves(bv.meaning(one))) + (99 if one.term == value.term else 0)

        return max(alike, key=likeness, default=None)

    def _on_path(self, path: State, value: Bits) -> Sequence[Bits]:
        """Return the kernel's values that agree with this one for all samples that go this path."""
        places = path.samples()
        if len(places) < LEAST_SAMPLES:
            return ()
        index = self.by_place.get(places)
        if index is None:
            index = self.by_place[places] = {}
            for (width, samples), hints in self.values.items():
                key = width, tuple(samples[i] for i in places)
                if len(set(key[1])) > 1:
                    index.setdefault(key, []).extend(hints)
        return index.get((value.width, tuple(value.samples[i] for i in places)), ())

    def recognised_bit(self, path: State, bit: Bits) -> Bits:
        """Return the kernel's own condition, or its opposite, where this one is proved to equal it."""
        if bit.number is not None:
            return bit
        found = self.recognised(path, bit)
        return found if found is not bit else bv.invert(self.recognised(path, bv.invert(bit)))
