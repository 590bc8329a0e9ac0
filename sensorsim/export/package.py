"""The package: every file of it, made from the kernels and tables alone. The same input gives the same bytes."""

import json
from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from sensorsim.errors import InputError
from sensorsim.export.choose import Options, choose
from sensorsim.export.encoder import KERNEL as ENCODER
from sensorsim.export.encoder import load_encoder
from sensorsim.export.golden import golden_json, golden_vectors, selftest_header, selftest_source
from sensorsim.export.misra import misra_report
from sensorsim.export.noise import UNCERTIFIED, for_package, read_noise
from sensorsim.export.origins import Origins, origins, sha256
from sensorsim.export.readme import readme
from sensorsim.export.sizes import code_sizes
from sensorsim.export.targets import SHOWN_FLAGS, compiler_version
from sensorsim.export.write import in_temporary_folder
from sensorsim.language.c.files import Table, c_sources, known_tables
from sensorsim.language.c.names import Names
from sensorsim.language.c.text import comment, with_prefix
from sensorsim.language.kernel import Kernel
from sensorsim.language.parse import LanguageError

__all__ = ["MANIFEST", "SCHEMA", "Options", "make_package"]
SCHEMA = 2
MANIFEST = "MANIFEST.json"


def make_package(options: Options) -> dict[str, str]:
    """Every file of the package by its path; the manifest lists the hashes of all the others."""
    _check(options)
    source = read_noise(options.noise, options.allow_uncertified) if options.noise else None
    kernels, prefix = choose(options.kernels, options.variant, source), options.prefix
    names = Names(kernels, prefix)
    noise = for_package(options.noise.name, source, kernels, prefix) if options.noise and source else None
    warning = [] if noise is None or noise.certified else [UNCERTIFIED]
    encoder = load_encoder(options.encoder, _encoder_kernel(kernels), prefix) if options.encoder else None
    tables = known_tables(kernels, prefix) + ([noise.table] if noise else []) + list(encoder.tables if encoder else ())
    lines = [options.command, f"SPDX-License-Identifier: {options.spdx}", *warning]
    banner = "".join(comment([line]) + "\n" for line in lines)
    vectors = golden_vectors(kernels)
    texts = c_sources(kernels, prefix, tables, banner)
    texts[f"test/{prefix}selftest.c"] = banner + selftest_source(vectors, names)
    texts[f"test/{prefix}selftest.h"] = banner + selftest_header(prefix)
    texts["test/main.c"] = banner + with_prefix(_template("main.c"), prefix)
    golden = {"schema_version": SCHEMA, "vectors": golden_json(vectors, names)}
    texts["test/golden.json"] = _json(_with_warning(golden, warning))
    texts |= _build_files(sorted(p for p in texts if p.startswith("src/") and p.endswith(".c")), options, lines)
    misra, findings = in_temporary_folder(texts, misra_report)
    mark = f"<!-- {options.command} -->\n"
    texts["MISRA.md"] = mark + _marked(misra, warning)
    sizes = code_sizes(texts, names)
    texts["README.md"] = mark + readme(names, options, len(vectors), sizes, noise, warning)
    sources = origins(kernels, names)
    texts |= sources.copies
    data = _facts(kernels, options, tables, sources)
    data |= {
        "noise_table": noise.record if noise else None,
        "encoder": encoder.record if encoder else None,
        "sizes": {"compiler": compiler_version(), "flags": SHOWN_FLAGS, "by_function": sizes},
        "misra_findings": findings,
        "files": {path: sha256(text) for path, text in sorted(texts.items())},
    }
    data = _with_warning(data, warning)
    data["sha256_of_this_file_without_this_line"] = sha256(_json(data))
    texts[MANIFEST] = _json(data)
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


def _build_files(sources: Sequence[str], options: Options, lines: Sequence[str]) -> dict[str, str]:
    prefix = options.prefix
    name = f"{prefix}kernels".replace("_", "-")
    library = {
        "name": name,
        "version": version("sensorsim"),
        "description": " ".join(["Private records for body-worn sensors, in integers.", *lines[2:]]),
        "license": options.spdx,
        "frameworks": "*",
        "platforms": "*",
        "build": {"includeDir": "include", "srcDir": "src", "flags": ["-std=c99"]},
    }
    remark = "".join(f"# {line}\n" for line in lines)
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


def _facts(kernels: Sequence[Kernel], options: Options, tables: Sequence[Table], sources: Origins) -> dict[str, Any]:
    """What the manifest says of where the package comes from."""
    return {
        "schema_version": SCHEMA,
        "sensorsim": version("sensorsim"),
        "command": options.command,
        "parameters": {
            "kernels": [kernel.name for kernel in kernels],
            "variant": options.variant,
            "prefix": options.prefix,
            "spdx": options.spdx,
            "noise": options.noise.name if options.noise else None,
            "encoder": options.encoder.name if options.encoder else None,
        },
        "functions": sources.functions,
        "kernel_sources": sources.records,
        "tables": {table.name: sha256(",".join(map(str, table.values))) for table in tables},
        "operations": {kernel.name: _operations(kernel) for kernel in kernels},
        "proved": {kernel.name: kernel.secrecy().verdict for kernel in kernels},
    }


def _operations(kernel: Kernel) -> dict[str, str]:
    """How many operations of each class one call takes, as polynomials in its lengths."""
    totals: dict[str, Any] = {}
    try:
        formula = kernel.formula()
    except LanguageError as error:  # rounds that depend on data have no polynomial
        return {"unknown": str(error)}
    for (_, operation), count in formula.items():
        totals[operation] = totals[operation] + count if operation in totals else count
    return {operation: str(count) for operation, count in sorted(totals.items())}


def _template(name: str) -> str:
    return (files("sensorsim.export") / "templates" / name).read_text("utf-8")


def _with_warning(data: dict[str, Any], warning: Sequence[str]) -> dict[str, Any]:
    return {"warning": warning[0], **data} if warning else data


def _marked(markdown: str, warning: Sequence[str]) -> str:
    return "".join(f"**{line}**\n\n" for line in warning) + markdown


def _json(data: Any) -> str:
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"
