"""The C of a package beside its kernels: the same bits on every target, and what each kernel executes there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sensorsim.cost.prices import load_cpu
from sensorsim.errors import FailedProofError, InputError
from sensorsim.export.golden import inputs_of
from sensorsim.export.manifest import Package
from sensorsim.language.arguments import array_length, lengths_to_check
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.machine.counting import BlockCounter, Spread, Tally
from sensorsim.machine.decode import Decoder
from sensorsim.machine.elf import read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.harness import TooLargeError, differing_bits, driver_source, load_host, run_on_core, run_on_host
from sensorsim.machine.targets import (
    HOST,
    TARGETS,
    TRAP,
    Target,
    compile_elf,
    compile_host,
)
from sensorsim.machine.vectors import (
    Vectors,
    edge_vectors,
    expected,
    of_one_call,
    random_vectors,
    with_one_public_input,
)
from sensorsim.verify.timing import reasons

CHUNK = 10_000
FEW = 3  # vectors of a long record
LONG = 2000  # values in a vector that is long


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
    sequences_by_secret: int | None = None  # when only the secret inputs change
    varying: tuple[str, ...] = ()
    proved_same_path: bool = False  # by the secrecy proof: the same instructions for every secret

    @property
    def constant_time(self) -> bool | None:
        """Whether the secret inputs never changed what was executed."""
        return None if self.sequences_by_secret is None else self.sequences_by_secret == 1

    @property
    def passed(self) -> bool:
        return self.differing_bits == 0 and not (self.proved_same_path and self.constant_time is False)


class Work:
    """A package that is being verified: what was built and which vectors were made, so that nothing is made twice."""

    def __init__(self, package: Package, build: Path, effort: Effort, seed: int) -> None:
        self.package, self.build, self.effort, self.seed = package, build, effort, seed
        self.known: dict[Kernel, list[tuple[Vectors, dict[str, Any]]]] = {}

    def sets(self, kernel: Kernel) -> list[tuple[Vectors, dict[str, Any]]]:
        """Golden vectors, edges at several lengths and random ones, each with what Numba makes of it."""
        if kernel not in self.known:
            edges, seed = self.effort.edges, self.seed
            made = [of_one_call(kernel, inputs_of(vector, kernel)) for vector in self.package.golden(kernel)]
            made += [edge_vectors(kernel, lengths, _how_many(kernel, lengths, edges // 4), seed)
                     for lengths in lengths_to_check(kernel)]  # fmt: skip
            made += [edge_vectors(kernel, {}, edges, seed), random_vectors(kernel, {}, self.effort.core, seed)]
            self.known[kernel] = [(vectors, expected(vectors)) for vectors in made]
            self.check_golden(kernel)
        return self.known[kernel]

    def check_golden(self, kernel: Kernel) -> None:
        for vector, (_, want) in zip(self.package.golden(kernel), self.known[kernel], strict=False):
            for name, values in vector["expected"].items():
                if want[name].ravel().tolist() != (values if isinstance(values, list) else [values]):
                    raise InputError(
                        f"golden vector {vector['number']} ({kernel.name}) differs from the kernel here; export again."
                    )

    def on_host(self, kernel: Kernel) -> KernelResult:
        prefix, function = self.package.prefix, self.package.names.functions[kernel]
        driver = self.build / f"{function}_driver.c"
        driver.write_text(self.package.kernel_header + driver_source(kernel, function), "utf-8")
        out, sources = self.build / f"{function}.so", [*self.package.sources, *self.package.selftest, driver]
        library = load_host(compile_host(sources, self.package.include, out))
        self.check_selftest(HOST, getattr(library, f"{prefix}selftest")())
        count = bits = 0
        for vectors, want in self.host_sets(kernel):
            bits += differing_bits(run_on_host(library, vectors, function), want)
            count += vectors.count
        return KernelResult(kernel.name, HOST, count, bits)

    def host_sets(self, kernel: Kernel) -> Iterator[tuple[Vectors, dict[str, Any]]]:
        yield from self.sets(kernel)
        for start in range(self.effort.core, self.effort.host, CHUNK):
            vectors = random_vectors(kernel, {}, min(CHUNK, self.effort.host - start), self.seed + start)
            yield vectors, expected(vectors)

    def on_core(self, target: Target, kernel: Kernel) -> KernelResult:
        prefix, cpu, function = self.package.prefix, load_cpu(target.cpu), self.package.names.functions[kernel]
        machine = self.machine(target, kernel)
        counter, tally = BlockCounter(machine, Decoder(target, cpu)), Tally()
        bits, count = self.run_sets(machine, kernel, counter, tally)
        self.selftest_on(target)
        program, proved = machine.program, _proved(kernel)
        by_secret = self.sequences_by_secret(machine, kernel, counter, tally)
        own = {part: self.package.names.functions[part] for part in reachable([kernel])}
        return KernelResult(
            kernel=kernel.name,
            target=target.name,
            vectors=count,
            differing_bits=bits,
            lengths=kernel.lengths_at(),
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
            sequences_by_secret=by_secret,
            varying=reasons(tally, own, prefix) if function in own.values() else (),
            proved_same_path=proved,
        )

    def machine(self, target: Target, kernel: Kernel, options: Sequence[str] = ()) -> Machine:
        function = self.package.names.functions[kernel]
        out = self.build / f"{function}-{target.name}{'-trap' if options else ''}.elf"
        compile_elf(target, self.package.kernel_sources(self.build), self.package.include, function, out, options)
        return Machine(target, read_elf(out.read_bytes()))

    def run_sets(self, machine: Machine, kernel: Kernel, counter: BlockCounter | None, tally: Tally) -> tuple[int, int]:
        """How many bits differ, in how many vectors; those at typical lengths are counted."""
        function, typical = self.package.names.functions[kernel], kernel.lengths_at()
        bits = count = 0
        for vectors, want in self.sets(kernel):
            counted = counter if vectors.lengths == typical and vectors.count > FEW else None
            try:
                bits += run_on_core(machine, vectors, want, function, counted, tally)
            except TooLargeError:
                if vectors.lengths == typical:  # what is longer still runs on the host
                    raise
                continue
            count += vectors.count
        return bits, count

    def sequences_by_secret(self, machine: Machine, kernel: Kernel, counter: BlockCounter, tally: Tally) -> int:
        """How many sequences of instructions there are when what is public stays the same.

        Asked only where it is proved that there is one: a few draws cannot show that there is never another.
        """
        if tally.constant_time or not _proved(kernel):
            return len(tally.sequences)
        most = 0
        for known, _ in self.sets(kernel)[-2:]:  # edges and random values, each with a public input of its own
            vectors, own = with_one_public_input(known), Tally()
            run_on_core(machine, vectors, expected(vectors), self.package.names.functions[kernel], counter, own)
            most = max(most, len(own.sequences))
        return most

    def selftest_on(self, target: Target) -> None:
        """Run the package's own self-test once on each core."""
        prefix = self.package.prefix
        out = self.build / f"selftest-{target.name}.elf"
        if out.exists():
            return
        sources = [*self.package.sources, *self.package.selftest]
        compile_elf(target, sources, self.package.include, f"{prefix}selftest", out)
        self.check_selftest(target.name, Machine(target, read_elf(out.read_bytes())).call(f"{prefix}selftest", []))

    def check_selftest(self, where: str, number: int) -> None:
        if not number:
            return
        function = ""
        for kernel in self.package.kernels:
            if any(vector["number"] == number for vector in self.package.golden(kernel)):
                function = f" ({self.package.names.functions[kernel]})"
                self.sets(kernel)  # where the vector itself is not the kernel's, that is said instead
        raise FailedProofError(
            f"the self-test fails on {where} at vector {number}{function}: the C and the kernel differ there; look at "
            "the vector in test/golden.json, and export the package again if its C was altered."
        )

    def without_undefined_behaviour(self) -> int:
        """Run edges and random vectors on a build that traps on undefined behaviour; how many vectors ran."""
        count = 0
        for kernel in self.package.kernels:
            machine = self.machine(TARGETS["k7"], kernel, TRAP)
            try:
                bits, ran = self.run_sets(machine, kernel, None, Tally())
            except TooLargeError:
                raise
            except InputError as error:
                raise FailedProofError(
                    f"the build with UBSan stops, as it does on undefined behaviour: {error}"
                ) from error
            if bits:
                raise FailedProofError(
                    f"the build with UBSan fails at vector {self.first_differing(machine, kernel)} "
                    f"({self.package.names.functions[kernel]}): the C and the kernel differ there; look at the C, and "
                    "export the package again if it was altered."
                )
            count += ran
        return count

    def first_differing(self, machine: Machine, kernel: Kernel) -> int:
        """The number of the first vector whose bits differ, of all that run: the golden ones, edges, random ones."""
        function, number = self.package.names.functions[kernel], 0
        for vectors, want in self.sets(kernel):
            for call in range(vectors.count):
                number += 1
                own = {name: value[call : call + 1] for name, value in want.items()}
                try:
                    if run_on_core(machine, vectors.only(call), own, function, None, Tally()):
                        return number
                except TooLargeError:  # such vectors do not run here
                    number -= 1
                    break
        return number


def _proved(kernel: Kernel) -> bool:
    """Whether the kernel has secrets, and it is proved that they change nothing of what is executed."""
    return bool(kernel.secrecy().secrets) and kernel.secrecy().same_path


def _how_many(kernel: Kernel, lengths: Mapping[str, int], usual: int) -> int:
    """Vectors at these lengths: few where each is long."""
    size = sum(array_length(kernel, name, lengths) for name, kind in kernel.arrays.items() if kind.contents is None)
    return FEW if size > LONG else max(usual, FEW)
