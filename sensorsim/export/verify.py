"""Verify a package: its files unaltered, its C the same bits as Numba on every target, and what it executes."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sensorsim.cost.prices import load_cpu
from sensorsim.errors import InputError
from sensorsim.export.counting import BlockCounter, Spread, Tally
from sensorsim.export.decode import Decoder
from sensorsim.export.elf import read_elf
from sensorsim.export.golden import inputs_of
from sensorsim.export.harness import differing_bits, driver_source, load_host, run_on_core, run_on_host
from sensorsim.export.machine import Machine
from sensorsim.export.manifest import Package, open_package
from sensorsim.export.targets import (
    HOST,
    SHOWN_FLAGS,
    TARGETS,
    TRAP,
    Target,
    check_with_gcc,
    compile_elf,
    compile_host,
    compiler_version,
    targets_named,
)
from sensorsim.export.timing import reasons
from sensorsim.export.vectors import TYPICAL, Vectors, edge_vectors, expected, of_one_call, random_vectors
from sensorsim.kernels.language import Kernel

CONSTANT_TIME = ("spof", "release")  # kernels whose names begin so must execute the same instructions for every input
SMALL = (
    {"n": 1, "l": 1, "size": 2, "mask": 1, "k": 1, "drop": 31, "stair_bits": 1},
    {"n": 2, "l": 3, "size": 5, "mask": 3, "k": 1, "drop": 30, "stair_bits": 15},
    {"n": 3, "l": 2, "size": 8, "mask": 7, "k": 3, "drop": 29, "stair_bits": 7},
)
LARGE = {"n": 4096, "l": 1, "size": 2**16, "mask": 2**16 - 1, "k": 4096, "drop": 16, "stair_bits": 15}
CHUNK = 10_000
Progress = Callable[[str, int, int], None]  # what is done, step, of how many


@dataclass(frozen=True)
class Effort:
    """How many random vectors to run."""

    host: int = 1_000_000
    core: int = 10_000
    edges: int = 256


@dataclass(frozen=True)
class KernelResult:
    """One kernel on one target. The counts are of calls at the typical lengths; a price is in `unit`."""

    kernel: str
    target: str
    vectors: int
    differing_bits: int
    lengths: dict[str, int] = field(default_factory=dict)
    instructions: Spread | None = None
    classes: dict[str, float] = field(default_factory=dict)
    price: Spread | None = None
    unit: str = ""
    table: str = ""
    table_notes: tuple[str, ...] = ()
    flash_bytes: int | None = None
    ram_bytes: int | None = None
    stack_bytes: int | None = None
    runtime: tuple[str, ...] = ()
    sequences: int | None = None
    varying: tuple[str, ...] = ()

    @property
    def constant_time(self) -> bool | None:
        return None if self.sequences is None else self.sequences == 1

    @property
    def passed(self) -> bool:
        must = self.kernel.startswith(CONSTANT_TIME)
        return self.differing_bits == 0 and not (must and self.constant_time is False)


@dataclass(frozen=True)
class Verification:
    """The whole report."""

    folder: str
    compiler: str
    flags: str
    gcc: str | None
    ubsan_vectors: int
    results: tuple[KernelResult, ...]

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.results)


def verify(
    folder: Path, targets: Sequence[str], effort: Effort | None = None, seed: int = 0, progress: Progress | None = None
) -> Verification:
    """Verify the package on the targets; InputError when it was altered."""
    names = targets_named(targets)
    package = open_package(folder)
    with tempfile.TemporaryDirectory() as build:
        work = _Work(package, Path(build), effort or Effort(), seed)
        steps = [(name, kernel) for name in names for kernel in package.kernels]
        results = []
        for place, (name, kernel) in enumerate(steps):
            if progress:
                progress(f"{kernel.name} on {name}", place, len(steps) + 1)
            results.append(work.on_host(kernel) if name == HOST else work.on_core(TARGETS[name], kernel))
        if progress:
            progress("undefined behaviour", len(steps), len(steps) + 1)
        gcc = check_with_gcc(package.sources, package.include)
        return Verification(
            str(folder), compiler_version(), SHOWN_FLAGS, gcc, work.without_undefined_behaviour(), tuple(results)
        )


class _Work:
    def __init__(self, package: Package, build: Path, effort: Effort, seed: int) -> None:
        self.package, self.build, self.effort, self.seed = package, build, effort, seed
        self.known: dict[str, list[tuple[Vectors, dict[str, Any]]]] = {}

    def sets(self, kernel: Kernel) -> list[tuple[Vectors, dict[str, Any]]]:
        """Golden vectors, edges at several lengths and random ones, each with what Numba makes of it."""
        if kernel.name not in self.known:
            edges, seed = self.effort.edges, self.seed
            made = [of_one_call(kernel, inputs_of(vector, kernel)) for vector in self.package.golden(kernel)]
            made += [edge_vectors(kernel, lengths, edges // 4, seed) for lengths in SMALL]
            made += [edge_vectors(kernel, LARGE, 3, seed)]
            made += [edge_vectors(kernel, TYPICAL, edges, seed)]
            made += [random_vectors(kernel, TYPICAL, self.effort.core, seed)]
            self.known[kernel.name] = [(vectors, expected(vectors)) for vectors in made]
            self.check_golden(kernel)
        return self.known[kernel.name]

    def check_golden(self, kernel: Kernel) -> None:
        for vector, (_, want) in zip(self.package.golden(kernel), self.known[kernel.name], strict=False):
            for name, values in vector["expected"].items():
                if want[name].ravel().tolist() != (values if isinstance(values, list) else [values]):
                    raise InputError(
                        f"golden vector {vector['number']} ({kernel.name}) differs from the kernel here; export again."
                    )

    def on_host(self, kernel: Kernel) -> KernelResult:
        prefix = self.package.prefix
        driver = self.build / f"drive_{kernel.name}.c"
        driver.write_text(f'#include "{prefix}kernels.h"\n{driver_source(kernel, prefix)}', "utf-8")
        selftest = self.package.folder / "test" / f"{prefix}selftest.c"
        out = self.build / f"{kernel.name}.so"
        include = [*self.package.include, selftest.parent]
        library = load_host(compile_host([*self.package.sources, selftest, driver], include, out))
        self.check_selftest(HOST, getattr(library, f"{prefix}selftest")())
        count = bits = 0
        for vectors, want in self.host_sets(kernel):
            bits += differing_bits(run_on_host(library, vectors), want)
            count += vectors.count
        return KernelResult(kernel.name, HOST, count, bits)

    def host_sets(self, kernel: Kernel) -> Iterator[tuple[Vectors, dict[str, Any]]]:
        yield from self.sets(kernel)
        for start in range(self.effort.core, self.effort.host, CHUNK):
            vectors = random_vectors(kernel, TYPICAL, min(CHUNK, self.effort.host - start), self.seed + start)
            yield vectors, expected(vectors)

    def on_core(self, target: Target, kernel: Kernel) -> KernelResult:
        prefix, cpu = self.package.prefix, load_cpu(target.cpu)
        out = self.build / f"{kernel.name}-{target.name}.elf"
        entry = prefix + kernel.name
        program = read_elf(compile_elf(target, self.package.sources, self.package.include, entry, out).read_bytes())
        machine = Machine(target, program)
        counter, tally = BlockCounter(machine, Decoder(target, cpu)), Tally()
        count = bits = 0
        sets = self.sets(kernel)
        for vectors, want in sets:
            typical = vectors.lengths == sets[-1][0].lengths and vectors.count > 1
            bits += run_on_core(machine, vectors, want, prefix, counter if typical else None, tally)
            count += vectors.count
        self.selftest_on(target)
        return KernelResult(
            kernel=kernel.name,
            target=target.name,
            vectors=count,
            differing_bits=bits,
            lengths=sets[-1][0].lengths,
            instructions=tally.spread,
            classes=tally.mean("classes"),
            price=tally.price,
            unit=cpu.unit,
            table=cpu.name,
            table_notes=tuple(sorted(tally.notes)),
            flash_bytes=program.flash_bytes,
            ram_bytes=program.ram_bytes,
            stack_bytes=machine.stack_bytes(),
            runtime=tuple(sorted(name for name in program.symbols if not name.startswith((prefix, "compiler_rt")))),
            sequences=len(tally.sequences),
            varying=reasons(tally, kernel, prefix),
        )

    def selftest_on(self, target: Target) -> None:
        """Run the package's own self-test once on each core."""
        prefix = self.package.prefix
        out = self.build / f"selftest-{target.name}.elf"
        if out.exists():
            return
        selftest = self.package.folder / "test" / f"{prefix}selftest.c"
        include = [*self.package.include, selftest.parent]
        compile_elf(target, [*self.package.sources, selftest], include, f"{prefix}selftest", out)
        self.check_selftest(target.name, Machine(target, read_elf(out.read_bytes())).call(f"{prefix}selftest", []))

    def check_selftest(self, where: str, number: int) -> None:
        if number:
            raise InputError(f"the package's self-test fails on {where} at vector {number}; export the package again.")

    def without_undefined_behaviour(self) -> int:
        """Run edges and random vectors on a build that traps on undefined behaviour; how many vectors ran."""
        target, count = TARGETS["k7"], 0
        for kernel in self.package.kernels:
            out = self.build / f"{kernel.name}-trap.elf"
            entry = self.package.prefix + kernel.name
            compile_elf(target, self.package.sources, self.package.include, entry, out, TRAP)
            machine = Machine(target, read_elf(out.read_bytes()))
            for vectors, want in self.sets(kernel):
                if run_on_core(machine, vectors, want, self.package.prefix, None, Tally()):
                    raise InputError(f"{kernel.name} gives other bits when built with UBSan; export the package again.")
                count += vectors.count
        return count
