"""How functions are called on each instruction set: registers of arguments, of the result, and those to be restored."""

from __future__ import annotations

from dataclasses import dataclass

from sensorsim.machine.targets import Target

EXIT = 0xFFFF_F000  # where a function returns to
STACK_TOP = 0x7F00_0000
STACK_BYTES = 1 << 14


@dataclass(frozen=True)
class Convention:
    """The calling convention of an instruction set, and its name in the processor descriptions."""

    language: str
    arguments: tuple[str, ...]  # registers; further words are on the stack
    result: str
    stack: str
    link: str  # register of the return address; empty where it is on the stack
    saved: tuple[str, ...]  # registers that a function restores
    thumb: bool = False
    word: int = 32


_ARM = Convention(
    "ARM:LE:32:Cortex",
    ("r0", "r1", "r2", "r3"),
    "r0",
    "sp",
    "lr",
    tuple(f"r{i}" for i in range(4, 12)),
    thumb=True,
)
_RISCV = Convention(
    "RISCV:LE:32:RV32IMC",
    tuple(f"a{i}" for i in range(8)),
    "a0",
    "sp",
    "ra",
    ("gp", "tp", *(f"s{i}" for i in range(12))),
)
_RISCV_E = Convention(
    "RISCV:LE:32:RV32IMC", tuple(f"a{i}" for i in range(6)), "a0", "sp", "ra", ("gp", "tp", "s0", "s1")
)
_X86 = Convention("x86:LE:32:default", (), "EAX", "ESP", "", ("EBX", "ESI", "EDI", "EBP"))


def convention_of(target: Target) -> Convention | None:
    """Return the calling convention of a target; None where its code is not lifted."""
    if target.family == "riscv32":
        return _RISCV_E if "+e" in target.mcpu else _RISCV
    return {"thumb": _ARM, "x86": _X86}.get(target.family)
