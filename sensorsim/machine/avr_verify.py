"""A kernel's C on an AVR: the same bits, and what a verification tells of the code that ran."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from sensorsim.cost.prices import load_cpu
from sensorsim.errors import InputError
from sensorsim.language.kernel import Kernel
from sensorsim.machine.avr import AvrMachine, signature_of
from sensorsim.machine.avr_build import compile_avr, usual_compiler
from sensorsim.machine.avr_count import AvrCounter
from sensorsim.machine.counting import Tally
from sensorsim.machine.elf import read_elf
from sensorsim.machine.harness import CoreRun, TooLargeError, run_on_core
from sensorsim.machine.targets import AVR
from sensorsim.machine.vectors import Vectors, with_one_public_input

Sets = Sequence[tuple[Vectors, dict[str, Any]]]


def avr_machine(
    sources: Sequence[Path], include: Sequence[Path], function: str, kernel: Kernel, build: Path, compiler: str = ""
) -> AvrMachine:
    """The kernel's function compiled and loaded; by avr-gcc where it is installed and no compiler is named."""
    out = build / f"{function}-{AVR.name}.elf"
    compile_avr(sources, include, function, out, compiler or usual_compiler())
    return AvrMachine(read_elf(out.read_bytes()), {function: signature_of(kernel)})


def on_avr(
    sources: Sequence[Path],
    include: Sequence[Path],
    function: str,
    kernel: Kernel,
    sets: Sets,
    build: Path,
    compiler: str = "",
    counted: int = 2,
    watched: int = 200,
) -> dict[str, Any]:
    """Fields of a verification's result: bits of all sets, counts of the last ones, which have the usual lengths.

    A set that does not fit 64 KB is left out, unless it is counted. No instruction of an AVR takes longer for some
    operands than for others: time can only depend on the way and, on other cores, on the addresses.
    """
    machine = avr_machine(sources, include, function, kernel, build, compiler)
    cpu = load_cpu(AVR.cpu)
    counter, tally = AvrCounter(machine, cpu), Tally()
    bits = count = 0
    for place, (vectors, want) in enumerate(sets, counted - len(sets)):
        try:
            bits += _run(machine, vectors, want, function, counter if place >= 0 else None, tally)
        except TooLargeError:
            if place >= 0:
                raise
            continue
        count += vectors.count
    if not tally.calls:
        raise InputError(f"no vectors of {function} were counted on {AVR.name}; give at least one set.")
    paths, addresses, tried = _by_secret(machine, [vectors for vectors, _ in sets[-counted:]], function, watched)
    program = machine.program
    return {
        "kernel": kernel.name,
        "target": AVR.name,
        "vectors": count,
        "differing_bits": bits,
        "lengths": sets[-1][0].lengths,
        "instructions": tally.spread,
        "classes": tally.mean("classes"),
        "price": tally.price,
        "unit": cpu.unit,
        "table": cpu.name,
        "table_notes": tuple(sorted(tally.notes)),
        "flash_bytes": program.flash_bytes,
        "ram_bytes": machine.ram_bytes,
        "stack_bytes": machine.stack_bytes(),
        "runtime": tuple(sorted(name for _, name in counter.owners if name.startswith("__"))),
        "sequences": len(tally.sequences),
        "sequences_by_secret": paths,
        "varying": tuple(f"{text} at 0x{at:x}" for at, text in sorted(tally.varying.items())),
        "tried": tally.calls,
        "watched": tried,
        "addresses_by_secret": addresses,
    }


def _run(
    machine: AvrMachine,
    vectors: Vectors,
    want: dict[str, Any],
    function: str,
    counter: AvrCounter | None,
    tally: Tally,
) -> int:
    # An AvrMachine is used as any Machine: the harness asks for memory, a call and the counts.
    return run_on_core(cast(Any, machine), vectors, want, function, cast(Any, counter), tally)


def _by_secret(machine: AvrMachine, sets: Sequence[Vectors], function: str, watched: int) -> tuple[int, int, int]:
    """The most ways, and the most lists of addresses on one way, when only what is secret changes; how many calls."""
    ways = places = tried = 0
    for vectors in sets:
        run = CoreRun(cast(Any, machine), with_one_public_input(vectors), function)
        seen: set[int] = set()
        touched: dict[int, set[int]] = {}  # by way
        for call in run.calls():
            seen.add(machine.fingerprint)
            if call < watched // len(sets):
                touched.setdefault(machine.fingerprint, set()).add(machine.addresses)
                tried += 1
        machine.forget()
        ways, places = max(ways, len(seen)), max(places, *map(len, touched.values()))
    return ways, places, tried
