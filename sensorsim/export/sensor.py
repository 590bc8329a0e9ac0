"""The default package: a private sensor. The thin layer of the port is C, everything else the kernels, and every
constant is bound here: nothing is left that an application could set to what the certificate does not speak of."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version

from sensorsim.device.encoder import encoder_kernel
from sensorsim.device.firmware import Firmware
from sensorsim.device.status import Status
from sensorsim.export.encoder import encoder_tables
from sensorsim.export.files import template
from sensorsim.export.noise import Noise, for_package
from sensorsim.kernels import checksum, generator, health, journal, packet
from sensorsim.language.c.files import Table, c_sources, known_tables
from sensorsim.language.c.names import Names
from sensorsim.language.c.text import C_TYPES, fold, wrap
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array


def counted(count: int, what: str) -> str:
    """`1 day`, `7 days`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class SensorCode:
    """The C of one firmware under one prefix."""

    firmware: Firmware
    prefix: str = "ss_"
    table_name: str = "the noise table"

    @cached_property
    def kernels(self) -> list[Kernel]:
        """The kernels that the thin layer calls."""
        layout = self.firmware.layout
        found: list[Kernel] = [generator.absorb, generator.fresh_words, health.watch]
        found += [journal.read_journal, journal.write_slot, journal.spend]
        found += [encoder_kernel()] if self.firmware.encoder else []
        found += [self.firmware.kernel, packet.pack_head]
        found += [packet.pack_number] if layout.numbers else []
        found += [packet.pack_chosen] if layout.which_bits else []
        return [*found, self.pack_values]

    @property
    def pack_values(self) -> Kernel:
        """The kernel that packs what was released: symbols of rows, values of stairs."""
        symbols = self.firmware.kernel.arrays["y"].storage == "u8"
        found: Kernel = packet.pack_symbols if symbols else packet.pack_values
        return found

    @cached_property
    def noise(self) -> Noise:
        from dataclasses import replace

        proved = replace(self.firmware.table, certificate=self.firmware.certificate)
        return for_package(self.table_name, proved, [self.firmware.kernel], self.prefix)

    @cached_property
    def flash(self) -> list[tuple[Kernel, str]]:
        """The parameters that constant tables are bound to."""
        bound = [(self.firmware.kernel, self.noise.parameter)] if self.noise.table.values else []
        return bound + ([(encoder_kernel(), name) for name in ("weights", "bias")] if self.firmware.encoder else [])

    @cached_property
    def names(self) -> Names:
        return Names(self.kernels, self.prefix, self.flash, private=True)

    @cached_property
    def tables(self) -> list[Table]:
        from dataclasses import replace

        own = [replace(self.noise.table, flash=bool(self.noise.table.values))]
        if self.firmware.encoder:
            own += [replace(t, flash=True) for t in encoder_tables(self.firmware.encoder, self.prefix)]
        return known_tables(self.kernels, self.prefix, self.flash) + own

    def sources(self, banner: str) -> dict[str, str]:
        """Every file below include/ and src/."""
        texts = c_sources(self.kernels, self.prefix, self.tables, banner, private=True, flash=self.flash)
        fill = self.fill()
        for path in ("include/ss_sensor.h", "src/ss_sensor.c"):
            own = path.replace("ss_", self.prefix)
            texts[own] = banner + template(f"sensor/{path}", self.prefix, fill)
        return dict(sorted(texts.items()))

    def fill(self) -> dict[str, str]:
        """What the templates of header and source leave open."""
        firmware = self.firmware
        crc = self.names.tables[journal.read_journal, "crc"]
        return {
            "ABOUT": "\n * ".join(wrap(self.about())),
            "PROTECTS": "\n * ".join(wrap(f"What a packet protects: {self.protects()}"))[
                len("What a packet protects: ") :
            ],
            "VERSION": version("sensorsim"),
            "FEATURES": str(firmware.n),
            "HIDDEN": self._hidden(),
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
            "SEED_BYTES": str(generator.SEED_BYTES),
            "NO_BYTE": str(health.NO_BYTE),
            "HEALTH_WORDS": str(health.STATE_WORDS),
            "CLAIMED_BITS": str(health.CLAIMED_BITS),
            "WORDS": str(generator.BLOCK_WORDS * firmware.blocks),
            "BLOCKS": str(firmware.blocks),
            "MEMBERS": "\n".join(f"    {line}" for line in self._members()),
            "X_ABOUT": f"{firmware.n} features in UQ15, 32768 for 1; larger values count as 1",
            "INCLUDES": "\n".join(f'#include "{name}"' for name in self._headers()),
            "HOLDS": str(journal.HOLDS),
            "NEW": str(journal.NEW),
            "IDENTITY_BYTES": str(journal.IDENTITY_BYTES),
            "IDENTITY": ", ".join(f"0x{byte:02X}U" for byte in firmware.journal_identity),
            "CRC": crc,
            "CRC_SIZE": str(len(checksum.CRC.contents or ())),
            "DRAW": "\n".join(self._draw()),
            "ORDER": self._order(),
        }

    def protects(self) -> str:
        """What one packet says of a record, in a sentence or two."""
        firmware = self.firmware
        what = "features" if firmware.encoder is None else "hidden units"
        text = (
            f"a packet holds {firmware.k} of {firmware.features} {what}, with noise. None is more than "
            f"e^{firmware.epsilon} times as likely from one record as from any other (pure, local differential privacy "
            f"of one record), whatever the receiver knows. An epoch of {counted(firmware.budget_days, 'day')} allows "
            f"{counted(firmware.releases, 'release')}, so a person spends at most "
            f"{firmware.releases * firmware.epsilon} in it."
        )
        if firmware.encoder is not None:
            text += (
                f" The record itself stays on the body: it becomes {firmware.features} hidden units, and what is "
                "released of them is covered as the features would be. Averages over many packets do show the hidden "
                "units' means, and with the public weights what they say of the record's."
            )
        return text

    def about(self) -> str:
        """What the package does, in a sentence."""
        firmware = self.firmware
        if firmware.encoder is None:
            return (
                f"A record of {firmware.n} features is released through a certified {firmware.table.kind} table: "
                f"{firmware.k} of them {'in a packet of' if firmware.k < firmware.n else '(all) in a packet of'} "
                f"{firmware.layout.bytes} bytes."
            )
        return (
            f"A record of {firmware.n} features is encoded to {firmware.features} hidden units, and {firmware.k} of "
            f"these {'is' if firmware.k == 1 else 'are'} released through a certified {firmware.table.kind} table, in "
            f"a packet of {firmware.layout.bytes} bytes."
        )

    def _hidden(self) -> str:
        if self.firmware.encoder is None:
            return ""
        macro = f"{self.prefix}HIDDEN".upper()
        return f"\n/** Hidden units that the encoder makes of them. */\n#define {macro} {self.firmware.features}\n\n"

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
        hidden = f"uint16_t hidden[{self.firmware.features}]; /**< hidden units; zeros outside of a release */"
        return lines + ([hidden] if self.firmware.encoder else [])

    def _headers(self) -> list[str]:
        own = {self.names.header(kernel) for kernel in self.kernels}
        return sorted(own | {f"{self.prefix}tables.h"})

    def _order(self) -> str:
        if "order" not in self.firmware.kernel.parameters:
            return ""
        inside = "                sensor->order[i] = i;\n"
        return f"            for (uint32_t i = 0U; i < {self.firmware.features}U; i++) {{\n{inside}            }}\n"

    def _draw(self) -> list[str]:
        """The calls of one release."""
        layout, lines = self.firmware.layout, []
        n, k, record = f"{self.firmware.features}U", f"{self.firmware.k}U", "x"
        if self.firmware.encoder:
            weights = {name: f"{self.prefix}encoder_{name}" for name in ("weights", "bias")}
            record = "sensor->hidden"
            lines.append(self._call(encoder_kernel(), weights | {"x": "x", "hidden": record}, self._encoder_sizes()))
        given = self.noise.arguments(self.firmware.kernel, self.prefix) | {"x": record, "word": "sensor->word"}
        given |= {name: f"sensor->{name}" for name in ("order", "chosen", "y")}
        lines.append(self._call(self.firmware.kernel, given, {"n": self.firmware.features, "k": self.firmware.k}))
        head = {"packet": "packet", "head": f"0x{layout.head:05X}U", "bytes": f"{self.prefix}PACKET_SIZE".upper()}
        lines.append(self._call(packet.pack_head, head))
        for name in layout.numbers:
            value = {"epoch": "sensor->epoch", "sequence": "sensor->used"}[name]
            place = {"packet": "packet", "number": value, "at": f"{layout.number_at(name)}U"}
            lines.append(self._call(packet.pack_number, place))
        common = {"packet": "packet", "k": k}
        if layout.which_bits:
            place = {"chosen": "sensor->chosen", "n": n, "at": f"{layout.chosen_at}U", "bits": f"{layout.which_bits}U"}
            lines.append(self._call(packet.pack_chosen, common | place))
        limit = {"limit": self.noise.constants["limit"]} if "limit" in self.noise.constants else {}
        place = {"y": "sensor->y", "at": f"{layout.values_at}U", "bits": f"{layout.value_bits}U"}
        lines.append(self._call(self.pack_values, common | place | limit))
        if self.firmware.encoder:
            lines.append(f"    for (uint32_t i = 0U; i < {n}; i++) {{")
            lines.append("        ((volatile uint16_t *)sensor->hidden)[i] = 0U;\n    }")
        return lines

    def _encoder_sizes(self) -> dict[str, int]:
        encoder = self.firmware.encoder
        assert encoder is not None
        return {"n": encoder.n, "l": encoder.l}

    def _call(self, kernel: Kernel, given: Mapping[str, str], sizes: Mapping[str, int] | None = None) -> str:
        """A call of a kernel with all its arguments in order."""
        passed = []
        for name, kind in kernel.parameters.items():
            if name in given:
                passed.append(given[name])
            elif isinstance(kind, Array) and kind.contents is not None:
                passed.append(self.names.tables[kernel, name])
            else:
                passed.append(f"{(sizes or {}).get(name, kernel.lengths_at().get(name))}U")
        return fold(f"    {self.names.functions[kernel]}({', '.join(passed)});")
