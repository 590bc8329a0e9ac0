"""Decode machine instructions, sort them into classes and price them by the processor's table."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.costing.csv_schema import Span
from sensorsim.costing.prices import Cpu
from sensorsim.machine.targets import Target

# In the order of a report. Address arithmetic is what has its own instructions (LEA, ADR, LUI, AUIPC): an ADD that
# moves a pointer cannot be told from one that adds data.
CLASSES = (
    *("move", "load", "store", "stack", "address", "add", "logic", "shift", "compare", "select"),
    *("multiply", "wide multiply", "divide", "branch", "call", "other"),
)

_PATTERNS = {
    # name of the instruction, without suffixes that only set flags or choose an encoding: class
    "x86": {
        "move": r"mov|movzx|movsx|xchg|bswap|nop|cdq|cwde|cbw|cwd|endbr32",
        "stack": r"push|pop|leave",
        "address": r"lea",
        "add": r"add|sub|inc|dec|neg|adc|sbb",
        "logic": r"and|or|xor|not",
        "shift": r"shl|shr|sar|sal|rol|ror|shld|shrd",
        "compare": r"cmp|test|bt|set\w+",
        "select": r"cmov\w+",
        "multiply": r"imul",
        "wide multiply": r"mul",
        "divide": r"div|idiv",
        "call": r"call|ret",
        "branch": r"jmp|j\w+",
    },
    "thumb": {
        "move": r"mov|movs|movw|movt|uxt[bh]|sxt[bh]|nop|rev(16|sh)?|ubfx|sbfx|bfi|bfc",
        "stack": r"push|pop",
        "load": r"ldr(b|h|sb|sh|d)?|ldm\w*",
        "store": r"str(b|h|d)?|stm\w*",
        "address": r"adr|adr\.w",
        "add": r"adds?|addw|subs?|subw|rsbs?|rsb|negs?|adcs?|sbcs?|[us]xta[bh]",
        "logic": r"ands?|orrs?|orns?|eors?|bics?|mvns?",
        "shift": r"lsls?|lsrs?|asrs?|rors?|rrxs?|clz|rbit",
        "compare": r"cmp|cmn|tst|teq",
        "select": r"it[te]{0,3}|usat|ssat|sel",
        "multiply": r"muls?|mla|mls|smul\w+|smla[bt]{2}",
        "wide multiply": r"umull|smull|umlal|smlal",
        "divide": r"udiv|sdiv",
        "call": r"bl|blx|bx",
        "branch": r"b|b\w\w|cbz|cbnz|tb[bh]",
    },
    "riscv32": {
        "move": r"mv|li|nop",
        "load": r"l[bhw]u?|lwsp",
        "store": r"s[bhw]|swsp",
        "address": r"lui|auipc",
        "add": r"add|addi|sub|neg|addi16sp|addi4spn",
        "logic": r"and|andi|or|ori|xor|xori|not",
        "shift": r"sll|slli|srl|srli|sra|srai",
        "compare": r"slt|sltu|slti|sltiu|seqz|snez|sltz|sgtz",
        "multiply": r"mul",
        "wide multiply": r"mulh|mulhu|mulhsu",
        "divide": r"div|divu|rem|remu",
        "call": r"jal|jalr|ret|jr",
        "branch": r"b\w+|j",
    },
}


# Their rows may have a range by their neighbours or by the memory, not by the operands. Whether a branch is taken is a
# matter of the path, and which address a load has a matter of the addresses.
NOT_BY_OPERANDS = ("load", "store", "stack", "select", "branch", "call")
Reader = Callable[[int, int], bytes]  # address and size of code
_NUMBER = re.compile(r"-?(0x[0-9a-f]+|\d+)")
_REGISTER = re.compile(r"\b(ra|sp|gp|tp|[ast]\d+)\b")
_READS_ALL = re.compile(r"s[bhw]|swsp|b\w+|jr|ret")  # nothing is written, or to memory
_COMPRESSED = re.compile(r"c\.(addi?|addi16sp|sub|andi?|or|xor|slli|srli|srai)")  # the first register is read too
ALWAYS = (0, 15)  # conditions of an Arm instruction that is not conditional


@dataclass(frozen=True)
class Instruction:
    """Hold one decoded instruction: its class, and its price when it falls through and when it jumps."""

    address: int
    text: str
    kind: str
    price: float
    price_taken: float
    conditional: bool
    note: str  # "disputed", "estimate" or nothing: what the table says of the row; or that it has none
    price_max: float = math.nan  # the largest when it falls through, for any operands and neighbours
    price_taken_max: float = math.nan  # the same when it jumps
    timed: tuple[float, float] | None = None  # least and largest price where that depends on the operands
    reads: tuple[str, ...] = ()  # of a timed one: the registers that it reads

    @property
    def plural(self) -> str:
        """Return the plural of its class, for messages."""
        return {"divide": "divisions", "multiply": "multiplications", "wide multiply": "wide multiplications"}.get(
            self.kind, f"instructions ({self.kind})"
        )


class Decoder:
    """Decode blocks for one core and price them by its table; the price of an instruction without a row is NaN."""

    def __init__(self, target: Target, cpu: Cpu) -> None:
        import capstone

        self.target, self.cpu = target, cpu
        self.family = target.family
        arch, mode = {
            "x86": (capstone.CS_ARCH_X86, capstone.CS_MODE_32),
            "thumb": (capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS),
            "riscv32": (capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV32 | capstone.CS_MODE_RISCVC),
        }[self.family]
        self.capstone = capstone.Cs(arch, mode)
        self.capstone.detail = True
        self.classes = {kind: re.compile(pattern) for kind, pattern in _PATTERNS[self.family].items()}

    def block(self, address: int, code: bytes, read: Reader | None = None) -> list[Instruction]:
        """Decode a block; `read` returns the code that a jump lands on, which may change the jump's price."""
        decoded = list(self.capstone.disasm(code, address))
        if sum(len(raw.bytes) for raw in decoded) != len(code):
            raise InputError(f"the code at 0x{address:x} on {self.target.name} cannot be decoded.")
        made = [self.instruction(raw) for raw in decoded]
        return made if self.family != "riscv32" else self.price_in_place(decoded, made, read)

    def price_in_place(
        self, raws: Sequence[Any], made: Sequence[Instruction], read: Reader | None
    ) -> list[Instruction]:
        """Price the instructions of a RISC-V block where they stand, within the range of their rows.

        A load takes the least where the next instruction does not use what it loads, and the most where it does. A jump
        or a taken branch takes what is typical, and the most where it lands on a 32-bit instruction across two words:
        the core must fetch twice. The place that a call returns to counts with the call. With these two rules the
        prices of Ibex are those of its register-transfer simulation to the cycle (test_rtl.py). Not distinguished: a
        return on CV32E40P that waits a cycle since its address was loaded just before. `read` returns the code at an
        address. The largest prices stay those of any place; a call may be slow twice: where it lands and returns to.
        """
        placed = []
        for place, (raw, known) in enumerate(zip(raws, made, strict=True)):
            price, taken = known.price, known.price_taken
            if known.kind in ("load", "branch", "call") and not math.isnan(price):
                cost = self.cost(raw)
                if known.kind == "load":
                    used = place + 1 < len(raws) and bool(written_register(raw) & read_registers(raws[place + 1]))
                    price = taken = float(cost.max if used else cost.min)
                else:
                    taken = float(cost.typical + (cost.max - cost.typical) * _straddled(raws, place, read))
                    price = price if known.conditional else taken
            twice = known.price_max - known.price if known.kind == "call" else 0.0
            most, most_taken = max(known.price_max + twice, price), max(known.price_taken_max, taken)
            most_taken = most_taken if known.conditional else most
            placed.append(replace(known, price=price, price_taken=taken, price_max=most, price_taken_max=most_taken))
        return placed

    def cost(self, raw: Any) -> Span:
        """Return the cost of an instruction by its row."""
        name, operands, width, registers = _FORMS[self.family](raw)
        return self.cpu.instruction(name, operands, width).cost(registers)

    def instruction(self, raw: Any) -> Instruction:
        """Classify and price one instruction by itself."""
        name, operands, width, registers = _FORMS[self.family](raw)
        kind = self.classify(name, operands)
        returns_if = self.family == "thumb" and name == "BX" and raw.cc not in ALWAYS  # in an IT block
        conditional = returns_if or (kind == "branch" and name.upper() not in ("B", "JMP", "J"))
        text = f"{raw.mnemonic} {raw.op_str}".strip()
        try:
            row = self.cpu.instruction(name, operands, width)
            cost = row.cost(registers)
        except InputError as error:
            timed = (math.nan, math.nan) if kind == "divide" else None
            note, reads = f"no price: {error}", self.reads(raw) if timed else ()
            return Instruction(raw.address, text, kind, math.nan, math.nan, conditional, note, timed=timed, reads=reads)
        # A conditional branch costs the least when it falls through and the most when it is taken.
        price, taken = (cost.min, cost.max) if conditional else (cost.typical, cost.typical)
        if returns_if:
            price = 1  # a skipped instruction of an IT block takes its slot
        timed = self.timed(raw, kind, cost)
        prices, most = (float(price), float(taken)), (float(price if conditional else cost.max), float(cost.max))
        reads = self.reads(raw) if timed else ()
        return Instruction(raw.address, text, kind, *prices, conditional, row.flag("native"), *most, timed, reads)

    def reads(self, raw: Any) -> tuple[str, ...]:
        """Return the registers that an instruction reads, those of an address too."""
        if self.family == "riscv32":  # capstone does not tell; the first operand is what is written
            return tuple(part.strip() for part in raw.op_str.split(",")[1:] if part.strip()[0].isalpha())
        return tuple(raw.reg_name(register) for register in raw.regs_access()[0])

    def timed(self, raw: Any, kind: str, cost: Span) -> tuple[float, float] | None:
        """Return the least and the largest price of an instruction whose time depends on its operands.

        A division always counts: where its row has one price, a division by zero is still done earlier.
        """
        if kind in NOT_BY_OPERANDS:
            return None
        least = cost.min
        if self.family == "thumb" and raw.cc not in ALWAYS and least == cost.max:
            least = 1  # in an IT block it may be skipped
        return (float(least), float(cost.max)) if least < cost.max or kind == "divide" else None

    def classify(self, name: str, operands: str) -> str:
        """Return the class of an instruction."""
        for kind, pattern in self.classes.items():
            if pattern.fullmatch(name.lower()):
                if self.family == "x86" and kind == "move" and "m" in operands:
                    return "store" if operands.startswith("m") else "load"
                if self.family == "x86" and kind == "multiply" and "," not in operands:
                    return "wide multiply"
                return kind
        return "other"


