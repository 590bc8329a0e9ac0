"""The C of a package beside its kernels: the same bits on every target, and what each kernel executes there.

Bits are compared over the whole declared range of every argument. What is counted, priced and watched runs with the
lengths and constants of the package itself: what its own firmware calls the kernel with.
"""

import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim.codegen.golden import inputs_of
from sensorsim.codegen.manifest import Package
from sensorsim.costing.prices import load_cpu
from sensorsim.language import ir
from sensorsim.language.arguments import array_length, bounds, lengths_to_check
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.language.secrecy import uneven_cores
from sensorsim.language.types import Array, Q
from sensorsim.machine.counting import BlockCounter, Tally
from sensorsim.machine.elf import read_elf
from sensorsim.machine.emulator import EndlessError, Machine
from sensorsim.machine.harness import (
    CoreRun,
    TooLargeError,
    differing_bits,
    driver_source,
    load_host,
    run_on_core,
    run_on_host,
)
from sensorsim.machine.instructions import Decoder
from sensorsim.machine.targets import HOST, TARGETS, TRAP, Compiler, Target, Ziglang, compile_host
from sensorsim.machine.vectors import (
    Vectors,
    edge_vectors,
    expected,
    of_one_call,
    random_vectors,
    with_one_public_input,
)
from sensorsim.verification.kernel_timing import (
    KernelResult,
    TimedOperation,
    Watched,
    address_reason,
    branch_reasons,
    watch,
)

CHUNK = 10_000
HOST_SECONDS = 60  # of processor time that one set of vectors may take on this machine
SHIPPED = "sensorsim.language.primitives"  # the primitives of the language
TABLES = {"table": "noise_table", "noise": "noise_table", "centre": "sketch_centre"}  # kernels' names, and C names
PACKET_PARTS = {
    "pack_chosen": "features",
    "pack_direction": "features",
    "pack_symbols": "values",
    "pack_values": "values",
}
OTHERS = ("encoder",)  # its features are those before the table's
OF_SKETCH = ("direction", "sketch")  # so are theirs, and the package says how many
COUNTED = 2  # of all sets the last ones: edges and random values, with the package's own lengths and constants
FEW = 3  # vectors of a long record
LONG = 2000  # values in a vector that is long
Sets = list[tuple[Vectors, dict[str, Any]]]  # vectors, and the results of Numba


@dataclass(frozen=True)
class Effort:
    """How many random vectors to run."""

    host: int = 1_000_000
    core: int = 10_000
    edges: int = 256
    watched: int = 200  # of those on a core, how many are watched for addresses and operands


def fixed_arguments(package: Package, kernel: Kernel) -> tuple[dict[str, int], dict[str, Any]]:
    """Return the lengths that the package gives the kernel, else typical ones, and the other arguments that it fixes:
    numbers, or a list for the table."""
    known = {} if kernel.name in OTHERS else _constants(package, kernel)
    fits = {name: known[name] for name, kind in kernel.lengths.items() if kind.lo <= known.get(name, -1) <= kind.hi}
    lengths = kernel.lengths_at(fits)
    values: dict[str, Any] = {}
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Q) and name in known and kind.lo <= known[name] <= kind.hi:
            values[name] = known[name]
        elif isinstance(kind, Array) and name in TABLES and kind.contents is None:
            array = re.compile(rf"\b{re.escape(package.prefix)}{TABLES[name]}\[[^\]]*\] = \{{([^}}]*)\}}")
            found = [text for source in _texts(package, "*.c") for text in array.findall(source)]
            entries = [int(value.rstrip("U"), 0) for value in re.split(r"[,\s]+", found[0]) if value] if found else []
            least, most = bounds(kind.element, lengths)
            if len(entries) == array_length(kernel, name, lengths) and least <= min(entries) <= max(entries) <= most:
                values[name] = entries
    return lengths, values


