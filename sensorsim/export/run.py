"""One record through a kernel's compiled code on an emulated core."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorsim.cost.prices import Cpu
from sensorsim.export.write import fill
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.kernel import Kernel
from sensorsim.machine.counting import BlockCounter, Sums, Tally
from sensorsim.machine.decode import Decoder
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.following import decided_by_data
from sensorsim.machine.harness import CoreRun, run_on_core
from sensorsim.machine.targets import Target, compile_elf
from sensorsim.machine.vectors import as_arrays, by_plain_python, edge_vectors, of_one_call
from sensorsim.machine.worst import WorstCase, core_of, worst_case

PREFIX = "ss_"
TRIED = 32  # inputs at the edges of their formats that must take the path of the record, for a worst case


@dataclass(frozen=True)
class Run:
    """One record through the compiled code."""

    sums: Sums
    program: Program
    stack_bytes: int
    notes: tuple[str, ...]
    worst_case: WorstCase


def run_record(kernel: Kernel, record: Mapping[str, Any], cpu: Cpu, target: Target, build: Path) -> Run:
    """One record through the compiled kernel; its bits must be those of the kernel run in plain Python."""
    folder, function = build / kernel.name, Names([kernel], PREFIX).functions[kernel]
    if not folder.exists():
        fill(folder, c_sources([kernel], PREFIX, known_tables([kernel], PREFIX), ""))
    sources, include = sorted((folder / "src").glob("*.c")), [folder / "include", folder / "src"]
    if target.load is not None:
        return _interpreted(kernel, record, cpu, target, sources, include, function)
    out = compile_elf(target, sources, include, function, build / f"{kernel.name}-{target.name}.elf")
    program = read_elf(out.read_bytes())
    machine, tally = Machine(target, program), Tally()
    decoder = Decoder(target, cpu)
    counter = BlockCounter(machine, decoder)
    given, want = of_one_call(kernel, record), as_arrays(kernel, by_plain_python(kernel, record))
    if run_on_core(machine, given, want, function, counter, tally):
        raise RuntimeError(f"{kernel.name} on {target.name} differs from the kernel run in Python")
    (sums,) = tally.parts.values()
    stack, notes = machine.stack_bytes(), tuple(sorted(tally.notes))
    for _ in CoreRun(machine, edge_vectors(kernel, given.lengths, 8 * TRIED, 0).some(TRIED), function).calls():
        counter.take(tally)
    decided = decided_by_data(machine, decoder, CoreRun(machine, given, function))
    return Run(sums, program, stack, notes, worst_case(kernel, counter, tally, cpu, PREFIX, decided))


def _interpreted(
    kernel: Kernel,
    record: Mapping[str, Any],
    cpu: Cpu,
    target: Target,
    sources: Sequence[Path],
    include: Sequence[Path],
    function: str,
) -> Run:
    """The same on a core whose emulator is ours. Its runtime shifts and divides in loops: no bound."""
    assert target.load is not None
    machine, counter = target.load(cpu, sources, include, function, kernel, include[0].parent)
    tally, want = Tally(), as_arrays(kernel, by_plain_python(kernel, record))
    if run_on_core(machine, of_one_call(kernel, record), want, function, counter, tally):
        raise RuntimeError(f"{kernel.name} on {target.name} differs from the kernel run in Python")
    (sums,) = tally.parts.values()
    bound = WorstCase(
        None, cpu.unit, core_of(cpu), "no bound: the compiler's runtime shifts and divides place by place"
    )
    return Run(sums, machine.program, machine.stack_bytes(), tuple(sorted(tally.notes)), bound)