def _straddled(raws: Sequence[Any], place: int, read: Reader | None) -> int:
    """Count how often a jump lands on a 32-bit instruction that lies across two words."""
    raw = raws[place]
    places = [_target(raw, raws[place - 1] if place else None)]
    if raw.mnemonic.removeprefix("c.") in ("jal", "jalr") and not raw.op_str.startswith("zero"):
        places.append(raw.address + raw.size)  # where it returns to
    return sum(at is not None and at % 4 == 2 and read is not None and read(at, 2)[0] & 3 == 3 for at in places)


def _target(raw: Any, before: Any) -> int | None:
    """Return where a jump goes; None for a register that the instruction before it did not set."""
    last = raw.op_str.rpartition(",")[2].strip()
    number = int(last, 0) if _NUMBER.fullmatch(last) else None
    if not raw.mnemonic.removeprefix("c.").startswith(("jr", "jalr", "ret")):
        return None if number is None else int(raw.address + number)
    if number is None or before is None or before.mnemonic != "auipc":
        return None
    if not written_register(before) & read_registers(raw):
        return None
    return int(before.address + (int(before.op_str.rpartition(",")[2], 0) << 12) + number & 0xFFFFFFFF)


def written_register(raw: Any) -> set[str]:
    """Return the register that a RISC-V instruction writes."""
    return set() if _READS_ALL.fullmatch(raw.mnemonic.removeprefix("c.")) else set(_REGISTER.findall(raw.op_str)[:1])


