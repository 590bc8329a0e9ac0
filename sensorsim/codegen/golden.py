"""Self-tests of a package in C: golden vectors of its kernels, and the table and packets of a sensor."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

from sensorsim.codegen.write import template
from sensorsim.device.firmware import Firmware
from sensorsim.device.running import plain
from sensorsim.device.sensor import Clock, Sensor
from sensorsim.device.status import Status
from sensorsim.language.arguments import arguments, array_length, lengths_to_check
from sensorsim.language.c.comments import C_TYPES, comment, fold
from sensorsim.language.c.declarations import array, literal, pointer
from sensorsim.language.c.identifiers import Names
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array
from sensorsim.machine.vectors import RESULT, by_plain_python, largest_first, least_first, orders

if TYPE_CHECKING:
    from sensorsim.codegen.sensor_package import SensorCode

CANARY = 90  # stands behind every array that a kernel fills, and must still stand there afterwards
LARGEST = 2000  # values in a vector: the self-test is for a device with little memory
PACKETS, REOPENED, FIRST_EPOCH = 8, 4, 100
START = 2463534242  # of the test board's xorshift32


@dataclass(frozen=True)
class Golden:
    """One vector: inputs and expected outputs of one call."""

    number: int
    kernel: Kernel
    about: str
    inputs: dict[str, Any]
    expected: dict[str, Any]


def golden_vectors(kernels: Sequence[Kernel]) -> list[Golden]:
    """Make vectors for every kernel: its least values, its largest, and random ones at three sizes."""
    made: list[Golden] = []
    for kernel in kernels:
        generator = random.Random(f"golden {kernel.name}")  # the same vectors in every package
        sizes = small_lengths(kernel)
        middle = sizes[min(1, len(sizes) - 1)]
        cases: list[tuple[str, dict[str, int], Callable[[int, int], int], Callable[[range, int], list[int]]]] = [
            ("least values", middle, min, least_first),
            ("largest values", middle, max, largest_first),
            *(("random values", size, generator.randint, generator.sample) for size in sizes),
        ]
        for about, size, value, some in cases:
            inputs = arguments(kernel, size, _of_any_name(value))
            inputs |= {name: some(range(limit), count) for name, limit, count in orders(kernel, size)}
            made.append(Golden(len(made) + 1, kernel, about, inputs, by_plain_python(kernel, inputs)))
    return made


def _of_any_name(value: Callable[[int, int], int]) -> Callable[[str, int, int], int]:
    """Return a choice between two numbers as one that is the same for every parameter."""
    return lambda name, lo, hi: value(lo, hi)


def small_lengths(kernel: Kernel) -> list[dict[str, int]]:
    """Return the short, odd and typical lengths, without those whose vectors are too large for a device."""

    def values(lengths: dict[str, int]) -> int:
        own = [name for name, kind in kernel.arrays.items() if kind.contents is None]
        return sum(array_length(kernel, name, lengths) for name in own)

    found = [*lengths_to_check(kernel)[:2], kernel.lengths_at()]
    sizes = [lengths for place, lengths in enumerate(found) if lengths not in found[:place]]
    return [lengths for lengths in sizes if values(lengths) <= LARGEST] or [min(sizes, key=values)]


def golden_json(vectors: Sequence[Golden], names: Names) -> list[dict[str, Any]]:
    """Return the vectors as data, without constant tables, which are in the package."""
    return [
        {
            "number": vector.number,
            "function": names.functions[vector.kernel],
            "about": vector.about,
            "inputs": {name: value for name, value in vector.inputs.items() if not _is_table(vector.kernel, name)},
            "expected": vector.expected,
        }
        for vector in vectors
    ]


def inputs_of(vector: Mapping[str, Any], kernel: Kernel) -> dict[str, Any]:
    """Return the arguments of a vector read from golden.json, with the constant tables put back."""
    tables = {name: list(kind.contents) for name, kind in kernel.arrays.items() if kind.contents is not None}
    return {name: tables[name] if name in tables else vector["inputs"][name] for name in kernel.parameters}


def kernel_selftest(vectors: Sequence[Golden], names: Names, banner: str = "") -> dict[str, str]:
    """Return the source and header of the self-test that runs the golden vectors.

    In a private package the functions are in the same file, so a compiler could work out a vector by itself and compare
    nothing on the device. They are called there through pointers that it must not see through.
    """
    prefix, name = names.prefix, "selftest_kernels" if names.private else "selftest"
    function, guard = f"{prefix}{name}", f"{prefix}{name}_H".upper()
    headers, lines, macro = [f"{prefix}kernels.h", f"{function}.h"], [], []
    if names.private:
        own = [kernel for kernel in names.entries if any(vector.kernel is kernel for vector in vectors)]
        tables = {f"{prefix}tables.h"} if names.tables else set()
        headers = [f"{function}.h", *sorted({names.header(kernel) for kernel in own} | tables)]
        lines = ["\n".join(pointer(kernel, names, _called(kernel, names)) for kernel in own) + "\n"] if own else []
        count = f"{prefix}SELFTEST_VECTORS".upper()
        macro = [f"#define {count} {len(vectors)}U /* the vectors are 1 to this */"]
    text = comment(["0 when every golden vector gives the expected bits, else the number of the first that does not."])
    header = [f"#ifndef {guard}\n#define {guard}", "#include <stdint.h>", *macro]
    header += [f"{text}\nuint32_t {function}(void);", "#endif"]
    filled = [(v.kernel.arrays[one]) for v in vectors for one in v.expected if one != RESULT]
    head = [
        "The self-test: every vector in turn. Freestanding; needs no console, heap or libc.",
        f"{function}() returns 0, or the number of the first vector that differs. It also sees when a",
        "kernel writes past the end of an array.",
    ]
    includes = "".join(f'#include "{header}"\n' for header in headers)
    parts = [f"{comment(head)}\n#include <stdbool.h>\n{includes}", f"#define CANARY {CANARY}\n", *lines]
    for kind in sorted({one.storage for one in filled}):
        ctype = C_TYPES[kind]
        parts.append(
            comment(["Whether the arrays are equal and the element behind the first is untouched."])
            + f"\nstatic bool same_{kind}(const {ctype} got[], const {ctype} want[], uint32_t size)\n{{\n"
            f"    bool same = got[size] == ({ctype})CANARY;\n"
            "    for (uint32_t i = 0U; i < size; i++) {\n        same = same && (got[i] == want[i]);\n    }\n"
            "    return same;\n}\n"
        )
    for kind in sorted({one.storage for one in filled if not one.written}):
        parts.append(
            comment(["Sets an array anew, so that the test can run again."])
            + f"\nstatic void copy_{kind}({C_TYPES[kind]} to[], const {C_TYPES[kind]} from[], uint32_t size)\n{{\n"
            "    for (uint32_t i = 0U; i < size; i++) {\n        to[i] = from[i];\n    }\n}\n"
        )
    parts += [_vector(vector, names) for vector in vectors]
    calls = [f"    if (!vector_{vector.number}()) {{\n        return {vector.number}U;\n    }}" for vector in vectors]
    parts.append("\n".join([f"uint32_t {function}(void)\n{{", *calls, "    return 0U;\n}\n"]))
    files = {f"test/{function}.c": "\n".join(parts), f"test/{function}.h": "\n\n".join(header) + "\n"}
    return {path: banner + text for path, text in files.items()}


def _called(kernel: Kernel, names: Names) -> str:
    """Return how a vector calls the kernel: by its function, or in a private package by a pointer to it."""
    function = names.functions[kernel]
    return f"call_{function}" if names.private else function


def _vector(vector: Golden, names: Names) -> str:
    """Return the C function that runs one vector."""
    kernel, function = vector.kernel, names.functions[vector.kernel]
    lines = [f"static bool vector_{vector.number}(void)", "{"]
    passed, checks = [], []

    def data(name: str, kind: str, values: Sequence[int], space: str = "") -> str:
        return array(name, kind, values, str(len(values)), f"static const {space}", "    ").rstrip("\n")

    for name, kind in kernel.parameters.items():
        value = vector.inputs[name]
        if _is_table(kernel, name):
            passed.append(names.tables[kernel, name])
        elif isinstance(kind, Array) and name in kernel.written:
            own, element, size = f"{name}_{kind.storage}", kind.storage, len(value)
            lines.append(data(f"{name}_expected", element, vector.expected[name]))
            lines.append(f"    static {C_TYPES[element]} {own}[{size + 1}];")
            if not kind.written:
                lines.append(data(f"{name}_start", element, value))
                lines.append(f"    copy_{element}({own}, {name}_start, {size}U);")
            lines.append(f"    {own}[{size}] = CANARY;")
            passed.append(own)
            checks.append(f"same_{element}({own}, {name}_expected, {size}U)")
        elif isinstance(kind, Array):
            passed.append(f"{name}_{kind.storage}")
            space = f"{names.prefix.upper()}FLASH " if (kernel, name) in names.in_flash else ""
            lines.append(data(passed[-1], kind.storage, value, space))
        else:
            passed.append(literal(value, kind.storage))
    call = f"{_called(kernel, names)}({', '.join(passed)})"
    if kernel.result is not None:
        want = literal(vector.expected[RESULT], kernel.result.storage)
        lines.append(fold(f"    const bool right = {call} == {want};"))
        checks.insert(0, "right")
    else:
        lines.append(fold(f"    {call};"))
    lines += ["    return " + ("\n        && ".join(checks) or "true") + ";", "}", ""]
    sizes = ", ".join(f"{name} = {vector.inputs[name]}" for name in kernel.lengths)
    title = f"Vector {vector.number}: {function}(), {vector.about}" + (f", {sizes}." if sizes else ".")
    return comment([title]) + "\n" + "\n".join(lines)


def _is_table(kernel: Kernel, name: str) -> bool:
    kind = kernel.parameters[name]
    return isinstance(kind, Array) and kind.contents is not None


def sensor_selftest(code: "SensorCode", banner: str = "") -> dict[str, str]:
    """Return test/ss_selftest.c and .h of a sensor; the kernels' golden vectors are in files of their own."""
    prefix = code.prefix
    packets = expected_packets(code.firmware)
    rows = ",\n".join("        { " + ", ".join(f"0x{byte:02X}U" for byte in one) + " }" for one in packets)
    width = f"{prefix}PACKET_BYTES".upper()
    fill = {
        "PACKETS": PACKETS,
        "TABLE_CHECKS": table_checks(code),
        "EXPECTED": f"    static const uint8_t expected[PACKETS][{width}] = {{\n{rows}\n    }};\n",
    }
    return {
        f"test/{prefix}selftest.c": banner + template("sensor/test/ss_selftest.c", prefix, fill),
        f"test/{prefix}selftest.h": banner + template("sensor/test/ss_selftest.h", prefix),
    }


