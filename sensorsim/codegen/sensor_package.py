"""A package of a private sensor: its C, build files, README and every other file.

Every constant is bound here: nothing is left that an application could set to what the certificate does not cover. The
thin layer of the port is a template, everything else is made from the kernels.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from sensorsim._util.errors import InputError
from sensorsim._util.files import fill, temporary_folder
from sensorsim._util.terminal import counted
from sensorsim.codegen.compliance import misra_report
from sensorsim.codegen.golden import golden_json, golden_vectors, kernel_selftest, sensor_selftest
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.package_tables import (
    CENTRE,
    ENCODER,
    SENSOR_NOISE,
    SKETCH,
    SKETCH_CONSTANTS,
    Noise,
    encoder_file,
    encoder_record,
    encoder_tables,
    for_package,
    read_noise,
    sketch_macro,
    sketch_record,
    sketch_table,
    trained_line,
)
from sensorsim.codegen.write import SCHEMA, facts, json_text, kernel_sources, template, with_manifest
from sensorsim.device.firmware import Firmware
from sensorsim.device.pace import pace_wait
from sensorsim.device.sketch_file import read_sketch, sketch_text
from sensorsim.device.status import Status
from sensorsim.encoders import read_encoder
from sensorsim.kernels import checksum, generator, health, journal, packet, sensor, sketch
from sensorsim.kernels.encoder import encoder as encoder_kernel
from sensorsim.language.c.comments import ascii_text, comment, fold, with_prefix, wrap
from sensorsim.language.c.declarations import Table, header_of, known_tables, members
from sensorsim.language.c.helpers import HOLDS
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.machine.emulated_sensor import CALLS, SensorCost, sensor_costs
from sensorsim.machine.machine_cost import PREFIX
from sensorsim.machine.targets import SHOWN_FLAGS, TARGETS, compiler_version
from sensorsim.noise.table_file import table_bytes

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
ADVICE = {
    Status.OK: "send the packet",
    Status.SPENT: "wait for the next period",
    Status.NO_ENTROPY: "look at the random generator; nothing is released without it",
    Status.NO_STORE: "try again later; if it stays, the memory is worn",
    Status.BAD_JOURNAL: "stay silent; to erase both slots starts anew, budget included",
    Status.BAD_CLOCK: "set the clock and open again",
    Status.NOT_OPEN: "call open first",
}
DEFAULT_EPSILON = 1.6  # of the ready table that a sensor gets without --noise
PORTS = (
    *("ports/ss_pace.h", "ports/host/ss_port_host.c", "ports/host/ss_port_host.h"),
    *("ports/template/ss_port_board.c", "ports/template/ss_port_board.h"),
    *("ports/zephyr/ss_port_zephyr.c", "ports/zephyr/ss_port_zephyr.h", "examples/host/main.c"),
)
BUILD = ("CMakeLists.txt", "Makefile", "zephyr/CMakeLists.txt", "zephyr/Kconfig", "zephyr/module.yml", "library.json")


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
        firmware = self.firmware
        bound = [(kernel, name) for kernel, name in self.flash if kernel in self.kernels]
        own = replace(self.noise.table, flash=bool(self.noise.table.values))
        beside = encoder_tables(firmware.encoder, self.prefix) if firmware.encoder else []
        beside += [sketch_table(firmware.sketch, self.prefix)] if firmware.sketch else []
        return [*known_tables(self.kernels, self.prefix, bound), own, *(replace(one, flash=True) for one in beside)]

    def sources(self, banner: str) -> dict[str, str]:
        """Return every file below include/ and src/."""
        texts = c_sources(
            [*self.kernels, *self.steps], self.prefix, self.tables, banner, private=True, flash=self.flash
        )
        del texts[f"src/{header_of(self.firmware.draw.record, self.prefix)}"]  # the public header has it
        values = self._values()
        for path in ("include/ss_sensor.h", "src/ss_guard.h", "src/ss_sensor.c"):
            texts[path.replace("ss_", self.prefix)] = banner + template(f"sensor/{path}", self.prefix, values)
        return dict(sorted(texts.items()))

    def _values(self) -> dict[str, object]:
        """Return the values of the templates of header and source."""
        firmware, lead = self.firmware, self.prefix.upper()
        status = {one: f"{lead}{one.name} = {one.value}{'' if one is list(Status)[-1] else ','}" for one in Status}
        width = max(map(len, status.values()))
        headers = {self.names.header(kernel) for kernel in [*self.kernels, *self.steps]} | {f"{self.prefix}tables.h"}
        protect = "What a packet protects: "
        return {
            "ABOUT": "\n * ".join(wrap(about(firmware))),
            "PROTECTS": "\n * ".join(wrap(protect + protects(firmware))).removeprefix(protect),
            "TIME": "\n * ".join(wrap(with_prefix(HOLDS, self.prefix))),
            "VERSION": version("sensorsim"),
            "FEATURES": firmware.n,
            "HIDDEN": self._released_macro(),
            "RELEASED": firmware.k,
            "PACKET_BYTES": firmware.layout.bytes,
            "SLOT_BYTES": journal.SLOT_BYTES,
            "EPSILON": firmware.epsilon,
            "BUDGET": firmware.releases,
            "BUDGET_DAYS": firmware.budget_days,
            "BUDGET_EPSILON": firmware.budget,
            "RESERVE": firmware.reserve,
            "STATUS": "\n".join(f"    {name:<{width}} /**< {one.about} */" for one, name in status.items()),
            "START_UP": health.START_UP,
            "CLAIMED_BITS": health.CLAIMED_BITS,
            "LONGEST_CYCLE": health.LONGEST_CYCLE,
            "MEMBERS": "\n".join(f"    {line}" for line in members(firmware.draw.record, self.prefix)),
            "X_ABOUT": f"{firmware.n} features in UQ15, 32768 for 1; larger values count as 1",
            "INCLUDES": "\n".join(f'#include "{name}"' for name in sorted(headers)),
            "IDENTITY_BYTES": journal.IDENTITY_BYTES,
            "IDENTITY": ", ".join(f"0x{byte:02X}U" for byte in firmware.journal_identity),
            "CRC": self.names.tables[journal.read_journal, "crc"],
            "CRC_SIZE": len(checksum.CRC.contents or ()),
            "DRAW": self._draw(),
            "START": f"            {self.names.functions[firmware.draw.start]}(sensor);\n"
            if firmware.draw.start
            else "",
        }

    def _released_macro(self) -> str:
        """Return the macro of the header that says what is released from, where that is not the features."""
        if self.firmware.encoder is not None:
            said, name = "Hidden units that the encoder makes of them.", "HIDDEN"
        elif self.firmware.sketch is not None:
            said = "Public directions; the square of a record along one of them is what is released."
            name = "DIRECTIONS"
        else:
            return ""
        return f"\n/** {said} */\n#define {self.prefix.upper()}{name} {self.firmware.features}\n\n"

    def _draw(self) -> str:
        """Return the call of the firmware's draw, with every constant."""
        draw, known = self.firmware.draw.draw_release, dict(self.noise.constants)
        known |= {self.noise.parameter: self.noise.table.name} if self.noise.table.values else {}
        if self.firmware.encoder is not None:
            known |= {name: f"{self.prefix}encoder_{name}" for name in ("weights", "bias")}
            known["sigmoid"] = self.names.tables[encoder_kernel, "table"]
        if self.firmware.sketch is not None:
            known |= {name: sketch_macro(name, self.prefix) for name in SKETCH_CONSTANTS}
            known[CENTRE] = f"{self.prefix}sketch_{CENTRE}"
        own = [name for name in draw.parameters if "." not in name]
        passed = ["sensor", *(known.get(name, name) for name in own)]
        return fold(f"    {self.names.functions[draw]}({', '.join(passed)});")