def read_registers(raw: Any) -> set[str]:
    """Return the registers that a RISC-V instruction reads."""
    names, plain = _REGISTER.findall(raw.op_str), raw.mnemonic.removeprefix("c.")
    if plain == "ret":
        return {"ra"}
    all_of_them = _READS_ALL.fullmatch(plain) or _COMPRESSED.fullmatch(raw.mnemonic)
    return set(names if all_of_them or (plain == "jalr" and len(names) == 1) else names[1:])


def _x86_form(raw: Any) -> tuple[str, str, int | str, int]:
    from capstone.x86 import X86_OP_IMM, X86_OP_MEM, X86_OP_REG

    name = raw.mnemonic.split()[-1].upper()
    letters = {X86_OP_REG: "r", X86_OP_IMM: "i", X86_OP_MEM: "m"}
    forms = [letters[operand.type] for operand in raw.operands]
    width: int | str = raw.operands[0].size * 8 if raw.operands else 32
    if name.startswith("J") or name == "CALL":
        forms = ["rel" if form == "i" else form for form in forms]
    elif name in ("SHL", "SHR", "SAR", "ROL", "ROR", "SHLD", "SHRD"):
        if raw.op_str.rsplit(",", 1)[-1].strip() == "cl":
            forms[-1] = "CL"
        elif len(forms) == 1:
            forms.append("i")  # the short form of a shift by one
    if name == "RET":
        forms = []
    return name, ",".join(forms), width, 0


