"""What a verification finds: proofs, and the result of each kernel on each target; as objects and as data."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from sensorsim.machine.counting import Spread
from sensorsim.verification.kernel_timing import TimedOperation

if TYPE_CHECKING:
    from sensorsim.verification.verification import Verification


@dataclass(frozen=True)
class Proof:
    """Something that was proved just now, or that does not hold; `detail` says of what, or why not."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Effort:
    """How many random vectors to run."""

    host: int = 1_000_000
    core: int = 10_000
    edges: int = 256
    watched: int = 200  # of those on a core, how many are watched for addresses and operands


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


SCHEMA_VERSION = 2


def kernel_row(result: "KernelResult") -> dict[str, Any]:
    """Return the row of one kernel on one target."""
    n, price = result.instructions, result.price
    return {
        "kernel": result.kernel,
        "target": result.target,
        "vectors": result.vectors,
        "differing_bits": result.differing_bits,
        "lengths": " ".join(f"{name}={value}" for name, value in result.lengths.items()),
        "instructions_min": n.min if n else None,
        "instructions_mean": n.mean if n else None,
        "instructions_max": n.max if n else None,
        "cost_min": price.min if price else None,
        "cost_mean": price.mean if price else None,
        "cost_max": price.max if price else None,
        "cost_unit": result.unit or None,
        "table": result.table or None,
        "flash_bytes": result.flash_bytes,
        "ram_bytes": result.ram_bytes,
        "stack_bytes": result.stack_bytes,
        "runtime": " ".join(result.runtime),
        "sequences": result.sequences,
        "sequences_by_secret": result.sequences_by_secret,
        "same_path": result.constant_time,
        "same_path_proved": result.proved_same_path if result.sequences is not None else None,
        "same_addresses": result.same_addresses,
        "same_addresses_proved": result.proved_same_addresses if result.sequences is not None else None,
        "same_time": result.same_time,
        "timed_operations": "; ".join(operation.text(result.unit) for operation in result.operations),
    }


def verification_data(report: "Verification") -> dict[str, Any]:
    """Return the whole report for JSON."""
    results = []
    for result in report.results:
        more: dict[str, Any] = {"classes": result.classes, "table_notes": list(result.table_notes)}
        more |= {"varying": list(result.varying), "moving": list(result.moving)}
        more |= {"timed_operations": [asdict(one) for one in result.operations]}
        results.append({**kernel_row(result), "lengths": result.lengths, **more})
    return {
        "schema_version": SCHEMA_VERSION,
        "folder": report.folder,
        "passed": report.passed,
        "proofs": [asdict(proof) for proof in report.proofs],
        "left_out": list(report.left_out),
        "compiler": report.compiler,
        "flags": report.flags,
        "gcc": report.gcc,
        "ubsan_vectors": report.ubsan_vectors,
        "results": results,
    }


def proof_facts(proofs: "Sequence[Proof]", left_out: Sequence[str]) -> dict[str, str]:
    """Return every proof with its answer, and what was not proved."""
    found = {proof.name: f"{'yes' if proof.passed else 'NO'}: {proof.detail}" for proof in proofs}
    return found | {f"not proved {number}": text for number, text in enumerate(left_out, 1)}
