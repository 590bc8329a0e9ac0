"""Execute machine code on bit vectors, path by path.

Each instruction is lifted by Ghidra's processor descriptions (pypcode) to a few of some forty simple operations. A
branch on a public value that is not known forks the path; one on a secret is a finding. An instruction that is executed
under a condition, as a conditional move is, does not fork: both outcomes are computed and chosen from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from random import Random
from typing import Any, NamedTuple, cast

import pypcode
from bitwuzla import Kind

from sensorsim.proof import bitvectors as bv
from sensorsim.proof.bitvectors import Bits, Solver, known, manager
from sensorsim.proof.memory_model import FindingError, Leak, Region, State, UndecidedError, merge
from sensorsim.proof.recognition import Recognition

Op = pypcode.OpCode
BINARY = {
    Op.INT_ADD: Kind.BV_ADD,
    Op.INT_SUB: Kind.BV_SUB,
    Op.INT_MULT: Kind.BV_MUL,
    Op.INT_AND: Kind.BV_AND,
    Op.INT_OR: Kind.BV_OR,
    Op.INT_XOR: Kind.BV_XOR,
    Op.BOOL_AND: Kind.BV_AND,
    Op.BOOL_OR: Kind.BV_OR,
    Op.BOOL_XOR: Kind.BV_XOR,
    Op.INT_DIV: Kind.BV_UDIV,
    Op.INT_REM: Kind.BV_UREM,
    Op.INT_SDIV: Kind.BV_SDIV,
    Op.INT_SREM: Kind.BV_SREM,
}
DIVIDES = {Op.INT_DIV, Op.INT_REM, Op.INT_SDIV, Op.INT_SREM}
SHIFTS = {Op.INT_LEFT: Kind.BV_SHL, Op.INT_RIGHT: Kind.BV_SHR, Op.INT_SRIGHT: Kind.BV_ASHR}
COMPARES = {
    Op.INT_EQUAL: Kind.EQUAL,
    Op.INT_LESS: Kind.BV_ULT,
    Op.INT_LESSEQUAL: Kind.BV_ULE,
    Op.INT_SLESS: Kind.BV_SLT,
    Op.INT_SLESSEQUAL: Kind.BV_SLE,
    Op.INT_CARRY: Kind.BV_UADD_OVERFLOW,
    Op.INT_SCARRY: Kind.BV_SADD_OVERFLOW,
    Op.INT_SBORROW: Kind.BV_SSUB_OVERFLOW,
}
JUMPS = {Op.BRANCHIND, Op.RETURN, Op.CALLIND}
LONGEST = 16  # bytes of an instruction
MANY = 64  # entries of a table above which its reads are those of an unknown function


class Place(NamedTuple):
    """A varnode: a register, a temporary, memory at a fixed address or a constant."""

    space: str
    offset: int
    size: int


class Lifted(NamedTuple):
    """Hold an operation of an instruction."""

    opcode: Any
    output: Place | None
    inputs: tuple[Place, ...]


class Split(NamedTuple):
    """Two ends of one instruction: `second` is the state where the condition holds, and `taken` where it goes on."""

    condition: Bits
    second: State | None  # None where both states are still the same
    other: int
    taken: int


class PcodeMachine:
    """A core with a program in memory and regions for arguments and stack."""

    def __init__(
        self,
        language: str,
        program: Mapping[int, bytes],
        regions: Sequence[Region],
        solver: Solver,
        thumb: bool = False,
        pointer: int = 32,
        stack: str = "",
    ) -> None:
        self.context = pypcode.Context(language)
        if thumb:
            self.context.setVariableDefault("TMode", 1)
        self.thumb, self.pointer, self.solver = thumb, pointer, solver
        self.stack = self.register(stack) if stack else None
        self.regions = list(regions)
        self.code: dict[int, int] = {start + i: byte for start, data in program.items() for i, byte in enumerate(data)}
        self.lifted: dict[int, tuple[int, tuple[Lifted, ...]]] = {}  # length and operations of an instruction
        self.first: dict[int, Bits] = {}  # what memory held before anything was written, by byte
        self.tables: dict[str, Any] = {}
        self.recognition = Recognition(solver)
        self.outside: dict[int, Callable[[State], None]] = {}  # what happens at addresses that are not executed
        self.branches_on_secrets = False  # whether the kernel declares that it branches on a secret

    # registers and memory

    def register(self, name: str) -> Place:
        found = self.context.registers[name]
        return Place("register", found.offset, found.size)

    def get(self, state: State, place: Place) -> Bits:
        if place.space == "const":
            return known(place.offset, 8 * place.size)
        if place.space in ("ram", "mem"):
            return self.load(state, known(place.offset, self.pointer), place.size)
        base = place.offset if place.space == "register" else place.offset | 1 << 40
        return state.registers.read(base, place.size, self._unset)

    def put(self, state: State, place: Place, value: Bits) -> None:
        if place.space in ("ram", "mem"):
            self.store(state, known(place.offset, self.pointer), value)
        elif place.space == "register":
            if value.number is None and value.width == self.pointer:
                value = self.recognition.recognised(state, value)
            state.registers.write(place.offset, value)
        else:
            state.registers.write(place.offset | 1 << 40, value)

    def _unset(self, offset: int) -> Bits:
        return self._initial(offset | 1 << 41, f"register_{offset:x}")

    def _initial(self, address: int, name: str) -> Bits:
        if address not in self.first:
            self.first[address] = bv.unknown(name, 8)
        return self.first[address]

    def byte(self, address: int) -> Bits:
        """Return a byte of memory as it was before the call."""
        if address in self.first:
            return self.first[address]
        if address in self.code:
            return known(self.code[address], 8)
        if any(region.holds(address) for region in self.regions):
            return self._initial(address, f"memory_{address:x}")
        raise FindingError(f"reads memory at 0x{address:x} that belongs to nothing")

    def load(self, state: State, address: Bits, count: int) -> Bits:
        if address.number is not None:
            return state.memory.read(address.number, count, self.byte)
        if address.secrets:
            state.leaks.add(Leak("address", state.pc, address.secrets))
        region = self.region_of(state, address, count)
        index, step = self._index(state, region, address, count)
        many = region.size // step
        if not region.writable and step == count == region.element and many > MANY:
            return self.table_read(region.name, index, 8 * count)
        starts = range(region.start, region.end - count + 1, step)
        return bv.read_choice([state.memory.read(at, count, self.byte) for at in starts], index)

    def table_read(self, name: str, index: Bits, width: int) -> Bits:
        """Return an entry of a constant table as that of an unknown function: it holds for any contents."""
        if name not in self.tables:
            sort = manager.mk_array_sort(bv.sort_of(32), bv.sort_of(width))
            self.tables[name] = manager.mk_const(sort, f"table_{name}")
        samples = tuple(Random(f"{name} {one}").getrandbits(width) for one in index.samples)
        term = manager.mk_term(Kind.ARRAY_SELECT, [self.tables[name], index.term])
        return Bits(width, None, term, index.secrets, samples)

    def store(self, state: State, address: Bits, value: Bits) -> None:
        count = value.width >> 3
        if address.number is not None:
            if not any(region.writable and region.holds(address.number, count) for region in self.regions):
                raise FindingError(
                    f"writes {count} bytes at 0x{address.number:x}, outside of what it may write", state.pc
                )
            state.memory.write(address.number, value)
            return
        if address.secrets:
            state.leaks.add(Leak("address", state.pc, address.secrets))
        region = self.region_of(state, address, count)
        if not region.writable:
            raise FindingError(f"writes to {region.name}, which it may not write", state.pc)
        index, step = self._index(state, region, address, count)
        for place, at in enumerate(range(region.start, region.end - count + 1, step)):
            here = bv.equal(index, known(place, index.width))
            before = state.memory.read(at, count, self.byte)
            state.memory.write(at, bv.select(here, value, before))

    def region_of(self, state: State, address: Bits, count: int) -> Region:
        """Return the region that an unknown address is proved to lie in."""
        key = (address.term, count)
        if key in state.facts:
            return cast("Region", state.facts[key])
        at = address.samples[0]  # if it is in one region for every input, then for this one
        for region in self.regions:
            if region.holds(at, count):
                offset = bv.sub(address, known(region.start, address.width))
                inside = bv.compare(Kind.BV_ULE, offset, known(region.size - count, address.width))
                if self.solver.holds(bv.truth(inside), state.path):
                    state.facts[key] = region
                    return region
                raise FindingError(f"accesses memory at an address that can leave {region.name}", state.pc)
        raise FindingError(f"accesses memory at an address (0x{at:x}) that belongs to nothing", state.pc)

    def _index(self, state: State, region: Region, address: Bits, count: int) -> tuple[Bits, int]:
        """Return which entry of a region an address names, and how far entries are apart."""
        offset = bv.sub(address, known(region.start, address.width))
        if count > 1:
            low = bv.extract(offset, count.bit_length() - 2, 0)
            aligned = bv.truth(bv.equal(low, known(0, low.width)))
            if not self.solver.holds(aligned, state.path):
                return offset, 1
        index = bv.shift(Kind.BV_SHR, offset, known(count.bit_length() - 1, offset.width))
        return index, count

    # execution

    def instruction(self, address: int) -> tuple[int, tuple[Lifted, ...]]:
        """Return the length and the operations of an instruction."""
        if address in self.lifted:
            return self.lifted[address]
        data = bytes(self.code[at] for at in range(address, address + LONGEST) if at in self.code)
        if not data:
            raise FindingError(f"jumps to 0x{address:x}, where there is no code", address)
        try:
            made = self.context.translate(data, base_address=address, max_instructions=1).ops
        except Exception as error:
            raise FindingError(f"has no instruction at 0x{address:x} ({error})", address) from None
        length, operations = 0, []
        for one in made:
            inputs = tuple(Place(v.space.name, v.offset, v.size) for v in one.inputs)
            if one.opcode == Op.IMARK:
                length += sum(place.size for place in inputs)
            else:
                to = one.output
                output = None if to is None else Place(to.space.name, to.offset, to.size)
                operations.append(Lifted(one.opcode, output, inputs))
        self.lifted[address] = length, tuple(operations)
        return self.lifted[address]

    def step(self, state: State) -> State | None:
        """Execute one instruction; return the state of the other path where it forks."""
        length, operations = self.instruction(state.pc)
        state.executed[state.pc] += 1
        after = state.pc + length
        jump = self._operations(state, operations, 0, after)
        if isinstance(jump, Split):
            return self._fork(state, jump)
        state.pc = after if jump is None else jump
        return None

    def _operations(self, state: State, operations: Sequence[Lifted], at: int, after: int) -> int | Split | None:
        """Execute operations from one on; return where to go on, None for the next instruction."""
        while at < len(operations):
            one = operations[at]
            opcode, inputs = one.opcode, one.inputs
            if opcode == Op.CBRANCH or opcode == Op.BRANCH:
                target = inputs[0]
                inside = at + bv.signed(target.offset & 0xFFFFFFFF, 32) if target.space == "const" else None
                if opcode == Op.CBRANCH:
                    condition = self.get(state, inputs[1])
                    if condition.number is None:
                        if inside is None and target.offset != after:
                            return Split(condition, None, after, target.offset)
                        goes_to = len(operations) if inside is None else inside
                        return self._either(state, operations, condition, goes_to, at + 1, after)
                    if not condition.number:
                        at += 1
                        continue
                if inside is None:
                    return target.offset
                at = inside
                continue
            if opcode in JUMPS:
                where = self.get(state, inputs[0])
                if where.number is None:
                    if where.secrets:
                        state.leaks.add(Leak("branch", state.pc, where.secrets))
                    raise FindingError("jumps to an address that depends on its input", state.pc, where.secrets)
                return where.number & ~1 if self.thumb else where.number
            if opcode == Op.CALL:
                return inputs[0].offset
            if opcode == Op.CALLOTHER:
                if one.output is not None:
                    raise FindingError("has an instruction without a meaning here", state.pc)
            elif opcode == Op.STORE:
                self.store(state, self.get(state, inputs[1]), self.get(state, inputs[2]))
            elif opcode == Op.LOAD:
                assert one.output is not None
                self.put(state, one.output, self.load(state, self.get(state, inputs[1]), one.output.size))
            else:
                assert one.output is not None
                self.put(state, one.output, self._value(state, one))
            at += 1
        return None

    def _either(
        self, state: State, operations: Sequence[Lifted], condition: Bits, taken: int, other: int, after: int
    ) -> int | Split | None:
        """Execute the rest of an instruction under both outcomes of a condition, and choose between the results."""
        holds = self.recognition.recognised_bit(state, _bit(condition))
        fails = bv.invert(holds)
        if any(one.opcode in (Op.LOAD, Op.STORE) for one in operations):  # an access that never happens is no fault
            for never, goes_on in ((holds, other), (fails, taken)):
                if self.solver.check([never], path=state.path)[0] is False:
                    return self._operations(state, operations, goes_on, after)
        path, facts = state.path, state.facts
        second = state.copy()
        second.path.append(holds)
        state.path, state.facts = [*path, fails], dict(facts)
        ends = self._operations(state, operations, other, after), self._operations(second, operations, taken, after)
        second.path.pop()
        state.path, state.facts, second.facts = path, facts, dict(facts)  # what was proved held under the condition
        if any(isinstance(end, Split) for end in ends):
            raise UndecidedError(f"the instruction at 0x{state.pc:x} has several conditions")
        if ends[0] != ends[1]:
            return Split(condition, second, *(after if end is None else cast("int", end) for end in ends))
        merge(state.registers, second.registers, condition, self._unset)
        if state.memory.cell != second.memory.cell:
            if condition.secrets:
                state.leaks.add(Leak("address", state.pc, condition.secrets))
            merge(state.memory, second.memory, condition, self.byte)
        state.leaks |= second.leaks
        return ends[0]

    def _value(self, state: State, one: Lifted) -> Bits:
        opcode, output = one.opcode, one.output
        assert output is not None
        values = [self.get(state, place) for place in one.inputs]
        first, width = values[0], 8 * output.size
        if opcode in BINARY:
            if opcode in DIVIDES and any(value.secrets for value in values):
                state.leaks.add(Leak("division", state.pc, values[0].secrets | values[1].secrets))
            return bv.binary(BINARY[opcode], first, values[1])
        if opcode in SHIFTS:
            return bv.shift(SHIFTS[opcode], first, values[1])
        if opcode in COMPARES:
            return bv.zero_extend(bv.compare(COMPARES[opcode], first, values[1]), width)
        if opcode == Op.INT_NOTEQUAL:
            return bv.zero_extend(bv.exclusive(bv.equal(first, values[1]), known(1, 1)), width)
        if opcode in (Op.COPY, Op.INT_ZEXT):
            return bv.zero_extend(first, width)
        if opcode == Op.INT_SEXT:
            return bv.sign_extend(first, width)
        if opcode == Op.INT_NEGATE:
            return bv.invert(first)
        if opcode == Op.INT_2COMP:
            return bv.sub(known(0, width), first)
        if opcode == Op.BOOL_NEGATE:
            return bv.exclusive(first, known(1, first.width))
        if opcode == Op.SUBPIECE:
            low = 8 * (values[1].number or 0)
            if low >= first.width:
                return known(0, width)
            return bv.zero_extend(bv.extract(first, min(low + width, first.width) - 1, low), width)
        if opcode == Op.PIECE:
            return bv.join(values)
        bits = [bv.extract(first, i, i) for i in range(first.width)]
        if opcode == Op.POPCOUNT:
            return reduce(bv.add, (bv.zero_extend(bit, width) for bit in bits))
        if opcode == Op.LZCOUNT:
            count = known(first.width, width)
            for i, bit in enumerate(bits):
                count = bv.select(bit, known(first.width - 1 - i, width), count)
            return count
        raise FindingError(f"has an operation without a meaning here ({opcode})", state.pc)

    def _fork(self, state: State, split: Split) -> State | None:
        """Go on with both outcomes of a condition."""
        condition, second, after, target = split
        if condition.secrets:
            state.leaks.add(Leak("branch", state.pc, condition.secrets))
            if not self.branches_on_secrets:
                raise FindingError("has a branch that depends on a secret", state.pc, condition.secrets)
        holds = self.recognition.recognised_bit(state, _bit(condition))
        fails = bv.invert(holds)
        if self.solver.excludes(state.path, holds):
            state.pc = after
            return None
        if self.solver.excludes(state.path, fails):
            if second is not None:
                state.__dict__.update(second.__dict__)
            state.pc = target
            return None
        other = state.copy() if second is None else second
        other.path.append(holds)
        other.pc = target
        state.path.append(fails)
        state.pc = after
        return other


def _bit(condition: Bits) -> Bits:
    """Return whether a value is not zero, as one bit."""
    return condition if condition.width == 1 else bv.invert(bv.equal(condition, known(0, condition.width)))
