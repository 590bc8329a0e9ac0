"""Write a package: what every one has, the manifest that lists all files, and the folder, whole or not at all.

A package carries kernels that are not sensorsim's own as data (`kernel_sources/kernels.json`, see
`sensorsim.language.ir_json`), and the Python files beside it say where they come from.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import (
    cannot_write,
    check_folder_target,
    check_takes_files,
    fill,
    read_bounded,
    temporary_folder,
)
from sensorsim.codegen.compliance import MANIFEST, licence_text, misra_report, sbom, tool_version
from sensorsim.codegen.golden import golden_json, golden_vectors, kernel_selftest
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.rendering import json_text, sha256, template
from sensorsim.language.c import helpers
from sensorsim.language.c.comments import comment
from sensorsim.language.c.declarations import Table
from sensorsim.language.c.identifiers import Names
from sensorsim.language.ir import Apply
from sensorsim.language.ir_json import SHIPPED, kernels_json
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.language.load import FILE, files_behind, shipped
from sensorsim.language.parse import LanguageError
from sensorsim.language.primitive import Primitive
from sensorsim.machine.targets import SHOWN_FLAGS, compiler_version

SCHEMA = 4
OWN_HASH = "sha256_of_this_file_without_this_line"
MOST_BYTES = 1 << 26  # of any file of a package
FOLDER = "kernel_sources"  # of a package: what its own kernels are made from
DATA = f"{FOLDER}/kernels.json"
LANGUAGE = ("ir", "parse", "parse_values", "types", "primitive", "primitives", "c.helpers")  # give a kernel its meaning
OWN = "sensorsim."


@dataclass(frozen=True)
class KernelSources:
    """Where the kernels of a package come from."""

    records: list[dict[str, str]]  # for the manifest: module, file and hash of each source
    copies: dict[str, str]  # the files that the package carries
    functions: dict[str, dict[str, str]]  # by C function: its kernel, and the file of one that is carried
    places: dict[Path, str]  # the sources that are carried, and their names in the package


def kernel_sources(kernels: Sequence[Kernel], names: Names, as_data: bool = True) -> KernelSources:
    """Collect the sources of the kernels and of all that they call; `as_data` carries the kernels as data too."""
    places = _carried(kernels)
    modules = {name: Path(str(import_module(name).__file__)) for name in (f"{OWN}language.{one}" for one in LANGUAGE)}
    modules[f"{OWN}language.c.arithmetic"] = Path(str(helpers.__file__)).with_name("arithmetic.h")
    modules |= {
        one.declared.__module__: one.path for one in reachable(list(kernels)) if one.path.resolve() not in places
    }
    if any(name.startswith(f"{OWN}kernels.") for name in modules):
        from sensorsim.kernels import formats

        modules[formats.__name__] = Path(str(formats.__file__))
    texts = {name: path.read_text("utf-8") for path, name in places.items()}
    sources = [(name, path.name, path.read_text("utf-8")) for name, path in sorted(modules.items())]
    sources += [(Path(name).stem, name, text) for name, text in sorted(texts.items())]
    records = [{"module": module, "file": file, "sha256": sha256(text)} for module, file, text in sources]
    functions = {}
    for kernel in kernels:
        copy = places.get(kernel.home.resolve())
        functions[names.functions[kernel]] = (
            {"kernel": kernel.name, "file": copy} if copy else {"kernel": kernel.qualified}
        )
    if places and as_data:
        homes = {one.at.file: places[_home(one)] for one in _own_parts(kernels)}
        own = [kernel for kernel in kernels if kernel.home.resolve() in places]
        texts[DATA] = kernels_json(own, homes, shipped())
    return KernelSources(records, texts, functions, places)


def _carried(kernels: Sequence[Kernel]) -> dict[Path, str]:
    """Return the sources that a package carries, and their names in it: all that are not sensorsim's own."""
    places: dict[Path, str] = {}
    folders: list[Path] = []
    for one in (*kernels, *_own_parts(kernels)):
        path = _home(one)
        if path in places or (isinstance(one, Kernel) and one.module.startswith(OWN)):
            continue
        if not path.is_file():
            raise InputError(f"kernel {one.name} is in no file, so a package cannot carry it; write it to one.")
        if path.parent not in folders:
            folders.append(path.parent)
        place = folders.index(path.parent)
        home = FOLDER if place == 0 else f"{FOLDER}/folder{place + 1}"
        for file in files_behind(path):
            places.setdefault(file, f"{home}/{file.relative_to(path.parent).as_posix()}")
    return places


