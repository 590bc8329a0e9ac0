"""Golden vectors, and the self-test in C that runs them on the device."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sensorsim.export.ctext import C_TYPES, comment, fold, storage
from sensorsim.export.emit import written
from sensorsim.export.sources import array, literal, table_name
from sensorsim.export.vectors import RESULT, by_plain_python, lengths_for
from sensorsim.kernels.arguments import arguments
from sensorsim.kernels.formats import Array, Length
from sensorsim.kernels.language import Kernel

CANARY = 90  # stands behind every array that a kernel fills, and must still stand there afterwards
SIZES = (
    {"n": 1, "l": 1, "size": 2, "mask": 1, "k": 1, "drop": 31, "stair_bits": 1},
    {"n": 3, "l": 2, "size": 8, "mask": 7, "k": 2, "drop": 29, "stair_bits": 15},
    {"n": 14, "l": 7, "size": 16, "mask": 15, "k": 3, "drop": 28, "stair_bits": 10},
)


@dataclass(frozen=True)
class Golden:
    """One vector: what goes in, what must come out."""

    number: int
    kernel: Kernel
    about: str
    inputs: dict[str, Any]
    expected: dict[str, Any]


def golden_vectors(kernels: Sequence[Kernel]) -> list[Golden]:
    """For every kernel: its least values, its largest, and random ones at three sizes."""
    made: list[Golden] = []
    for kernel in kernels:
        generator = random.Random(f"golden {kernel.name}")  # the same vectors in every package

        def random_value(name: str, lo: int, hi: int, generator: random.Random = generator) -> int:
            return generator.randint(lo, hi)

        cases = [
            ("least values", SIZES[1], lambda name, lo, hi: lo),
            ("largest values", SIZES[1], lambda name, lo, hi: hi),
            *(("random values", size, random_value) for size in SIZES),
        ]
        for about, size, value in cases:
            inputs = arguments(kernel, lengths_for(kernel, size), value)
            made.append(Golden(len(made) + 1, kernel, about, inputs, by_plain_python(kernel, inputs)))
    return made


def golden_json(vectors: Sequence[Golden], prefix: str) -> list[dict[str, Any]]:
    """The vectors as data; constant tables are left out, they are in the package."""
    return [
        {
            "number": vector.number,
            "function": prefix + vector.kernel.name,
            "about": vector.about,
            "inputs": {name: value for name, value in vector.inputs.items() if not _is_table(vector.kernel, name)},
            "expected": vector.expected,
        }
        for vector in vectors
    ]


def selftest_source(vectors: Sequence[Golden], prefix: str) -> str:
    """The self-test: one function for each vector, and one that runs them all."""
    kinds = sorted({storage(_kind(v.kernel, name)) for v in vectors for name in v.expected if name != RESULT})
    head = [
        "The self-test: every vector in turn. Freestanding; needs no console, heap or libc.",
        f"{prefix}selftest() returns 0, or the number of the first vector that differs. It also sees when a",
        "kernel writes past the end of an array.",
    ]
    parts = [comment(head) + f'\n#include <stdbool.h>\n#include "{prefix}kernels.h"\n#include "{prefix}selftest.h"\n']
    parts.append(f"#define CANARY {CANARY}\n")
    parts += [_same(kind) for kind in kinds]
    parts += [_vector(vector, prefix) for vector in vectors]
    calls = [f"    if (!vector_{vector.number}()) {{\n        return {vector.number}U;\n    }}" for vector in vectors]
    parts.append("\n".join([f"uint32_t {prefix}selftest(void)\n{{", *calls, "    return 0U;\n}\n"]))
    return "\n".join(parts)


def selftest_header(prefix: str) -> str:
    guard = f"{prefix}SELFTEST_H".upper()
    text = comment(["0 when every golden vector gives the expected bits, else the number of the first that does not."])
    declared = f"{text}\nuint32_t {prefix}selftest(void);"
    return f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n{declared}\n\n#endif\n"


def _same(kind: str) -> str:
    ctype = C_TYPES[kind]
    text = comment(["Whether the arrays are equal and the element behind the first is untouched."])
    return (
        f"{text}\nstatic bool same_{kind}(const {ctype} got[], const {ctype} want[], uint32_t size)\n{{\n"
        f"    bool same = got[size] == ({ctype})CANARY;\n"
        f"    for (uint32_t i = 0U; i < size; i++) {{\n        same = same && (got[i] == want[i]);\n    }}\n"
        "    return same;\n}\n"
    )


def _vector(vector: Golden, prefix: str) -> str:
    kernel, filled = vector.kernel, written(vector.kernel)
    lines = [f"static bool vector_{vector.number}(void)", "{"]
    passed, checks = [], []
    for name, kind in kernel.parameters.items():
        value = vector.inputs[name]
        if _is_table(kernel, name):
            passed.append(table_name(kernel, name, prefix))
        elif name in filled:
            element, size = storage(kind.element), len(value)
            lines += _indented(array(f"{name}_expected", element, vector.expected[name], str(size), static=True))
            lines.append(f"    static {C_TYPES[element]} {name}[{size + 1}];")
            if not kind.written:  # read and written: set anew, so that the test can run again
                lines += _indented(array(f"{name}_start", element, value, str(size), static=True))
                copy = f"{name}[i] = {name}_start[i];"
                lines.append(f"    for (uint32_t i = 0U; i < {size}U; i++) {{\n        {copy}\n    }}")
            lines.append(f"    {name}[{size}] = CANARY;")
            passed.append(name)
            checks.append(f"same_{element}({name}, {name}_expected, {size}U)")
        elif isinstance(kind, Array):
            lines += _indented(array(name, storage(kind.element), value, str(len(value)), static=True))
            passed.append(name)
        else:
            passed.append(literal(value, "u32" if isinstance(kind, Length) else storage(kind)))
    call = f"{prefix}{kernel.name}({', '.join(passed)})"
    if RESULT in vector.expected:
        lines.append(
            fold(f"    const bool right = {call} == {literal(vector.expected[RESULT], storage(kernel.result))};")
        )
        checks.insert(0, "right")
    else:
        lines.append(fold(f"    {call};"))
    lines += ["    return " + "\n        && ".join(checks) + ";", "}", ""]
    sizes = ", ".join(
        f"{name} = {vector.inputs[name]}" for name, k in kernel.parameters.items() if isinstance(k, Length)
    )
    title = f"Vector {vector.number}: {prefix}{kernel.name}(), {vector.about}" + (f", {sizes}." if sizes else ".")
    return comment([title]) + "\n" + "\n".join(lines)


def _indented(text: str) -> list[str]:
    return ["    " + line if line else line for line in text.rstrip("\n").split("\n")]


def _kind(kernel: Kernel, name: str) -> Any:
    return kernel.parameters[name].element


def _is_table(kernel: Kernel, name: str) -> bool:
    kind = kernel.parameters[name]
    return isinstance(kind, Array) and kind.contents is not None


def inputs_of(vector: Mapping[str, Any], kernel: Kernel) -> dict[str, Any]:
    """The arguments of a vector read from golden.json, with the constant tables put back."""
    kinds = kernel.parameters
    return {
        name: list(kind.contents) if _is_table(kernel, name) else vector["inputs"][name] for name, kind in kinds.items()
    }
