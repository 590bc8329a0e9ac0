"""Golden vectors, and the self-test in C that runs them on the device."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sensorsim.language.arguments import arguments, array_length, lengths_to_check
from sensorsim.language.c.comments import C_TYPES, comment, fold
from sensorsim.language.c.declarations import array, literal, pointer
from sensorsim.language.c.identifiers import Names
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array
from sensorsim.machine.vectors import RESULT, by_plain_python, largest_first, least_first, orders

Value = Callable[[str, int, int], int]  # name, least and largest: what to take
Some = Callable[[range, int], list[int]]  # so many different ones of these
CANARY = 90  # stands behind every array that a kernel fills, and must still stand there afterwards
LARGEST = 2000  # values in a vector: the self-test is for a device with little memory


@dataclass(frozen=True)
class Golden:
    """One vector: what goes in, what must come out."""

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

        def random_value(name: str, lo: int, hi: int, generator: random.Random = generator) -> int:
            return generator.randint(lo, hi)

        sizes = small_lengths(kernel)
        middle = sizes[min(1, len(sizes) - 1)]
        cases: list[tuple[str, dict[str, int], Value, Some]] = [
            ("least values", middle, lambda name, lo, hi: lo, least_first),
            ("largest values", middle, lambda name, lo, hi: hi, largest_first),
            *(("random values", size, random_value, generator.sample) for size in sizes),
        ]
        for about, size, value, some in cases:
            inputs = arguments(kernel, size, value)
            inputs |= {name: some(range(limit), count) for name, limit, count in orders(kernel, size)}
            made.append(Golden(len(made) + 1, kernel, about, inputs, by_plain_python(kernel, inputs)))
    return made


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


def selftest_source(vectors: Sequence[Golden], names: Names) -> str:
    """Return the self-test of a package of kernels: a function for each vector, and one that runs them all."""
    return _source(vectors, names, "selftest", [f"{names.prefix}kernels.h", f"{names.prefix}selftest.h"])


def kernel_selftest_source(vectors: Sequence[Golden], names: Names) -> str:
    """Return test/ss_selftest_kernels.c, the part of a private package's self-test that runs its kernels.

    The functions stand in the same file here, so a compiler could work out a vector by itself and compare nothing on
    the device. They are called through pointers that it must not see through.
    """
    own = [kernel for kernel in names.entries if any(vector.kernel is kernel for vector in vectors)]
    headers = sorted(
        {names.header(kernel) for kernel in own} | ({f"{names.prefix}tables.h"} if names.tables else set())
    )
    lines = [pointer(kernel, names, _called(kernel, names)) for kernel in own]
    return _source(vectors, names, "selftest_kernels", [f"{names.prefix}selftest_kernels.h", *headers], lines)


def selftest_header(prefix: str) -> str:
    return _header(prefix, "selftest", [])


def kernel_selftest_header(prefix: str, vectors: Sequence[Golden]) -> str:
    """Return test/ss_selftest_kernels.h; its macro says how many vectors there are, for other parts to go on from."""
    macro = f"{prefix}SELFTEST_VECTORS".upper()
    return _header(prefix, "selftest_kernels", [f"#define {macro} {len(vectors)}U /* the vectors are 1 to this */"])


def _header(prefix: str, name: str, lines: Sequence[str]) -> str:
    guard = f"{prefix}{name}_H".upper()
    text = comment(["0 when every golden vector gives the expected bits, else the number of the first that does not."])
    parts = [f"#ifndef {guard}\n#define {guard}", "#include <stdint.h>", *lines]
    return "\n\n".join([*parts, f"{text}\nuint32_t {prefix}{name}(void);", "#endif"]) + "\n"


def _source(
    vectors: Sequence[Golden], names: Names, name: str, headers: Sequence[str], lines: Sequence[str] = ()
) -> str:
    function = f"{names.prefix}{name}"
    filled = [(v.kernel, name) for v in vectors for name in v.expected if name != RESULT]
    kinds = sorted({kernel.arrays[name].storage for kernel, name in filled})
    kept = sorted({kernel.arrays[name].storage for kernel, name in filled if not kernel.arrays[name].written})
    head = [
        "The self-test: every vector in turn. Freestanding; needs no console, heap or libc.",
        f"{function}() returns 0, or the number of the first vector that differs. It also sees when a",
        "kernel writes past the end of an array.",
    ]
    includes = "".join(f'#include "{header}"\n' for header in headers)
    parts = [f"{comment(head)}\n#include <stdbool.h>\n{includes}", f"#define CANARY {CANARY}\n"]
    parts += ["\n".join(lines) + "\n"] if lines else []
    parts += [*(_same(kind) for kind in kinds), *(_copy(kind) for kind in kept)]
    parts += [_vector(vector, names) for vector in vectors]
    calls = [f"    if (!vector_{vector.number}()) {{\n        return {vector.number}U;\n    }}" for vector in vectors]
    parts.append("\n".join([f"uint32_t {function}(void)\n{{", *calls, "    return 0U;\n}\n"]))
    return "\n".join(parts)


def _called(kernel: Kernel, names: Names) -> str:
    """Return how a vector calls the kernel: by its function, or in a private package by a pointer to it."""
    function = names.functions[kernel]
    return f"call_{function}" if names.private else function


def _same(kind: str) -> str:
    ctype = C_TYPES[kind]
    text = comment(["Whether the arrays are equal and the element behind the first is untouched."])
    return (
        f"{text}\nstatic bool same_{kind}(const {ctype} got[], const {ctype} want[], uint32_t size)\n{{\n"
        f"    bool same = got[size] == ({ctype})CANARY;\n"
        f"    for (uint32_t i = 0U; i < size; i++) {{\n        same = same && (got[i] == want[i]);\n    }}\n"
        "    return same;\n}\n"
    )


def _copy(kind: str) -> str:
    ctype = C_TYPES[kind]
    text = comment(["Sets an array anew, so that the test can run again."])
    return (
        f"{text}\nstatic void copy_{kind}({ctype} to[], const {ctype} from[], uint32_t size)\n{{\n"
        "    for (uint32_t i = 0U; i < size; i++) {\n        to[i] = from[i];\n    }\n}\n"
    )


def _vector(vector: Golden, names: Names) -> str:
    kernel, function = vector.kernel, names.functions[vector.kernel]
    lines = [f"static bool vector_{vector.number}(void)", "{"]
    passed, checks = [], []
    for name, kind in kernel.parameters.items():
        value = vector.inputs[name]
        if _is_table(kernel, name):
            passed.append(names.tables[kernel, name])
        elif isinstance(kind, Array) and name in kernel.written:
            own, element, size = f"{name}_{kind.storage}", kind.storage, len(value)
            lines.append(_data(f"{name}_expected", element, vector.expected[name]))
            lines.append(f"    static {C_TYPES[element]} {own}[{size + 1}];")
            if not kind.written:
                lines.append(_data(f"{name}_start", element, value))
                lines.append(f"    copy_{element}({own}, {name}_start, {size}U);")
            lines.append(f"    {own}[{size}] = CANARY;")
            passed.append(own)
            checks.append(f"same_{element}({own}, {name}_expected, {size}U)")
        elif isinstance(kind, Array):
            own = f"{name}_{kind.storage}"
            space = f"{names.prefix.upper()}FLASH " if (kernel, name) in names.in_flash else ""
            lines.append(_data(own, kind.storage, value, space))
            passed.append(own)
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


def _data(name: str, kind: str, values: Sequence[int], space: str = "") -> str:
    return array(name, kind, values, str(len(values)), f"static const {space}", "    ").rstrip("\n")


def _is_table(kernel: Kernel, name: str) -> bool:
    kind = kernel.parameters[name]
    return isinstance(kind, Array) and kind.contents is not None


def inputs_of(vector: Mapping[str, Any], kernel: Kernel) -> dict[str, Any]:
    """Return the arguments of a vector read from golden.json, with the constant tables put back."""
    tables = {name: list(kind.contents) for name, kind in kernel.arrays.items() if kind.contents is not None}
    return {name: tables[name] if name in tables else vector["inputs"][name] for name in kernel.parameters}
