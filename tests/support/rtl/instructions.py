"""Every instruction of a RISC-V table on a simulated core: what one costs among copies of itself.

A probe is a few lines of assembly that are repeated; what one copy takes, less the instructions in it that only help,
is the price. Registers: a1 = 7, a2 = 100000, a3 = -16, a5 = 0, a6 = 0x7000, a7 = 0x80000000; a0 points to memory.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rtl.machine import SimulatedMachine

from sensorsim.costing.prices import Row
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.targets import TARGETS, compile_elf

FEW, MANY = 8, 24  # copies
MEMORY = 0x30000000
ARGUMENTS = (MEMORY, 7, 100_000, 0xFFFFFFF0, MEMORY + 256, 0, 0x7000, 0x80000000)
WORDS, HALVES = ".option norvc", ".option rvc"
# What a branch compares when it is taken and when it is not.
BRANCHES = {
    "BEQ": ("a1,a1", "a1,a2"),
    "BNE": ("a1,a2", "a1,a1"),
    "BLT": ("a3,a1", "a1,a3"),
    "BLTU": ("a1,a3", "a3,a1"),
    "BGE": ("a1,a3", "a3,a1"),
    "BGEU": ("a3,a1", "a1,a3"),
    "BEQZ": ("a5", "a1"),
    "BNEZ": ("a1", "a5"),
    "BLEZ": ("a5", "a1"),
    "BGEZ": ("a1", "a3"),
    "BLTZ": ("a3", "a1"),
    "BGTZ": ("a1", "a3"),
}
FORMS = {"r,r,r": "t0,a1,a2", "r,r,i": "t0,a1,5", "r,r": "t0,a1", "r,i": "t0,5", "": ""}


class Probe(NamedTuple):
    """Lines to repeat, how many cycles of them are helpers', and which cell of the row must be the rest."""

    lines: tuple[str, ...]
    helpers: int
    cell: str


def probes(row: Row) -> list[Probe]:
    """Return the probes that show the prices of a row; none for a row that is no instruction of RV32IMC."""
    name = row.operation.lower()
    if row.operands == ("sequence",) or name.startswith("f"):
        return []
    if row.operation in BRANCHES:
        return _branch(name, *BRANCHES[row.operation])
    if name in ("div", "divu", "rem", "remu"):
        # Where the time depends on the divisor: by one without leading zeros, with 17, and with 32, which is zero.
        divisors = {"min": "a7", "typical": "a6", "max": "a5" if row.min < row.max else "a1"}
        return [Probe((f"{name} t0,a2,{divisor}",), 0, cell) for cell, divisor in divisors.items()]
    if row.operands == ("r,m",):
        return [
            Probe((f"{name} t0,0(a0)",), 0, "min"),
            Probe((f"{name} t0,0(a0)", "add t1,t0,a1"), 1, "max"),
        ]
    if row.operands == ("m,r",):
        return [Probe((f"{name} a1,0(a0)",), 0, cell) for cell in ("min", "max")]
    if name in ("j", "jal", "jr", "jalr", "ret"):
        return list(_jump(name))
    line = f"{name} {FORMS[row.operands[0]]}".strip()
    return [Probe((line,), 0, cell) for cell in ("min", "max")]


def _branch(name: str, taken: str, not_taken: str) -> list[Probe]:
    return [
        Probe((WORDS, f"{name} {not_taken},.+8"), 0, "min"),
        Probe((WORDS, f"{name} {taken},.+8", "nop"), 0, "typical"),
        Probe((WORDS, f"{name} {taken},.+6", HALVES, "c.nop", WORDS, "nop", HALVES, "c.nop"), 2, "max"),
    ]


def _jump(name: str) -> Iterator[Probe]:
    """Least: to a word boundary, by a register that has long been known. Most: across two words, by one just made."""
    across = (HALVES, "c.nop", WORDS, "nop", HALVES, "c.nop")
    if name in ("j", "jal"):
        jump = "j" if name == "j" else "jal t1,"
        yield Probe((WORDS, f"{jump} .+8", "nop"), 0, "min")
        yield Probe((WORDS, f"{jump} .+6", *across), 2, "max")
        return
    jump = {"jr": "jr t0", "jalr": "jalr t1,0(t0)", "ret": "ret"}[name]
    register = "ra" if name == "ret" else "t0"
    start = (WORDS, f"auipc {register},0")
    yield Probe((*start, f"addi {register},{register},20", "nop", "nop", jump), 4, "min")
    if name == "jalr":
        jump = "jalr t0,0(t0)"
        yield Probe((*start, "jalr t0,8(t0)"), 1, "typical")  # as compilers call what is far
    yield Probe((*start, f"addi {register},{register},14", jump, *across), 4, "max")


def assembled(rows: list[Row], build: Path) -> tuple[Program, dict[tuple[int, int], Probe]]:
    """Return all probes as functions of one program, `p<row>_<probe>_<copies>`."""
    functions = [(".globl probes", ".type probes,@function", "probes:", "ret")]
    known = {}
    for number, row in enumerate(rows):
        for place, probe in enumerate(probes(row)):
            known[number, place] = probe
            for copies in (FEW, MANY):
                name = f"p{number}_{place}_{copies}"
                head = (".p2align 2", f".type {name},@function", f"{name}:", "mv t6,ra", ".p2align 2")
                body = (f".rept {copies}", *probe.lines, ".endr", HALVES, "mv ra,t6", "ret", f".size {name},.-{name}")
                functions.append((*head, *body))
    source = build / "probes.c"
    source.write_text("".join(_as_c(lines) for lines in functions))
    out = compile_elf(TARGETS["rv32imc"], [source], [], "probes", build / "probes.elf")
    return read_elf(out.read_bytes()), known


def _as_c(lines: tuple[str, ...]) -> str:
    text = "\\n".join((r".section .text.probes,\"ax\"", *lines))
    return f'__asm__("{text}\\n");\n'


def measured(simulator: Path, rows: list[Row], build: Path) -> Iterator[tuple[Row, str, float]]:
    """Yield each row and cell with the cycles of one instruction."""
    program, known = assembled(rows, build)
    machine = SimulatedMachine(simulator, program)
    for (number, place), probe in known.items():
        cycles = []
        for copies in (FEW, MANY):
            machine.call(f"p{number}_{place}_{copies}", ARGUMENTS)
            cycles.append(machine.cycles)
        yield rows[number], probe.cell, (cycles[1] - cycles[0]) / (MANY - FEW) - probe.helpers