def _home(one: Kernel | Primitive) -> Path:
    """Return the file whose module declares a kernel or primitive."""
    return (one.home if isinstance(one, Kernel) else Path(one.at.file)).resolve()


def _own_parts(kernels: Iterable[Kernel]) -> Iterator[Kernel | Primitive]:
    """Yield the kernels and primitives that these are made of and that are not sensorsim's own."""
    for kernel in reachable(list(kernels)):
        if not kernel.module.startswith(OWN):
            yield kernel
            for node in kernel.nodes:
                if isinstance(node, Apply) and SHIPPED.get(node.primitive.name) is not node.primitive:
                    yield node.primitive


def facts(
    kernels: Sequence[Kernel], options: Options, tables: Sequence[Table], sources: KernelSources
) -> dict[str, Any]:
    """Return the part of a manifest that every package has: all that is needed to make it again."""

    def in_package(name: str) -> str:
        """Name a requested kernel of a file by the copy of the file in the package."""
        match = FILE.fullmatch(name)
        place = match and sources.places.get(Path(match["path"]).resolve())
        return name if not match or not place else place + (f":{match['names']}" if match["names"] else "")

    return {
        "schema_version": SCHEMA,
        "sensorsim": version("sensorsim"),
        "tools": {"compiler": compiler_version(), "cppcheck": tool_version()},
        "command": options.command,
        "parameters": {
            "kernels": [kernel.name for kernel in kernels],
            **options.parameters([in_package(name) for name in options.kernels]),
        },
        "functions": sources.functions,
        "kernel_sources": sources.records,
        "tables": {table.name: sha256(",".join(map(str, table.values))) for table in tables},
        "operations": {kernel.name: _operations(kernel) for kernel in kernels},
        "proved": {kernel.name: kernel.secrecy().verdict for kernel in kernels},
    }


def _operations(kernel: Kernel) -> dict[str, str]:
    """Return the number of operations of each class in one call, as polynomials in its lengths."""
    totals: dict[str, Any] = {}
    try:
        formula = kernel.formula()
    except LanguageError as error:  # rounds that depend on data have no polynomial
        return {"unknown": str(error)}
    for (_, operation), count in formula.items():
        totals[operation] = totals[operation] + count if operation in totals else count
    return {operation: str(count) for operation, count in sorted(totals.items())}


def banner_lines(options: Options, warning: Sequence[str] = ()) -> list[str]:
    """Return the lines that every generated file begins with."""
    return [options.command, f"SPDX-License-Identifier: {options.spdx}", *warning]


def banner_of(lines: Sequence[str]) -> str:
    return "".join(comment([line]) + "\n" for line in lines)


def finish(
    options: Options,
    kernels: Sequence[Kernel],
    names: Names,
    tables: Sequence[Table],
    texts: dict[str, str],
    measure: Callable[[Mapping[str, str]], tuple[dict[str, Any], dict[str, Any]]],
    readme: str,
    own: dict[str, Any],
    warning: Sequence[str] = (),
    as_data: bool = True,
) -> dict[str, str]:
    """Add what every package has: self-test, MISRA report, README, kernel sources, licence, manifest.

    `measure` returns the values of the template `readme` and what the manifest says of sizes; `own` is the package's
    part of the manifest.
    """
    banner, vectors = banner_of(banner_lines(options, warning)), golden_vectors(kernels)
    mark_json = {"warning": warning[0]} if warning else {}
    golden = {"schema_version": SCHEMA, "vectors": golden_json(vectors, names)}
    texts |= kernel_selftest(vectors, names, banner)
    texts["test/main.c"] = banner + template("main.c", names.prefix)
    texts["test/golden.json"] = json_text(mark_json | golden)
    with ThreadPoolExecutor(1) as pool, temporary_folder() as folder:  # both wait for other programs
        fill(Path(folder), texts)
        checking = pool.submit(misra_report, Path(folder))
        values, sizes = measure(texts)
        misra, findings = checking.result()
    compiler, mark = compiler_version(), f"<!-- {options.command} -->\n"
    values |= {"vectors": len(vectors), "macro": names.prefix.upper(), "compiler": f"{compiler}, {SHOWN_FLAGS}"}
    texts["MISRA.md"] = mark + "".join(f"**{line}**\n\n" for line in warning) + misra
    texts["README.md"] = mark + template(readme, names.prefix, **values)
    sources = kernel_sources(kernels, names, as_data)
    data = mark_json | facts(kernels, options, tables, sources) | own
    data |= {"sizes": {"compiler": compiler, "flags": SHOWN_FLAGS, **sizes}, "misra_findings": findings}
    name = f"{names.prefix}{'sensor' if names.private else 'kernels'}"
    return with_manifest(texts | sources.copies, data, options, name, "".join(f". {line}" for line in warning))


