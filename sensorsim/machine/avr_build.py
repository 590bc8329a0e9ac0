"""Machine code for an AVR: by the clang of ziglang with a small runtime of ours, or by an avr-gcc that is installed."""

import shutil
from collections.abc import Sequence
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from sensorsim.errors import InputError
from sensorsim.machine.targets import AVR, OPTIMIZE, SECTIONS, WARNINGS, compiler_version, run_compiler, zig_cc

CLANG, GCC = "clang", "avr-gcc"


def compile_avr(sources: Sequence[Path], include: Sequence[Path], entry: str, out: Path, compiler: str = CLANG) -> Path:
    """Compile and link one function with all it needs; warnings are errors."""
    script = out.with_suffix(".ld")
    script.write_text((files("sensorsim.machine") / "avr.ld").read_text("utf-8").replace("@ENTRY@", entry))
    link = ["-nostdlib", "-Wl,--gc-sections", f"-Wl,-T,{script}", f"-Wl,--entry={entry}"]
    folders = [f"-I{folder}" for folder in include]
    if compiler == GCC:
        # GNU C, as only there a table can stay in flash (__flash); clang puts tables into data memory.
        flags = ["-std=gnu99", *OPTIMIZE[1:], f"-mmcu={AVR.mcpu}", *SECTIONS[:2], *WARNINGS[:2]]
        run_compiler([need_gcc(), *flags, *folders, *map(str, sources), *link, "-lgcc", "-o", str(out)])
        return out
    clang, own = [*zig_cc(), *AVR.clang], files("sensorsim.machine")
    with as_file(own / "avr_clang.h") as before, as_file(own / "avr_runtime.S") as runtime:
        flags = [*OPTIMIZE, *SECTIONS, *WARNINGS]
        made = [out.with_name(f"{out.stem}-{place}.o") for place in range(len(sources))]
        for source, made_file in zip(sources, made, strict=True):
            run_compiler([*clang, *flags, "-include", str(before), *folders, "-c", str(source), "-o", str(made_file)])
        run_compiler([*clang, "-static", *link, *map(str, made), str(runtime), "-o", str(out)])
    return out


def avr_compiler(compiler: str = CLANG) -> str:
    """What stands beside every figure that depends on the compiler."""
    if compiler == CLANG:
        return compiler_version()
    return run_compiler([need_gcc(), "--version"]).splitlines()[0]


def usual_compiler() -> str:
    """avr-gcc where it is installed: clang for AVR makes branches of some choices that are written without one."""
    return GCC if shutil.which(GCC) else CLANG


@cache
def need_gcc() -> str:
    path = shutil.which(GCC)
    if path is None:
        raise InputError("avr-gcc is not installed; install it (Debian: gcc-avr), or leave it to clang by ziglang.")
    return path
