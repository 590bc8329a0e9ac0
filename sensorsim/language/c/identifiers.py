"""Choose the names of a C package: functions, files, tables, macros, variables. No two things get the same one.

It also decides which array parameters are constant tables, and so may be in flash. On a core with a separate program
memory (AVR) a pointer into flash has another type than one into RAM. So parameters that are passed on to each other are
of one kind, and the first of them decides: a table that the kernel declares, one that the package binds, or else an
array of the caller's.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sensorsim._util.errors import InputError
from sensorsim.language import ir
from sensorsim.language.c.operators import helpers_of
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.language.types import Array

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
    """Return the wanted name, with a number if it is taken."""
    number, name = 2, wanted
    while name in taken:
        name = pattern.format(wanted, number)
        number += 1
    return name


def stem(kernel: Kernel) -> str:
    """Return the name of the kernel's file as part of a C name; `notebook` for one that was typed in."""
    name = re.sub(r"\W", "_", Path(kernel.at.file).stem, flags=re.ASCII)
    return name if kernel.at.file.endswith(".py") and name.isidentifier() else "notebook"


def _source(kernel: Kernel) -> str:
    """Return the file of a kernel; all cells of a notebook are one."""
    return kernel.at.file if stem(kernel) != "notebook" else "notebook"


def spelled(kernel: Kernel, prefix: str) -> dict[str, str]:
    """Return the C name of each parameter and local of a kernel: its own, where C allows it.

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
        """Collect the kernels. The package binds the parameters `flash` to constant tables; `private`: headers only."""
        self.entries, self.prefix, self.bound, self.private = tuple(entries), prefix, tuple(flash), private
        self.kernels = reachable(list(entries))  # callees first

    @cached_property
    def helpers(self) -> dict[str, str]:
        """Return the helper texts of the primitives, each once, with the functions that it defines."""
        return helpers_of(self.kernels)

    @cached_property
    def functions(self) -> dict[Kernel, str]:
        """Return the C function of each kernel; if two kernels share a name, a requested one gets it."""
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
        """Return what C calls a kernel by: its name, or the pointer that gives it a stack frame of its own."""
        return f"{self.functions[kernel]}_apart" if kernel.apart else self.functions[kernel]

    @cached_property
    def short(self) -> dict[str, str]:
        """Return the C functions by the names of their kernels, for comments."""
        return {kernel.name: name for kernel, name in reversed(self.functions.items())}

    def spoken(self, kernel: Kernel) -> dict[str, str]:
        """Return `short` for a kernel's own comments, with an empty name for kernels that the package does not have.

        A name that stands for something of the kernel's own is no kernel there; that of a kernel which was bound when
        this one was declared stands for that kernel.
        """
        own = {*kernel.parameters, *kernel.names}
        bound = {name: self.functions[one] for name, one in kernel.read.used.items() if isinstance(one, Kernel)}
        return {name: "" for name in kernel.siblings if name not in own} | self.short | bound

    @cached_property
    def units(self) -> dict[Kernel, str]:
        """Return the file of each kernel, without its ending: one for each file of kernels."""
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
        """Return the private header with a kernel's function."""
        return f"{self.units[kernel]}.h"

    @cached_property
    def in_flash(self) -> frozenset[tuple[Kernel, str]]:
        """Return the parameters that take constant tables."""
        return flash_parameters(self.kernels, self.bound)

    @cached_property
    def tables(self) -> dict[tuple[Kernel, str], str]:
        """Return the C names of the constant tables among the parameters of requested kernels."""
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
        """Return each file and its kernels, in order."""
        for unit in dict.fromkeys(self.units.values()):
            yield unit, [kernel for kernel in self.kernels if self.units[kernel] == unit]


@dataclass
class Constants:
    """The named numbers of the kernels, and whether they are used as signed or unsigned words.

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
        """Return the constant as a word of that sign."""
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
    """Format a C literal; large unsigned words, which are bit patterns, in hexadecimal."""
    if signed:
        return "INT32_MIN" if value == -(2**31) else str(value)
    return f"0x{value:08X}U" if value > 0xFFFF and value & (value - 1) else f"{value}U"


Parameter = tuple[Kernel, str]


def flash_parameters(kernels: Sequence[Kernel], bound: Iterable[Parameter]) -> frozenset[Parameter]:
    """Return the parameters that take constant tables; `bound` are those that the package binds to one.

    InputError where a parameter would get a bound table from one caller and an array from another, or is written.
    """
    wanted = frozenset(bound)
    for kernel, name in wanted:
        if kernel not in kernels or name not in kernel.arrays:
            raise InputError(f"{kernel.name} has no array {name} in this package; bind a table that one of them takes.")
    passed = [pair for kernel in kernels for pair in _passed(kernel)]
    fed = {receiver for _, receiver in passed}
    found: set[Parameter] = set()
    for group in _groups(kernels, passed):
        firsts = [one for one in group if one not in fed]
        if not wanted.isdisjoint(group):
            _check(group, firsts, wanted)
        if all(one in wanted or _declared(one) for one in firsts):
            found |= group
    return frozenset(found)


def _passed(kernel: Kernel) -> Iterator[tuple[Parameter, Parameter]]:
    """Yield every array that the kernel passes on, with the parameter that receives it."""
    for node in kernel.nodes:
        if isinstance(node, ir.Call):
            for name, value in zip(node.kernel.parameters, node.arguments, strict=True):
                if isinstance(value, ir.Whole):
                    yield (kernel, value.array), (node.kernel, name)


def _groups(kernels: Sequence[Kernel], passed: Sequence[tuple[Parameter, Parameter]]) -> list[set[Parameter]]:
    """Group the array parameters that are passed on to each other."""
    group = {(kernel, name): {(kernel, name)} for kernel in kernels for name in kernel.arrays}
    for one, other in passed:
        if group[one] is not group[other]:
            group[one] |= group[other]
            for member in group[other]:
                group[member] = group[one]
    return list({id(members): members for members in group.values()}.values())


def _declared(parameter: Parameter) -> bool:
    kernel, name = parameter
    kind = kernel.parameters[name]
    return isinstance(kind, Array) and kind.contents is not None


def _check(group: Iterable[Parameter], firsts: Iterable[Parameter], wanted: frozenset[Parameter]) -> None:
    for kernel, name in group:
        if name in kernel.written:
            raise InputError(
                f"{kernel.name} writes {name}, which is bound to a constant table; bind only what is read."
            )
    for kernel, name in firsts:
        if (kernel, name) not in wanted and not _declared((kernel, name)):
            other = min(f"{one.name}'s {parameter}" for one, parameter in wanted if (one, parameter) in group)
            raise InputError(
                f"{kernel.name} passes {name} to a kernel that also gets {other}, a constant table; bind both or "
                "neither, or export the kernels in two packages."
            )
