"""A package of single kernels: every file of it, from the kernels and tables alone. Equal input gives equal bytes."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import fill, temporary_folder
from sensorsim.codegen.package_options import Load, Options, choose
from sensorsim.codegen.package_tables import (
    ENCODER,
    NOISE,
    UNCERTIFIED,
    Noise,
    encoder_file,
    encoder_record,
    encoder_tables,
    for_package,
    read_noise,
)
from sensorsim.codegen.rendering import json_text, template
from sensorsim.codegen.write import banner_lines, banner_of, finish
from sensorsim.encoders import read_encoder
from sensorsim.language.arguments import array_length
from sensorsim.language.c.comments import C_TYPES, fold
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.language.types import Array, Length
from sensorsim.machine.elf import read_object
from sensorsim.machine.targets import SHOWN, TARGETS, compile_objects
from sensorsim.noise.table_file import table_bytes

Sizes = dict[str, dict[str, dict[str, object]]]  # by C function and core: code_bytes, runtime


def make_package(options: Options, load: Load | None = None, as_data: bool = True) -> dict[str, str]:
    """Return every file of the package by its path; the manifest lists the hashes of all the others.

    `load` gives the kernels of a file; without it the file is run. A package of sensorsim 0.2.0 carries its own kernels
    not `as_data`.
    """
    options.check()
    if not options.kernels:
        from sensorsim.codegen.sensor_package import sensor_package

        return sensor_package(options)
    source = read_noise(options.noise, options.allow_uncertified) if options.noise else None
    kernels, prefix = choose(options.kernels, options.variant, source, load), options.prefix
    noise = for_package(options.noise.name, source, kernels, prefix) if options.noise and source else None
    names = Names(kernels, prefix)
    warning = [] if noise is None or noise.certified else [UNCERTIFIED]
    encoder = read_encoder(options.encoder) if options.encoder else None
    tables = known_tables(kernels, prefix) + ([noise.table] if noise else [])
    if encoder is not None:
        if not any(kernel.name == "encoder" for kernel in kernels):
            raise InputError("--encoder needs the kernel encoder; add it to --kernels.")
        tables += encoder_tables(encoder, prefix)
    lines = banner_lines(options, warning)
    texts = c_sources(kernels, prefix, tables, banner_of(lines))
    texts |= _build_files(sorted(p for p in texts if p.startswith("src/") and p.endswith(".c")), options, lines)
    if source is not None:
        texts[NOISE] = table_bytes(source).decode("ascii")
    if encoder is not None:
        texts[ENCODER] = encoder_file(encoder)

    def measure(texts: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
        sizes = code_sizes(texts, names)
        ours = all(kernel.module.startswith("sensorsim.") for kernel in kernels)
        return {
            "purpose": "Private records on a body-worn sensor, in integers only"
            if ours
            else "Kernels in integers only",
            "warning": warning,
            "example": example(kernels[0], names, noise),
            "sizes": sizes,
            "cores": list(next(iter(sizes.values()))),
        }, {"by_function": sizes}

    own = {"noise_table": noise.record if noise else None, "encoder": encoder_record(encoder) if encoder else None}
    return finish(options, kernels, names, tables, texts, measure, "README.md", own, warning, as_data)


def code_sizes(texts: Mapping[str, str], names: Names) -> Sizes:
    """Measure each kernel on each core: bytes of code, and the functions of the compiler's runtime that it calls.

    Object files are enough for it, so nothing is linked.
    """
    sizes: Sizes = {names.functions[kernel]: {} for kernel in names.entries}
    with temporary_folder() as name:
        folder = Path(name)
        fill(folder, {path: text for path, text in texts.items() if path.startswith(("src/", "include/"))})
        sources = sorted((folder / "src").glob("*.c"))
        for target in (TARGETS[name] for name in SHOWN):
            objects = compile_objects(target, sources, [folder / "include", folder / "src"], folder)
            contents = {one.stem: read_object(file.read_bytes()) for one, file in zip(sources, objects, strict=True)}
            for kernel in names.entries:
                parts = reachable([kernel])
                own = {names.functions[part] for part in parts}
                mine = [contents[unit] for unit in (names.units[part] for part in parts) if unit in contents]
                sections = {section: size for found, _ in mine for section, size in found.items()}
                size = sum(length for section, length in sections.items() if section.split(".")[-1] in own)
                runtime = {name for _, undefined in mine for name in undefined if not name.startswith(names.prefix)}
                sizes[names.functions[kernel]][target.name] = {"code_bytes": size, "runtime": sorted(runtime)}
    return sizes


def example(kernel: Kernel, names: Names, noise: Noise | None) -> str:
    """Return C that calls the kernel as firmware does, complete enough to compile."""
    given = noise.arguments(kernel) if noise else {}  # what the noise table fixes
    lengths = kernel.lengths_at({k: v for k, v in noise.lengths.items() if k in given} if noise else {})
    lines = [f'#include "{names.prefix}kernels.h"', ""]
    passed = []
    for name, kind in kernel.parameters.items():
        if name in given:
            passed.append(given[name])
        elif isinstance(kind, Array) and kind.contents:
            passed.append(names.tables[kernel, name])
        elif isinstance(kind, Length):
            passed.append(f"{lengths[name]}U")
        elif isinstance(kind, Array):
            kept = "set up by you once, kept by the kernel" if name in kernel.written else "filled by you"
            about = "filled by the kernel" if kind.written else kept
            size = array_length(kernel, name, lengths)
            lines.append(f"static {C_TYPES[kind.storage]} {name}[{size}]; /* {about} */")
            passed.append(name)
        else:
            lines.append(f"static {C_TYPES[kind.storage]} {name}; /* set by you */")
            passed.append(name)
    ignored = "(void)" if kernel.result is not None else ""
    call = fold(f"    {ignored}{names.functions[kernel]}({', '.join(passed)});")
    return "\n".join([*lines, "", "void on_record(void);", "void on_record(void)", "{", call, "}"])


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
    return {
        "CMakeLists.txt": remark + template("CMakeLists.txt", prefix, sources=sources),
        "zephyr/CMakeLists.txt": remark + template("zephyr.cmake", prefix, sources=sources),
        "zephyr/Kconfig": remark + template("Kconfig", prefix),
        "zephyr/module.yml": remark + f"name: {name}\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n",
        "library.json": json_text(library),
    }
