"""Our kernels on a simulated core beside what the machine level says of them by a core's table."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rtl.machine import SimulatedMachine

from sensorsim._util.files import fill
from sensorsim.costing.prices import Cpu
from sensorsim.costing.pricing import list_forms
from sensorsim.language.arguments import arguments
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.kernel import Kernel
from sensorsim.language.load import shipped
from sensorsim.machine.counting import BlockCounter, Tally
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.harness import CoreRun, run_on_core
from sensorsim.machine.instructions import Decoder
from sensorsim.machine.targets import TARGETS, compile_elf
from sensorsim.machine.vectors import as_arrays, by_plain_python, of_one_call, orders

N, L = 14, 7
TARGET = TARGETS["rv32imc"]
# Beside the list_forms of the mechanisms: three features of a record, and what a sensor runs besides.
OTHERS = (
    *("rows_search.sampled_rows_search", "rows_lookup.sampled_rows_lookup", "rows_bit.sampled_rows_bit"),
    *("rows_mirrored.sampled_rows_mirrored", "rows_mirrored.release_rows_mirrored", "stairs.sampled_stairs"),
    *("encoder.encoder", "generator.fresh_words", "generator.absorb", "health.watch", "checksum.crc32"),
    "health.watch_patterns",
    *("journal.write_slot", "journal.read_journal", "journal.spend"),
    *("packet.pack_head", "packet.pack_chosen", "packet.pack_symbols", "packet.pack_values"),
)


@dataclass(frozen=True)
class Compared:
    """One kernel: cycles of the simulated core and of the table, both without those of a function that only returns."""

    name: str
    measured: int
    said: float

    @property
    def error(self) -> float:
        """Return the table's error in per cent of what was measured."""
        return 100 * (self.said - self.measured) / self.measured


def records() -> Iterator[tuple[str, Kernel, dict[str, Any]]]:
    """Yield every kernel to compare, with the arguments of its one call: numbers all over their declared ranges."""
    for form in list_forms():
        given = drawn(form.kernel, form.lengths_at(N, L))
        chosen = {name: form.record(N, L)[name] for name in form.values}  # what decides the branch
        yield form.name, form.kernel, {**given, **chosen}
    for name in OTHERS:
        kernel = shipped()[name]
        yield kernel.name, kernel, drawn(kernel, kernel.lengths_at())


def compare(simulator: Path, cpu: Cpu, build: Path) -> list[Compared]:
    """Run every record on both; the bits of both must be those of the kernel run in Python."""
    price_of_return = cpu.instruction("RET", "", 32).typical
    made = []
    for name, kernel, record in records():
        program, function = compiled(kernel, build)
        want = as_arrays(kernel, by_plain_python(kernel, record))
        said = priced(program, function, kernel, record, cpu, want) - price_of_return
        simulated = SimulatedMachine(simulator, program)
        run = CoreRun(simulated, of_one_call(kernel, record), function)  # type: ignore[arg-type]
        list(run.calls())
        assert run.differing_bits(want) == 0, f"{name} differs on the simulated core"
        made.append(Compared(name, simulated.cycles, said))
    return made


def priced(
    program: Program, function: str, kernel: Kernel, record: dict[str, Any], cpu: Cpu, want: dict[str, Any]
) -> float:
    """Return the price of the call at the machine level."""
    machine, tally = Machine(TARGET, program), Tally()
    counter = BlockCounter(machine, Decoder(TARGET, cpu))
    assert run_on_core(machine, of_one_call(kernel, record), want, function, counter, tally) == 0
    return tally.prices[0]


@cache
def compiled(kernel: Kernel, build: Path) -> tuple[Program, str]:
    """The kernel's machine code and the name of its function."""
    folder, function = build / kernel.name, Names([kernel], "ss_").functions[kernel]
    fill(folder, c_sources([kernel], "ss_", known_tables([kernel], "ss_"), ""))
    sources, include = sorted((folder / "src").glob("*.c")), [folder / "include", folder / "src"]
    out = compile_elf(TARGET, sources, include, function, build / f"{kernel.name}.elf")
    return read_elf(out.read_bytes()), function


def drawn(kernel: Kernel, lengths: dict[str, int]) -> dict[str, Any]:
    """Arguments all over their declared ranges, the same on every machine."""
    state = 1

    def value(name: str, lo: int, hi: int) -> int:
        nonlocal state
        state = (1103515245 * state + 12345) % 2**64  # the least that looks random and never changes
        return lo + (state >> 24) % (hi - lo + 1)

    made = arguments(kernel, lengths, value)
    for name, _, size in orders(kernel, lengths):
        made[name] = list(range(size))
    return made
