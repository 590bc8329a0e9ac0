"""Results of one kernel on one target, and its timing side channels: do path, addresses or slow operations depend on
its secrets?

Calls that differ in their secrets alone are run and compared. A result says in three columns what holds, and why not:
which branch or address depends on what.
"""

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from sensorsim.language import ir
from sensorsim.language.c.comments import with_prefix
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.machine.counting import BlockCounter, Spread, Tally
from sensorsim.machine.harness import CoreRun
from sensorsim.machine.instructions import Instruction
from sensorsim.machine.vectors import Vectors
from sensorsim.machine.watching import Steps, Touched, Watch, first_difference

SCHEMA_VERSION = 2
BY_LENGTH = ("mem", "__aeabi_mem")  # functions of the runtime whose steps depend on lengths and addresses
# In the names of operations whose time varies by the secrecy reader; a division of the runtime calls __clzsi2.
DIVIDES = ("div", "mod", "rem", "shift", "__clzsi2")
TWO_WORDS = re.compile("di[34]|l(div|mul|lsl|lsr|asr|cmp)")  # in the names of those that take 64-bit operands
SHOWN = 2  # places that a proof names
RUNTIME = "the compiler's runtime: its steps depend on the operands"
DIVISION = " (define SS_NO_HW_DIV for a division that does not)"
TIMING_HEAD = ("same path", "same addresses", "operations timed by data")


@dataclass(frozen=True)
class Proof:
    """A statement that was proved just now, or that does not hold; `detail` says of what, or why not."""

    name: str
    passed: bool
    detail: str


def proof_facts(proofs: Sequence[Proof], left_out: Sequence[str]) -> dict[str, str]:
    """Return every proof with its answer, and what was not proved."""
    found = {proof.name: f"{'yes' if proof.passed else 'NO'}: {proof.detail}" for proof in proofs}
    return found | {f"not proved {number}": text for number, text in enumerate(left_out, 1)}


@dataclass(frozen=True)
class TimedOperation:
    """Instructions, or calls of a function of the compiler's runtime, whose time depends on their operands."""

    name: str
    count: int  # in one call of the kernel, the most; 0: some, not counted
    min: float | None  # in the unit of the core's table; None for a function
    max: float | None
    on_data: bool  # whether the operands changed with the secrets (with any input where none is declared secret)

    @property
    def declarable(self) -> bool:
        """Return whether a kernel can declare it. No core here has a MUL whose time depends on its operands."""
        return any(part in self.name for part in DIVIDES)

    def text(self, unit: str) -> str:
        """Return it in words, as `36 divisions (2–12 cycles)`."""
        name = self.name[:-1] if self.count == 1 and self.name.endswith("ions") else self.name
        if self.min is None or self.max is None or math.isnan(self.max):
            return f"{self.count} {name}" if self.count else name
        shown = f"{self.min:g}–{self.max:g} {unit}" if self.min < self.max else f"{self.max:g} {unit}, fewer by zero"
        return f"{self.count} {name} ({shown})"


def spread_cells(name: str, spread: Spread | None, parts: Sequence[str] = ("min", "mean", "max")) -> dict[str, Any]:
    """Return the columns `name`_min, `name`_mean and `name`_max of a row."""
    return {f"{name}_{part}": getattr(spread, part) if spread else None for part in parts}


