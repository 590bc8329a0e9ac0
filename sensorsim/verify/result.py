"""What verifying one kernel on one target found, and how hard it was tried."""

from dataclasses import dataclass, field

from sensorsim.machine.counting import Spread
from sensorsim.verify.watched import TimedOperation


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
        """Whether the secret inputs never changed what was executed."""
        return None if self.sequences_by_secret is None else self.sequences_by_secret == 1

    @property
    def same_addresses(self) -> bool | None:
        """Whether the secret inputs never changed which data was touched."""
        return None if self.addresses_by_secret is None else self.addresses_by_secret == 1

    @property
    def same_time(self) -> bool | None:
        """Whether no operation ran on secrets whose time depends on its operands."""
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
