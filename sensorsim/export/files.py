"""What every package has: templates filled in, JSON in one spelling, the manifest that lists all the rest."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from sensorsim.export.choose import Options
from sensorsim.export.licence import licence_text
from sensorsim.export.misra import tool_version
from sensorsim.export.origins import Origins, sha256
from sensorsim.export.sbom import sbom
from sensorsim.language.c.comments import with_prefix
from sensorsim.language.c.declarations import Table
from sensorsim.language.kernel import Kernel
from sensorsim.language.load import FILE
from sensorsim.language.parse import LanguageError
from sensorsim.machine.targets import compiler_version

SCHEMA = 4
MANIFEST = "MANIFEST.json"


def template(name: str, prefix: str = "ss_", fill: Mapping[str, str] | None = None) -> str:
    """A template with its names under the package's prefix and @KEY@ replaced."""
    text = with_prefix((files("sensorsim.export") / "templates" / name).read_text("utf-8"), prefix)
    for key, value in (fill or {}).items():
        text = text.replace(f"@{key}@", value)
    return text


def json_text(data: Any) -> str:
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


def facts(kernels: Sequence[Kernel], options: Options, tables: Sequence[Table], sources: Origins) -> dict[str, Any]:
    """What the manifest says of where the package comes from: all that is needed to make it again."""
    return {
        "schema_version": SCHEMA,
        "sensorsim": version("sensorsim"),
        "tools": {"compiler": compiler_version(), "cppcheck": tool_version()},
        "command": options.command,
        "parameters": {
            "kernels": [kernel.name for kernel in kernels],
            "asked": [_in_package(name, sources) for name in options.kernels],
            "variant": options.variant,
            "noise": options.noise.name if options.noise else None,
            "encoder": options.encoder.name if options.encoder else None,
            "sketch": options.sketch.name if options.sketch else None,
            "budget_epsilon": options.budget_epsilon,
            "budget_days": options.budget_days,
            "reserve": options.reserve,
            "packet_numbers": list(options.packet_numbers),
            "prefix": options.prefix,
            "spdx": options.spdx,
            "allow_uncertified": options.allow_uncertified,
        },
        "functions": sources.functions,
        "kernel_sources": sources.records,
        "tables": {table.name: sha256(",".join(map(str, table.values))) for table in tables},
        "operations": {kernel.name: _operations(kernel) for kernel in kernels},
        "proved": {kernel.name: kernel.secrecy().verdict for kernel in kernels},
    }


def with_manifest(
    texts: dict[str, str], data: dict[str, Any], options: Options, name: str, remark: str = ""
) -> dict[str, str]:
    """All files: those given, the licence, the bill of materials, and the manifest with the hashes of the others."""
    made = dict(texts)
    made["LICENSE"] = licence_text(options.spdx)
    made[f"{name}.spdx.json"] = sbom(made, options.spdx, version("sensorsim"), name, options.command + remark)
    data = {**data, "files": {path: sha256(text) for path, text in sorted(made.items())}}
    data["sha256_of_this_file_without_this_line"] = sha256(json_text(data))
    made[MANIFEST] = json_text(data)
    return dict(sorted(made.items()))


def _in_package(name: str, sources: Origins) -> str:
    """A kernel as it was asked for; where that is by a file, the copy of it in the package."""
    match = FILE.fullmatch(name)
    if match is None:
        return name
    place = sources.places.get(Path(match["path"]).resolve())
    return name if place is None else place + (f":{match['names']}" if match["names"] else "")


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
