"""How large the code of each kernel is on each core: object files only, so that nothing needs to be linked."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from sensorsim.export.elf import read_object
from sensorsim.export.targets import TARGETS, compile_objects
from sensorsim.language.c.names import Names
from sensorsim.language.kernel import reachable


def code_sizes(texts: Mapping[str, str], names: Names) -> dict[str, dict[str, dict[str, object]]]:
    """By C function and core: bytes of code and constants, and what of the compiler's runtime it calls."""
    sizes: dict[str, dict[str, dict[str, object]]] = {names.functions[kernel]: {} for kernel in names.entries}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in texts.items():
            if path.startswith(("src/", "include/")):
                (folder / path).parent.mkdir(exist_ok=True)
                (folder / path).write_text(text, "utf-8")
        sources = sorted((folder / "src").glob("*.c"))
        for target in TARGETS.values():
            objects = compile_objects(target, sources, [folder / "include", folder / "src"], folder)
            contents = {
                source.stem: read_object(file.read_bytes()) for source, file in zip(sources, objects, strict=True)
            }
            for kernel in names.entries:
                parts = reachable([kernel])
                own = {names.functions[part] for part in parts}
                mine = [contents[unit] for part in parts if (unit := names.units[part]) in contents]
                sections = {section: size for found, _ in mine for section, size in found.items()}
                size = sum(length for section, length in sections.items() if section.split(".")[-1] in own)
                runtime = {name for _, undefined in mine for name in undefined if not name.startswith(names.prefix)}
                sizes[names.functions[kernel]][target.name] = {"code_bytes": size, "runtime": sorted(runtime)}
    return sizes
