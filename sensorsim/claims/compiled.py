"""Kernels as C on this machine: compiled now, run on random arguments, set beside the same kernels in Python."""

import ctypes
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim.files import temporary_folder

if TYPE_CHECKING:
    from sensorsim.language import Kernel

WORDS = {
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
}
CALLS = 20  # of each kernel, at lengths that its checks take


def compiler() -> str | None:
    """A C compiler of this machine, if there is one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def calls_that_agree(kernels: Sequence["Kernel"], command: str) -> tuple[int, int]:
    """Calls that give the same bits in every array, and calls that were made; 0 of 0 where nothing compiles."""
    from sensorsim.language.arguments import arguments, lengths_to_check
    from sensorsim.language.c.translation_units import c_sources

    rng, same, made = random.Random(0), 0, 0
    with temporary_folder() as folder:
        library = _build(folder, c_sources(list(kernels), "ss_", (), ""), command)
        for kernel in kernels:
            for lengths in lengths_to_check(kernel):
                for _ in range(CALLS):
                    given = arguments(kernel, lengths, lambda name, lo, hi: rng.randint(lo, hi))
                    in_c = _called(getattr(library, f"ss_{kernel.name}"), kernel, given)
                    kernel(*given.values())
                    same += in_c == {name: given[name] for name in in_c}
                    made += 1
    return same, made


def _build(folder: str, files: dict[str, str], command: str) -> Any:
    for name, text in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sources = sorted(str(path) for path in Path(folder).rglob("*.c"))
    library = str(Path(folder, "kernels.so"))
    flags = ["-std=c99", "-O2", f"-I{folder}/include", "-shared", "-fPIC"]
    subprocess.run([command, *flags, "-o", library, *sources], check=True, capture_output=True)
    return ctypes.CDLL(library)


def _called(function: Any, kernel: "Kernel", given: dict[str, Any]) -> dict[str, list[int]]:
    """Every array after the call, by name."""
    passed: dict[str, Any] = {}
    for name, value in given.items():
        kind: Any = kernel.parameters[name]
        if name in kernel.arrays:
            passed[name] = (WORDS[getattr(kind.element, "storage", "u32")] * len(value))(*value)
        else:
            passed[name] = WORDS[getattr(kind, "storage", "u32")](value)
    function(*passed.values())
    return {name: list(passed[name]) for name in kernel.arrays}