def _constants(package: Package, kernel: Kernel) -> dict[str, int]:
    """Return the macros of the package's table, sensor and packet, by the kernels' names for them."""
    table = package.manifest.get("noise_table") or {}
    known = {"n": int(table["features"]), "k": int(table["release"])} if table else {}
    macro = re.compile(rf"^#define {re.escape(package.prefix.upper())}(\w+) \(?(-?\d+)U?\b", re.M)
    found = {name: int(value) for text in _texts(package, "*.h") for name, value in macro.findall(text)}
    lead = "SKETCH_" if kernel.name in OF_SKETCH else "NOISE_"
    known |= {name.removeprefix(lead).lower(): v for name, v in found.items() if name.startswith(lead)}
    if not package.private:
        return known
    named = {"reserve": "RESERVE", "budget": "BUDGET_MOST"}
    known |= {name: found[macro_name] for name, macro_name in named.items() if macro_name in found}
    packet = package.manifest.get("sensor", {}).get("packet", {})
    if packet and kernel.name.startswith("pack_"):  # where its part of a packet begins, and the bits of a value there
        known["bytes"] = int(packet["bytes"])
        for part in packet["fields"]:
            if part["what"] == PACKET_PARTS.get(kernel.name):
                known |= {"at": int(part["first_bit"]), "bits": int(part["bits"]) // max(known.get("k", 1), 1)}
    return known


def _texts(package: Package, pattern: str) -> list[str]:
    paths = [path for name in ("include", "src") for path in sorted((package.folder / name).glob(pattern))]
    return [path.read_text("utf-8") for path in paths]


def vector_sets(package: Package, kernel: Kernel, effort: Effort, seed: int) -> list[Vectors]:
    """Return golden vectors, edges at several lengths and random vectors.

    The last two have the package's own lengths and constants. Where it has any, half of the random vectors have them,
    the others take every value that is allowed.
    """
    (lengths, values), edges, many = fixed_arguments(package, kernel), effort.edges, effort.core
    made = [of_one_call(kernel, inputs_of(vector, kernel)) for vector in package.golden(kernel)]
    own = [name for name, kind in kernel.arrays.items() if kind.contents is None]
    for tried in lengths_to_check(kernel):
        size = sum(array_length(kernel, name, tried) for name in own)
        made.append(edge_vectors(kernel, tried, FEW if size > LONG else max(edges // 4, FEW), seed))
    if many > 1 and (values or lengths != kernel.lengths_at()):
        made += [edge_vectors(kernel, {}, edges, seed), random_vectors(kernel, {}, many // 2, seed)]
        many, seed = many - many // 2, seed + 1
    made.append(edge_vectors(kernel, lengths, edges, seed).holding(values))
    return [*made, random_vectors(kernel, lengths, many, seed).holding(values)]


def random_sets(package: Package, kernel: Kernel, count: int, seed: int) -> list[Vectors]:
    """Return random vectors, half of them with the package's own lengths, table and constants where it has any."""
    lengths, values = fixed_arguments(package, kernel)
    if count < 2 or (not values and lengths == kernel.lengths_at()):
        return [random_vectors(kernel, {}, count, seed)]
    half = random_vectors(kernel, lengths, count - count // 2, seed + 1).holding(values)
    return [random_vectors(kernel, {}, count // 2, seed), half]


class Work:
    """A package under verification, with its builds and vectors, so that nothing is made twice."""

    def __init__(
        self, package: Package, build: Path, effort: Effort, seed: int, compiler: Compiler | None = None
    ) -> None:
        self.package, self.build, self.effort, self.seed = package, build, effort, seed
        self.compiler: Compiler = compiler or Ziglang()
        self.known: dict[Kernel, Sets] = {}

    def sets(self, kernel: Kernel) -> Sets:
        """Return the vectors of `vector_sets`, each set with the results of Numba."""
        if kernel not in self.known:
            made = vector_sets(self.package, kernel, self.effort, self.seed)
            self.known[kernel] = [(vectors, expected(vectors)) for vectors in made]
            for vector, (_, want) in zip(self.package.golden(kernel), self.known[kernel], strict=False):
                for name, values in vector["expected"].items():
                    if want[name].ravel().tolist() != (values if isinstance(values, list) else [values]):
                        raise InputError(
                            f"golden vector {vector['number']} ({kernel.name}) differs from the kernel here; export "
                            "again."
                        )
        return self.known[kernel]

    def on_host(self, kernel: Kernel) -> KernelResult:
        """Compare the kernel's bits on this machine."""
        prefix, function = self.package.prefix, self.package.names.functions[kernel]
        driver = self.build / f"{function}_driver.c"
        driver.write_text(self.package.kernel_header + driver_source(kernel, function), "utf-8")
        out, sources = self.build / f"{function}.so", [*self.package.sources, *self.package.selftest, driver]
        library = load_host(compile_host(sources, self.package.include, out))
        self.check_selftest(HOST, getattr(library, f"{prefix}selftest")())
        count = bits = 0
        for vectors, want in self.host_sets(kernel):
            with _ended_after(HOST_SECONDS):
                got = run_on_host(library, vectors, function)
            bits += differing_bits(got, want)
            count += vectors.count
        return KernelResult(kernel.name, HOST, count, bits)

    def host_sets(self, kernel: Kernel) -> Iterator[tuple[Vectors, dict[str, Any]]]:
        """Yield the vectors for this machine: all sets, then more random ones."""
        yield from self.sets(kernel)
        for start in range(self.effort.core, self.effort.host, CHUNK):
            many = min(CHUNK, self.effort.host - start)
            for vectors in random_sets(self.package, kernel, many, self.seed + start):
                yield vectors, expected(vectors)

    def on_core(self, target: Target, kernel: Kernel) -> KernelResult:
        """Compare the kernel's bits on an emulated core; count, price and watch what it executes."""
        if target.verify is not None:
            return self.on_own_emulator(target, target.verify, kernel)
        names, prefix, cpu = self.package.names.functions, self.package.prefix, load_cpu(target.cpu)
        machine = self.machine(target, kernel)
        counter, tally = BlockCounter(machine, Decoder(target, cpu)), Tally()
        bits, count = self.run_sets(machine, kernel, counter, tally)
        stack = machine.stack_bytes()
        self.selftest_on(target)
        watched, secrets = self.watch(kernel, counter, tally), bool(kernel.secrecy().secrets)
        exposed = _exposed(kernel)
        proved = secrets and not exposed & {"branch", "loop"} and not watched.calls_runtime
        program, access = machine.program, watched.access
        return KernelResult(
            kernel=kernel.name,
            target=target.name,
            vectors=count,
            differing_bits=bits,
            lengths=self.sets(kernel)[-1][0].lengths,
            instructions=tally.spread,
            classes=tally.mean("classes"),
            price=tally.price,
            unit=cpu.unit,
            table=cpu.name,
            table_notes=tuple(sorted(tally.notes)),
            flash_bytes=program.flash_bytes,
            ram_bytes=program.ram_bytes,
            stack_bytes=stack,
            runtime=tuple(sorted(name for name in program.symbols if not name.startswith((prefix, "compiler_rt")))),
            secrets=kernel.secrecy().secrets,
            exposed=tuple(sorted(exposed)),
            declared=_declared(kernel, target),
            sequences=len(tally.sequences),
            sequences_by_secret=self.sequences_by_secret(machine, kernel, tally, watched),
            own_sequences=watched.own_paths,
            varying=branch_reasons(tally, {part: names[part] for part in reachable([kernel])}, prefix),
            moving=(address_reason(counter.owner(access.address), access.text, access.address, kernel),)
            if access
            else (),
            proved_same_path=proved,
            tried=tally.calls,
            watched=watched.vectors,
            addresses_by_secret=watched.addresses,
            proved_same_addresses=proved and "address" not in exposed,
            operations=tuple(
                replace(one, on_data=one.on_data or (one.declarable and "operation" in exposed))
                for one in watched.operations
            ),
            proved_operations=secrets and "operation" not in exposed and all(o.declarable for o in watched.operations),
        )

    def on_own_emulator(self, target: Target, verify: Callable[..., dict[str, Any]], kernel: Kernel) -> KernelResult:
        """Run the kernel where the emulator is ours. Nothing is called proved there: a core that adds bytes and has no
        select may well branch where the source does not."""
        function, sources = self.package.names.functions[kernel], self.package.kernel_sources(self.build)
        found = verify(sources, self.package.include, function, kernel, self.sets(kernel), self.build)
        exposed = _exposed(kernel)
        # Divisions and shifts by a secret are loops there, of the runtime or in the code itself: the source tells.
        slow = (TimedOperation("divisions or shifts", 0, None, None, True),) if "operation" in exposed else ()
        secrets, declared = kernel.secrecy().secrets, _declared(kernel, target)
        return KernelResult(
            **found, secrets=secrets, exposed=tuple(sorted(exposed)), declared=declared, operations=slow
        )

    def machine(self, target: Target, kernel: Kernel, options: Sequence[str] = ()) -> Machine:
        """Return a core with the kernel's program."""
        function = self.package.names.functions[kernel]
        out = self.build / f"{function}-{target.name}{'-trap' if options else ''}.elf"
        compiler = Ziglang() if options else self.compiler  # a build that traps is for this machine's own compiler
        compiler.elf(target, self.package.kernel_sources(self.build), self.package.include, function, out, options)
        return Machine(target, read_elf(out.read_bytes()))

    def watch(self, kernel: Kernel, counter: BlockCounter, tally: Tally) -> Watched:
        """Watch calls in which only the secrets change; all inputs where none is declared secret."""
        counted = [vectors.some(self.effort.watched // COUNTED) for vectors, _ in self.sets(kernel)[-COUNTED:]]
        sets = [with_one_public_input(vectors) for vectors in counted] if kernel.secrecy().secrets else counted
        function, prefix = self.package.names.functions[kernel], self.package.prefix
        watched = watch(sets, counter, tally, function, prefix)
        branch = watched.branch
        if not tally.constant_time and branch is None:  # what is public changes the path: which branch?
            branch = watch(counted, counter, tally, function, prefix).branch
        if branch is not None:
            tally.varying.setdefault(branch.address, f"{counter.owner(branch.address)}: {branch.text}")
        return watched

    def run_sets(self, machine: Machine, kernel: Kernel, counter: BlockCounter | None, tally: Tally) -> tuple[int, int]:
        """Run all sets, and count the calls with the package's own lengths; return differing bits and vectors."""
        function, sets = self.package.names.functions[kernel], self.sets(kernel)
        bits = count = 0
        for place, (vectors, want) in enumerate(sets, COUNTED - len(sets)):
            try:
                bits += run_on_core(machine, vectors, want, function, counter if place >= 0 else None, tally)
            except TooLargeError:
                if place >= 0:  # what is longer still runs on the host
                    raise
                continue
            count += vectors.count
        return bits, count

    def sequences_by_secret(self, machine: Machine, kernel: Kernel, tally: Tally, watched: Watched) -> int:
        """Count the sequences of instructions when the public inputs stay the same.

        Unless the kernel declares that there are more, all vectors are run again with one public input each.
        """
        if tally.constant_time or not kernel.secrecy().secrets or {"branch", "loop"} & set(_declared(kernel)):
            return len(tally.sequences)
        most = watched.paths
        for known, _ in self.sets(kernel)[-COUNTED:]:
            run = CoreRun(machine, with_one_public_input(known), self.package.names.functions[kernel])
            seen = {machine.fingerprint for _ in run.calls()}
            machine.forget()
            most = max(most, len(seen))
        return most

    def selftest_on(self, target: Target) -> None:
        """Run the package's own self-test once on each core."""
        out, entry = self.build / f"selftest-{target.name}.elf", f"{self.package.prefix}selftest"
        if out.exists() or target.verify is not None:  # the self-test's vectors take more memory than an AVR has
            return
        sources = [*self.package.sources, *self.package.selftest]
        self.compiler.elf(target, sources, self.package.include, entry, out)
        self.check_selftest(target.name, Machine(target, read_elf(out.read_bytes())).call(entry, []))

    def check_selftest(self, where: str, number: int) -> None:
        """Raise FailedProofError, which names the vector, unless the self-test answered 0."""
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

    def without_undefined_behaviour(self, kernel: Kernel) -> int:
        """Run edges and random vectors on a build that traps on undefined behaviour; how many vectors ran."""
        machine = self.machine(TARGETS["k7"], kernel, TRAP)
        try:
            bits, count = self.run_sets(machine, kernel, None, Tally())
        except (TooLargeError, EndlessError):
            raise
        except InputError as error:
            raise FailedProofError(f"the build with UBSan stops, as it does on undefined behaviour: {error}") from error
        if bits:
            raise FailedProofError(
                f"the build with UBSan fails at vector {self.first_differing(machine, kernel)} "
                f"({self.package.names.functions[kernel]}): the C and the kernel differ there; look at the C, and "
                "export the package again if it was altered."
            )
        return count

    def first_differing(self, machine: Machine, kernel: Kernel) -> int:
        """Return the number of the first vector whose bits differ, of all that run: golden ones, edges, random ones."""
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


@contextmanager
def _ended_after(seconds: int) -> Iterator[None]:
    """Let the system end this process if C uses more processor time: Python handles no signal meanwhile."""
    if not hasattr(signal, "setitimer"):  # nor is there a process of its own there
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _exposed(kernel: Kernel) -> set[str]:
    """Return what depends on a secret by the source, declared or not: branch, loop, address, operation."""
    read = kernel.secrecy()
    return {found.kind for found in (*read.findings, *read.exceptions)}


def _declared(kernel: Kernel, target: Target | None = None) -> tuple[str, ...]:
    """Return the kinds of what depends on a secret and is declared: branch, loop, address, operation.

    A declared operation is a loop in the package's own code where a primitive outside of the language brings its C,
    and on a core that shifts place by place.
    """
    accepted = kernel.secrecy().exceptions
    kinds, slow = {found.kind for found in accepted}, {found.at for found in accepted if found.kind == "operation"}
    nodes = (node for part in reachable([kernel]) for node in part.nodes if isinstance(node, ir.Apply))
    by_place = target is not None and target.cpu in uneven_cores("SHIFT")
    looping = {node.at for node in nodes if by_place or node.primitive.function.__module__ != SHIPPED}
    return tuple(sorted(kinds | ({"loop"} if slow & looping else set())))
