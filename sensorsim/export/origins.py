"""The Python sources behind a package: recorded by hash, and carried along where they are not sensorsim's own."""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sensorsim.errors import FailedProofError, InputError
from sensorsim.export.vet import MOST_BYTES, complaint, load_vetted
from sensorsim.files import read_bounded
from sensorsim.language.c.names import Names
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.language.load import files_behind, kernels_of, load_file, shipped

FOLDER = "kernel_sources"  # of a package: what its own kernels are made from
LANGUAGE = (
    "ir",
    "parse",
    "parse_values",
    "types",
    "primitive",
    "primitives",
    "c.helpers",
)  # what gives a kernel its meaning
OWN = "sensorsim."
MEANING = ("sensorsim.language.", "sensorsim.kernels.")  # where the modules of a manifest's sources are


def sha256(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


@dataclass(frozen=True)
class Origins:
    """`records` for the manifest, `copies` for the package, and where each kernel that was asked for comes from."""

    records: list[dict[str, str]]
    copies: dict[str, str]
    functions: dict[str, dict[str, str]]  # by C function
    places: dict[Path, str]  # of the copies: the file as it was given, and its name in the package


def origins(kernels: Sequence[Kernel], names: Names) -> Origins:
    """Where the kernels and all that they call come from."""
    names_of_ours = [f"sensorsim.language.{name}" for name in LANGUAGE]
    modules = {name: Path(str(import_module(name).__file__)) for name in names_of_ours}
    paths: dict[Path, str] = {}  # of outside kernels: file in the package
    folders: list[Path] = []
    for kernel in kernels:
        if kernel.module.startswith(OWN):
            continue
        path = kernel.home.resolve()
        if not path.is_file():
            raise InputError(f"kernel {kernel.name} is in no file, so a package cannot carry it; write it to one.")
        if path.parent not in folders:
            folders.append(path.parent)
        place = folders.index(path.parent)
        home = FOLDER if place == 0 else f"{FOLDER}/folder{place + 1}"
        for file in files_behind(path):
            paths[file] = f"{home}/{file.relative_to(path.parent).as_posix()}"
    for part in reachable(list(kernels)):
        if part.path.resolve() not in paths:
            modules[part.declared.__module__] = part.path
    if any(name.startswith("sensorsim.kernels.") for name in modules):
        from sensorsim.kernels import formats

        modules[formats.__name__] = Path(str(formats.__file__))
    records = [_record(name, path.name, path.read_text("utf-8")) for name, path in sorted(modules.items())]
    copies = {name: path.read_text("utf-8") for path, name in paths.items()}
    records += [_record(Path(name).stem, name, text) for name, text in sorted(copies.items())]
    functions = {}
    for kernel in kernels:
        copy = paths.get(kernel.home.resolve())
        functions[names.functions[kernel]] = {"kernel": kernel.name, "file": copy} if copy else {
            "kernel": kernel.qualified
        }  # fmt: skip
    return Origins(records, copies, functions, paths)


def kernels_behind(folder: Path, manifest: dict[str, Any], trust: bool) -> list[Kernel]:
    """The kernels of a package, from sensorsim and from the copies it carries; an error where a source differs.

    A copy that does more than declare kernels is loaded only with `trust`.
    """
    copies = [record["file"] for record in manifest["kernel_sources"] if record["file"].startswith(f"{FOLDER}/")]
    for record in manifest["kernel_sources"]:
        own = record["file"] in copies
        if own and record["file"] not in manifest["files"]:
            raise FailedProofError(
                f"the manifest has {record['file']!r} among its sources and not its files; export again."
            )
        path = folder / record["file"] if own else _module_file(record["module"], folder)
        if not path.is_file() or _sha256_of(path) != record["sha256"]:
            raise FailedProofError(
                f"{record['file']} is not what {folder} was made from: its hash is not the manifest's; export the "
                "package again."
            )
        wrong = complaint(path) if own and not trust else None
        if wrong:
            raise InputError(f"{wrong}, and to load it is to run it; give --trust if you know where it is from.")
    found = []
    for origin in manifest["functions"].values():
        name, file = origin["kernel"], origin.get("file")
        if file and file not in copies:
            raise FailedProofError(f"the manifest names no hash of {file}, where {name} is to be; export again.")
        with _without_bytecode():
            load = load_file if trust else load_vetted
            known = kernels_of(load(folder / file)) if file else shipped()
        if name not in known:
            raise FailedProofError(f"{folder} has the kernel {name}, which is not there; export the package again.")
        found.append(known[name])
    return found


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """Python keeps what it compiled beside a source: that would be a file more in the package."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _module_file(module: str, folder: Path) -> Path:
    """A module of sensorsim's own, found and not imported: to import one that a manifest names would be to run it."""
    try:
        spec = find_spec(module) if module.startswith(MEANING) else None
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None or not spec.origin:
        raise FailedProofError(
            f"{folder} is made from the module {module!r}, which sensorsim has not; export it again."
        )
    return Path(spec.origin)


def _sha256_of(path: Path) -> str | None:
    try:
        text = read_bounded(path, MOST_BYTES).decode("utf-8")
        return sha256(text.replace("\r\n", "\n").replace("\r", "\n"))  # as it was read when it was recorded
    except ValueError:  # no text
        return None


def _record(module: str, file: str, text: str) -> dict[str, str]:
    return {"module": module, "file": file, "sha256": sha256(text)}
