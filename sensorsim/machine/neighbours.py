"""What an instruction of a RISC-V core costs where it stands, within the range that its table's row gives.

A load takes the least where the next instruction does not use what it brings, and the most where it does. A jump or
a taken branch takes what is typical, and the most where it lands on a 32-bit instruction that lies across two words:
the core must fetch twice before it goes on. What a call returns to counts with the call. With these two the prices of
Ibex are those of its register-transfer simulation to the cycle; tests/test_rtl.py compares them. Not told apart: a
return on CV32E40P that waits a cycle, since its address was loaded just before.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sensorsim.cost.csv_schema import Span

if TYPE_CHECKING:
    from sensorsim.machine.decode import Instruction

Reader = Callable[[int, int], bytes]  # address and size of code
_NUMBER = re.compile(r"-?(0x[0-9a-f]+|\d+)")
_REGISTER = re.compile(r"\b(ra|sp|gp|tp|[ast]\d+)\b")
_READS_ALL = re.compile(r"s[bhw]|swsp|b\w+|jr|ret")  # nothing is written, or to memory
_TWO_ADDRESS = re.compile(r"c\.(addi?|addi16sp|sub|andi?|or|xor|slli|srli|srai)")  # the first register is read too


def settled(
    raws: Sequence[Any],
    instructions: Sequence["Instruction"],
    cost_of: Callable[[Any], Span],
    read: Reader | None,
) -> list["Instruction"]:
    """The block's instructions at the prices that they have there.

    `cost_of` has the range of an instruction's row, `read` the code at an address.
    """
    made = []
    for place, (raw, one) in enumerate(zip(raws, instructions, strict=True)):
        if one.kind not in ("load", "branch", "call") or math.isnan(one.price):
            made.append(one)
            continue
        cost = cost_of(raw)
        if one.kind == "load":
            used = place + 1 < len(raws) and bool(written_by(raw) & read_by(raws[place + 1]))
            price = float(cost.max if used else cost.min)
            made.append(replace(one, price=price, price_taken=price, price_max=price))
        else:
            taken = float(cost.typical + (cost.max - cost.typical) * _straddled(raws, place, read))
            price = one.price if one.conditional else taken
            made.append(replace(one, price=price, price_taken=taken, price_max=price))
    return made


def _straddled(raws: Sequence[Any], place: int, read: Reader | None) -> int:
    """How often a jump makes the core go on at a 32-bit instruction that lies across two words."""
    raw = raws[place]
    places = [_target(raw, raws[place - 1] if place else None)]
    if raw.mnemonic.removeprefix("c.") in ("jal", "jalr") and not raw.op_str.startswith("zero"):
        places.append(raw.address + raw.size)  # where it returns to
    return sum(at is not None and at % 4 == 2 and read is not None and read(at, 2)[0] & 3 == 3 for at in places)


def _target(raw: Any, before: Any) -> int | None:
    """Where a jump goes; None where a register says it, unless the instruction before it made that register."""
    last = raw.op_str.rpartition(",")[2].strip()
    number = int(last, 0) if _NUMBER.fullmatch(last) else None
    if not raw.mnemonic.removeprefix("c.").startswith(("jr", "jalr", "ret")):
        return None if number is None else int(raw.address + number)
    if number is None or before is None or before.mnemonic != "auipc" or not written_by(before) & read_by(raw):
        return None
    return int(before.address + (int(before.op_str.rpartition(",")[2], 0) << 12) + number & 0xFFFFFFFF)


def written_by(raw: Any) -> set[str]:
    """The register that an instruction writes."""
    return set() if _READS_ALL.fullmatch(raw.mnemonic.removeprefix("c.")) else set(_REGISTER.findall(raw.op_str)[:1])


def read_by(raw: Any) -> set[str]:
    """The registers that an instruction reads."""
    names, plain = _REGISTER.findall(raw.op_str), raw.mnemonic.removeprefix("c.")
    if plain == "ret":
        return {"ra"}
    all_of_them = _READS_ALL.fullmatch(plain) or _TWO_ADDRESS.fullmatch(raw.mnemonic)
    return set(names if all_of_them or (plain == "jalr" and len(names) == 1) else names[1:])
