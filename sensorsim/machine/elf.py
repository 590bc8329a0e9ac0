"""Just enough of ELF: the sections that go into memory and the function symbols of a linked 32-bit program."""

import struct
from dataclasses import dataclass

SHF_WRITE, SHF_ALLOC, SHF_EXEC = 1, 2, 4
SHT_SYMTAB, SHT_NOBITS = 2, 8


@dataclass(frozen=True)
class Section:
    """A section that is loaded: flash, or RAM where `writable`."""

    name: str
    address: int
    data: bytes
    writable: bool
    code: bool


@dataclass(frozen=True)
class Program:
    """A linked program. Symbols are functions and objects by name: (address, size)."""

    sections: tuple[Section, ...]
    symbols: dict[str, tuple[int, int]]

    @property
    def flash_bytes(self) -> int:
        """Code, constants and the initial values of variables."""
        return sum(len(s.data) for s in self.sections if not s.name.startswith(".bss"))

    @property
    def ram_bytes(self) -> int:
        """Variables that live outside the stack."""
        return sum(len(s.data) for s in self.sections if s.writable)


def read_elf(data: bytes) -> Program:
    """Read a little-endian ELF32 file."""
    if data[:6] != b"\x7fELF\x01\x01":
        raise ValueError("not a little-endian 32-bit ELF file")
    offset = struct.unpack_from("<I", data, 32)[0]
    size, count, names = struct.unpack_from("<3H", data, 46)
    headers = [struct.unpack_from("<10I", data, offset + size * k) for k in range(count)]
    sections, symbols = [], {}
    for name, kind, flags, address, start, length, link, *_ in headers:
        title = _text(data, headers[names][4] + name)
        if flags & SHF_ALLOC and length:
            content = bytes(length) if kind == SHT_NOBITS else data[start : start + length]
            sections.append(Section(title, address, content, bool(flags & SHF_WRITE), bool(flags & SHF_EXEC)))
        if kind == SHT_SYMTAB:
            for place in range(start, start + length, 16):
                label, value, extent, info, _, owner = struct.unpack_from("<3I2BH", data, place)
                if info & 15 in (1, 2) and 0 < owner < count and headers[owner][2] & SHF_ALLOC:
                    symbols[_text(data, headers[link][4] + label)] = (value, extent)
    return Program(tuple(sections), symbols)


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def read_object(data: bytes) -> tuple[dict[str, int], set[str]]:
    """Of an object file: the size of each section that is loaded, and the names it leaves to the linker."""
    offset = struct.unpack_from("<I", data, 32)[0]
    size, count, names = struct.unpack_from("<3H", data, 46)
    headers = [struct.unpack_from("<10I", data, offset + size * k) for k in range(count)]
    sections: dict[str, int] = {}
    undefined: set[str] = set()
    for name, kind, flags, _, start, length, link, *_ in headers:
        if flags & SHF_ALLOC and length:
            sections[_text(data, headers[names][4] + name)] = length
        if kind == SHT_SYMTAB:
            for place in range(start + 16, start + length, 16):
                label, _, _, _, _, owner = struct.unpack_from("<3I2BH", data, place)
                if owner == 0:
                    undefined.add(_text(data, headers[link][4] + label))
    return sections, undefined