def about(firmware: Firmware) -> str:
    """Return the purpose of the package in a sentence."""
    table, size = f"a certified {firmware.table.kind} table", f"{firmware.layout.bytes} bytes"
    if firmware.encoder is not None:
        return (
            f"A record of {firmware.n} features is encoded to {firmware.features} hidden units, and {firmware.k} of "
            f"these {'is' if firmware.k == 1 else 'are'} released through {table}, in a packet of {size}."
        )
    if firmware.sketch is not None:
        return (
            f"Of a record of {firmware.n} features one number is released through {table}, its square along one of "
            f"{firmware.features} public directions, in a packet of {size}."
        )
    return (
        f"A record of {firmware.n} features is released through {table}: {firmware.k} of them "
        f"{'in a packet of' if firmware.k < firmware.n else '(all) in a packet of'} {size}."
    )


def protects(firmware: Firmware) -> str:
    """Return the privacy statement of one packet."""
    what = "features" if firmware.encoder is None else "hidden units"
    holds = f"a packet holds {firmware.k} of {firmware.features} {what}, with noise."
    more = ""
    if firmware.sketch is not None:
        holds = "a packet holds the number of a public direction and, with noise, the square of the record along it."
        more = (
            " The record itself stays on the body. A direction is a list of -1, 0 and 1, one for each feature; a "
            "random word that does not depend on the record picks it. The features, each less its public centre, are "
            "added up with these signs. The square of the sum over that of R = "
            f"{firmware.sketch.root:.6g}, cut off at 1, lies in 0 ... 1, so the table covers it as it would one "
            "feature. Averages over many packets do show how the features vary about their centre, and together."
        )
    elif firmware.encoder is not None:
        more = (
            f" The record itself stays on the body: it becomes {firmware.features} hidden units, and what is "
            "released of them is covered as the features would be. Averages over many packets do show the hidden "
            "units' means, and with the public weights what they say of the record's."
        )
    return (
        f"{holds} None is more than e^{firmware.epsilon} times as likely from one record as from any other (pure, "
        "local differential privacy of one record), whatever the receiver knows. An epoch of "
        f"{counted(firmware.budget_days, 'day')} allows {counted(firmware.releases, 'release')}, so a person spends at "
        f"most {firmware.releases * firmware.epsilon} in it.{more}"
    )


