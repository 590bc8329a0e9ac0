"""Track what depends on data through one call: dynamic taint analysis of registers, flags and memory.

Lengths and the addresses of arguments are not data. As long as no jump depends on data, every input takes the same
path, and what is not tainted has the same value for all of them; so the first jump that does is found even where this
call takes the path of nearly all calls. An instruction that an Arm IT block skips may run with other data: what it
would have written is tainted too.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sensorsim.language.types import Array, Length
from sensorsim.machine.abi import ARGUMENT_BYTES
from sensorsim.machine.emulator import Machine
from sensorsim.machine.harness import CoreRun
from sensorsim.machine.instructions import ALWAYS, Decoder, read_registers, written_register
from sensorsim.machine.watching import remove_hooks

SIGNS, CARRIES, FLAGS = "nz", "cv", {"nz", "cv"}  # an Arm's flags in two groups, as if they were registers
BY_SIGNS, BY_CARRIES = (1, 2, 5, 6), (3, 4, 7, 8)  # Arm conditions that look at one of them; the others at both
SETS_ALL = ("add", "sub", "rsb", "cmp", "cmn", "neg", "adc", "sbc")  # what leaves no Arm flag as it was
X86_SETS_ALL = ("add", "sub", "cmp", "test", "and", "or", "xor", "neg", "adc", "sbb")
X86_NO_CARRY = ("je", "jne", "js", "jns", "jl", "jle", "jg", "jge", "jo", "jno")  # they look at other flags
STACKED = ("push", "pop", "call", "ret", "leave")  # they move the stack pointer, by constants


def find_data_branch(machine: Machine, decoder: Decoder, run: CoreRun) -> str:
    """Describe the first jump of the run's first call that depends on data; "" where none does."""
    return TaintTracker(machine, decoder, run).run_call()


@dataclass(frozen=True)
class Effect:
    """Hold how an instruction passes taint on."""

    text: str
    reads: frozenset[str]
    writes: frozenset[str]
    at: frozenset[str]  # the registers of its address
    listed: tuple[str, ...]  # a register list, in the order of its addresses
    moved: frozenset[str]  # what it writes by its address alone: a pointer that moves on
    keeps: frozenset[str]  # of what it writes, what may stay as it was: it is conditional, or changes a part
    jumps: bool
    stores: bool
    only_if: frozenset[str]  # the flags that decide whether it runs at all
    behind: int  # the address behind it


