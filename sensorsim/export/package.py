"""The package: every file of it, made from the kernels and tables alone. The same input gives the same bytes."""

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from sensorsim.encoders import read_encoder
from sensorsim.errors import InputError
from sensorsim.export.choose import Options, choose
from sensorsim.export.encoder import ENCODER, encoder_file, encoder_record, encoder_tables
from sensorsim.export.files import MANIFEST, SCHEMA, facts, json_text, template, with_manifest
from sensorsim.export.golden import golden_json, golden_vectors, selftest_header, selftest_source
from sensorsim.export.misra import misra_report
from sensorsim.export.noise import NOISE, UNCERTIFIED, for_package, read_noise
from sensorsim.export.origins import origins
from sensorsim.export.readme import readme
from sensorsim.export.sizes import code_sizes
from sensorsim.export.write import in_temporary_folder
from sensorsim.language.c.comments import comment
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.kernel import Kernel
from sensorsim.machine.targets import SHOWN_FLAGS, compiler_version
from sensorsim.privacy.tablefile import table_bytes
from sensorsim.ranges import brief

__all__ = ["MANIFEST", "SCHEMA", "Options", "make_package"]
MOST_PREFIX, MOST_SPDX = 31, 200  # C compares so many letters of a name
SPDX = re.compile(r"\(*[A-Za-z0-9][A-Za-z0-9.+() -]*")
OF_A_SENSOR = ("sketch", "budget_epsilon", "budget_days", "reserve", "packet_numbers")


def make_package(options: Options) -> dict[str, str]:
    """Every file of the package by its path; the manifest lists the hashes of all the others."""
    _check(options)
    if options.kernels:
        return _kernels_package(options)
    from sensorsim.export.sensor_package import sensor_package

    return sensor_package(options)


def _kernels_package(options: Options) -> dict[str, str]:
    """Single kernels, for teams that build a sensor of their own."""
    source = read_noise(options.noise, options.allow_uncertified) if options.noise else None
    kernels, prefix = choose(options.kernels, options.variant, source), options.prefix
    noise = for_package(options.noise.name, source, kernels, prefix) if options.noise and source else None
    names = Names(kernels, prefix)
    warning = [] if noise is None or noise.certified else [UNCERTIFIED]
    encoder = read_encoder(options.encoder) if options.encoder else None
    tables = known_tables(kernels, prefix) + ([noise.table] if noise else [])
    if encoder is not None:
        _need_encoder(kernels)
        tables += encoder_tables(encoder, prefix)
    lines = [options.command, f"SPDX-License-Identifier: {options.spdx}", *warning]
    banner = "".join(comment([line]) + "\n" for line in lines)
    vectors = golden_vectors(kernels)
    texts = c_sources(kernels, prefix, tables, banner)
    texts[f"test/{prefix}selftest.c"] = banner + selftest_source(vectors, names)
    texts[f"test/{prefix}selftest.h"] = banner + selftest_header(prefix)
    texts["test/main.c"] = banner + template("main.c", prefix)
    golden = {"schema_version": SCHEMA, "vectors": golden_json(vectors, names)}
    texts["test/golden.json"] = json_text(_with_warning(golden, warning))
    texts |= _build_files(sorted(p for p in texts if p.startswith("src/") and p.endswith(".c")), options, lines)
    misra, findings = in_temporary_folder(texts, misra_report)
    mark = f"<!-- {options.command} -->\n"
    texts["MISRA.md"] = mark + _marked(misra, warning)
    sizes = code_sizes(texts, names)
    texts["README.md"] = mark + readme(names, options, len(vectors), sizes, noise, warning)
    if source is not None:
        texts[NOISE] = table_bytes(source).decode("ascii")
    if encoder is not None:
        texts[ENCODER] = encoder_file(encoder)
    sources = origins(kernels, names)
    texts |= sources.copies
    data = facts(kernels, options, tables, sources)
    data |= {
        "noise_table": noise.record if noise else None,
        "encoder": encoder_record(encoder) if encoder else None,
        "sizes": {"compiler": compiler_version(), "flags": SHOWN_FLAGS, "by_function": sizes},
        "misra_findings": findings,
    }
    remark = "".join(f". {line}" for line in warning)
    return with_manifest(texts, _with_warning(data, warning), options, f"{prefix}kernels", remark)


def _need_encoder(kernels: Sequence[Kernel]) -> None:
    if not any(kernel.name == "encoder" for kernel in kernels):
        raise InputError("--encoder needs the kernel encoder; add it to --kernels.")


def _check(options: Options) -> None:
    name = options.prefix.rstrip("_")
    if not (name.isidentifier() and name.islower() and options.prefix.isascii() and len(options.prefix) <= MOST_PREFIX):
        told = f"at most {MOST_PREFIX} lower-case letters, as ss_"
        raise InputError(f"prefix {brief(options.prefix)!r} cannot begin a C name; give {told}.")
    if not SPDX.fullmatch(options.spdx) or len(options.spdx) > MOST_SPDX:
        raise InputError(f"{brief(options.spdx)!r} is no SPDX licence identifier; give one as MIT or Apache-2.0.")
    given = [name for name in OF_A_SENSOR if getattr(options, name) not in (None, ())]
    if options.kernels and given:
        flag = "--" + given[0].replace("_", "-")
        raise InputError(f"{flag} is for the sensor, and --kernels exports single kernels; leave one of the two out.")
    if not options.kernels and options.allow_uncertified:
        raise InputError("a sensor is made of a certified table only; --allow-uncertified goes with --kernels.")
    if not options.kernels and options.variant != "lean":
        raise InputError("a sensor has one form; --variant goes with --kernels.")


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
    cmake, zephyr, kconfig = (remark + template(file, prefix) for file in ("CMakeLists.txt", "zephyr.cmake", "Kconfig"))
    return {
        "CMakeLists.txt": cmake.replace("@SOURCES@", "\n".join(f"  {path}" for path in sources)),
        "zephyr/CMakeLists.txt": zephyr.replace("@SOURCES@", "\n".join(f"    ../{path}" for path in sources)),
        "zephyr/Kconfig": kconfig,
        "zephyr/module.yml": remark + f"name: {name}\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n",
        "library.json": json_text(library),
    }


def _with_warning(data: dict[str, Any], warning: Sequence[str]) -> dict[str, Any]:
    return {"warning": warning[0], **data} if warning else data


def _marked(markdown: str, warning: Sequence[str]) -> str:
    return "".join(f"**{line}**\n\n" for line in warning) + markdown