@dataclass(frozen=True)
class KernelResult:
    """One kernel on one target. The counts are of calls with the package's own lengths and constants, or with typical
    lengths where it has none; a price is in `unit`."""

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
    secrets: tuple[str, ...] = ()  # parameters that are declared secret; where there is none, all inputs change
    exposed: tuple[str, ...] = ()  # what depends on them by the source: branch, loop, address, operation
    declared: tuple[str, ...] = ()  # of these, what the kernel declares, with a reason
    sequences: int | None = None
    sequences_by_secret: int | None = None  # when only the secret inputs change
    own_sequences: int = 1  # of these, how many differ outside of the compiler's runtime
    varying: tuple[str, ...] = ()  # which branches depend on data, and why
    # By the secrecy proof of the source: the same instructions for every secret. It says nothing of functions of the
    # compiler's runtime, so where one that branches was called nothing is proved.
    proved_same_path: bool = False
    tried: int = 0  # calls whose paths were compared
    watched: int = 0  # calls whose addresses and operands were compared
    addresses_by_secret: int | None = None  # sequences of data addresses on one path when only the secrets change
    proved_same_addresses: bool = False
    moving: tuple[str, ...] = ()  # which access depends on data, and why
    operations: tuple[TimedOperation, ...] = ()  # that ran, and whose time depends on their operands
    proved_operations: bool = False  # no secret reaches one of them

    @property
    def constant_time(self) -> bool | None:
        """Return whether the secret inputs never changed what was executed."""
        return None if self.sequences_by_secret is None else self.sequences_by_secret == 1

    @property
    def same_addresses(self) -> bool | None:
        """Return whether the secret inputs never changed which data was touched."""
        return None if self.addresses_by_secret is None else self.addresses_by_secret == 1

    @property
    def same_time(self) -> bool | None:
        """Return whether no operation ran on secrets whose time depends on its operands."""
        return None if self.sequences is None else not any(operation.on_data for operation in self.operations)

    @property
    def leaks(self) -> tuple[str, ...]:
        """Name what changed with a secret in this machine code and is not declared, whatever the source proves."""
        if not self.secrets:
            return ()
        found = []
        by_runtime = "operation" in self.declared and self.own_sequences == 1
        if self.constant_time is False and not {"branch", "loop"} & set(self.declared) and not by_runtime:
            found.append(f"path ({self.sequences_by_secret} in {self.tried} tried)")
        if self.same_addresses is False and "address" not in self.declared:
            found.append(f"addresses ({self.addresses_by_secret} in {self.watched} tried)")
        slow = [one for one in self.operations if one.on_data and not (one.declarable and "operation" in self.declared)]
        return (*found, *(f"time of {one.text(self.unit)}" for one in slow))

    @property
    def passed(self) -> bool:
        return self.differing_bits == 0 and not self.leaks

    def row(self) -> dict[str, Any]:
        """Return the result as a row of a table."""
        ran = self.sequences is not None
        return {
            "kernel": self.kernel,
            "target": self.target,
            "vectors": self.vectors,
            "differing_bits": self.differing_bits,
            "lengths": " ".join(f"{name}={value}" for name, value in self.lengths.items()),
            **spread_cells("instructions", self.instructions),
            **spread_cells("cost", self.price),
            "cost_unit": self.unit or None,
            "table": self.table or None,
            "flash_bytes": self.flash_bytes,
            "ram_bytes": self.ram_bytes,
            "stack_bytes": self.stack_bytes,
            "runtime": " ".join(self.runtime),
            "sequences": self.sequences,
            "sequences_by_secret": self.sequences_by_secret,
            "same_path": self.constant_time,
            "same_path_proved": self.proved_same_path if ran else None,
            "same_addresses": self.same_addresses,
            "same_addresses_proved": self.proved_same_addresses if ran else None,
            "same_time": self.same_time,
            "timed_operations": "; ".join(operation.text(self.unit) for operation in self.operations),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            **self.row(),
            "lengths": self.lengths,
            "classes": self.classes,
            "table_notes": list(self.table_notes),
            "varying": list(self.varying),
            "moving": list(self.moving),
            "timed_operations": [asdict(one) for one in self.operations],
        }


def timing_cells(result: KernelResult) -> tuple[str, str, str]:
    """Return the cells under TIMING_HEAD: proved by the secrecy proof, or tried with a number of secrets."""
    if result.sequences is None:
        return "", "", ""
    cells = []
    for same, kinds, proved, count, tried in (
        (result.constant_time, {"branch", "loop"}, result.proved_same_path, result.sequences_by_secret, result.tried),
        (result.same_addresses, {"address"}, result.proved_same_addresses, result.addresses_by_secret, result.watched),
    ):
        if not same:
            found = f"{count} in {tried} tried"
            cells.append(f"no, {found}" if result.secrets else f"{found}, nothing secret")
        elif kinds & set(result.exposed):
            cells.append(f"no by its source, {tried} tried")
        else:
            cells.append("proved" if proved else f"tried {tried}: yes")
    slow = [operation.text(result.unit) for operation in result.operations if operation.on_data]
    if slow:
        cells.append(", ".join(slow) + ("" if result.secrets else ", nothing secret"))
    elif not result.operations:
        cells.append("none")
    else:
        cells.append("none on secrets, " + ("proved" if result.proved_operations else f"tried {result.watched}"))
    return cells[0], cells[1], cells[2]


def timing_lines(result: KernelResult) -> list[str]:
    """Say why a cell is no, for the lines below a table; nothing where all three are as they should be."""
    lines = [f"not the same path for all inputs: {reason}" for reason in result.varying]
    whose = "secrets" if result.secrets else "inputs"
    lines += [f"not the same addresses for all {whose}: {reason}" for reason in result.moving]
    lines += [f"FAILED: changes with a secret and is not declared: {name}" for name in result.leaks]
    return [f"{result.target}: {line}" for line in lines]


