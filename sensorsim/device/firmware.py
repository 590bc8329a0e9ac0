"""Bind everything of a sensor: the table with its proof, the encoder or the sketch, the budget, the packet.

Nothing of it can be set afterwards, so nothing can be set to what the certificate does not speak of.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError, check_type
from sensorsim._util.terminal import counted
from sensorsim.device.sketches import Sketch
from sensorsim.encoders import Encoder
from sensorsim.kernels.formats import FRAC
from sensorsim.kernels.generator import BLOCK_WORDS
from sensorsim.kernels.journal import BUDGET, IDENTITY_BYTES, RESERVE
from sensorsim.kernels.packet import NUMBERS, Layout
from sensorsim.noise.certificate import Certificate, certify

if TYPE_CHECKING:
    from sensorsim.kernels.sensor_draw import Draw
    from sensorsim.language.kernel import Kernel
    from sensorsim.noise.noise_table import NoiseTable

MOST_DAYS = 36_525  # a hundred years
MOST_DIGITS = 40


@dataclass(frozen=True, repr=False)
class Firmware:
    """A private sensor before it is built. The table is proved here, whatever its file says."""

    table: "NoiseTable"
    encoder: Encoder | None = None
    budget_epsilon: Decimal | float | str | None = None  # of an epoch; the table's own epsilon where none is given
    budget_days: int = 1  # length of an epoch
    reserve: int = 1  # releases that one store counts ahead
    numbers: tuple[str, ...] = ()  # what a packet carries beside the release: epoch, sequence
    sketch: Sketch | None = None  # what one number of a record is released by, in place of its features

    def __repr__(self) -> str:
        made = "a sketch, " if self.sketch else "an encoder, " if self.encoder else ""
        budget = f"epsilon {self.budget} in {counted(self.budget_days, 'day')}"
        return f"Firmware({made}{self.table.title()}; epsilon {self.epsilon} a release, proved; budget {budget})"

    def __post_init__(self) -> None:
        for each in fields(self):
            check_type(each.name, getattr(self, each.name), each.type)
        object.__setattr__(self, "numbers", numbers_named(self.numbers))
        table, encoder = self.table, self.encoder
        if not table.for_releases:
            raise InputError(f"a sensor releases through a rows or stairs table, not a {table.kind} one.")
        if not self.certificate.holds(table.epsilon):
            raise InputError(
                f"this {table.kind} table does not keep its epsilon {table.epsilon}: no sensor is made of it; make it "
                "again, and see `sensorsim noise check`."
            )
        if table.frac_bits != FRAC:
            raise InputError(f"the table has {table.frac_bits} fraction bits, the kernels {FRAC}; make it with {FRAC}.")
        table.check_kernels()
        if encoder is not None and encoder.l != table.features:
            raise InputError(
                f"the encoder makes {encoder.l} hidden units and the table is for {table.features} features; make "
                f"the table with --features {encoder.l}."
            )
        if self.sketch is not None:
            if encoder is not None:
                raise InputError("a sensor releases hidden units or a sketch, not both; leave one of them out.")
            self.sketch.check_table(table)
        if type(self.budget_days) is not int or not 1 <= self.budget_days <= MOST_DAYS:
            raise InputError(f"budget_days is {self.budget_days!r}; give a whole number from 1 to {MOST_DAYS}.")
        if self.releases < 1:
            raise InputError(
                f"a budget of {self.budget} allows no release that costs {self.epsilon}; give at least that."
            )
        if self.releases > BUDGET.hi:
            raise InputError(f"a budget of {self.budget} is more than {BUDGET.hi} releases; give a smaller one.")
        most = min(RESERVE.hi, self.releases)
        if type(self.reserve) is not int or not RESERVE.lo <= self.reserve <= most:
            raise InputError(f"the reserve is {self.reserve!r}; give {RESERVE.lo} to {most}, a whole number.")

    @property
    def certificate(self) -> Certificate:
        """Prove what the table protects, now."""
        return certify(self.table)

    @property
    def epsilon(self) -> Decimal:
        """Return the certified epsilon of one release."""
        proved = self.certificate.epsilon_record
        assert proved is not None
        return proved

    @cached_property
    def budget(self) -> Decimal:
        """Return the epsilon of an epoch."""
        if self.budget_epsilon is None:
            return self.table.epsilon
        from sensorsim.noise.noise_table import budget_of

        budget_of(self.budget_epsilon, "budget epsilon")  # refuses what is no epsilon, and rounds what has many digits
        text = str(self.budget_epsilon)
        if len(text) > MOST_DIGITS or not set(text) <= set("0123456789.eE+-"):
            raise InputError(f"budget {text[:40]!r} is no plain number; give one as 16 or 0.5.")
        return Decimal(text)

    @cached_property
    def releases(self) -> int:
        """Return how many whole releases an epoch's budget allows."""
        return Fraction(self.budget) // Fraction(self.epsilon)

    @property
    def n(self) -> int:
        """Return the number of features of a record, as the application gives it."""
        if self.sketch:
            return self.sketch.n
        return self.encoder.n if self.encoder else self.table.features

    @property
    def features(self) -> int:
        """Return how many things a packet can name: features, hidden units of an encoder, directions of a sketch."""
        return self.sketch.directions if self.sketch else self.table.features

    @property
    def k(self) -> int:
        return self.table.release

    @cached_property
    def kernel(self) -> "Kernel":
        """Return the kernel of the release. A sketch is released as the only feature that there is."""
        return self.table.kernel("sampled" if self.table.sampled and not self.sketch else "release")

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """Return all arguments of the release but x, word, order, chosen and y."""
        known = self.table.arguments() | {"n": 1 if self.sketch else self.features, "k": self.k}
        return {name: value for name, value in known.items() if name in self.kernel.parameters}

    def journal_arguments(self) -> tuple[Any, ...]:
        """Return what the kernels of a sensor take beside its record."""
        import numpy as np

        from sensorsim.kernels.checksum import CRC

        crc = np.array(CRC.contents, np.uint32)
        identity = np.array(list(self.journal_identity), np.uint8)
        return identity, crc, self.releases, self.reserve, len(crc)

    @cached_property
    def words(self) -> int:
        """Return how many random words a release takes; the first one picks the direction of a sketch."""
        from sensorsim.language.arguments import array_length

        lengths = {name: self.arguments[name] for name in self.kernel.lengths}
        return array_length(self.kernel, "word", lengths) + self.picks

    @property
    def picks(self) -> int:
        """Return how many of them the kernel of the release does not read, because they pick what it releases."""
        return 1 if self.sketch else 0

    @property
    def blocks(self) -> int:
        """Return how many blocks of the generator a release takes."""
        return int(-(-self.words // BLOCK_WORDS))

    @property
    def draw(self) -> "Draw":
        """Return the record of this sensor and the kernels that draw its releases, declared once for equal firmware."""
        from sensorsim.kernels import sketch
        from sensorsim.kernels.sensor_draw import Plan, declare_draw

        release, features = self.kernel, self.table.features
        if self.sketch:
            release, features = getattr(sketch, self.kernel.name.replace("release", "sketch", 1)), self.sketch.n
        limit, encoded, sketched = self.arguments.get("limit", 0), self.encoder is not None, self.sketch is not None
        return declare_draw(Plan(release, self.n, features, self.k, self.blocks, self.layout, limit, encoded, sketched))

    def draw_arguments(self) -> dict[str, Any]:
        """Return what the draw takes beside the sensor, the record and the packet, in order."""
        import numpy as np

        from sensorsim.kernels.formats import SIGMOID_TABLE

        known = self.table.arguments()
        if self.encoder is not None:
            known |= {"weights": np.array(self.encoder.flat, np.int16), "bias": np.array(self.encoder.bias, np.int32)}
            known["sigmoid"] = np.array(SIGMOID_TABLE, np.uint16)
        if self.sketch is not None:
            known |= {name: getattr(self.sketch, name) for name in ("n", "factor", "halvings", "direction_bits")}
            known["centre"] = np.array(self.sketch.centre, np.uint16)
        own = [name for name in self.draw.draw_release.parameters if "." not in name]
        return {name: known[name] for name in own if name not in ("x", "packet")}

    @cached_property
    def identity(self) -> bytes:
        """Return a hash of all that gives a packet its meaning."""
        _, values = self.table.c_array()
        lines = ["sensorsim release 1", f"kind {self.table.kind}", f"draw {self.kernel.name}"]
        lines += [f"features {self.features}", f"release {self.k}", f"values {','.join(map(str, values))}"]
        lines += [f"{name} {value}" for name, value in sorted(self.table.c_constants().items())]
        if self.encoder is not None:
            numbers = (self.encoder.n, self.encoder.l, *self.encoder.flat, *self.encoder.bias)
            lines.append(f"encoder {','.join(map(str, numbers))}")
        if self.sketch is not None:
            public = (self.sketch.n, self.sketch.factor, self.sketch.halvings, self.sketch.direction_bits)
            lines.append(f"sketch {','.join(map(str, (*public, *self.sketch.centre)))}")
        return hashlib.sha256("".join(line + "\n" for line in lines).encode("ascii")).digest()

    @property
    def journal_identity(self) -> bytes:
        """Return a hash of what the journal counts: the release, and the days by which its epochs are numbered."""
        text = b"sensorsim journal 1\n" + self.identity + b"days %d\n" % self.budget_days
        return hashlib.sha256(text).digest()[:IDENTITY_BYTES]

    @cached_property
    def layout(self) -> Layout:
        """Return the layout of the packet."""
        short = int.from_bytes(self.identity[:2], "little")
        return Layout(short, self.features, self.k, self.table.value_bits, self.numbers)


def numbers_named(names: Iterable[str]) -> tuple[str, ...]:
    """Return the numbers that a packet carries, checked, each once and in the packet's order."""
    wanted = list(names)
    unknown = [name for name in wanted if name not in NUMBERS]
    if unknown:
        raise InputError(f"a packet has no number {unknown[0]!r}; give some of {', '.join(NUMBERS)}.")
    return tuple(name for name in NUMBERS if name in wanted)