def with_manifest(
    texts: dict[str, str], data: dict[str, Any], options: Options, name: str, remark: str = ""
) -> dict[str, str]:
    """Add the licence, the bill of materials, and the manifest with the hashes of all other files."""
    made = dict(texts)
    made["LICENSE"] = licence_text(options.spdx)
    made[f"{name}.spdx.json"] = sbom(made, options.spdx, version("sensorsim"), name, options.command + remark)
    made[MANIFEST] = signed_manifest({**data, "files": {path: sha256(text) for path, text in sorted(made.items())}})
    return dict(sorted(made.items()))


def signed_manifest(data: Mapping[str, Any]) -> str:
    """Return the text of a manifest, which ends with the hash of all that is before it."""
    rest = {key: value for key, value in data.items() if key != OWN_HASH}
    return json_text({**rest, OWN_HASH: sha256(json_text(rest))})


def write_folder(out: Path, texts: Mapping[str, str]) -> None:
    """Write the files beside `out` and rename the whole folder; an earlier package there is replaced."""
    check_folder(out)
    beside: Path | None = None
    try:
        beside = Path(tempfile.mkdtemp(dir=out.absolute().parent, prefix=f".{out.name[:40]}."))
        fill(beside, texts)
        beside.chmod(0o755)
        if out.exists():
            old = beside.with_name(beside.name + ".old")
            try:
                out.rename(old)
                beside.rename(out)
            finally:  # Ctrl-C between the two leaves the earlier package where it was
                if old.exists() and not out.exists():
                    old.rename(out)
                shutil.rmtree(old, ignore_errors=True)
        else:
            beside.rename(out)
    except OSError as error:
        raise cannot_write(out, error) from None
    finally:
        if beside is not None and beside.exists():
            shutil.rmtree(beside, ignore_errors=True)


def check_folder(out: Path) -> None:
    """Refuse a place that no package can be written to, before anything is made.

    A folder may be replaced when it is empty or an earlier package with nothing else in it but what make built.
    """
    check_folder_target(out)
    if out.is_symlink():
        raise InputError(f"{out} is a link; give the folder itself.")
    parent = out.absolute().parent
    if not out.exists() and not parent.is_dir():
        why = "Not a directory" if parent.exists() else "there is no such place to write to"
        raise InputError(f"cannot write {out}: {why}; give a folder in a place you can write to.")
    check_takes_files(parent, out)
    if not out.exists():
        return
    try:
        manifest = json.loads(read_bounded(out / MANIFEST, MOST_BYTES))
        hashes = dict(manifest["files"].items()) if manifest["sensorsim"] else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):  # no manifest of a package
        hashes = {}
    known = {*hashes, MANIFEST} if hashes else set()
    present = []
    try:
        for path in files_in(out, _raise):  # up to the first other file: a folder of others may have no end
            if path not in known and not (known and path.startswith("build/")):
                raise InputError(f"{out} has other files in it ({path}); give a new or empty folder.")
            present.append(path)
    except OSError as error:
        raise InputError(f"cannot read {out}: {error.strerror}; give a new or empty folder.") from None
    edited = [path for path in present if path in hashes and sha256((out / path).read_bytes()) != hashes[path]]
    if edited:
        raise InputError(
            f"{out / edited[0]} was edited since the export; give a new folder, or remove the edited file."
        )


def files_in(folder: Path, onerror: Callable[[OSError], object] | None = None) -> Iterator[str]:
    """Yield the path in the package of every file and link below the folder, hidden ones too."""
    for where, folders, names in os.walk(folder, onerror=onerror):
        links = [name for name in folders if (Path(where) / name).is_symlink()]
        for name in sorted((*names, *links)):
            yield (Path(where) / name).relative_to(folder).as_posix()


def _raise(error: OSError) -> None:
    raise error