def describe_leaks(results: Iterable[KernelResult]) -> list[str]:
    """Name for each kernel and target what changes with a secret and is not declared, and the first branches of it."""
    found = []
    for one in results:
        if one.leaks:
            where = f" ({'; '.join((*one.varying, *one.moving)[:SHOWN])})" if one.varying or one.moving else ""
            found.append(f"{one.kernel} on {one.target}: secrets change the {', the '.join(one.leaks)}{where}")
    return found


@dataclass(frozen=True)
class Watched:
    """The result of watching `vectors` calls; of several public inputs, the most for one of them."""

    vectors: int
    paths: int
    own_paths: int  # that differ outside of the compiler's runtime
    addresses: int  # on one of these
    operations: tuple[TimedOperation, ...]
    branch: Instruction | None = None  # the first that went another way
    access: Instruction | None = None  # the first that touched another address on the same path

    @property
    def calls_runtime(self) -> bool:
        """Return whether a function of the compiler's runtime ran that branches on its operands."""
        return any(operation.min is None for operation in self.operations)


def watch(sets: Sequence[Vectors], counter: BlockCounter, tally: Tally, function: str, prefix: str) -> Watched:
    """Run the sets, in each of which only secrets change, and compare what their calls touch."""
    places = _places(counter, prefix)
    slow: set[str] = set()
    seen: set[int] = set()
    paths = own_paths = addresses = count = 0
    branch = access = None
    for vectors in sets:
        run = CoreRun(counter.machine, vectors, function)
        with Watch(counter.machine, {place: registers for place, (_, registers) in places.items()}) as watching:
            touched = [watching.take() for _ in run.calls()]
        count += vectors.count
        ways = _by_own_path(run, counter, touched, prefix)
        paths, own_paths = max(paths, len({t.path for t in touched})), max(own_paths, len(ways))
        addresses = max(addresses, *(len({t.addresses for t in way}) for way in ways))
        slow |= {name for place, (name, _) in places.items() for way in ways
                 if len({t.operands.get(place) for t in way}) > 1}  # fmt: skip
        seen |= {place for one in touched for place in one.operands}
        branch = branch or _first_branch(run, counter, touched)
        access = access or _first_access(run, counter, touched)
    # operands that were not seen: they are not in registers, or no watched call came by
    slow |= {name for place, (name, registers) in places.items() if not registers or place not in seen}
    prices: dict[str, tuple[float, float]] = {}
    for instruction in (one for instructions in counter.timed.values() for one in instructions):
        assert instruction.timed is not None
        known = prices.get(instruction.plural, instruction.timed)
        prices[instruction.plural] = min(known[0], instruction.timed[0]), max(known[1], instruction.timed[1])
    operations = []
    for name in sorted({name for name, _ in places.values()}):
        times = max(part.timed.get(name, 0) + part.entered.get(name, 0) for part in tally.parts.values())
        if times:
            least, most = prices.get(name, (None, None))
            operations.append(TimedOperation(name, times, least, most, name in slow))
    return Watched(count, paths, own_paths, addresses, tuple(operations), branch, access)


def _by_own_path(run: CoreRun, counter: BlockCounter, touched: Sequence[Touched], prefix: str) -> list[list[Touched]]:
    """Group the calls by their path outside of the compiler's runtime.

    What a function of the runtime does follows from its operands, which are compared where it is entered.
    """
    own = {start: counter.owner(start).startswith((prefix, *BY_LENGTH)) for start in counter.known}
    differ = len({(one.path, *one.operands.values()) for one in touched}) > 1
    if differ and not all(own.values()):
        inside = {one.address for start, block in counter.known.items() if not own[start] for one in block}
        with Steps(counter.machine) as steps:
            touched = [_outside(inside, steps, touched[call].operands) for call in run.calls()]
    ways: dict[int, list[Touched]] = {}
    for one in touched:
        ways.setdefault(one.path, []).append(one)
    return list(ways.values())


def _outside(inside: Container[int], steps: Steps, operands: Mapping[int, int]) -> Touched:
    """Return what the last call touched by instructions that are not among these, or where it entered them."""
    blocks, accesses = steps.take()
    entered = {to for (start, _), (to, _) in pairwise(blocks) if start not in inside}
    path, data = (hash(tuple(one for one in some if one[0] not in inside)) for some in (blocks, accesses))
    return Touched(path, data, {at: one for at, one in operands.items() if at not in inside or at in entered})


