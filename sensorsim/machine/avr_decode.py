"""Decode AVR instructions by the encodings of the instruction set manual, classify and price them.

The set is AVRe+ (ATmega328P, ATmega1284P): multiplication, MOVW, two-word jumps, a 16-bit program counter. What
compilers make of no kernel is left out: fractional products, sleep, bits of I/O registers, jumps to computed places.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from sensorsim._util.errors import InputError
from sensorsim.costing.prices import Cpu

# Name, then its encoding as the manual prints it: a letter is a field, `*` at its end: a second word follows.
# LD_ZI is LD with Z+ (increment after), LD_DZ with -Z (decrement before).
ENCODINGS = """
NOP    0000000000000000     MOVW   00000001ddddrrrr     MULS   00000010ddddrrrr     MULSU  000000110ddd0rrr
CPC    000001rdddddrrrr     SBC    000010rdddddrrrr     ADD    000011rdddddrrrr     CPSE   000100rdddddrrrr
CP     000101rdddddrrrr     SUB    000110rdddddrrrr     ADC    000111rdddddrrrr     AND    001000rdddddrrrr
EOR    001001rdddddrrrr     OR     001010rdddddrrrr     MOV    001011rdddddrrrr     CPI    0011KKKKddddKKKK
SBCI   0100KKKKddddKKKK     SUBI   0101KKKKddddKKKK     ORI    0110KKKKddddKKKK     ANDI   0111KKKKddddKKKK
LDI    1110KKKKddddKKKK     LDD_Z  10q0qq0ddddd0qqq     LDD_Y  10q0qq0ddddd1qqq     STD_Z  10q0qq1ddddd0qqq
STD_Y  10q0qq1ddddd1qqq     LDS    1001000ddddd0000*    LD_ZI  1001000ddddd0001     LD_DZ  1001000ddddd0010
LPM_Z  1001000ddddd0100     LPM_ZI 1001000ddddd0101     LD_YI  1001000ddddd1001     LD_DY  1001000ddddd1010
LD_X   1001000ddddd1100     LD_XI  1001000ddddd1101     LD_DX  1001000ddddd1110     POP    1001000ddddd1111
STS    1001001ddddd0000*    ST_ZI  1001001ddddd0001     ST_DZ  1001001ddddd0010     ST_YI  1001001ddddd1001
ST_DY  1001001ddddd1010     ST_X   1001001ddddd1100     ST_XI  1001001ddddd1101     ST_DX  1001001ddddd1110
PUSH   1001001ddddd1111     COM    1001010ddddd0000     NEG    1001010ddddd0001     SWAP   1001010ddddd0010
INC    1001010ddddd0011     ASR    1001010ddddd0101     LSR    1001010ddddd0110     ROR    1001010ddddd0111
DEC    1001010ddddd1010     BSET   100101000sss1000     BCLR   100101001sss1000     RET    1001010100001000
JMP    1001010kkkkk110k*    CALL   1001010kkkkk111k*    ADIW   10010110KKddKKKK     SBIW   10010111KKddKKKK
MUL    100111rdddddrrrr     IN     10110AAdddddAAAA     OUT    10111AAdddddAAAA     RJMP   1100kkkkkkkkkkkk
RCALL  1101kkkkkkkkkkkk     BRBS   111100kkkkkkksss     BRBC   111101kkkkkkksss     BLD    1111100ddddd0bbb
BST    1111101ddddd0bbb     SBRC   1111110ddddd0bbb     SBRS   1111111ddddd0bbb
"""
NAMES = tuple(ENCODINGS.split()[::2])
UPPER = ("CPI", "SBCI", "SUBI", "ORI", "ANDI", "LDI", "MULS", "MULSU")  # r16 to r31 alone
SKIPS = ("CPSE", "SBRC", "SBRS")
BRANCHES = ("BRBS", "BRBC")
# fmt: off
ONE_CYCLE = (
    "ADD", "ADC", "SUB", "SUBI", "SBC", "SBCI", "AND", "ANDI", "OR", "ORI", "EOR", "COM", "NEG", "INC", "DEC", "CP",
    "CPC", "CPI", "MOV", "MOVW", "LDI", "IN", "OUT", "LSR", "ROR", "ASR", "SWAP", "BSET", "BCLR", "BST", "BLD", "NOP",
)
# fmt: on
SET = ("BRCS", "BREQ", "BRMI", "BRVS", "BRLT", "BRHS", "BRTS", "BRIE")  # BRBS of each flag, C first
CLEAR = ("BRCC", "BRNE", "BRPL", "BRVC", "BRGE", "BRHC", "BRTC", "BRID")
_OPERANDS = {  # of what decides about a path; others are named without
    **dict.fromkeys(BRANCHES, " 0x{0.target:x}"),
    "CPSE": " r{0.d}, r{0.r}",
    **dict.fromkeys(("SBRC", "SBRS"), " r{0.d}, 0x{0.k:x}"),
}

_CLASSES = {
    "move": r"MOVW?|LDI|IN|OUT|SWAP|BLD|BST|NOP|BSET|BCLR",
    "load": r"LD.*|LPM.*",
    "store": r"ST.*",
    "stack": r"PUSH|POP",
    "add": r"ADD|ADC|ADIW|SUB|SUBI|SBC|SBCI|SBIW|NEG|INC|DEC",
    "logic": r"AND|ANDI|OR|ORI|EOR|COM",
    "shift": r"ASR|LSR|ROR",
    "compare": r"CP|CPC|CPI",
    "multiply": r"MULS?U?",
    "branch": r"BRBS|BRBC|RJMP|JMP|CPSE|SBRC|SBRS",
    "call": r"CALL|RCALL|RET",
}


@dataclass(frozen=True)
class Decoded:
    """Hold one instruction: its name in the encodings, its fields as plain numbers, how many words it has."""

    name: str
    d: int  # the destination register, or the only one
    r: int  # the source register, or the address of an I/O register
    k: int  # a constant, a displacement, a bit, or the word address that is jumped to
    words: int

    @property
    def mnemonic(self) -> str:
        """Return the manual's name: LD for all its forms, a branch by its condition."""
        if self.name in BRANCHES:
            return (SET if self.name == "BRBS" else CLEAR)[self.d]
        return self.name.partition("_")[0]

    @property
    def target(self) -> int:
        """Return the byte address that is jumped to."""
        return 2 * self.k

    @property
    def text(self) -> str:
        """Format the instruction nearly as an assembler does: enough to find it in a listing."""
        return self.mnemonic.lower() + _OPERANDS.get(self.name, "").format(self)


