"""The package: every file of it, made from the kernels and tables alone. The same input gives the same bytes."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from sensorsim.cost.symbolic import symbolic
from sensorsim.errors import InputError
from sensorsim.export.ctext import C_TYPES, comment, fold, storage
from sensorsim.export.emit import written
from sensorsim.export.encoder import KERNEL as ENCODER
from sensorsim.export.encoder import Encoder, load_encoder
from sensorsim.export.golden import golden_json, golden_vectors, selftest_header, selftest_source
from sensorsim.export.misra import misra_report
from sensorsim.export.noise import UNCERTIFIED, Noise, load_noise
from sensorsim.export.sizes import code_sizes
from sensorsim.export.sources import Table, c_sources, choose, known_tables, reachable, table_name, with_prefix
from sensorsim.export.targets import SHOWN_FLAGS, compiler_version
from sensorsim.export.vectors import TYPICAL, lengths_for
from sensorsim.export.write import in_temporary_folder
from sensorsim.kernels import formats, ops
from sensorsim.kernels.arguments import array_length
from sensorsim.kernels.formats import Array, Length
from sensorsim.kernels.language import Kernel
from sensorsim.ranges import check_ranges

SCHEMA = 1
MANIFEST = "MANIFEST.json"
DEFAULT_KERNELS = ("spof", "dpsgd", "release", "sampled")


@dataclass(frozen=True)
class Options:
    """What to export. `kernels` are the names that users give; `variant` picks paper or lean where there are both."""

    kernels: tuple[str, ...] = DEFAULT_KERNELS
    variant: str = "lean"
    noise: Path | None = None
    encoder: Path | None = None
    prefix: str = "ss_"
    spdx: str = "MIT"
    allow_uncertified: bool = False


def make_package(options: Options) -> dict[str, str]:
    """Every file of the package by its path; the manifest lists the hashes of all the others."""
    _check(options)
    kernels, prefix = choose(options.kernels, options.variant), options.prefix
    noise = load_noise(options.noise, kernels, prefix, options.allow_uncertified) if options.noise else None
    for kernel in kernels:
        check_ranges(kernel)  # what the C relies on: no signed operation overflows
    warning = [] if noise is None or noise.certified else [UNCERTIFIED]
    encoder = load_encoder(options.encoder, _encoder_kernel(kernels), prefix) if options.encoder else None
    tables = known_tables(kernels, prefix) + ([noise.table] if noise else []) + list(encoder.tables if encoder else ())
    banner = comment([f"SPDX-License-Identifier: {options.spdx}"]) + "\n"
    banner += comment([f"Made by sensorsim {version('sensorsim')} from its kernels.", *warning]) + "\n"
    vectors = golden_vectors(kernels)
    texts = c_sources(kernels, prefix, tables, banner)
    texts[f"test/{prefix}selftest.c"] = banner + selftest_source(vectors, prefix)
    texts[f"test/{prefix}selftest.h"] = banner + selftest_header(prefix)
    texts["test/main.c"] = banner + with_prefix(_template("main.c"), prefix)
    golden = {"schema_version": SCHEMA, "vectors": golden_json(vectors, prefix)}
    texts["test/golden.json"] = _json(_with_warning(golden, warning))
    texts |= _build_files(sorted(p for p in texts if p.startswith("src/") and p.endswith(".c")), options, warning)
    misra, findings = in_temporary_folder(texts, misra_report)
    texts["MISRA.md"] = _marked(misra, warning)
    sizes = code_sizes(texts, kernels, prefix)
    texts["README.md"] = _readme(kernels, options, len(vectors), sizes, noise, warning)
    texts[MANIFEST] = _manifest(texts, kernels, options, tables, noise, encoder, sizes, findings, warning)
    return dict(sorted(texts.items()))


def _encoder_kernel(kernels: Sequence[Kernel]) -> Kernel:
    for kernel in kernels:
        if kernel.name == ENCODER:
            return kernel
    raise InputError(f"--encoder needs the kernel {ENCODER}; add it to --kernels.")


def _check(options: Options) -> None:
    name = options.prefix.rstrip("_")
    if not (name.isidentifier() and name.islower() and options.prefix.isascii()):
        raise InputError(f"prefix {options.prefix!r} cannot begin a C name; give lower-case letters, as ss_.")
    if not options.spdx or not all(c.isalnum() or c in ".-+ ()" for c in options.spdx):
        raise InputError(f"{options.spdx!r} is no SPDX licence identifier; give one as MIT or Apache-2.0.")


def _build_files(sources: Sequence[str], options: Options, warning: Sequence[str]) -> dict[str, str]:
    prefix = options.prefix
    name = f"{prefix}kernels".replace("_", "-")
    library = {
        "name": name,
        "version": version("sensorsim"),
        "description": " ".join(["Private records for body-worn sensors, in integers.", *warning]),
        "license": options.spdx,
        "frameworks": "*",
        "platforms": "*",
        "build": {"includeDir": "include", "srcDir": "src", "flags": ["-std=c99"]},
    }
    remark = "".join(f"# {line}\n" for line in [f"SPDX-License-Identifier: {options.spdx}", *warning])
    cmake, zephyr, kconfig = (
        remark + with_prefix(_template(file), prefix) for file in ("CMakeLists.txt", "zephyr.cmake", "Kconfig")
    )
    return {
        "CMakeLists.txt": cmake.replace("@SOURCES@", "\n".join(f"  {path}" for path in sources)),
        "zephyr/CMakeLists.txt": zephyr.replace("@SOURCES@", "\n".join(f"    ../{path}" for path in sources)),
        "zephyr/Kconfig": kconfig,
        "zephyr/module.yml": remark + f"name: {name}\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n",
        "library.json": _json(library),
    }


def _readme(
    kernels: Sequence[Kernel],
    options: Options,
    vectors: int,
    sizes: Mapping[str, Any],
    noise: Noise | None,
    warning: Sequence[str],
) -> str:
    cores = list(next(iter(sizes.values())))
    rows = [f"| kernel | {' | '.join(cores)} |", "|---|" + "---|" * len(cores)]
    for kernel in kernels:
        cells = (sizes[kernel.name][core] for core in cores)
        shown = (f"{cell['code_bytes']}" + "".join(f" + `{name}`" for name in cell["runtime"]) for cell in cells)
        rows.append(f"| `{options.prefix}{kernel.name}` | {' | '.join(shown)} |")
    names = ", ".join(f"`{options.prefix}{kernel.name}`" for kernel in kernels)
    fill = {
        "TITLE": f"{options.prefix}kernels",
        "KERNELS": names,
        "VERSION": version("sensorsim"),
        "WARNING": "".join(f"\n**{line}**\n" for line in warning),
        "EXAMPLE": example(kernels[0], options.prefix, noise),
        "PREFIX": options.prefix,
        "MACRO": options.prefix.upper(),
        "VECTORS": str(vectors),
        "COMPILER": f"{compiler_version()}, {SHOWN_FLAGS}",
        "SIZES": "\n".join(rows),
    }
    text = _template("README.md")
    for key, value in fill.items():
        text = text.replace(f"@{key}@", value)
    return text


def example(kernel: Kernel, prefix: str, noise: Noise | None) -> str:
    """How a firmware calls the kernel, complete enough to compile."""
    given = noise.arguments(kernel, prefix) if noise else {}  # what the noise table fixes
    lengths = lengths_for(kernel, TYPICAL) | ({k: v for k, v in noise.lengths.items() if k in given} if noise else {})
    lines = [f'#include "{prefix}kernels.h"', ""]
    passed = []
    for name, kind in kernel.parameters.items():
        if name in given:
            passed.append(given[name])
        elif isinstance(kind, Array) and kind.contents:
            passed.append(table_name(kernel, name, prefix))
        elif isinstance(kind, Array):
            kept = "set up by you once, kept by the kernel" if name in written(kernel) else "filled by you"
            about = "filled by the kernel" if kind.written else kept
            lines.append(
                f"static {C_TYPES[storage(kind.element)]} {name}[{array_length(kind, lengths)}]; /* {about} */"
            )
            passed.append(name)
        elif isinstance(kind, Length):
            passed.append(f"{lengths[name]}U")
        else:
            lines.append(f"static {C_TYPES[storage(kind)]} {name}; /* set by you */")
            passed.append(name)
    call = fold(f"    {prefix}{kernel.name}({', '.join(passed)});")
    return "\n".join([*lines, "", "void on_record(void);", "void on_record(void)", "{", call, "}"])


def _manifest(
    texts: Mapping[str, str],
    kernels: Sequence[Kernel],
    options: Options,
    tables: Sequence[Table],
    noise: Noise | None,
    encoder: Encoder | None,
    sizes: Mapping[str, Any],
    findings: Mapping[str, int],
    warning: Sequence[str],
) -> str:
    modules = {part.path for part in reachable(kernels)} | {Path(ops.__file__), Path(formats.__file__)}
    data = {
        "schema_version": SCHEMA,
        "sensorsim": version("sensorsim"),
        "parameters": {
            "kernels": [kernel.name for kernel in kernels],
            "variant": options.variant,
            "prefix": options.prefix,
            "spdx": options.spdx,
            "noise": options.noise.name if options.noise else None,
            "encoder": options.encoder.name if options.encoder else None,
        },
        "kernel_sources": {f"kernels/{path.name}": sha256(path.read_text("utf-8")) for path in sorted(modules)},
        "noise_table": noise.record if noise else None,
        "encoder": encoder.record if encoder else None,
        "tables": {table.name: sha256(",".join(map(str, table.values))) for table in tables},
        "operations": {kernel.name: _operations(kernel) for kernel in kernels},
        "sizes": {"compiler": compiler_version(), "flags": SHOWN_FLAGS, "by_kernel": sizes},
        "misra_findings": findings,
        "files": {path: sha256(text) for path, text in sorted(texts.items())},
    }
    data = _with_warning(data, warning)
    data["sha256_of_this_file_without_this_line"] = sha256(_json(data))
    return _json(data)


def _operations(kernel: Kernel) -> dict[str, str]:
    """How many operations of each class one call takes, as polynomials in its lengths."""
    totals: dict[str, Any] = {}
    for (_, operation), count in symbolic(kernel).items():
        totals[operation] = totals[operation] + count if operation in totals else count
    return {operation: str(count) for operation, count in sorted(totals.items())}


def sha256(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _template(name: str) -> str:
    return (files("sensorsim.export") / "templates" / name).read_text("utf-8")


def _with_warning(data: dict[str, Any], warning: Sequence[str]) -> dict[str, Any]:
    return {"warning": warning[0], **data} if warning else data


def _marked(markdown: str, warning: Sequence[str]) -> str:
    return "".join(f"**{line}**\n\n" for line in warning) + markdown


def _json(data: Any) -> str:
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"
