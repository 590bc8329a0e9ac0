"""Read ELF files: sections, symbols and build attributes of a linked 32-bit program, and the core that it is for.

A file is untrusted input: every offset and size in it is checked before it is used.
"""

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, NoReturn

from sensorsim._util.errors import InputError
from sensorsim.machine.targets import TARGETS, Target

SHF_WRITE, SHF_ALLOC, SHF_EXEC, SHF_TLS = 1, 2, 4, 0x400
SHT_SYMTAB, SHT_NOBITS = 2, 8
PT_LOAD, PF_EXEC, PF_WRITE = 1, 1, 2
OBJECT, FUNCTION = 1, 2  # kinds of symbols
HEAD_BYTES, SYMBOL_BYTES = 52, 16
MOST_BYTES = 64 << 20  # of a file, and of the memory that it fills
MOST_SYMBOLS, MOST_NAME = 400_000, 512
ATTRIBUTES = (".ARM.attributes", ".riscv.attributes")
GLOBAL_POINTER = "__global_pointer$"  # that a startup for RISC-V puts into gp
X86, ARM, AVR, RISCV = 3, 40, 83, 243  # e_machine
RVE = 8  # e_flags of RISC-V: the base with 16 registers
FAMILIES = {X86: "x86", ARM: "thumb", RISCV: "riscv32"}
# Arm: CPU_raw_name and CPU_name hold text, as do odd tags from 32 on; compatibility holds a number and text.
NAME, ARCHITECTURE, PROFILE, COMPATIBILITY = 5, 6, 7, 32
TEXT_TAGS = (4, NAME, 67)
ARCHITECTURES = {10: "v7-M", 11: "v6-M", 12: "v6S-M", 13: "v7E-M", 16: "v8-M.baseline", 17: "v8-M.mainline"}
RISCV_ARCH = 5


@dataclass(frozen=True)
class Section:
    """Hold what is loaded at an address: flash, or RAM where `writable`. `zero` takes no space in flash."""

    name: str
    address: int
    data: bytes
    writable: bool
    code: bool
    zero: bool = False

    @property
    def end(self) -> int:
        return self.address + len(self.data)


