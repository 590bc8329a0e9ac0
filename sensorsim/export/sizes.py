"""How large the code of each kernel is on each core: object files only, so that nothing needs to be linked."""

from collections.abc import Mapping
from pathlib import Path

from sensorsim.export.write import fill
from sensorsim.files import temporary_folder
from sensorsim.language.c.declarations import wrapper
from sensorsim.language.c.identifiers import Names
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.machine.elf import read_object
from sensorsim.machine.targets import SHOWN, TARGETS, Target, compile_objects

Object = tuple[dict[str, int], set[str]]  # the sizes of its sections, and what it leaves to the linker
WRAPPER = "call_"  # in a private package, the name of the function that calls a kernel


def code_sizes(texts: Mapping[str, str], names: Names) -> dict[str, dict[str, dict[str, object]]]:
    """By C function and core: bytes of code, and what of the compiler's runtime it calls.

    A private kernel is measured as one call from a function of its own, whatever is inlined there.
    """
    sizes: dict[str, dict[str, dict[str, object]]] = {names.functions[kernel]: {} for kernel in names.entries}
    with temporary_folder() as name:
        folder = Path(name)
        fill(folder, _c_files(texts) | (_wrappers(names) if names.private else {}))
        sources = sorted((folder / "calls" if names.private else folder / "src").glob("*.c"))
        for target in (TARGETS[name] for name in SHOWN):
            contents = _objects(target, sources, folder)
            for kernel in names.entries:
                parts = reachable([kernel])
                own = {function for part in parts for function in (names.functions[part], _caller(part, names))}
                units = [_caller(kernel, names)] if names.private else [names.units[part] for part in parts]
                mine = [contents[unit] for unit in units if unit in contents]
                sections = {section: size for found, _ in mine for section, size in found.items()}
                size = sum(length for section, length in sections.items() if section.split(".")[-1] in own)
                runtime = {name for _, undefined in mine for name in undefined if not name.startswith(names.prefix)}
                sizes[names.functions[kernel]][target.name] = {"code_bytes": size, "runtime": sorted(runtime)}
    return sizes


def file_sizes(texts: Mapping[str, str], prefix: str) -> dict[str, dict[str, dict[str, object]]]:
    """By file below src/ and core: bytes of code, of constants, of variables, and what of the runtime it calls."""
    sizes: dict[str, dict[str, dict[str, object]]] = {}
    with temporary_folder() as name:
        folder = Path(name)
        fill(folder, _c_files(texts))
        sources = sorted((folder / "src").glob("*.c"))
        for target in (TARGETS[name] for name in SHOWN):
            for unit, (sections, undefined) in _objects(target, sources, folder).items():
                code = {section: length for section, length in sections.items() if section.startswith(".text")}
                variables = {s: length for s, length in sections.items() if s.startswith((".data", ".bss"))}
                sizes.setdefault(f"src/{unit}.c", {})[target.name] = {
                    "code_bytes": sum(code.values()),
                    "constant_bytes": sum(l for s, l in sections.items() if s.startswith(".rodata")),
                    "variable_bytes": sum(variables.values()),
                    "runtime": sorted(name for name in undefined if not name.startswith(prefix)),
                }
    return sizes


def _c_files(texts: Mapping[str, str]) -> dict[str, str]:
    return {path: text for path, text in texts.items() if path.startswith(("src/", "include/"))}


def _wrappers(names: Names) -> dict[str, str]:
    """For each private kernel a file with one external function that calls it."""
    return {
        f"calls/{_caller(kernel, names)}.c": f'#include "{names.header(kernel)}"\n'
        + wrapper(kernel, names, _caller(kernel, names))
        for kernel in names.entries
    }


def _caller(kernel: Kernel, names: Names) -> str:
    return f"{WRAPPER}{names.functions[kernel]}"


def _objects(target: Target, sources: list[Path], folder: Path) -> dict[str, Object]:
    """The object file of each source, by the source's name."""
    objects = compile_objects(target, sources, [folder / "include", folder / "src"], folder)
    return {source.stem: read_object(file.read_bytes()) for source, file in zip(sources, objects, strict=True)}