@cache
def _patterns() -> tuple[tuple[str, int, int, dict[str, tuple[int, ...]], bool], ...]:
    """Return (name, mask, value, the bits of each field from the highest, two words) of every encoding."""
    made = []
    for name, pattern in zip(NAMES, ENCODINGS.split()[1::2], strict=True):
        bits = pattern.rstrip("*")
        mask = int("".join("1" if bit in "01" else "0" for bit in bits), 2)
        value = int("".join(bit if bit in "01" else "0" for bit in bits), 2)
        fields: dict[str, tuple[int, ...]] = {}
        for place, letter in enumerate(bits):
            if letter not in "01":
                fields[letter] = (*fields.get(letter, ()), 15 - place)
        made.append((name, mask, value, fields, pattern.endswith("*")))
    return tuple(sorted(made, key=lambda entry: -entry[1].bit_count()))  # the most exact first


def decode(word: int, following: int, at: int) -> Decoded | None:
    """Decode the instruction at word address `at`; None for a word that is no instruction.

    Registers are by number, jumps by the word address they go to.
    """
    found = next((each for each in _patterns() if word & each[1] == each[2]), None)
    if found is None:
        return None
    name, _, _, fields, two = found
    field = {letter: int("".join(str(word >> bit & 1) for bit in bits), 2) for letter, bits in fields.items()}
    d, r = field.get("d", 0), field.get("r", 0)
    if name == "MOVW":
        d, r = 2 * d, 2 * r
    elif name in UPPER:
        d, r = d + 16, r + 16
    elif name in ("ADIW", "SBIW"):
        d = 24 + 2 * d
    if name in ("RJMP", "RCALL"):
        k = at + 1 + _signed(field["k"], 12)
    elif name in BRANCHES:
        d, k = field["s"], at + 1 + _signed(field["k"], 7)
    elif two:
        k = field.get("k", 0) << 16 | following
    else:
        k = next((field[letter] for letter in "Kqbs" if letter in field), 0)
    return Decoded(name, d, field.get("A", r), k, 1 + two)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def instructions(code: bytes, start: int = 0) -> Iterator[tuple[int, Decoded | None]]:
    """Yield (word address, instruction) at every word of code that begins at byte `start`; data decode too."""
    words = [code[place] | code[place + 1] << 8 for place in range(0, len(code) - 1, 2)]
    for place, word in enumerate(words):
        yield start // 2 + place, decode(word, words[place + 1] if place + 1 < len(words) else 0, start // 2 + place)


def class_and_prices(one: Decoded, skipped_words: int, cpu: Cpu) -> tuple[str, float, float, str]:
    """Return an instruction's class, its cycles when it falls through and when it jumps, and a note on its row.

    The price is NaN where the table has none. `skipped_words` is the size of what a skip would jump over.
    """
    kind = next((kind for kind, pattern in _CLASSES.items() if re.fullmatch(pattern, one.name)), "other")
    try:
        row = cpu.instruction(one.mnemonic, "any", 8)
    except InputError as error:
        return kind, math.nan, math.nan, f"no price: {error}"
    price = taken = float(row.typical)
    if one.name in BRANCHES + SKIPS:
        price = float(row.min)
        taken = float(row.max if one.name in BRANCHES or skipped_words == 2 else row.typical)
    return kind, price, taken, row.flag("native")
