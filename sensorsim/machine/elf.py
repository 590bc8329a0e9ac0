"""Read ELF files: sections, symbols and build attributes of a linked 32-bit program, and the core that it is for.

A file is untrusted input: every offset and size in it is checked before it is used.
"""

import re
import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, NoReturn

from sensorsim._util.errors import InputError
from sensorsim.machine.targets import TARGETS, Target

SHF_WRITE, SHF_ALLOC, SHF_EXEC, SHF_TLS = 1, 2, 4, 0x400
SHT_SYMTAB, SHT_NOBITS = 2, 8
PT_LOAD, PF_EXEC, PF_WRITE = 1, 1, 2
OBJECT, FUNCTION = 1, 2  # kinds of symbols
HEAD_BYTES, SECTION_BYTES, SEGMENT_BYTES, SYMBOL_BYTES = 52, 40, 32, 16
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

    name: int
    kind: int
    flags: int
    address: int
    start: int
    length: int
    link: int
    info: int
    align: int
    entry: int


def read_elf(data: bytes) -> Program:
    """Read a linked little-endian ELF32 file: by its sections, or by its segments where it has none."""
    kind, machine, flags = _check_head(data)
    if kind == 1:
        _refuse("it is an object file and not linked")
    headers, names = _headers(data)
    sections = _sections(data, headers, names) or _segments(data)
    if not sections:
        _refuse("nothing in it is to be loaded")
    symbols, doubtful, pointer = _symbols(data, headers)
    marks = b"".join(_content(data, h) for h in headers if _text(data, names, h.name) in ATTRIBUTES)
    return Program(tuple(sections), symbols, machine, flags, marks, doubtful, pointer)


def read_object(data: bytes) -> tuple[dict[str, int], set[str]]:
    """Return the size of each loaded section of an object file, and its undefined symbols."""
    _check_head(data)
    headers, names = _headers(data)
    sections = {_text(data, names, h.name): h.length for h in headers if h.flags & SHF_ALLOC and h.length}
    undefined: set[str] = set()
    for header in headers:
        if header.kind == SHT_SYMTAB:
            strings = _linked(headers, header)
            content = _content(data, header)
            for label, _, _, _, _, owner in struct.iter_unpack("<3I2BH", content[SYMBOL_BYTES:]):
                if owner == 0:
                    undefined.add(_text(data, strings, label))
    return sections, undefined


def _refuse(what: str) -> NoReturn:
    raise InputError(f"this is no ELF file that can be read ({what}); give a linked 32-bit little-endian one.")


def _check_head(data: bytes) -> tuple[int, int, int]:
    """Check the file header and return its type, machine and flags."""
    if data[:4] != b"\x7fELF":
        _refuse("it does not begin as one")
    if data[4:6] != b"\x01\x01":
        _refuse("it is of 64 bits, or big-endian")
    if len(data) < HEAD_BYTES:
        _refuse("it ends inside its header")
    if len(data) > MOST_BYTES:
        _refuse(f"it has {len(data) >> 20} MiB, and {MOST_BYTES >> 20} MiB are allowed; strip its debug information")
    kind, machine = struct.unpack_from("<2H", data, 16)
    return kind, machine, struct.unpack_from("<I", data, 36)[0]