def sensor_readme(code: SensorCode, vectors: int, costs: Sequence[SensorCost]) -> str:
    """Return the README of a sensor's package, with what was measured for it."""
    firmware, prefix, layout = code.firmware, code.prefix, code.firmware.layout
    days, sketched, encoder = firmware.budget_days, firmware.sketch, firmware.encoder
    beside = f" --sketch {SKETCH}" if sketched else f" --encoder {encoder.name}" if encoder else ""
    fields = [
        (at, bits, "number of the direction" if sketched and what == "features" else what)
        for what, at, bits in layout.fields()
    ]
    remark = ascii_text(" ".join(firmware.table.c_remark()))
    if sketched is not None:
        remark += f" Here x is the square over R^2, R = {sketched.root:.9g}, cut off at 1."
    timing = [
        f"- `{code.names.functions[kernel]}`: {ascii_text(kernel.secrecy().statement)}."
        for kernel in code.kernels
        if kernel.secrecy().secrets
    ]
    values = {
        "ABOUT": about(firmware),
        "PROTECTS": protects(firmware) + (trained_line(encoder) if encoder else ""),
        "VERSION": version("sensorsim"),
        "RECEIVE_MORE": beside,
        "BUDGET": counted(firmware.releases, "release"),
        "EPOCH": "day" if days == 1 else f"{days} days",
        "STATUS": "\n".join(f"| `{prefix.upper()}{one.name}` | {one.about} | {ADVICE[one]} |" for one in Status),
        "LOST": counted(firmware.reserve, "release"),
        "START_UP": health.START_UP,
        "CLAIMED_BITS": health.CLAIMED_BITS,
        "LONGEST_CYCLE": health.LONGEST_CYCLE,
        "BUDGET_EPSILON": firmware.budget,
        "EPSILON": firmware.epsilon,
        "PACKET_BYTES": layout.bytes,
        "FIELDS": "\n".join(f"| {at} | {bits} | {what} |" for at, bits, what in fields),
        "CODE": layout.code,
        "IDENTITY": f"{layout.identity:04X}",
        "VALUES": remark,
        "COMPILER": f"{compiler_version()}, {SHOWN_FLAGS}",
        "COSTS": _costs(costs, prefix),
        "TIMING": "\n".join(timing),
        "VECTORS": vectors,
        "NAMESPACE": prefix.rstrip("_"),
        "MACRO": prefix.upper(),
        "PREFIX": prefix,
    }
    return template("sensor/README.md", fill=values)


def _costs(costs: Sequence[SensorCost], prefix: str) -> str:
    """Return the README's table of instructions, cost and stack, and the sizes below it."""
    lines = ["| core | call | instructions | cost | stack, bytes |", "|---|---|---|---|---|"]
    for cost in costs:
        assert tuple(call.call for call in cost.calls) == CALLS
        for call in cost.calls:
            price = f"{call.cost:.0f} {call.unit}" if call.cost is not None else "no price"
            function, comma, state = call.call.partition(",")
            name = f"`{prefix}sensor_{function}`{comma}{state}"
            lines.append(
                f"| {TARGETS[cost.target].title} | {name} | {call.instructions:.0f} | {price} | {call.stack_bytes} |"
            )
    sizes = ", ".join(f"{TARGETS[cost.target].title} {cost.flash_bytes}" for cost in costs)
    rams = " or ".join(map(str, sorted({cost.ram_bytes for cost in costs})))
    lines += ["", f"Code and tables in bytes: {sizes}. An `{prefix}sensor` takes {rams} bytes of RAM."]
    return "\n".join(lines)


def firmware_of(options: Options) -> Firmware:
    """Return the firmware of these options, with the proof of its table."""
    if options.encoder and options.sketch:
        raise InputError("a sensor releases hidden units or a sketch; leave out --encoder or --sketch.")
    encoder = read_encoder(options.encoder) if options.encoder else None
    if encoder is not None and options.noise is None:
        raise InputError("--encoder needs a table for its hidden units; make one with --features and give --noise.")
    sketched = read_sketch(options.sketch) if options.sketch else None
    table = read_noise(options.noise, allow_uncertified=False) if options.noise else default_table()
    days, reserve = (1 if number is None else number for number in (options.budget_days, options.reserve))
    return Firmware(table, encoder, options.budget_epsilon, days, reserve, options.packet_numbers, sketched)