def _places(counter: BlockCounter, prefix: str) -> dict[int, tuple[str, tuple[str, ...]]]:
    """Return by address the slow operation there, and the registers that hold its operands."""
    found: dict[int, tuple[str, tuple[str, ...]]] = {
        one.address: (one.plural, () if "[" in one.text else one.reads)
        for instructions in counter.timed.values()
        for one in instructions
    }
    stem = {"thumb": "r", "riscv32": "a"}.get(counter.decoder.family)
    for name in sorted(counter.branching()):
        if name.startswith((prefix, *BY_LENGTH)) or name not in counter.machine.program.symbols:
            continue
        words = 4 if TWO_WORDS.search(name) else 2
        registers = tuple(f"{stem}{place}" for place in range(words)) if stem else ()
        found[counter.machine.program.symbols[name][0] & ~1] = name, registers
    return found


def _first_branch(run: CoreRun, counter: BlockCounter, touched: Sequence[Touched]) -> Instruction | None:
    """Find the branch after which the first two calls that differ took different paths."""
    other = next((call for call, one in enumerate(touched) if one.path != touched[0].path), None)
    if other is None:
        return None
    with Steps(counter.machine) as steps:
        one, two = (steps.take()[0] for _ in run.calls([0, other]))
    place = first_difference(one, two)
    if not place:
        return None
    start, size = one[place - 1]
    return counter.decoder.block(start, counter.machine.read_code(start, size))[-1]


def _first_access(run: CoreRun, counter: BlockCounter, touched: Sequence[Touched]) -> Instruction | None:
    """Find the first instruction that touched another address in two calls of one path."""
    seen: dict[int, tuple[int, int]] = {}  # by path: a call, its addresses
    for call, one in enumerate(touched):
        known, addresses = seen.setdefault(one.path, (call, one.addresses))
        if addresses == one.addresses:
            continue
        with Steps(counter.machine) as steps:
            first, second = (steps.take()[1] for _ in run.calls([known, call]))
        place = first_difference(first, second)
        at = first[place][0] if place is not None and place < len(first) else -1
        return next((i for block in counter.known.values() for i in block if i.address == at), None)
    return None


def branch_reasons(tally: Tally, functions: Mapping[Kernel, str], prefix: str) -> tuple[str, ...]:
    """Return a line for each function with a branch that depends on data; none if the sequence never changes."""
    if tally.constant_time:
        return ()
    by_function: dict[str, list[str]] = {}
    for address, text in sorted(tally.varying.items()):
        function, _, branch = text.partition(": ")
        by_function.setdefault(function, []).append(f"`{branch}` at 0x{address:x}")
    own = {function: kernel for kernel, function in functions.items()}
    lines = []
    for function, branches in by_function.items():
        if function in own:
            because = _conditions(own[function])
        elif function.startswith(prefix):
            because = "a choice without a branch in the source, of which the compiler made one"
        else:
            because = RUNTIME + (with_prefix(DIVISION, prefix) if "div" in function else "")
        more = f" and {len(branches) - 3} more" if len(branches) > 3 else ""
        lines.append(f"{function} ({', '.join(branches[:3])}{more}): {because}")
    if not lines:  # a return that is conditional ends the call, so no branch was seen to go two ways
        entry = next(one for one in functions if not any(one in other.called for other in functions))
        lines.append(f"{functions[entry]}: {_conditions(entry)}")
    return tuple(lines)


def address_reason(function: str, text: str, address: int, kernel: Kernel) -> str:
    """Say which instruction touched another address for another secret, and which lines of the kernel cause it."""
    read = kernel.secrecy()
    found = dict.fromkeys(
        f"{one.text} at {one.at}{', declared' if one.reason else ''}"
        for one in (*read.findings, *read.exceptions)
        if one.kind == "address"
    )
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    because = next(iter(found), "the address depends on data") + more
    return f"{function} (`{text}` at 0x{address:x}): {because}"


def _conditions(kernel: Kernel) -> str:
    """Return the `if`s of the kernel and of those compiled into it, as in the source."""
    found = [
        f"`{ir.shown(node)}` ({node.at})"
        for part in reachable([kernel])
        for node in part.nodes
        if isinstance(node, ir.If) or (isinstance(node, ir.For) and node.last.type in ("u32", "i32"))
    ]
    return "depends on " + ", ".join(found) if found else "an operation that became a branch"
