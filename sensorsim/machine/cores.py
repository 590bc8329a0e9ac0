"""Which core a linked program is for: told by its ELF header and by the attributes that compilers leave in it."""

import re

from sensorsim.errors import InputError
from sensorsim.machine.elf import Program
from sensorsim.machine.targets import TARGETS, Target

X86, ARM, AVR, RISCV = 3, 40, 83, 243  # e_machine
RVE = 8  # e_flags of RISC-V: the base with 16 registers
FAMILIES = {X86: "x86", ARM: "thumb", RISCV: "riscv32"}
# Arm: CPU_raw_name and CPU_name hold text, as do odd tags from 32 on; compatibility holds a number and text.
NAME, ARCHITECTURE, PROFILE, COMPATIBILITY = 5, 6, 7, 32
TEXT_TAGS = (4, NAME, 67)
ARCHITECTURES = {10: "v7-M", 11: "v6-M", 12: "v6S-M", 13: "v7E-M", 16: "v8-M.baseline", 17: "v8-M.mainline"}
RISCV_ARCH = 5


def core_of(program: Program, named: str | None = None) -> Target:
    """The core that is named, or the one that the program was built for; InputError where neither tells."""
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
    """Return the name that the file gives its processor, or else its architecture; and what it says."""
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
    """Return the base, with or without multiplication for the small one; and what the file says of it."""
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
    """Tags of the whole file: 'A', then for each vendor its length, its name and its attributes. Damage ends it."""
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
    """A number in ULEB128, and where it ends."""
    value = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        value |= (byte & 127) << shift
        shift, place = shift + 7, place + 1
        if byte < 128:
            break
    return value, max(place, 1) if place < len(data) else len(data)
