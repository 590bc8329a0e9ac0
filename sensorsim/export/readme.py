"""The README of a package, with an example that compiles."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from sensorsim.export.choose import Options
from sensorsim.export.noise import Noise
from sensorsim.language.arguments import array_length
from sensorsim.language.c.comments import C_TYPES, fold
from sensorsim.language.c.identifiers import Names
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Length
from sensorsim.machine.targets import SHOWN_FLAGS, compiler_version


def readme(
    names: Names,
    options: Options,
    vectors: int,
    sizes: Mapping[str, Any],
    noise: Noise | None,
    warning: Sequence[str],
) -> str:
    """The README of a package."""
    prefix, kernels, functions = names.prefix, names.entries, names.functions
    cores = list(next(iter(sizes.values())))
    rows = [f"| kernel | {' | '.join(cores)} |", "|---|" + "---|" * len(cores)]
    for kernel in kernels:
        cells = (sizes[functions[kernel]][core] for core in cores)
        shown = (f"{cell['code_bytes']}" + "".join(f" + `{name}`" for name in cell["runtime"]) for cell in cells)
        rows.append(f"| `{functions[kernel]}` | {' | '.join(shown)} |")
    ours = all(kernel.module.startswith("sensorsim.") for kernel in kernels)
    fill = {
        "TITLE": f"{prefix}kernels",
        "PURPOSE": "Private records on a body-worn sensor, in integers only" if ours else "Kernels in integers only",
        "KERNELS": ", ".join(f"`{functions[kernel]}`" for kernel in kernels),
        "VERSION": version("sensorsim"),
        "WARNING": "".join(f"\n**{line}**\n" for line in warning),
        "EXAMPLE": example(kernels[0], names, noise),
        "PREFIX": prefix,
        "MACRO": prefix.upper(),
        "VECTORS": str(vectors),
        "COMPILER": f"{compiler_version()}, {SHOWN_FLAGS}",
        "SIZES": "\n".join(rows),
    }
    text = (files("sensorsim.export") / "templates" / "README.md").read_text("utf-8")
    for key, value in fill.items():
        text = text.replace(f"@{key}@", value)
    return text


def example(kernel: Kernel, names: Names, noise: Noise | None) -> str:
    """How a firmware calls the kernel, complete enough to compile."""
    given = noise.arguments(kernel, names.prefix) if noise else {}  # what the noise table fixes
    lengths = kernel.lengths_at({k: v for k, v in noise.lengths.items() if k in given} if noise else {})
    lines = [f'#include "{names.prefix}kernels.h"', ""]
    passed = []
    for name, kind in kernel.parameters.items():
        if name in given:
            passed.append(given[name])
        elif isinstance(kind, Array) and kind.contents:
            passed.append(names.tables[kernel, name])
        elif isinstance(kind, Array):
            kept = "set up by you once, kept by the kernel" if name in kernel.written else "filled by you"
            about = "filled by the kernel" if kind.written else kept
            size = array_length(kernel, name, lengths)
            lines.append(f"static {C_TYPES[kind.storage]} {name}[{size}]; /* {about} */")
            passed.append(name)
        elif isinstance(kind, Length):
            passed.append(f"{lengths[name]}U")
        else:
            lines.append(f"static {C_TYPES[kind.storage]} {name}; /* set by you */")
            passed.append(name)
    ignored = "(void)" if kernel.result is not None else ""
    call = fold(f"    {ignored}{names.functions[kernel]}({', '.join(passed)});")
    return "\n".join([*lines, "", "void on_record(void);", "void on_record(void)", "{", call, "}"])