class TaintTracker:
    """Follow one call instruction by instruction; `data` and `bytes` are the tainted registers and addresses."""

    def __init__(self, machine: Machine, decoder: Decoder, run: CoreRun) -> None:
        self.machine, self.decoder, self.run = machine, decoder, run
        self.effects: dict[int, Effect] = {}
        self.data: set[str] = set()
        self.bytes: set[int] = set()
        self.now: Effect | None = None
        self.loads: list[tuple[int, int]] = []
        self.stores: list[tuple[int, int]] = []
        self.found, self.begun = "", False

    def run_call(self) -> str:
        """Run the call and return what was found; its blocks are not counted."""
        from unicorn import UC_HOOK_BLOCK, UC_HOOK_CODE, UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE

        uc = self.machine.uc
        hooks = [
            uc.hook_add(UC_HOOK_BLOCK, lambda uc, address, size, _: self._decode(address, size)),
            uc.hook_add(UC_HOOK_CODE, lambda uc, address, size, _: self.step(address)),
            uc.hook_add(UC_HOOK_MEM_READ, lambda uc, how, at, size, value, _: self.loads.append((at, size))),
            uc.hook_add(UC_HOOK_MEM_WRITE, lambda uc, how, at, size, value, _: self.stores.append((at, size))),
        ]
        uc.ctl_flush_tb()
        next(iter(self.run.calls([0])))
        self._finish()
        remove_hooks(uc, hooks)
        self.machine.forget()
        return self.found

    def step(self, address: int) -> None:
        """Finish the instruction before this one, whose accesses are known now, and begin this one."""
        last = self.now
        self._finish()
        if last is not None and not last.jumps and self.decoder.family == "thumb":
            self._skip(last.behind, address)
        if not self.begun:
            self._begin()
        self.now = self.effects.get(address)
        if self.now is None and address != self.machine.places.exit:
            self.found = self.found or f"the code at 0x{address:x} could not be followed"

    def _begin(self) -> None:
        """Taint the arguments that are neither lengths nor arrays, in registers or on the stack."""
        self.begun, parameters = True, self.run.vectors.kernel.parameters
        values = [not isinstance(kind, Array | Length) for kind in parameters.values()]
        letter, abi = "r" if self.decoder.family == "thumb" else "a", self.machine.abi
        names, first = [f"{letter}{k}" for k in range(len(abi.inputs))], self.machine.uc.reg_read(abi.sp)
        first += 4 if abi.link is None else 0  # above the address to return to
        self.data = {name for name, is_value in zip(names, values, strict=False) if is_value}
        rest = [4 * k for k, is_value in enumerate(values[len(names) :]) if is_value]
        self.bytes = {first + place + byte for place in rest for byte in range(4)}

    def _finish(self) -> None:
        """Update the taint by the instruction that ran."""
        effect, loads, stores = self.now, self.loads, self.stores
        self.now, self.loads, self.stores = None, [], []
        if effect is None or self.found:
            return
        chosen = bool(effect.only_if & self.data)
        astray = chosen or bool(effect.at & self.data)
        if astray and not all(map(self._is_argument, stores)):
            self.found = f"it stores at an address that depends on data, `{effect.text}`"
        if effect.listed:
            for name, place in zip(effect.listed, loads or stores, strict=True):
                if loads:
                    self._set(name, astray or self._holds(place), name in effect.keeps)
                else:
                    self._store(place, chosen or name in self.data)
            depends = chosen or "pc" in self.data
        else:
            depends = bool(effect.reads & self.data) or any(map(self._holds, loads))
            for place in stores:
                self._store(place, depends)
            for name in effect.writes:
                self._set(name, astray if name in effect.moved else depends, name in effect.keeps)
        if effect.jumps and depends:
            self.found = f"the compiled code branches on data, `{effect.text}`"

    def _skip(self, address: int, end: int) -> None:
        """Update the taint by what an IT block skipped: with other data it may have run."""
        while address != end and not self.found:
            effect = self.effects.get(address)
            if effect is None or not effect.only_if:
                self.found = f"the code at 0x{address:x} could not be followed"
            elif effect.only_if & self.data:
                self.data |= effect.writes
                if effect.jumps:
                    self.found = f"the compiled code branches on data, `{effect.text}`"
                elif effect.stores:
                    self.found = f"it stores by what depends on data, `{effect.text}`"
            if effect is not None:
                address = effect.behind

    def _set(self, name: str, depends: bool, keeps: bool) -> None:
        if depends:
            self.data.add(name)
        elif not keeps:
            self.data.discard(name)

    def _store(self, place: tuple[int, int], depends: bool) -> None:
        touched = range(place[0], sum(place))
        self.bytes.update(touched) if depends else self.bytes.difference_update(touched)

    def _is_argument(self, place: tuple[int, int]) -> bool:
        return 0 <= place[0] - self.machine.places.arguments < ARGUMENT_BYTES

    def _holds(self, place: tuple[int, int]) -> bool:
        """Return whether these bytes depend on data; those of the arguments' arrays always do."""
        return self._is_argument(place) or not self.bytes.isdisjoint(range(place[0], sum(place)))

    def _decode(self, address: int, size: int) -> None:
        """Decode a whole block: what makes an Arm instruction conditional is before it."""
        if address not in self.effects and address != self.machine.places.exit:
            make = {"x86": _x86_effect, "thumb": _arm_effect, "riscv32": _riscv_effect}[self.decoder.family]
            for raw in self.decoder.capstone.disasm(self.machine.read_code(address, size), address):
                self.effects[raw.address] = make(raw)


