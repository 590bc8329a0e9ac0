"""The C functions behind primitives that are no plain C operator: the parts of `arithmetic.h` that a package needs.

A choice between two words must not become a branch: its direction would show in the time taken. A compiler is free to
make one of `?:`, and does (clang on the M0+, on RISC-V, and on Thumb-2 in a debug build). So the sign or the borrow of
a difference gives a mask that makes the choice, and an empty piece of assembly keeps the compiler from seeing through.

A compiler for a core without long instructions calls a routine of its runtime for a 64-bit product or a shift by a
count. Its time may depend on the operands, and a firmware may not link it. So both are done word by word.
"""

import re
from functools import cache
from pathlib import Path

DEFINED = re.compile(r"^(?:static [\w ]+?\b|#define )(ss_\w+)\(", re.MULTILINE)
USED = re.compile(r"\bss_\w+")
HEADER, LOCAL, *PARTS, _END = re.split(r"// ---.*\n", Path(__file__).with_name("arithmetic.h").read_text("utf-8"))
# For the public header: on which cores the statements about time hold.
HOLDS = (
    "What is said of time is proved of the source. It holds on cores that add, shift and multiply in the same time for "
    "all operands: x86, Arm (ARMv6 or later, so every Cortex-M) and RISC-V. It does not hold on AVR and MSP430, which "
    "shift one bit at a time: their compilers make loops and branches of shifts and comparisons, some of them on "
    "secrets. On x86, Arm, RISC-V with M or Zmmul and AVR with MUL, products are the core's own: define SS_NO_HW_MUL "
    "where its multiplier ends early (Ibex with the slow multiplier does). On all other cores a product is 32 steps of "
    "C, unless SS_HW_MUL is defined. A division on secrets is named where there is one; only with SS_NO_HW_DIV does it "
    "take the same time for all operands. Your compiler may still make a branch: verification with your compiler, or "
    "of your image, looks for it."
)


@cache
def standard_helpers(form: str) -> tuple[str, ...]:
    """Return the parts of `arithmetic.h` that a C expression needs, in the order of the file."""
    wanted = set(USED.findall(form))
    found: list[str] = []
    for part in reversed(PARTS):  # a function stands behind those that it calls
        if not wanted.isdisjoint(DEFINED.findall(part)):
            wanted |= set(USED.findall(part))
            found.insert(0, part)
    return tuple(found)