def default_table() -> "NoiseTable":
    """Return the table of a sensor without --noise: one of 14 features, by rows."""
    from sensorsim.noise.noise_table import ready_table

    return ready_table(DEFAULT_EPSILON, 1)


def default_sensor_costs(n: int, targets: Sequence[str]) -> list[SensorCost]:
    """Run the default sensor for records of n features on these targets and count."""
    firmware = Firmware(replace(default_table(), features=n))
    return sensor_costs(firmware, SensorCode(firmware, PREFIX).sources(""), PREFIX, targets)


def sensor_package(options: Options) -> dict[str, str]:
    """Return every file of a sensor's package by its path."""
    firmware, prefix = firmware_of(options), options.prefix
    name = options.noise.name if options.noise else f"rows-eps{DEFAULT_EPSILON}-1.txt"
    code = SensorCode(firmware, prefix, name)
    lines = [options.command, f"SPDX-License-Identifier: {options.spdx}"]
    banner = "".join(comment([line]) + "\n" for line in lines)
    vectors = golden_vectors(code.kernels)
    texts = code.sources(banner) | sensor_selftest(code, banner) | kernel_selftest(vectors, code.names, banner)
    texts["test/main.c"] = banner + template("main.c", prefix)
    texts["test/golden.json"] = json_text({"schema_version": SCHEMA, "vectors": golden_json(vectors, code.names)})
    texts |= {path.replace("ss_", prefix): banner + template(f"sensor/{path}", prefix) for path in PORTS}
    texts |= _build_files(texts, firmware, options, "".join(f"# {line}\n" for line in lines))
    texts[SENSOR_NOISE] = table_bytes(code.table).decode("ascii")
    if firmware.encoder is not None:
        texts[ENCODER] = encoder_file(firmware.encoder)
    if firmware.sketch is not None:
        texts[SKETCH] = sketch_text(firmware.sketch)
    with ThreadPoolExecutor(1) as pool, temporary_folder() as folder:  # both wait for other programs
        fill(Path(folder), texts)
        checking = pool.submit(misra_report, Path(folder))
        costs = sensor_costs(firmware, texts, prefix)
        misra, findings = checking.result()
    mark = f"<!-- {options.command} -->\n"
    texts["MISRA.md"] = mark + misra
    texts["README.md"] = mark + sensor_readme(code, len(vectors), costs)
    sources = kernel_sources(code.kernels, code.names)
    texts |= sources.copies
    layout, by_core = firmware.layout, [cost.to_dict() for cost in costs]
    data = facts(code.kernels, options, code.tables, sources)
    data |= {
        "private": True,
        "sensor": {
            "epsilon_of_a_release": str(firmware.epsilon),
            "budget_epsilon": str(firmware.budget),
            "budget_days": firmware.budget_days,
            "releases": firmware.releases,
            "reserve": firmware.reserve,
            "identity_sha256": firmware.identity.hex(),
            "packet": {
                "bytes": layout.bytes,
                "fields": [{"what": what, "first_bit": at, "bits": bits} for what, at, bits in layout.fields()],
            },
        },
        "noise_table": code.noise.record,
        "encoder": encoder_record(firmware.encoder) if firmware.encoder else None,
        "sketch": sketch_record(firmware.sketch, options.sketch.name) if firmware.sketch and options.sketch else None,
        "sizes": {"compiler": compiler_version(), "flags": SHOWN_FLAGS, "by_core": by_core},
        "misra_findings": findings,
    }
    return with_manifest(texts, data, options, f"{prefix}sensor")


def _build_files(texts: dict[str, str], firmware: Firmware, options: Options, remark: str) -> dict[str, str]:
    prefix = options.prefix
    values = {
        "VERSION": version("sensorsim"),
        "SOURCES": " ".join(sorted(p for p in texts if p.startswith("src/") and p.endswith(".c"))),
        "TEST_SOURCES": " ".join(sorted(p for p in texts if p.startswith("test/") and p.endswith(".c"))),
        "NAMESPACE": prefix.rstrip("_"),
        "PREFIX": prefix,
        "LIBRARY": f"{prefix}sensor".replace("_", "-"),
        "BUDGET": firmware.releases,
        "BUDGET_DAYS": firmware.budget_days,
        "PACE_WAIT": pace_wait(firmware.budget_days),
        "RESERVE": firmware.reserve,
        "SPDX": options.spdx,
        "DESCRIPTION": "A private sensor: records go in, packets that protect them come out.",
    }
    made = {path: template(f"sensor/project/{path}", prefix, values) for path in BUILD}
    return {path: text if path.endswith(".json") else remark + text for path, text in made.items()}