def _effect(raw: Any, reads: Iterable[str], writes: Iterable[str], jumps: bool, **more: Iterable[str]) -> Effect:
    sets = {name: frozenset(more.get(name, ())) for name in ("at", "moved", "keeps", "only_if")}
    text, behind = f"{raw.mnemonic} {raw.op_str}".strip(), raw.address + raw.size
    listed, stores = tuple(more.get("listed", ())), raw.mnemonic.startswith(("st", "push"))
    return Effect(text, frozenset(reads), frozenset(writes), listed=listed, jumps=jumps, stores=stores, behind=behind,
                  **sets)  # fmt: skip


def _arm_effect(raw: Any) -> Effect:
    from capstone.arm import ARM_OP_MEM, ARM_OP_REG

    read, written = ({raw.reg_name(one) for one in some} - {"cpsr", "itstate"} for some in raw.regs_access())
    plain = raw.mnemonic.removesuffix(".w")
    keeps: set[str] = set()
    if raw.update_flags:
        written |= FLAGS
        keeps |= set() if plain.startswith(SETS_ALL) else {CARRIES}
    if plain.startswith(("adc", "sbc", "rrx")):
        read.add(CARRIES)
    only_if: set[str] = set()
    if raw.cc not in ALWAYS and not plain.startswith("it"):  # a branch, or in an IT block
        only_if = {SIGNS} if raw.cc in BY_SIGNS else {CARRIES} if raw.cc in BY_CARRIES else FLAGS
        read, keeps = read | only_if, keeps | written
    operands = [(one, raw.reg_name(one.reg)) for one in raw.operands if one.type == ARM_OP_REG]
    at = {raw.reg_name(part) for one in raw.operands if one.type == ARM_OP_MEM
          for part in (one.mem.base, one.mem.index) if part}  # fmt: skip
    listed: list[str] = []
    if "{" in raw.op_str:
        names = [name for _, name in operands]
        listed, at = (names, {"sp"}) if plain.startswith(("push", "pop")) else (names[1:], {names[0]})
    base = {raw.reg_name(one.mem.base) for one in raw.operands if one.type == ARM_OP_MEM} if raw.writeback else set()
    jumps = "pc" in written or (plain.startswith(("b", "cb", "tb")) and not plain.startswith(("bic", "bf")))
    more = {"at": at, "listed": listed, "moved": base, "keeps": keeps, "only_if": only_if}
    return _effect(raw, read, written, jumps, **more)


def _x86_effect(raw: Any) -> Effect:
    from capstone import CS_GRP_CALL, CS_GRP_JUMP, CS_GRP_RET
    from capstone.x86 import X86_OP_MEM

    read, written = ([raw.reg_name(one) for one in some] for some in raw.regs_access())
    plain = raw.mnemonic.split()[-1]
    at = {raw.reg_name(part) for one in raw.operands if one.type == X86_OP_MEM
          for part in (one.mem.base, one.mem.index) if part}  # fmt: skip
    keeps = {_whole(name) for name in written if _whole(name) != name or plain.startswith("cmov")}
    keeps |= set() if plain in X86_SETS_ALL or plain in ("inc", "dec") else {"eflags"}
    if "eflags" in read and plain not in X86_NO_CARRY:
        read.append("carry")
    if "eflags" in written and plain not in ("inc", "dec"):
        written.append("carry")
        keeps |= {"carry"} if "eflags" in keeps else set()
    jumps = any(raw.group(group) for group in (CS_GRP_JUMP, CS_GRP_CALL, CS_GRP_RET))
    changed = {_whole(name) for name in written} - ({"esp"} if plain in STACKED else set())
    return _effect(raw, map(_whole, read), changed, jumps, at=map(_whole, at), keeps=keeps)


def _whole(name: str) -> str:
    """Return the register that a part of it belongs to: eax for al, ah and ax."""
    if len(name) == 2 and name[1] in "lhx" and name[0] in "abcd":
        return f"e{name[0]}x"
    return f"e{name}" if name in ("si", "di", "bp", "sp") else name


def _riscv_effect(raw: Any) -> Effect:
    plain = raw.mnemonic.removeprefix("c.")
    at = {raw.op_str.rpartition("(")[2].rstrip(")")} if "(" in raw.op_str else set()
    return _effect(
        raw,
        read_registers(raw) | at,
        written_register(raw),
        plain.startswith("b") or plain in ("jr", "jalr", "ret"),
        at=at,
    )