def _arm_form(raw: Any) -> tuple[str, str, int | str, int]:
    name = raw.mnemonic.removesuffix(".w").removesuffix(".n").upper()
    operands = raw.op_str
    registers = 0
    own = name.startswith("IT") or (name.startswith("B") and not re.fullmatch("(BX|BIC)..", name))
    if raw.cc not in ALWAYS and not own:  # in an IT block
        name = name[:-2]
    if name in ("LDMIA", "STMIA", "LDMDB", "STMDB"):
        name = name[:3]
    if "{" in operands:
        listed = operands[operands.index("{") + 1 : operands.index("}")].split(",")
        registers = len(listed)
        form = "regs+pc" if any(item.strip() == "pc" for item in listed) else "regs"
    else:
        form = next((form for pattern, form in _ARM_FORMS.items() if re.fullmatch(pattern, name)), "any")
    if name.endswith("S") and name[:-1] in _FLAG_SETTERS:
        name = name[:-1]
    if name in ("ADDW", "SUBW"):
        name = name[:-1]  # the same operation with a longer constant
    if re.fullmatch("IT[TE]+", name):
        name = "IT"  # one instruction, however many it makes conditional
    width = {"B": 8, "H": 16, "D": 64}.get(name[-1], 32) if name.startswith(("LDR", "STR")) else 32
    return name, form, width, registers


_ARM_FORMS = {
    "LDRD": "r,r,m",
    "STRD": "m,r,r",
    "LDR(B|H|SB|SH)?": "r,m",
    "STR(B|H)?": "m,r",
    "BL?X": "r",
    "CBN?Z": "r,rel",
    "TB[BH]": "m",
    "BL|B|B(EQ|NE|CS|HS|CC|LO|MI|PL|VS|VC|HI|LS|GE|LT|GT|LE)": "rel",
}
_FLAG_SETTERS = {
    *("ADD", "SUB", "RSB", "AND", "ORR", "ORN", "EOR", "BIC", "MVN", "MOV"),
    *("LSL", "LSR", "ASR", "ROR", "RRX", "MUL", "ADC", "SBC", "NEG"),
}


def _riscv_form(raw: Any) -> tuple[str, str, int | str, int]:
    name = raw.mnemonic.removeprefix("c.").upper()
    name = {"LWSP": "LW", "SWSP": "SW", "ADDI16SP": "ADDI", "ADDI4SPN": "ADDI"}.get(name, name)
    parts = [part.strip() for part in raw.op_str.split(",")] if raw.op_str else []
    compressed = raw.mnemonic.startswith("c.")
    if name in ("LW", "LH", "LHU", "LB", "LBU", "SW", "SH", "SB"):
        return name, "r,m" if name[0] == "L" else "m,r", {"W": 32, "H": 16, "B": 8}[name[1]], 0
    if name.startswith("B"):
        return name, ",".join(["r"] * (len(parts) - 1) + ["rel"]), 32, 0
    if name in ("J", "JAL", "JR", "JALR", "RET"):
        return name, {"J": "rel", "JR": "r", "RET": ""}.get(name, "any"), 32, 0
    forms = ["i" if re.fullmatch(r"-?(0x)?[0-9a-f]+", part) and not part.startswith("a") else "r" for part in parts]
    if compressed and len(parts) == 2 and name in _TWO_ADDRESS:
        forms = ["r", *forms]  # c.add rd, rs is add rd, rd, rs
    return name, ",".join(forms), 32, 0


_TWO_ADDRESS = {"ADD", "ADDI", "SUB", "AND", "ANDI", "OR", "XOR", "SLLI", "SRLI", "SRAI"}
_FORMS = {"x86": _x86_form, "thumb": _arm_form, "riscv32": _riscv_form}
