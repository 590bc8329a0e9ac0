"""What a sensor makes of a record before it is released: nothing, the hidden units of an encoder, or a sketch.

Each is the same to the sensor: kernels that are called, arrays in flash, a place in memory that is wiped afterwards.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sensorsim.device.firmware import Firmware
from sensorsim.device.sketch import Sketch
from sensorsim.encoders import Encoder
from sensorsim.export.encoder import encoder_tables
from sensorsim.export.sketch import CENTRE, CONSTANTS, sketch_macro, sketch_table
from sensorsim.kernels import packet
from sensorsim.kernels.encoder import encoder as encoder_kernel
from sensorsim.kernels.sketch import direction, pack_direction
from sensorsim.kernels.sketch import sketch as sketch_kernel
from sensorsim.language.c.declarations import Table
from sensorsim.language.kernel import Kernel

Call = Callable[[Kernel, Mapping[str, str], Mapping[str, int], str], str]  # arguments, lengths, what takes the result


@dataclass(frozen=True)
class Stage:
    """The record as it is: nothing is done, and nothing needs to be wiped."""

    firmware: Firmware
    prefix: str
    kernels: tuple[Kernel, ...] = ()
    flash: tuple[tuple[Kernel, str], ...] = ()  # parameters that are bound to the tables
    tables: tuple[Table, ...] = ()
    released: str = "x"  # C of what the release reads
    word: str = "sensor->word"  # C of the random words that it draws with
    members: tuple[str, ...] = ()  # of an ss_sensor
    macro: str = ""  # of the header

    @property
    def lengths(self) -> dict[str, int]:
        """Of the release."""
        return {"n": self.firmware.features, "k": self.firmware.k}

    def calls(self, call: Call) -> list[str]:
        """C that makes of x what is released."""
        return []

    @property
    def packs(self) -> Kernel:
        """The kernel that packs which of all is in the packet."""
        found: Kernel = packet.pack_chosen
        return found

    @property
    def which(self) -> dict[str, str]:
        """C of its arguments: which of all it is."""
        return {"chosen": "sensor->chosen", "n": f"{self.firmware.features}U", "k": f"{self.firmware.k}U"}

    def wiped(self) -> list[str]:
        """C that leaves nothing of it in memory."""
        return []


@dataclass(frozen=True)
class Encoded(Stage):
    """The hidden units of an encoder."""

    def calls(self, call: Call) -> list[str]:
        encoder = self.firmware.encoder
        assert encoder is not None
        given = {name: f"{self.prefix}encoder_{name}" for name in ("weights", "bias")}
        given |= {"x": "x", "hidden": self.released}
        return [call(encoder_kernel, given, {"n": encoder.n, "l": encoder.l}, "")]

    def wiped(self) -> list[str]:
        return [
            f"    for (uint32_t i = 0U; i < {self.firmware.features}U; i++) {{",
            "        ((volatile uint16_t *)sensor->hidden)[i] = 0U;\n    }",
        ]


@dataclass(frozen=True)
class Sketched(Stage):
    """One number of the whole record. The first random word picks the direction, whose number is no secret."""

    @property
    def lengths(self) -> dict[str, int]:
        return {"n": 1, "k": 1}

    def calls(self, call: Call) -> list[str]:
        bound = {name: sketch_macro(name, self.prefix) for name in CONSTANTS}
        picked = bound | {"word": "sensor->word[0]"}
        given = bound | {"x": "x", "number": "number", CENTRE: f"{self.prefix}sketch_{CENTRE}"}
        return [
            call(direction, picked, {}, "const uint32_t number = "),
            call(sketch_kernel, given, {}, f"{self.released}[0] = "),
        ]

    @property
    def packs(self) -> Kernel:
        found: Kernel = pack_direction
        return found

    @property
    def which(self) -> dict[str, str]:
        return {"number": "number"}

    def wiped(self) -> list[str]:
        return ["    ((volatile uint16_t *)sensor->u)[0] = 0U;"]


def stage_of(firmware: Firmware, prefix: str) -> Stage:
    """What stands before the release of this firmware."""
    if firmware.encoder is not None:
        return _encoded(firmware, firmware.encoder, prefix)
    if firmware.sketch is not None:
        return _sketched(firmware, firmware.sketch, prefix)
    return Stage(firmware, prefix)


def _encoded(firmware: Firmware, encoder: Encoder, prefix: str) -> Encoded:
    units, macro = firmware.features, f"{prefix}HIDDEN".upper()
    return Encoded(
        firmware,
        prefix,
        kernels=(encoder_kernel,),
        flash=tuple((encoder_kernel, name) for name in ("weights", "bias")),
        tables=tuple(replace(table, flash=True) for table in encoder_tables(encoder, prefix)),
        released="sensor->hidden",
        members=(f"uint16_t hidden[{units}]; /**< hidden units; zeros outside of a release */",),
        macro=f"\n/** Hidden units that the encoder makes of them. */\n#define {macro} {units}\n\n",
    )


def _sketched(firmware: Firmware, sketch: Sketch, prefix: str) -> Sketched:
    macro = f"{prefix}DIRECTIONS".upper()
    about = "Public directions; the square of a record along one of them is what is released."
    return Sketched(
        firmware,
        prefix,
        kernels=(direction, sketch_kernel),
        flash=((sketch_kernel, CENTRE),),
        tables=(replace(sketch_table(sketch, prefix), flash=True),),
        released="sensor->u",
        word="&sensor->word[1]",
        members=("uint16_t u[1]; /**< the sketch of a record; zero outside of a release */",),
        macro=f"\n/** {about} */\n#define {macro} {sketch.directions}\n\n",
    )
