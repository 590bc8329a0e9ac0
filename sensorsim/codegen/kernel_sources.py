"""The kernels behind a package: carried as data where they are not sensorsim's own, with their sources for people.

`kernel_sources/kernels.json` (see `sensorsim.language.ir_json`) is what a package's own kernels are read from, and the
Python files beside it say where they come from. Reading a package runs none of these files, unless a kernel uses a
primitive that is declared in one and the user trusts the package. A package of sensorsim 0.2.0 has no such data; its
Python files are then read as far as they can be without being run.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.files import read_bounded
from sensorsim.language.c.identifiers import Names
from sensorsim.language.ir import Apply
from sensorsim.language.ir_json import SHIPPED, kernels_json
from sensorsim.language.ir_reader import MOST_BYTES, read_kernels
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.language.load import files_behind, kernels_of, load_file, shipped
from sensorsim.language.primitive import Primitive
from sensorsim.language.static_reader import declared_kernels

FOLDER = "kernel_sources"  # of a package: what its own kernels are made from
DATA = f"{FOLDER}/kernels.json"
LANGUAGE = ("ir", "parse", "parse_values", "types", "primitive", "primitives", "c.helpers")  # give a kernel its meaning
OWN = "sensorsim."


class NeedsTrustError(InputError):
    """To read the package, Python of it would have to be run."""


def sha256(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


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
    modules |= {
        one.declared.__module__: one.path for one in reachable(list(kernels)) if one.path.resolve() not in places
    }
    if any(name.startswith(f"{OWN}kernels.") for name in modules):
        from sensorsim.kernels import formats

        modules[formats.__name__] = Path(str(formats.__file__))
    texts = {name: path.read_text("utf-8") for path, name in places.items()}
    records = [_record(name, path.name, path.read_text("utf-8")) for name, path in sorted(modules.items())]
    records += [_record(Path(name).stem, name, text) for name, text in sorted(texts.items())]
    functions = {}
    for kernel in kernels:
        copy = places.get(kernel.home.resolve())
        functions[names.functions[kernel]] = (
            {"kernel": kernel.name, "file": copy} if copy else {"kernel": kernel.qualified}
        )
    if places and as_data:
        files = {one.at.file: places[_home(one)] for one in _own_parts(kernels)}
        own = [kernel for kernel in kernels if kernel.home.resolve() in places]
        texts[DATA] = kernels_json(own, files, shipped())
    return KernelSources(records, texts, functions, places)


def package_kernels(
    folder: Path, manifest: dict[str, Any], trust: bool
) -> tuple[list[Kernel], dict[Path, dict[str, Kernel]]]:
    """Return the kernels of a package, and those that it carries by the path of their file and their name."""
    _check_shipped(folder, manifest["kernel_sources"])
    carried = _from_data(folder, trust) if DATA in manifest["files"] else {}
    found = []
    for origin in manifest["functions"].values():
        name, file = origin["kernel"], origin.get("file")
        if file and (file not in manifest["files"] or not file.startswith(f"{FOLDER}/")):
            raise FailedProofError(f"the manifest names no file {file!r}, where {name} is to be; export again.")
        if file and DATA not in manifest["files"]:
            carried.setdefault(folder / file, _from_python(folder / file, trust))
        known = carried.get(folder / file, {}) if file else shipped()
        if name not in known:
            raise FailedProofError(f"{folder} has the kernel {name}, which is not there; export the package again.")
        found.append(known[name])
    return found, carried


def _check_shipped(folder: Path, records: list[dict[str, str]]) -> None:
    """Refuse a package that was made from other kernels than those that ship here; nothing is imported for it."""
    import sensorsim.kernels as package

    for record in records:
        if record["module"].startswith(f"{OWN}kernels."):
            path = Path(package.__path__[0], f"{record['module'].rpartition('.')[2]}.py")
            if not path.is_file() or sha256(path.read_text("utf-8")) != record["sha256"]:
                raise FailedProofError(
                    f"{record['file']} is not what {folder} was made from: its hash is not the manifest's; export the "
                    "package again."
                )


def _from_data(folder: Path, trust: bool) -> dict[Path, dict[str, Kernel]]:
    def place(file: str) -> Path:
        if not file.startswith(f"{FOLDER}/") or ".." in Path(file).parts or not (folder / file).is_file():
            raise InputError(f"the kernels' data name {file!r}, which is no source in the package; export it again.")
        return folder / file

    def primitive(file: str, name: str) -> Primitive:
        if not trust:
            raise NeedsTrustError(
                f"{Path(file).name} brings the primitive {name} with Python and C of its own, and to load it is to run "
                "it; give --trust if you know where it is from."
            )
        own = [one for one in vars(load_file(place(file))).values() if isinstance(one, Primitive) and one.name == name]
        if not own:
            raise InputError(f"{file} declares no primitive {name}; export the package again.")
        return own[0]

    try:
        kernels = read_kernels(read_bounded(folder / DATA, MOST_BYTES), place, shipped(), primitive)
    except NeedsTrustError:
        raise
    except InputError as error:
        raise FailedProofError(f"{folder / DATA} was altered: {error}") from None
    found: dict[Path, dict[str, Kernel]] = {}
    for key, kernel in kernels.items():
        if "#" not in key:
            found.setdefault(kernel.path, {})[kernel.name] = kernel
    return found


def _from_python(path: Path, trust: bool) -> dict[str, Kernel]:
    """Return the kernels of a file of a package that has no data: run where it is trusted, else read."""
    return kernels_of(load_file(path)) if trust else declared_kernels(path)


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


def _record(module: str, file: str, text: str) -> dict[str, str]:
    return {"module": module, "file": file, "sha256": sha256(text)}
