"""The cores, one object each, and the compiler that builds exported code for them."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from sensorsim._util.hints import did_you_mean, need
from sensorsim.errors import InputError
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
    """A core: how it is compiled for, recognised and emulated.

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
        """The instruction set: x86, thumb, riscv32, avr or msp430."""
        return self.triple.split("-")[0]

    @property
    def clang(self) -> list[str]:
        """The compiler's options for this core."""
        return ["-target", self.triple, f"-mcpu={self.mcpu}", *self.flags]


def _load_avr(cpu: Any, *function: Any) -> tuple[Any, Any]:
    from sensorsim.machine.avr_count import AvrCounter
    from sensorsim.machine.avr_verify import avr_machine

    machine = avr_machine(*function)
    return machine, AvrCounter(machine, cpu)


def _verify_avr(*function: Any) -> dict[str, Any]:
    from sensorsim.machine.avr_verify import on_avr

    return on_avr(*function)


def _avr_compiler() -> str:
    from sensorsim.machine.avr_build import avr_compiler, usual_compiler

    return avr_compiler(usual_compiler())


def _load_msp430(cpu: Any, *function: Any) -> tuple[Any, Any]:
    from sensorsim.machine.msp430 import msp430_machine
    from sensorsim.machine.msp430_count import Msp430Counter

    machine = msp430_machine(*function)
    return machine, Msp430Counter(machine, cpu)


HOST = "host"
ARM, RISCV = "thumb-freestanding-eabi", "riscv32-freestanding-none"
AVR = Target(
    "avr",
    "Microchip AVR (ATmega1284P)",
    "avr-freestanding-none",
    "atmega1284p",
    "avr",
    flags=("-Wno-avr-rtlib-linking-quirks",),  # clang asks for a chip to link with avr-libc, which is not linked here
    load=_load_avr,
    verify=_verify_avr,
    compiler=_avr_compiler,
)
MSP430 = Target(
    "msp430",
    "TI MSP430",
    "msp430-freestanding-none",
    "msp430",
    "msp430",
    flags=("-DSS_HW_MUL",),  # MPY32 takes the same time for all operands
    load=_load_msp430,
)
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
        AVR,
        MSP430,
    )
}  # fmt: skip
TARGETS = {name: target for name, target in COUNTED.items() if target.load is None}  # those that unicorn runs
CORES = {name: target for name, target in COUNTED.items() if name in TARGETS or target.verify}  # those of `verify`
# What a package's README and manifest tell of: one core of a kind, so that an export stays short and quick.
SHOWN = ("k7", "cortex-m0plus", "cortex-m3", "cortex-m4", "rv32imc")


def targets_named(names: Iterable[str]) -> list[str]:
    """The names, checked; InputError with the known ones for one that there is none of."""
    chosen = list(dict.fromkeys(names))
    if not any(chosen):
        raise InputError(f"no target is named; give some of {', '.join([HOST, *CORES])}.")
    for name in chosen:
        if name != HOST and name not in CORES:
            hint = did_you_mean(name, [HOST, *CORES])
            raise InputError(f"target {name!r} is not known{hint}; there are {', '.join([HOST, *CORES])}.")
    return chosen


def need_firmware_tools() -> None:
    """InputError that names the extra where a tool for machine code is not installed."""
    need("ziglang", "unicorn", "capstone")


@cache
def compiler_version() -> str:
    """What stands beside every figure that depends on the compiler."""
    need_firmware_tools()
    text = run_compiler([sys.executable, "-m", "ziglang", "cc", "--version"])
    return (
        text.splitlines()[0].split(" (")[0]
        + " by ziglang "
        + run_compiler([sys.executable, "-m", "ziglang", "version"]).strip()
    )


def compilers(names: Iterable[str]) -> str:
    """Name the compiler of these targets: one for all, and after it those of cores that have their own."""
    own = (COUNTED[name] for name in names if name in COUNTED)
    return "; ".join([compiler_version(), *(f"{core.name}: {core.compiler()}" for core in own if core.compiler)])


def compile_elf(
    target: Target, sources: Sequence[Path], include: Sequence[Path], entry: str, out: Path, options: Sequence[str] = ()
) -> Path:
    """Compile and link one function with all it needs; warnings are errors."""
    script = out.with_suffix(".ld")
    script.write_text((files("sensorsim.machine") / "link.ld").read_text("utf-8").replace("@ENTRY@", entry))
    command = [*zig_cc(), *target.clang, *OPTIMIZE, *SECTIONS]
    command += [*WARNINGS, *LINK, *options]
    command += [f"-Wl,-T,{script}", f"-Wl,--entry={entry}", *(f"-I{folder}" for folder in include)]
    command += [*map(str, sources), "-o", str(out)]
    try:
        run_compiler(command)
    except InputError as error:
        if "undefined symbol" not in str(error):
            raise
        run_compiler([*command, RUNTIME])  # a division, say, on a core that has none
    return out


class Compiler(Protocol):
    """What turns a package into machine code."""

    @property
    def flags(self) -> str: ...

    def version(self) -> str: ...

    def elf(
        self,
        target: Target,
        sources: Sequence[Path],
        include: Sequence[Path],
        entry: str,
        out: Path,
        options: Sequence[str] = (),
    ) -> Path: ...


class Ziglang:
    """The compiler that every figure comes from unless another is given: clang, by ziglang."""

    flags = SHOWN_FLAGS

    def version(self) -> str:
        return compiler_version()

    def elf(
        self,
        target: Target,
        sources: Sequence[Path],
        include: Sequence[Path],
        entry: str,
        out: Path,
        options: Sequence[str] = (),
    ) -> Path:
        return compile_elf(target, sources, include, entry, out, options)


def compile_objects(target: Target, sources: Sequence[Path], include: Sequence[Path], out: Path) -> list[Path]:
    """Object files, one for each source: nothing is linked, so nothing of the compiler's runtime is built."""
    command = [*zig_cc(), *target.clang, *OPTIMIZE, *SECTIONS, *WARNINGS]
    made = [out / f"{source.stem}-{target.name}.o" for source in sources]
    for source, file in zip(sources, made, strict=True):
        run_compiler([*command, *(f"-I{folder}" for folder in include), "-c", str(source), "-o", str(file)])
    return made


def compile_host(sources: Sequence[Path], include: Sequence[Path], out: Path, options: Sequence[str] = ()) -> Path:
    """A shared library for this machine; warnings are errors."""
    flags = [*OPTIMIZE, *WARNINGS, "-shared", "-fPIC", "-nostdlib", *options]
    run_compiler([*zig_cc(), *flags, *(f"-I{folder}" for folder in include), *map(str, sources), "-o", str(out)])
    return out


def check_with_gcc(sources: Sequence[Path], include: Sequence[Path]) -> str | None:
    """Compile with the machine's gcc, warnings as errors; its version, or None where there is no gcc."""
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