def _headers(data: bytes) -> tuple[list[_Header], _Header]:
    """Return the section headers, and the one that holds their names."""
    start = struct.unpack_from("<I", data, 32)[0]
    size, count, names = struct.unpack_from("<3H", data, 46)
    none = _Header(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    if not start or not count:
        return [], none
    if size < SECTION_BYTES or start + size * count > len(data):
        _refuse("its table of sections lies outside of it")
    headers = [_Header(*struct.unpack_from("<10I", data, start + size * k)) for k in range(count)]
    return headers, headers[names] if names < count else none


def _content(data: bytes, header: _Header) -> bytes:
    if header.start + header.length > len(data):
        _refuse("a section lies outside of it")
    return data[header.start : header.start + header.length]


def _sections(data: bytes, headers: list[_Header], names: _Header) -> list[Section]:
    loaded = [
        h for h in headers if h.flags & SHF_ALLOC and h.length and not (h.flags & SHF_TLS and h.kind == SHT_NOBITS)
    ]
    _check_room([(h.address, h.length) for h in loaded])
    made = []
    for header in loaded:
        zero = header.kind == SHT_NOBITS
        content = bytes(header.length) if zero else _content(data, header)
        writable, code = bool(header.flags & SHF_WRITE), bool(header.flags & SHF_EXEC)
        made.append(Section(_text(data, names, header.name), header.address, content, writable, code, zero))
    return made


def _segments(data: bytes) -> list[Section]:
    """Return what a file without sections loads, by its segments."""
    start = struct.unpack_from("<I", data, 28)[0]
    size, count = struct.unpack_from("<2H", data, 42)
    if not start or not count:
        return []
    if size < SEGMENT_BYTES or start + size * count > len(data):
        _refuse("its table of segments lies outside of it")
    rows = [struct.unpack_from("<8I", data, start + size * k) for k in range(count)]
    loads = [row for row in rows if row[0] == PT_LOAD and row[5]]
    _check_room([(row[2], row[5]) for row in loads])
    made = []
    for number, (_, at, address, _, filled, length, flags, _) in enumerate(loads):
        if filled > length or at + filled > len(data):
            _refuse("a segment lies outside of it")
        writable, code = bool(flags & PF_WRITE), bool(flags & PF_EXEC)
        if filled:
            made.append(Section(f"segment {number}", address, data[at : at + filled], writable, code))
        if length > filled:
            made.append(
                Section(f"segment {number}, zeros", address + filled, bytes(length - filled), writable, False, True)
            )
    return made


def _check_room(parts: list[tuple[int, int]]) -> None:
    if sum(length for _, length in parts) > MOST_BYTES:
        _refuse(f"it fills more than {MOST_BYTES >> 20} MiB of memory")
    if any(address + length > 1 << 32 for address, length in parts):
        _refuse("a part of it lies beyond the end of memory")


def _symbols(
    data: bytes, headers: list[_Header]
) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, ...]], int | None]:
    """Return functions and objects by name, ambiguous names, and the global pointer of RISC-V."""
    shared: dict[str, tuple[int, int]] = {}
    local: dict[str, list[tuple[int, int]]] = {}
    pointer = None
    for header in headers:
        if header.kind != SHT_SYMTAB:
            continue
        if header.length % SYMBOL_BYTES or header.length // SYMBOL_BYTES > MOST_SYMBOLS:
            _refuse(f"its table of symbols is damaged, or has more than {MOST_SYMBOLS}")
        strings = _linked(headers, header)
        for label, value, extent, info, _, owner in struct.iter_unpack("<3I2BH", _content(data, header)):
            if info & 15 not in (OBJECT, FUNCTION):
                if info >> 4 and info & 15 == 0 and _text(data, strings, label) == GLOBAL_POINTER:
                    pointer = value
                continue
            if not 0 < owner < len(headers) or not headers[owner].flags & SHF_ALLOC:
                continue
            name = _text(data, strings, label)
            if info >> 4:
                shared[name] = (value, extent)
            elif (value, extent) not in local.setdefault(name, []):
                local[name].append((value, extent))
    known = {name: places[0] for name, places in local.items()} | shared
    doubtful = {n: tuple(a for a, _ in places) for n, places in local.items() if len(places) > 1 and n not in shared}
    return known, doubtful, pointer


def _linked(headers: list[_Header], header: _Header) -> _Header:
    if header.link >= len(headers):
        _refuse("its symbols have no names")
    return headers[header.link]


def _text(data: bytes, strings: _Header, start: int) -> str:
    """Return a name in a table of names; one that is too long is cut."""
    first, last = strings.start + start, min(strings.start + strings.length, len(data))
    if start >= strings.length or first >= last:
        return ""
    end = data.find(b"\0", first, min(last, first + MOST_NAME))
    return data[first : end if end >= 0 else min(last, first + MOST_NAME)].decode("utf-8", "replace")


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
        part = data[place + 4 : place + length]
        vendor, _, rest = part.partition(b"\0")
        if vendor in (b"aeabi", b"riscv") and rest[:1] == b"\x01":
            size = int.from_bytes(rest[1:5], "little")
            found |= _tags(rest[5:size], vendor == b"riscv")
        place += max(length, 4)
    return found


def _tags(data: bytes, riscv: bool) -> dict[int, int | str]:
    found: dict[int, int | str] = {}
    place = 0
    while place < len(data):
        tag, place = _number(data, place)
        text = tag % 2 == 1 if riscv or tag > COMPATIBILITY else tag in TEXT_TAGS
        if tag == COMPATIBILITY and not riscv:
            _, place = _number(data, place)
            text = True
        if text:
            end = data.find(b"\0", place)
            end = len(data) if end < 0 else end
            found[tag], place = data[place:end].decode("ascii", "replace"), end + 1
        else:
            found[tag], place = _number(data, place)
    return found


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Parse a number in ULEB128; return it and where it ends."""
    value = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        value |= (byte & 127) << shift
        shift, place = shift + 7, place + 1
        if byte < 128:
            break
    return value, max(place, 1) if place < len(data) else len(data)
