"""Declare the cores, one object each, and build exported code for them."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean, need
from sensorsim.machine.tools import run_tool

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
# Chosen by measurement of spof_lean at n = 14: unrolled by clang it took 281 instructions on the M4, not 210, and five
# times the flash; on the M0+ 347 against 348 instructions but 539 against 507 cycles; on K7 and RV32 nothing changed.
SHOWN_FLAGS = "-O2 -fno-unroll-loops"  # what every report names beside the compiler
OPTIMIZE = ("-std=c99", "-O2", "-fno-unroll-loops", "-fomit-frame-pointer", "-ffreestanding", "-g0")
SECTIONS = ("-ffunction-sections", "-fdata-sections", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables")
LINK = ("-static", "-nostdlib", "-Wl,--gc-sections")
RUNTIME = "-rtlib=compiler-rt"  # built by ziglang on its first use for a core, which takes some ten seconds
TRAP = ("-fsanitize=undefined", "-fsanitize-trap=undefined")


@dataclass(frozen=True)
class Target:
    """Describe a core: how code is compiled for it, and how it is recognised and emulated.

    Its table in tables/cpu has the rest: prices, and which operations take longer for some operands. To add a core, add
    a table and an entry of `COUNTED`.
    """

    name: str
    title: str
    triple: str
    mcpu: str
    cpu: str  # its table
    flags: tuple[str, ...] = ()  # of the compiler
    same_code: tuple[str, ...] = ()  # tables of cores that run the same code
    elf: tuple[str, ...] = ()  # names of a processor or an architecture in ELF files that mean this core
    model: str = ""  # of an Arm core: what unicorn calls it
    # Of a core that unicorn does not run: load a function and its counter, verify a kernel, name the compiler.
    load: Callable[..., tuple[Any, Any]] | None = None
    verify: Callable[..., dict[str, Any]] | None = None
    compiler: Callable[[], str] | None = None

    @property
    def family(self) -> str:
        """Return the instruction set: x86, thumb, riscv32, avr or msp430."""
        return self.triple.split("-")[0]

    @property
    def clang(self) -> list[str]:
        """Return the compiler's options for this core."""
        return ["-target", self.triple, f"-mcpu={self.mcpu}", *self.flags]


def _lazy(place: str) -> Callable[..., Any]:
    """Return a function that imports `module:function` of this package when it is called."""

    def call(*arguments: Any) -> Any:
        module, _, name = place.partition(":")
        return getattr(import_module(f"sensorsim.machine.{module}"), name)(*arguments)

    return call


HOST = "host"
ARM, RISCV = "thumb-freestanding-eabi", "riscv32-freestanding-none"
# The cores that `cost` counts on.
COUNTED = {
    target.name: target
    for target in (
        Target("k7", "AMD K7", "x86-freestanding-none", "athlon", "k7", elf=("x86",)),
        Target("cortex-m0plus", "Arm Cortex-M0+", ARM, "cortex_m0plus", "cortex-m0plus", model="CORTEX_M0",
               elf=("m0", "m0plus", "m0+", "v6-M", "v6S-M")),
        Target("cortex-m3", "Arm Cortex-M3", ARM, "cortex_m3", "cortex-m3", model="CORTEX_M3", elf=("m3", "v7-M")),
        Target("cortex-m4", "Arm Cortex-M4", ARM, "cortex_m4", "cortex-m4", model="CORTEX_M4", elf=("m4", "v7E-M"),
               same_code=("cortex-m4f",)),
        Target("cortex-m33", "Arm Cortex-M33", ARM, "cortex_m33", "cortex-m33", model="CORTEX_M33",
               elf=("m33", "v8-M.mainline")),
        Target("rv32imc", "RISC-V RV32IMC (Ibex)", RISCV, "generic_rv32+m+c", "ibex", elf=("rv32i",)),
        Target("ibex-large", "RISC-V, large Ibex", RISCV, "generic_rv32+m+c", "ibex-large"),
        Target("cv32e40p", "RISC-V RV32IMC (CV32E40P)", RISCV, "generic_rv32+m+c", "cv32e40p"),
        Target("rv32emc", "RISC-V RV32EMC (Ibex)", RISCV, "generic_rv32+e+m+c", "ibex", elf=("rv32em",)),
        Target("rv32ec", "RISC-V RV32EC (Ibex)", RISCV, "generic_rv32+e+c", "ibex", elf=("rv32e",)),
        Target("avr", "Microchip AVR (ATmega1284P)", "avr-freestanding-none", "atmega1284p", "avr",
               flags=("-Wno-avr-rtlib-linking-quirks",),  # clang asks for a chip to link with avr-libc, not linked here
               load=_lazy("avr:load_avr"), verify=_lazy("avr:verify_avr"), compiler=_lazy("avr:avr_compiler")),
        Target("msp430", "TI MSP430", "msp430-freestanding-none", "msp430", "msp430", load=_lazy("msp430:load_msp430"),
               flags=("-DSS_HW_MUL",)),  # MPY32 takes the same time for all operands
    )
}  # fmt: skip
TARGETS = {name: target for name, target in COUNTED.items() if target.load is None}  # those that unicorn runs
CORES = {name: target for name, target in COUNTED.items() if name in TARGETS or target.verify}  # those of `verify`
# The cores of a package's README and manifest: one of a kind, so that an export stays short and quick.
SHOWN = ("k7", "cortex-m0plus", "cortex-m3", "cortex-m4", "rv32imc")