def expected_packets(firmware: Firmware) -> list[bytes]:
    """Make the packets of one release in each epoch, a reset half way, with the entropy of the test's board."""
    clock, state = Clock(FIRST_EPOCH), START

    def entropy(count: int) -> bytes:
        """Return bytes of xorshift32: known bytes for known packets, never for real ones."""
        nonlocal state
        made = bytearray()
        for _ in range(count):
            state ^= state << 13 & 0xFFFFFFFF
            state ^= state >> 17
            state ^= state << 5 & 0xFFFFFFFF
            made.append(state >> 24)
        return bytes(made)

    sensor = Sensor(firmware, entropy=entropy, epoch=clock, runs=plain)
    made = []
    for number in range(PACKETS):
        if number in (0, REOPENED):
            opened = sensor.open()
            assert opened == Status.OK, opened
        status, packet = sensor.release([(2741 * i + 9973 * number) & 0x7FFF for i in range(firmware.n)])
        assert status == Status.OK, status
        made.append(packet)
        clock.epoch += 1
    return made


def table_checks(code: "SensorCode") -> str:
    """Return C that compares the table in the device's memory with what was certified: its hash, and its counts."""
    prefix, values = code.prefix, code.noise.table.values
    size = int(code.noise.table.storage[1:]) // 8
    entries = constants = more = text = ""
    data = b""
    if values:
        mask = f" & 0x{2 ** (8 * size) - 1:X}U" if size < 4 else ""
        entries = (
            f"    for (uint32_t i = 0U; i < {len(values)}U; i++) {{\n"
            f"        sum = crc_of(sum, (uint32_t){prefix}noise_table[i]{mask}, {size}U);\n    }}\n"
        )
        data += b"".join((value % 2 ** (8 * size)).to_bytes(size, "little") for value in values)
    for name, value in code.noise.table.constants:
        constants += f"    sum = crc_of(sum, (uint32_t){name}, 4U);\n"
        data += (value % 2**32).to_bytes(4, "little")
    parts = [template("sensor/test/ss_table_hash.c", prefix, {"ENTRIES": entries, "CONSTANTS": constants})]
    found = code.firmware.table.stored_counts()
    if found is not None:  # without counts there are two constants for one bit, which the hash covers
        rows, flat = found.rows, [count for row in found.rows for count in row]
        text = array("expected", "u16", flat, str(len(flat)), "static const ").rstrip("\n")
        expected = "".join(f"    {line}\n" for line in text.split("\n"))
        fill: dict[str, object] = {"EXPECTED": expected, "ROWS": len(rows)}
        if found.sums:
            ratio, symbols = code.firmware.table.certify().ratio, len(rows[0])
            assert ratio is not None
            fill |= {"SYMBOLS": symbols, "CUTS": symbols - 1}
            fill |= {"NUMERATOR": ratio.numerator, "DENOMINATOR": ratio.denominator}
            parts.append(template("sensor/test/ss_table_thresholds.c", prefix, fill))
        else:
            fill |= {"VALUES": len(rows[0]), "ENTRIES": sum(rows[0]), "LEAST": found.least}
            parts.append(template("sensor/test/ss_table_histogram.c", prefix, fill))
        more = f" else if (!counts()) {{\n        wrong = {prefix.upper()}SELFTEST_COUNTS;\n    }}"
        more += " else {\n        /* as certified */\n    }"
    parts.append(template("sensor/test/ss_table_check.c", prefix, {"HASH": f"0x{crc32(data):08X}", "MORE": more}))
    return "".join(f"\n{part}" for part in parts)
