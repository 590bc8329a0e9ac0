"""Write the C of a private sensor: the thin layer of the port as a template, everything else from the kernels.

Every constant is bound here: nothing is left that an application could set to what the certificate does not speak of.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING

from sensorsim.codegen.encoder import encoder_tables
from sensorsim.codegen.noise_constants import Noise, for_package
from sensorsim.codegen.sensor_words import about, protects
from sensorsim.codegen.sketch import CENTRE, CONSTANTS, sketch_macro, sketch_table
from sensorsim.codegen.write import template
from sensorsim.device.firmware import Firmware
from sensorsim.device.status import Status
from sensorsim.kernels import checksum, generator, health, journal, packet, sensor, sketch
from sensorsim.kernels.encoder import encoder as encoder_kernel
from sensorsim.language.c.comments import fold, with_prefix, wrap
from sensorsim.language.c.declarations import Table, header_of, known_tables, members
from sensorsim.language.c.helpers import HOLDS
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.kernel import Kernel, reachable

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

# Kernels that are verified one by one where a sensor uses them, before the release and after it.
BEFORE = (
    *(generator.absorb, generator.fresh_words, health.watch, health.watch_patterns),
    *(journal.read_journal, journal.write_slot, journal.spend, encoder_kernel, sketch.direction, sketch.sketch),
)
AFTER = (
    *(packet.pack_head, packet.pack_number, packet.pack_chosen, sketch.pack_direction),
    *(packet.pack_symbols, packet.pack_values),
)
STEPS = (sensor.open_sensor, sensor.count_release, sensor.left, sensor.close_sensor, sensor.wipe)


@dataclass(frozen=True)
class SensorCode:
    """The C of one firmware under one prefix."""

    firmware: Firmware
    prefix: str = "ss_"
    table_name: str = "the noise table"

    @cached_property
    def kernels(self) -> list[Kernel]:
        """Return the kernels that have golden vectors and are verified one by one."""
        used = set(reachable(self.steps))
        before, after = ([one for one in some if one in used] for some in (BEFORE, AFTER))
        return [*before, self.firmware.kernel, *after]

    @cached_property
    def steps(self) -> list[Kernel]:
        """Return the kernels that the thin layer calls."""
        draw = self.firmware.draw
        return [*STEPS, draw.draw_release, *([] if draw.start is None else [draw.start])]

    @cached_property
    def table(self) -> "NoiseTable":
        """Return the table with its proof; of a sketch, which is one number, the table is for one feature."""
        table, one = self.firmware.table, self.firmware.sketch is not None
        return replace(table, certificate=self.firmware.certificate, features=1 if one else table.features)

    @cached_property
    def noise(self) -> Noise:
        return for_package(self.table_name, self.table, [self.firmware.kernel], self.prefix)

    @cached_property
    def beside(self) -> list[Table]:
        """Return the constant arrays of the encoder or the sketch."""
        firmware = self.firmware
        found = encoder_tables(firmware.encoder, self.prefix) if firmware.encoder else []
        found += [sketch_table(firmware.sketch, self.prefix)] if firmware.sketch else []
        return [replace(table, flash=True) for table in found]

    @cached_property
    def flash(self) -> list[tuple[Kernel, str]]:
        """Return the parameters that constant tables are bound to."""
        firmware, draw = self.firmware, self.firmware.draw.draw_release
        bound = [(one, self.noise.parameter) for one in (firmware.kernel, draw) if self.noise.table.values]
        bound += [(one, name) for one in (encoder_kernel, draw) for name in ("weights", "bias") if firmware.encoder]
        return bound + [(one, CENTRE) for one in (sketch.sketch, draw) if firmware.sketch]

    @cached_property
    def names(self) -> Names:
        """Return the C names of everything in the package."""
        return Names([*self.kernels, *self.steps], self.prefix, self.flash, private=True)

    @cached_property
    def tables(self) -> list[Table]:
        """Return every constant array of the package."""
        own = replace(self.noise.table, flash=bool(self.noise.table.values))
        bound = [(kernel, name) for kernel, name in self.flash if kernel in self.kernels]
        return [*known_tables(self.kernels, self.prefix, bound), own, *self.beside]

    def sources(self, banner: str) -> dict[str, str]:
        """Return every file below include/ and src/."""
        texts = c_sources(
            [*self.kernels, *self.steps], self.prefix, self.tables, banner, private=True, flash=self.flash
        )
        del texts[f"src/{header_of(self.firmware.draw.record, self.prefix)}"]  # the public header has it
        fill = self.fill()
        for path in ("include/ss_sensor.h", "src/ss_guard.h", "src/ss_sensor.c"):
            own = path.replace("ss_", self.prefix)
            texts[own] = banner + template(f"sensor/{path}", self.prefix, fill)
        return dict(sorted(texts.items()))

    def fill(self) -> dict[str, str]:
        """Return what the templates of header and source leave open."""
        firmware = self.firmware
        record = firmware.draw.record
        crc = self.names.tables[journal.read_journal, "crc"]
        return {
            "ABOUT": "\n * ".join(wrap(about(firmware))),
            "PROTECTS": "\n * ".join(wrap(f"What a packet protects: {protects(firmware)}"))[
                len("What a packet protects: ") :
            ],
            "TIME": "\n * ".join(wrap(with_prefix(HOLDS, self.prefix))),
            "VERSION": version("sensorsim"),
            "FEATURES": str(firmware.n),
            "HIDDEN": self._macro(),
            "RELEASED": str(firmware.k),
            "PACKET_BYTES": str(firmware.layout.bytes),
            "SLOT_BYTES": str(journal.SLOT_BYTES),
            "EPSILON": str(firmware.epsilon),
            "BUDGET": str(firmware.releases),
            "BUDGET_DAYS": str(firmware.budget_days),
            "BUDGET_EPSILON": str(firmware.budget),
            "RESERVE": str(firmware.reserve),
            "STATUS": "\n".join(self._status()),
            "START_UP": str(health.START_UP),
            "CLAIMED_BITS": str(health.CLAIMED_BITS),
            "LONGEST_CYCLE": str(health.LONGEST_CYCLE),
            "MEMBERS": "\n".join(f"    {line}" for line in members(record, self.prefix)),
            "X_ABOUT": f"{firmware.n} features in UQ15, 32768 for 1; larger values count as 1",
            "INCLUDES": "\n".join(f'#include "{name}"' for name in self._headers()),
            "IDENTITY_BYTES": str(journal.IDENTITY_BYTES),
            "IDENTITY": ", ".join(f"0x{byte:02X}U" for byte in firmware.journal_identity),
            "CRC": crc,
            "CRC_SIZE": str(len(checksum.CRC.contents or ())),
            "DRAW": self._draw(),
            "START": f"            {self.names.functions[firmware.draw.start]}(sensor);\n"
            if firmware.draw.start
            else "",
        }

    def _status(self) -> list[str]:
        lead, last = self.prefix.upper(), list(Status)[-1]
        names = {one: f"{lead}{one.name} = {one.value}{'' if one is last else ','}" for one in Status}
        width = max(map(len, names.values()))
        return [f"    {name:<{width}} /**< {one.about} */" for one, name in names.items()]

    def _headers(self) -> list[str]:
        own = {self.names.header(kernel) for kernel in [*self.kernels, *self.steps]}
        return sorted(own | {f"{self.prefix}tables.h"})

    def _macro(self) -> str:
        """Return the macro of the header that says what is released from, where that is not the features."""
        encoder, directions = self.firmware.encoder, self.firmware.sketch
        if encoder is not None:
            about, name, number = "Hidden units that the encoder makes of them.", "HIDDEN", encoder.l
        elif directions is not None:
            about = "Public directions; the square of a record along one of them is what is released."
            name, number = "DIRECTIONS", directions.directions
        else:
            return ""
        return f"\n/** {about} */\n#define {self.prefix.upper()}{name} {number}\n\n"

    def _draw(self) -> str:
        """Return the call of the firmware's draw, with every constant."""
        draw, known = self.firmware.draw.draw_release, dict(self.noise.constants)
        known |= {self.noise.parameter: self.noise.table.name} if self.noise.table.values else {}
        if self.firmware.encoder is not None:
            known |= {name: f"{self.prefix}encoder_{name}" for name in ("weights", "bias")}
            known["sigmoid"] = self.names.tables[encoder_kernel, "table"]
        if self.firmware.sketch is not None:
            known |= {name: sketch_macro(name, self.prefix) for name in CONSTANTS}
            known[CENTRE] = f"{self.prefix}sketch_{CENTRE}"
        own = [name for name in draw.parameters if "." not in name]
        passed = ["sensor", *(known.get(name, name) for name in own)]
        return fold(f"    {self.names.functions[draw]}({', '.join(passed)});")
