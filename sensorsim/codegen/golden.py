"""Self-tests of a package in C: golden vectors of its kernels, and the table and packets of a sensor."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

from sensorsim.codegen.rendering import template
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
    """Inputs and expected outputs of one call."""

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
    prefix = names.prefix
    function = prefix + ("selftest_kernels" if names.private else "selftest")
    headers, pointers = [f"{prefix}kernels.h", f"{function}.h"], []
    if names.private:
        own = [kernel for kernel in names.entries if any(vector.kernel is kernel for vector in vectors)]
        tables = {f"{prefix}tables.h"} if names.tables else set()
        headers = [f"{function}.h", *sorted({names.header(kernel) for kernel in own} | tables)]
        pointers = [pointer(kernel, names, _called(kernel, names)) for kernel in own]
    filled = [vector.kernel.arrays[name] for vector in vectors for name in vector.expected if name != RESULT]
    values: dict[str, Any] = {"function": function, "headers": headers, "pointers": pointers, "canary": CANARY}
    values |= {"private": names.private, "vectors": [_vector(vector, names) for vector in vectors]}
    values |= {"c_types": C_TYPES, "filled": sorted({one.storage for one in filled})}
    values["copied"] = sorted({one.storage for one in filled if not one.written})
    return {
        f"test/{function}{end}": banner + template(f"selftest_kernels{end}", prefix, **values) for end in (".c", ".h")
    }


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
    lines += ["    return " + ("\n        && ".join(checks) or "true") + ";", "}"]
    sizes = ", ".join(f"{name} = {vector.inputs[name]}" for name in kernel.lengths)
    title = f"Vector {vector.number}: {function}(), {vector.about}" + (f", {sizes}." if sizes else ".")
    return comment([title]) + "\n" + "\n".join(lines)


def _is_table(kernel: Kernel, name: str) -> bool:
    kind = kernel.parameters[name]
    return isinstance(kind, Array) and kind.contents is not None


def sensor_selftest(code: "SensorCode", banner: str = "") -> dict[str, str]:
    """Return test/ss_selftest.c and .h of a sensor; the kernels' golden vectors are in files of their own.

    The self-test compares the table in the device's memory with what was certified: its hash, and its counts.
    """
    prefix, table, source = code.prefix, code.noise.table, code.firmware.table
    size = int(table.storage[1:]) // 8
    data = b"".join((value % 2 ** (8 * size)).to_bytes(size, "little") for value in table.values)
    data += b"".join((value % 2**32).to_bytes(4, "little") for _, value in table.constants)
    counts = source.stored_counts()  # without counts there are two constants for one bit, which the hash covers
    flat = [] if counts is None else [count for row in counts.rows for count in row]
    values = {
        "packets": expected_packets(code.firmware),
        "table": table,
        "size": size,
        "table_crc": crc32(data),
        "counts": counts,
        "expected_counts": array("expected", "u16", flat, str(len(flat)), "static const ").rstrip("\n"),
        "ratio": source.certify().ratio,
    }
    return {
        f"test/{prefix}selftest{end}": banner + template(f"sensor/test/ss_selftest{end}", prefix, **values)
        for end in (".c", ".h")
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