@dataclass(frozen=True)
class Program:
    """Hold a linked program. Symbols are functions and objects by name: (address, size).

    Of several symbols with one name a global one counts before those of single files; where only those of single files
    bear it, the first is in `symbols` and all of their addresses are in `doubtful`.
    """

    sections: tuple[Section, ...]
    symbols: dict[str, tuple[int, int]]
    machine: int = 0  # e_machine
    flags: int = 0  # e_flags
    attributes: bytes = b""  # of the build, as the compiler wrote them
    doubtful: dict[str, tuple[int, ...]] = field(default_factory=dict)
    global_pointer: int | None = None

    @property
    def flash_bytes(self) -> int:
        """Return the size of code, constants and the initial values of variables."""
        return sum(len(s.data) for s in self.sections if not s.zero)

    @property
    def ram_bytes(self) -> int:
        """Return the size of variables outside the stack."""
        return sum(len(s.data) for s in self.sections if s.writable)

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of the program as it starts; InputError outside of it."""
        for section in self.sections:
            if section.address <= address and address + size <= section.end:
                return section.data[address - section.address :][:size]
        raise InputError(f"the program has no {size} bytes at 0x{address:x}; give an address inside of it.")

    def owner(self, address: int) -> str:
        """Return the symbol that the address lies in, or behind."""
        addresses, names = self._owners
        place = bisect_right(addresses, address)
        return names[place - 1] if place else "?"

    @cached_property
    def _owners(self) -> tuple[list[int], list[str]]:
        pairs = sorted((address & ~1, name) for name, (address, _) in self.symbols.items())
        return [address for address, _ in pairs], [name for _, name in pairs]


class _Header(NamedTuple):
    """Hold a section header."""

    name: int = 0
    kind: int = 0
    flags: int = 0
    address: int = 0
    start: int = 0
    length: int = 0
    link: int = 0


def read_elf(data: bytes) -> Program:
    """Read a linked little-endian ELF32 file: by its sections, or by its segments where it has none."""
    file = _File(data)
    if file.kind == 1:
        _refuse("it is an object file and not linked")
    sections = file.sections() or file.segments()
    if not sections:
        _refuse("nothing in it is to be loaded")
    marks = b"".join(file.content(h) for h in file.headers if file.text(file.names, h.name) in ATTRIBUTES)
    symbols, doubtful, pointer = file.symbols()
    return Program(tuple(sections), symbols, file.machine, file.flags, marks, doubtful, pointer)


def read_object(data: bytes) -> tuple[dict[str, int], set[str]]:
    """Return the size of each loaded section of an object file, and its undefined symbols."""
    file = _File(data)
    sections = {file.text(file.names, h.name): h.length for h in file.headers if h.flags & SHF_ALLOC and h.length}
    undefined = {name for place, (name, *_, owner) in enumerate(file.symbol_rows()) if place and owner == 0}
    return sections, undefined


def _refuse(what: str) -> NoReturn:
    raise InputError(f"this is no ELF file that can be read ({what}); give a linked 32-bit little-endian one.")


class _File:
    """Hold the bytes of an ELF file, its header and its section headers."""

    def __init__(self, data: bytes) -> None:
        if data[:4] != b"\x7fELF":
            _refuse("it does not begin as one")
        if data[4:6] != b"\x01\x01":
            _refuse("it is of 64 bits, or big-endian")
        if len(data) < HEAD_BYTES:
            _refuse("it ends inside its header")
        if len(data) > MOST_BYTES:
            _refuse(f"it has {len(data) >> 20} MiB, and {MOST_BYTES >> 20} are allowed; strip its debug information")
        self.data = data
        self.kind, self.machine = struct.unpack_from("<2H", data, 16)
        self.flags = struct.unpack_from("<I", data, 36)[0]
        names = struct.unpack_from("<H", data, 50)[0]
        self.headers = [_Header(*row[:7]) for row in self._table(32, 46, "<10I", "sections")]
        self.names = self.headers[names] if names < len(self.headers) else _Header()  # holds names of sections

    def _table(self, start_at: int, size_at: int, form: str, what: str) -> list[tuple[int, ...]]:
        """Return the rows of a table whose start, row size and number of rows are at these places of the header."""
        start = struct.unpack_from("<I", self.data, start_at)[0]
        size, count = struct.unpack_from("<2H", self.data, size_at)
        if not start or not count:
            return []
        if size < struct.calcsize(form) or start + size * count > len(self.data):
            _refuse(f"its table of {what} lies outside of it")
        return [struct.unpack_from(form, self.data, start + size * k) for k in range(count)]

    def content(self, header: _Header) -> bytes:
        """Return the bytes of a section."""
        if header.start + header.length > len(self.data):
            _refuse("a section lies outside of it")
        return self.data[header.start : header.start + header.length]

    def text(self, strings: _Header, start: int) -> str:
        """Return a name in a table of names; one that is too long is cut."""
        first, last = strings.start + start, min(strings.start + strings.length, len(self.data))
        if start >= strings.length or first >= last:
            return ""
        return self.data[first : min(last, first + MOST_NAME)].partition(b"\0")[0].decode("utf-8", "replace")

    def sections(self) -> list[Section]:
        """Return what is loaded, by sections."""
        loaded = [
            h
            for h in self.headers
            if h.flags & SHF_ALLOC and h.length and not (h.flags & SHF_TLS and h.kind == SHT_NOBITS)
        ]
        _check_room([(h.address, h.length) for h in loaded])
        made = []
        for h in loaded:
            zero, writable, code = h.kind == SHT_NOBITS, bool(h.flags & SHF_WRITE), bool(h.flags & SHF_EXEC)
            content = bytes(h.length) if zero else self.content(h)
            made.append(Section(self.text(self.names, h.name), h.address, content, writable, code, zero))
        return made

    def segments(self) -> list[Section]:
        """Return what is loaded by the segments of a file without sections."""
        loads = [row for row in self._table(28, 42, "<8I", "segments") if row[0] == PT_LOAD and row[5]]
        _check_room([(row[2], row[5]) for row in loads])
        made = []
        for number, (_, at, address, _, filled, length, flags, _) in enumerate(loads):
            if filled > length or at + filled > len(self.data):
                _refuse("a segment lies outside of it")
            writable, code, name = bool(flags & PF_WRITE), bool(flags & PF_EXEC), f"segment {number}"
            if filled:
                made.append(Section(name, address, self.data[at : at + filled], writable, code))
            if length > filled:
                zeros = bytes(length - filled)
                made.append(Section(f"{name}, zeros", address + filled, zeros, writable, False, True))
        return made

    def symbol_rows(self) -> Iterator[tuple[str, int, int, int, int]]:
        """Yield name, value, size, information and section of every symbol."""
        for header in self.headers:
            if header.kind != SHT_SYMTAB:
                continue
            if header.length % SYMBOL_BYTES or header.length // SYMBOL_BYTES > MOST_SYMBOLS:
                _refuse(f"its table of symbols is damaged, or has more than {MOST_SYMBOLS}")
            if header.link >= len(self.headers):
                _refuse("its symbols have no names")
            strings = self.headers[header.link]
            for label, value, extent, info, _, owner in struct.iter_unpack("<3I2BH", self.content(header)):
                yield self.text(strings, label), value, extent, info, owner

    def symbols(self) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, ...]], int | None]:
        """Return functions and objects by name, ambiguous names, and the global pointer of RISC-V."""
        shared: dict[str, tuple[int, int]] = {}
        local: dict[str, list[tuple[int, int]]] = {}
        pointer = None
        for name, value, extent, info, owner in self.symbol_rows():
            if info & 15 not in (OBJECT, FUNCTION):
                if info >> 4 and info & 15 == 0 and name == GLOBAL_POINTER:
                    pointer = value
            elif 0 < owner < len(self.headers) and self.headers[owner].flags & SHF_ALLOC:
                if info >> 4:
                    shared[name] = (value, extent)
                elif (value, extent) not in local.setdefault(name, []):
                    local[name].append((value, extent))
        known = {name: places[0] for name, places in local.items()} | shared
        several = {name: places for name, places in local.items() if len(places) > 1 and name not in shared}
        return known, {name: tuple(address for address, _ in places) for name, places in several.items()}, pointer


def _check_room(parts: list[tuple[int, int]]) -> None:
    if sum(length for _, length in parts) > MOST_BYTES:
        _refuse(f"it fills more than {MOST_BYTES >> 20} MiB of memory")
    if any(address + length > 1 << 32 for address, length in parts):
        _refuse("a part of it lies beyond the end of memory")


def identify_core(program: Program, named: str | None = None) -> Target:
    """Return the named core, or the one that the program was built for; InputError where it cannot be known."""
    known = ", ".join(TARGETS)
    if program.machine == AVR:
        raise InputError("this ELF file is for an AVR, which is not run here; give one for an Arm or RISC-V core.")
    family = FAMILIES.get(program.machine)
    if family is None:
        raise InputError(f"this ELF file is for machine {program.machine} of the ELF list; there are {known}.")
    fit = {name: target for name, target in TARGETS.items() if target.family == family}
    if named is not None:
        if named not in fit:
            raise InputError(f"target {named!r} does not run this ELF file; give one of {', '.join(fit)}.")
        return fit[named]
    found, why = {X86: lambda p: ("x86", ""), ARM: _arm, RISCV: _riscv}[program.machine](program)
    for target in fit.values():
        if found in target.elf:
            return target
    raise InputError(
        f"this ELF file {why}, which fixes none of the known cores; say with --target which to run it on "
        f"({', '.join(fit)})."
    )


def _arm(program: Program) -> tuple[str, str]:
    """Return the name that the file gives its processor, or else its architecture, and a phrase for messages."""
    marks = _attributes(program.attributes)
    name = str(marks.get(NAME, ""))
    short = re.sub(r"^cortex[-_]?", "", name.lower())
    if name.lower().startswith("cortex") and short != name.lower():
        return short, f"was built for {name}"
    number = marks.get(ARCHITECTURE)
    if number is None:
        return "", "does not say for which core it was built"
    if number == 10 and marks.get(PROFILE) != ord("M"):
        return "", "was built for v7 without the profile of a microcontroller"
    title = ARCHITECTURES.get(int(number), f"architecture {number}")
    return title, f"was built for {title}"


def _riscv(program: Program) -> tuple[str, str]:
    """Return the base, with or without multiplication for the small one, and how the file names it."""
    arch = str(_attributes(program.attributes).get(RISCV_ARCH, ""))
    match = re.match(r"rv32([ie])", arch)
    letters = {part[0] for part in arch[5:].split("_") if re.match(r"[a-z]\d", part)}
    small = match[1] == "e" if match else bool(program.flags & RVE)
    if not small:
        return "rv32i", f"was built for {arch or 'RV32I'}"
    if not match:
        return "", "was built for RV32E, with or without multiplication"
    return "rv32em" if "m" in letters else "rv32e", f"was built for {arch}"


def _attributes(data: bytes) -> dict[int, int | str]:
    """Parse the tags of the whole file: 'A', then length, name and attributes of each vendor. Damage ends it."""
    found: dict[int, int | str] = {}
    place = 1
    while data[:1] == b"A" and place + 4 < len(data):
        length = int.from_bytes(data[place : place + 4], "little")
        vendor, _, rest = data[place + 4 : place + length].partition(b"\0")
        if vendor in (b"aeabi", b"riscv") and rest[:1] == b"\x01":
            tags, riscv = rest[5 : int.from_bytes(rest[1:5], "little")], vendor == b"riscv"
            while tags:
                tag, tags = _number(tags)
                text = tag % 2 == 1 if riscv or tag > COMPATIBILITY else tag in TEXT_TAGS
                if tag == COMPATIBILITY and not riscv:
                    text, tags = True, _number(tags)[1]
                if text:
                    characters, _, tags = tags.partition(b"\0")
                    found[tag] = characters.decode("ascii", "replace")
                else:
                    found[tag], tags = _number(tags)
        place += max(length, 4)
    return found


def _number(data: bytes) -> tuple[int, bytes]:
    """Parse a number in ULEB128 of at most ten bytes; return it and what follows."""
    value = 0
    for place, byte in enumerate(data[:10]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, data[place + 1 :]
    return value, data[10:]
