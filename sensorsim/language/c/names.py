"""The names of a C package: functions, files, tables, macros, variables. No two things get the same one."""

import re
import sys
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sensorsim.language import ir
from sensorsim.language.kernel import Kernel, reachable

# What a parameter or a local may not be called, because the header is for C++ as well or the name is taken in C.
TAKEN = frozenset(
    [
        *("and", "and_eq", "asm", "bitand", "bitor", "bool", "catch", "class", "compl", "const_cast", "delete"),
        *("dynamic_cast", "explicit", "export", "false", "friend", "mutable", "namespace", "new", "not", "not_eq"),
        *("operator", "or", "or_eq", "private", "protected", "public", "reinterpret_cast", "static_cast"),
        *("template", "this", "throw", "true", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor"),
        *("xor_eq", "alignas", "alignof", "constexpr", "decltype", "noexcept", "nullptr", "static_assert"),
        *("thread_local", "char16_t", "char32_t", "typeof", "unix", "linux", "int8_t", "int16_t", "int32_t"),
        *("int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t"),
    ]
)
FILES = ("kernels", "arithmetic", "constants", "tables", "sensor", "selftest")  # that every package has, or may have
MACROS = re.compile(  # of the package's own
    r"CHECK|NO_HW_DIV|NO_HW_MUL|HW_MUL|KNOWN_MUL|BUILD_SELFTEST|LOCAL|TABLE|FLASH|NOISE_\w+|ENCODER_\w+|\w+_H|\w+_ENTRIES"
    r"|FEATURES|HIDDEN|RELEASED|PACKET_BYTES|SLOT_BYTES|VERSION|EPSILON|BUDGET\w*|RESERVE|OPEN|KEY_WORDS|SEED_BYTES"
    r"|START_UP|SLOT_SIZE|PACKET_SIZE|FOUND_\w+|JOURNAL_\w+|OK|SPENT|NO_ENTROPY|NO_STORE|BAD_JOURNAL|BAD_CLOCK|NOT_OPEN"
)


def fresh(wanted: str, taken: Container[str], pattern: str = "{}_{}") -> str:
    """The wanted name, or with the first number that makes it a new one."""
    number, name = 2, wanted
    while name in taken:
        name = pattern.format(wanted, number)
        number += 1
    return name


def stem(kernel: Kernel) -> str:
    """The name of the kernel's file, as part of a C name; `notebook` for one that was typed in."""
    name = re.sub(r"\W", "_", Path(kernel.at.file).stem, flags=re.ASCII)
    return name if kernel.at.file.endswith(".py") and name.isidentifier() else "notebook"


def _source(kernel: Kernel) -> str:
    """The file that a kernel comes from; all cells of a notebook are one."""
    return kernel.at.file if stem(kernel) != "notebook" else "notebook"


def spelled(kernel: Kernel, prefix: str) -> dict[str, str]:
    """How each parameter and local of a kernel is called in C: as in the kernel, where C allows it.

    A name in capitals may be a macro of some header, as NULL or SIZE_MAX, so it gets another spelling.
    """
    found: dict[str, str] = {}
    own = {*kernel.parameters, *kernel.names}
    for name in dict.fromkeys([*kernel.parameters, *kernel.names]):
        if "." in name:  # a field of a record
            found[name] = name.replace(".", "->")
            continue
        taken = name in TAKEN or name.isupper() or name.startswith((prefix, prefix.upper(), "_"))
        found[name] = fresh(f"{name.lstrip('_')}_", own | set(found.values())) if taken else name
    return found


class Names:
    """The names of the functions, files and tables of one package."""

    def __init__(
        self, entries: Sequence[Kernel], prefix: str, flash: Iterable[tuple[Kernel, str]] = (), private: bool = False
    ) -> None:
        """`flash` are the parameters that the package binds to constant tables; `private`: all in private headers."""
        self.entries, self.prefix, self.bound, self.private = tuple(entries), prefix, tuple(flash), private
        self.kernels = reachable(list(entries))  # callees first

    @cached_property
    def helpers(self) -> dict[str, str]:
        """The C functions behind the primitives, each text once, and the functions that it defines."""
        from sensorsim.language.c.forms import helpers_of

        return helpers_of(self.kernels)

    @cached_property
    def functions(self) -> dict[Kernel, str]:
        """The C function of each kernel; where two kernels share a name, the one asked for keeps it."""
        own = {re.sub("^ss_", self.prefix, name) for names in self.helpers.values() for name in names.split()}
        taken = {*own, f"{self.prefix}selftest"}
        found: dict[Kernel, str] = {}
        for kernel in [*self.entries, *(one for one in self.kernels if one not in self.entries)]:
            name = self.prefix + kernel.name
            if name in taken:
                name = fresh(f"{self.prefix}{stem(kernel)}_{kernel.name}", taken)
            taken.add(name)
            found[kernel] = name
        return found

    def called(self, kernel: Kernel) -> str:
        """How the C calls a kernel: by its name, or through the pointer that keeps its stack apart."""
        return f"{self.functions[kernel]}_apart" if kernel.apart else self.functions[kernel]

    @cached_property
    def short(self) -> dict[str, str]:
        """The C function of a kernel by its own name, for comments that speak of it."""
        return {kernel.name: name for kernel, name in reversed(self.functions.items())}

    def spoken(self, kernel: Kernel) -> dict[str, str]:
        """Return the names for a kernel's own comments, with nothing for kernels that the package has not.

        A name that stands for something of the kernel's own is no kernel there; that of a kernel which was bound when
        this one was declared stands for that kernel.
        """
        from sensorsim.language.load import kernels_of, shipped

        ours = kernel.module.startswith("sensorsim.")
        module = sys.modules.get(kernel.module)
        beside = shipped().values() if ours else kernels_of(module).values() if module else ()
        own = {*kernel.parameters, *kernel.names}
        bound = {name: self.functions[one] for name, one in kernel.read.used.items() if isinstance(one, Kernel)}
        return {one.name: "" for one in beside if one.name not in own} | self.short | bound

    @cached_property
    def units(self) -> dict[Kernel, str]:
        """The file, without its ending, that each kernel goes into: one for each file of kernels."""
        files: dict[str, str] = {}
        own = {self.prefix + name for name in FILES}
        taken = set(own)
        for kernel in sorted(self.kernels, key=lambda one: not one.module.startswith("sensorsim.")):  # ours keep theirs
            if _source(kernel) not in files:
                wanted = (self.prefix + stem(kernel)).lower()
                files[_source(kernel)] = fresh(f"{wanted}_kernels" if wanted in own else wanted, taken)
                taken.add(files[_source(kernel)])
        return {kernel: files[_source(kernel)] for kernel in self.kernels}

    def header(self, kernel: Kernel) -> str:
        """The private header that a kernel's function stands in."""
        return f"{self.units[kernel]}.h"

    @cached_property
    def in_flash(self) -> frozenset[tuple[Kernel, str]]:
        """The parameters that take constant tables."""
        from sensorsim.language.c.flash import flash_parameters

        return flash_parameters(self.kernels, self.bound)

    @cached_property
    def tables(self) -> dict[tuple[Kernel, str], str]:
        """The C name of each constant table that is a parameter of a kernel that was asked for."""
        contents: dict[str, tuple[tuple[int, ...], bool]] = {}  # and whether it lies in flash: two tables if both
        found: dict[tuple[Kernel, str], str] = {}
        for kernel in self.entries:
            for name, kind in kernel.arrays.items():
                if kind.contents is None:
                    continue
                wanted = f"{self.prefix}{kernel.name if name == 'table' else name}_table"
                own = kind.contents, (kernel, name) in self.in_flash
                if contents.get(wanted, own) != own:
                    wanted = fresh(f"{self.functions[kernel]}_{name}_table", contents)
                contents[wanted] = own
                found[kernel, name] = wanted
        return found

    def unit_kernels(self) -> Iterable[tuple[str, list[Kernel]]]:
        """Each file and its kernels, in order."""
        for unit in dict.fromkeys(self.units.values()):
            yield unit, [kernel for kernel in self.kernels if self.units[kernel] == unit]


@dataclass
class Constants:
    """The named numbers that the kernels use, and whether as signed or unsigned words.

    The sources are written twice: the first time shows with which signs and values a name is used, so that the second
    time knows its macro.
    """

    prefix: str
    uses: dict[tuple[str, int], set[bool]] = field(default_factory=dict)
    origins: dict[tuple[str, int], str] = field(default_factory=dict)  # the file it was first used in

    def macro(self, name: str, value: int) -> str:
        plain = f"{self.prefix.upper()}{name}" + ("_" if MACROS.fullmatch(name) else "")
        if sum(other == name for other, _ in self.uses) == 1:
            return plain
        return f"{plain}_{value}".replace("-", "M")  # two modules use the name for two numbers

    def use(self, node: ir.Const, signed: bool) -> str:
        """The constant as a word of that sign."""
        assert node.name is not None
        key = node.name, node.value
        self.origins.setdefault(key, node.at.file)
        uses = self.uses.setdefault(key, set())
        uses.add(signed)
        # A macro that is needed with both signs is defined signed, and cast where an unsigned one is wanted.
        return f"(uint32_t){self.macro(*key)}" if uses == {True, False} and not signed else self.macro(*key)

    def define(self, name: str, value: int) -> str:
        return f"#define {self.macro(name, value)} {number(value, signed=True in self.uses[name, value])}"


def number(value: int, signed: bool) -> str:
    """A C literal; large unsigned words, which are bit patterns, in hexadecimal."""
    if signed:
        return "INT32_MIN" if value == -(2**31) else str(value)
    return f"0x{value:08X}U" if value > 0xFFFF and value & (value - 1) else f"{value}U"
