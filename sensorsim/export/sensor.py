"""The default package: a private sensor. The thin layer of the port is C, everything else the kernels, and every
constant is bound here: nothing is left that an application could set to what the certificate does not speak of."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING

from sensorsim.device.firmware import Firmware
from sensorsim.device.status import Status
from sensorsim.export.noise_constants import Noise, for_package
from sensorsim.export.sensor_words import about, protects
from sensorsim.export.stages import Stage, stage_of
from sensorsim.export.write import template
from sensorsim.kernels import checksum, generator, health, journal, packet, sensor
from sensorsim.language.c.comments import C_TYPES, fold, with_prefix, wrap
from sensorsim.language.c.declarations import Table, header_of, known_tables, members
from sensorsim.language.c.helpers import HOLDS
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

STEPS = (sensor.open_sensor, sensor.count_release, sensor.left, sensor.close_sensor, sensor.settle, sensor.wipe)


@dataclass(frozen=True)
class SensorCode:
    """The C of one firmware under one prefix."""

    firmware: Firmware
    prefix: str = "ss_"
    table_name: str = "the noise table"

    @cached_property
    def stage(self) -> Stage:
        """What stands before the release."""
        return stage_of(self.firmware, self.prefix)

    @cached_property
    def kernels(self) -> list[Kernel]:
        """The kernels that the thin layer calls."""
        layout = self.firmware.layout
        found: list[Kernel] = [generator.absorb, generator.fresh_words]
        found += [health.watch, health.watch_patterns]
        found += [journal.read_journal, journal.write_slot, journal.spend]
        found += [*self.stage.kernels, self.firmware.kernel, packet.pack_head]
        found += [packet.pack_number] if layout.numbers else []
        found += [self.stage.packs] if layout.which_bits else []
        return [*found, self.pack_values]

    @property
    def pack_values(self) -> Kernel:
        """The kernel that packs what was released: symbols of rows, values of stairs."""
        symbols = self.firmware.kernel.arrays["y"].storage == "u8"
        found: Kernel = packet.pack_symbols if symbols else packet.pack_values
        return found

    @cached_property
    def table(self) -> "NoiseTable":
        """The table with its proof. A sketch is one number, so the table of its package is for one feature, from
        however many it was made to pick one."""
        table, sketch = self.firmware.table, self.firmware.sketch
        return replace(table, certificate=self.firmware.certificate, features=1 if sketch else table.features)

    @cached_property
    def noise(self) -> Noise:
        return for_package(self.table_name, self.table, [self.firmware.kernel], self.prefix)

    @cached_property
    def flash(self) -> list[tuple[Kernel, str]]:
        """The parameters that constant tables are bound to."""
        bound = [(self.firmware.kernel, self.noise.parameter)] if self.noise.table.values else []
        return bound + list(self.stage.flash)

    @cached_property
    def names(self) -> Names:
        return Names([*self.kernels, *STEPS], self.prefix, self.flash, private=True)

    @cached_property
    def tables(self) -> list[Table]:
        own = replace(self.noise.table, flash=bool(self.noise.table.values))
        return [*known_tables(self.kernels, self.prefix, self.flash), own, *self.stage.tables]

    def sources(self, banner: str) -> dict[str, str]:
        """Every file below include/ and src/."""
        texts = c_sources([*self.kernels, *STEPS], self.prefix, self.tables, banner, private=True, flash=self.flash)
        del texts[f"src/{header_of(sensor.SENSOR, self.prefix)}"]  # the public header has it
        fill = self.fill()
        for path in ("include/ss_sensor.h", "src/ss_guard.h", "src/ss_sensor.c"):
            own = path.replace("ss_", self.prefix)
            texts[own] = banner + template(f"sensor/{path}", self.prefix, fill)
        return dict(sorted(texts.items()))

    def fill(self) -> dict[str, str]:
        """What the templates of header and source leave open."""
        firmware = self.firmware
        crc = self.names.tables[journal.read_journal, "crc"]
        return {
            "ABOUT": "\n * ".join(wrap(about(firmware))),
            "PROTECTS": "\n * ".join(wrap(f"What a packet protects: {protects(firmware)}"))[
                len("What a packet protects: ") :
            ],
            "TIME": "\n * ".join(wrap(with_prefix(HOLDS, self.prefix))),
            "VERSION": version("sensorsim"),
            "FEATURES": str(firmware.n),
            "HIDDEN": self.stage.macro,
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
            "WORDS": str(generator.BLOCK_WORDS * firmware.blocks),
            "BLOCKS": str(firmware.blocks),
            "MEMBERS": "\n".join(f"    {line}" for line in members(sensor.SENSOR, self.prefix, self._members())),
            "X_ABOUT": f"{firmware.n} features in UQ15, 32768 for 1; larger values count as 1",
            "INCLUDES": "\n".join(f'#include "{name}"' for name in self._headers()),
            "IDENTITY_BYTES": str(journal.IDENTITY_BYTES),
            "IDENTITY": ", ".join(f"0x{byte:02X}U" for byte in firmware.journal_identity),
            "CRC": crc,
            "CRC_SIZE": str(len(checksum.CRC.contents or ())),
            "DRAW": "\n".join(self._draw()),
            "ORDER": self._order(),
        }

    def _status(self) -> list[str]:
        lead, last = self.prefix.upper(), list(Status)[-1]
        names = {one: f"{lead}{one.name} = {one.value}{'' if one is last else ','}" for one in Status}
        width = max(map(len, names.values()))
        return [f"    {name:<{width}} /**< {one.about} */" for one, name in names.items()]

    def _members(self) -> list[str]:
        kernel, k = self.firmware.kernel, self.firmware.k
        members = (
            ("order", self.firmware.features, "the features, kept from release to release"),
            ("chosen", k, "which were released"),
            ("y", k, "what was released of them"),
        )
        lines = [
            f"{C_TYPES[kernel.arrays[name].storage]} {name}[{size}]; /**< {about} */"
            for name, size, about in members
            if name in kernel.parameters
        ]
        word = f"uint32_t word[{generator.BLOCK_WORDS * self.firmware.blocks}];"
        return [f"{word} /**< random words of a release; zeros outside of it */", *lines, *self.stage.members]

    def _headers(self) -> list[str]:
        own = {self.names.header(kernel) for kernel in [*self.kernels, *STEPS]}
        return sorted(own | {f"{self.prefix}tables.h"})

    def _order(self) -> str:
        if "order" not in self.firmware.kernel.parameters:
            return ""
        inside = "                sensor->order[i] = i;\n"
        return f"            for (uint32_t i = 0U; i < {self.firmware.features}U; i++) {{\n{inside}            }}\n"

    def _draw(self) -> list[str]:
        """The calls of one release."""
        layout, stage = self.firmware.layout, self.stage
        given = self.noise.arguments(self.firmware.kernel, self.prefix) | {"x": stage.released, "word": stage.word}
        given |= {name: f"sensor->{name}" for name in ("order", "chosen", "y")}
        lines = [*stage.calls(self._call), self._call(self.firmware.kernel, given, stage.lengths)]
        head = {"packet": "packet", "head": f"0x{layout.head:05X}U", "bytes": f"{self.prefix}PACKET_SIZE".upper()}
        lines.append(self._call(packet.pack_head, head))
        for name in layout.numbers:
            value = {"epoch": "sensor->epoch", "sequence": "sensor->used"}[name]
            place = {"packet": "packet", "number": value, "at": f"{layout.number_at(name)}U"}
            lines.append(self._call(packet.pack_number, place))
        if layout.which_bits:
            place = {"packet": "packet", "at": f"{layout.chosen_at}U", "bits": f"{layout.which_bits}U"}
            lines.append(self._call(stage.packs, place | stage.which))
        limit = {"limit": self.noise.constants["limit"]} if "limit" in self.noise.constants else {}
        place = {"packet": "packet", "at": f"{layout.values_at}U", "bits": f"{layout.value_bits}U"}
        values = {"y": "sensor->y", "k": f"{self.firmware.k}U"}
        lines.append(self._call(self.pack_values, place | values | limit))
        return [*lines, *stage.wiped()]

    def _call(
        self, kernel: Kernel, given: Mapping[str, str], sizes: Mapping[str, int] | None = None, result: str = ""
    ) -> str:
        """A call of a kernel with all its arguments in order; `result` is C that takes what it returns."""
        passed = []
        for name, kind in kernel.parameters.items():
            if name in given:
                passed.append(given[name])
            elif isinstance(kind, Array) and kind.contents is not None:
                passed.append(self.names.tables[kernel, name])
            else:
                passed.append(f"{(sizes or {}).get(name, kernel.lengths_at().get(name))}U")
        return fold(f"    {result}{self.names.functions[kernel]}({', '.join(passed)});")