def check_targets(names: Iterable[str]) -> list[str]:
    """Check names of targets; InputError with the known ones for an unknown one."""
    chosen = list(dict.fromkeys(names))
    if not any(chosen):
        raise InputError(f"no target is named; give some of {', '.join([HOST, *CORES])}.")
    for name in chosen:
        if name != HOST and name not in CORES:
            hint = did_you_mean(name, [HOST, *CORES])
            raise InputError(f"target {name!r} is not known{hint}; there are {', '.join([HOST, *CORES])}.")
    return chosen


def need_firmware_tools() -> None:
    """Check that the tools for machine code are installed; InputError names the extra."""
    need("ziglang", "unicorn", "capstone")


@cache
def compiler_version() -> str:
    """Return the version that is printed beside every figure that depends on the compiler."""
    need_firmware_tools()
    ziglang = [sys.executable, "-m", "ziglang"]
    clang = run_compiler([*ziglang, "cc", "--version"]).splitlines()[0].split(" (")[0]
    return f"{clang} by ziglang {run_compiler([*ziglang, 'version']).strip()}"


def name_compilers(names: Iterable[str]) -> str:
    """Name the compilers of these targets: one for all, and after it those of cores that have their own."""
    own = (COUNTED[name] for name in names if name in COUNTED)
    return "; ".join([compiler_version(), *(f"{core.name}: {core.compiler()}" for core in own if core.compiler)])


def compile_elf(
    target: Target, sources: Sequence[Path], include: Sequence[Path], entry: str, out: Path, options: Sequence[str] = ()
) -> Path:
    """Compile and link one function with all it needs; warnings are errors."""
    script = write_script("link.ld", entry, out)
    command = [*zig_cc(), *target.clang, *OPTIMIZE, *SECTIONS, *WARNINGS, *LINK, *options]
    command += [f"-Wl,-T,{script}", f"-Wl,--entry={entry}", *(f"-I{folder}" for folder in include)]
    command += [*map(str, sources), "-o", str(out)]
    try:
        run_compiler(command)
    except InputError as error:
        if "undefined symbol" not in str(error):
            raise
        run_compiler([*command, RUNTIME])  # a division, say, on a core that has none
    return out


def write_script(name: str, entry: str, out: Path) -> Path:
    """Write a linker script of this package for an entry, beside the file to be linked."""
    script = out.with_suffix(".ld")
    script.write_text((files("sensorsim.machine") / name).read_text("utf-8").replace("@ENTRY@", entry))
    return script


class Compiler(Protocol):
    """Build a package as machine code: `elf` as `compile_elf`, `version` as `compiler_version`."""

    @property
    def flags(self) -> str: ...

    @property
    def version(self) -> Callable[[], str]: ...

    @property
    def elf(self) -> Callable[..., Path]: ...


class Ziglang:
    """Build by the default compiler: clang, by ziglang."""

    flags = SHOWN_FLAGS
    version = staticmethod(compiler_version)
    elf = staticmethod(compile_elf)


def compile_objects(target: Target, sources: Sequence[Path], include: Sequence[Path], out: Path) -> list[Path]:
    """Compile each source to an object file; without linking, the compiler's runtime is not built."""
    made = [out / f"{source.stem}-{target.name}.o" for source in sources]
    for source, file in zip(sources, made, strict=True):
        compile_object(target, source, include, file)
    return made


def compile_object(
    target: Target, source: Path, include: Sequence[Path], out: Path, options: Sequence[str] = ()
) -> None:
    """Compile one source to an object file; warnings are errors."""
    flags = [*target.clang, *OPTIMIZE, *SECTIONS, *WARNINGS, *options, *(f"-I{folder}" for folder in include)]
    run_compiler([*zig_cc(), *flags, "-c", str(source), "-o", str(out)])


def compile_host(sources: Sequence[Path], include: Sequence[Path], out: Path, options: Sequence[str] = ()) -> Path:
    """Compile a shared library for this machine; warnings are errors."""
    flags = [*OPTIMIZE, *WARNINGS, "-shared", "-fPIC", "-nostdlib", *options]
    run_compiler([*zig_cc(), *flags, *(f"-I{folder}" for folder in include), *map(str, sources), "-o", str(out)])
    return out


def check_with_gcc(sources: Sequence[Path], include: Sequence[Path]) -> str | None:
    """Compile with the machine's gcc, warnings as errors; return its version, or None where there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    for source in sources:
        options = ["-std=c99", "-O2", "-ffreestanding", *WARNINGS, *(f"-I{folder}" for folder in include)]
        run_compiler([gcc, *options, "-c", str(source), "-o", os.devnull])
    return run_compiler([gcc, "--version"]).splitlines()[0]


def zig_cc() -> list[str]:
    """Return the command of the compiler; InputError where a tool for machine code is not installed."""
    need_firmware_tools()
    return [sys.executable, "-m", "ziglang", "cc"]


def run_compiler(command: Sequence[str]) -> str:
    """Return what a compiler prints; InputError with its first complaint."""
    done = run_tool(command)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
        lines = lines or done.stderr.splitlines()[-1:]
        raise InputError(f"the compiler refused the code ({lines[0].strip() if lines else 'no message'}).")
    return done.stdout
