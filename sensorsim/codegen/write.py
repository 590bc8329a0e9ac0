"""Write a package: templates, JSON, the manifest that lists all files, and the folder, whole or not at all."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from sensorsim._util.errors import InputError
from sensorsim._util.files import (
    cannot_write,
    check_folder_target,
    check_takes_files,
    fill,
    read_bounded,
    temporary_folder,
)
from sensorsim.codegen.kernel_sources import KernelSources, sha256
from sensorsim.codegen.misra import tool_version
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.sbom import licence_text, sbom
from sensorsim.language.c.comments import with_prefix
from sensorsim.language.c.declarations import Table
from sensorsim.language.kernel import Kernel
from sensorsim.language.load import FILE
from sensorsim.language.parse import LanguageError
from sensorsim.machine.targets import compiler_version

SCHEMA = 4
MANIFEST = "MANIFEST.json"
OWN_HASH = "sha256_of_this_file_without_this_line"


def template(name: str, prefix: str = "ss_", fill: Mapping[str, str] | None = None) -> str:
    """Return a template with its names under the package's prefix and each @KEY@ replaced."""
    text = with_prefix((files("sensorsim.codegen") / "templates" / name).read_text("utf-8"), prefix)
    for key, value in (fill or {}).items():
        text = text.replace(f"@{key}@", value)
    return text


def json_text(data: Any) -> str:
    """Return data in the one JSON form that a package has."""
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


def facts(
    kernels: Sequence[Kernel], options: Options, tables: Sequence[Table], sources: KernelSources
) -> dict[str, Any]:
    """Return the part of a manifest that every package has: all that is needed to make it again."""
    return {
        "schema_version": SCHEMA,
        "sensorsim": version("sensorsim"),
        "tools": {"compiler": compiler_version(), "cppcheck": tool_version()},
        "command": options.command,
        "parameters": {
            "kernels": [kernel.name for kernel in kernels],
            **options.parameters([_in_package(name, sources) for name in options.kernels]),
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


def _in_package(name: str, sources: KernelSources) -> str:
    """Return a kernel as it was asked for; one of a file by the copy of the file in the package."""
    match = FILE.fullmatch(name)
    if match is None:
        return name
    place = sources.places.get(Path(match["path"]).resolve())
    return name if place is None else place + (f":{match['names']}" if match["names"] else "")


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


T = TypeVar("T")


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


def in_temporary_folder(texts: Mapping[str, str], use: Callable[[Path], T]) -> T:
    """Write the files to a temporary folder and return the result of `use` on it."""
    with temporary_folder() as name:
        fill(Path(name), texts)
        return use(Path(name))


def check_folder(out: Path) -> None:
    """Refuse a place that no package can be written to, before anything is made.

    A folder may be replaced when it is empty or an earlier package with nothing else in it but what make built.
    """
    check_folder_target(out)
    if out.is_symlink():
        raise InputError(f"{out} is a link; give the folder itself.")
    if not out.exists():
        parent = out.absolute().parent
        if not parent.is_dir():
            why = "Not a directory" if parent.exists() else "there is no such place to write to"
            raise InputError(f"cannot write {out}: {why}; give a folder in a place you can write to.")
    check_takes_files(out.absolute().parent, out)
    if not out.exists():
        return
    hashes = _earlier(out)
    known = {*hashes, MANIFEST} if hashes else set()
    present = []
    try:
        for path in _files_in(out):  # up to the first that is none of ours: a folder of others may have no end
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


def _earlier(out: Path) -> dict[str, str]:
    """Return the files of the package that is in the folder, with their hashes; none where there is none."""
    from sensorsim.codegen.manifest import MOST_BYTES

    try:
        manifest = json.loads(read_bounded(out / MANIFEST, MOST_BYTES))
        return dict(manifest["files"].items()) if manifest["sensorsim"] else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):  # which is none of ours
        return {}


def _files_in(folder: Path) -> Iterator[str]:
    """Yield the paths of all that is no folder below it, as they are found; OSError where one cannot be read."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            yield from (f"{entry.name}/{path}" for path in _files_in(Path(entry.path)))
        else:
            yield entry.name
