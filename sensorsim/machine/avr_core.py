"""Interpret decoded AVR instructions; Numba compiles the loop.

Data memory begins with the 32 registers and the I/O registers, as on the chip. Flags are those of the instruction set
manual: bit 0 C, 1 Z, 2 N, 3 V, 4 S (N xor V), 5 H, 6 T, 7 I.
"""

from typing import Any

from sensorsim.machine.avr_decode import NAMES, ONE_CYCLE, SKIPS, Decoded
from sensorsim.machine.emulator import PRIME  # products keep their lower 64 bits
from sensorsim.machine.interpreted import ADDRESSES, DONE, LOWEST, NO_INSTRUCTION, PATH, PC, TOO_DEEP, TOO_LONG


def operation(name: str) -> str:
    """Return the interpreter's name of an instruction of the encodings."""
    if name != "LDI" and name.startswith(("LD", "ST")):
        return "LOAD" if name.startswith("LD") else "STORE"
    return name.partition("_")[0]


SPL, SPH, SREG, IO = 0x5D, 0x5E, 0x5F, 0x20  # in data memory: I/O register 0 lies at 0x20
Z = 30
# The encodings with all forms of a load and of a store as one; in the same order.
OPERATIONS = tuple(dict.fromkeys(operation(name) for name in NAMES))
# fmt: off
(NOP, MOVW, MULS, MULSU, CPC, SBC, ADD, CPSE, CP, SUB, ADC, AND, EOR, OR, MOV, CPI, SBCI, SUBI, ORI, ANDI, LDI, LOAD,
 STORE, LPM, POP, PUSH, COM, NEG, SWAP, INC, ASR, LSR, ROR, DEC, BSET, BCLR, RET, JMP, CALL, ADIW, SBIW, MUL, IN, OUT,
 RJMP, RCALL, BRBS, BRBC, BLD, BST, SBRC, SBRS) = range(len(OPERATIONS))
# fmt: on
PLAIN, ADDED, SUBTRACTED, LOGICAL, SHIFTED, WIDE = 0, 1, 2, 3, 4, 5  # how flags follow from the result


def row(one: Decoded | None, after: Decoded | None) -> tuple[int, ...]:
    """Return (operation, d, r, k, words, step) for the loop: r is the pointer of a load, step how it moves.

    The step of a skip is 1 where what it may skip, the instruction `after` it, takes one cycle either way.
    """
    if one is None:
        return -1, 0, 0, 0, 1, 0
    mode = one.name.partition("_")[2]
    if one.name in SKIPS:
        return OPERATIONS.index(one.name), one.d, one.r, one.k, 1, int(after is not None and after.name in ONE_CYCLE)
    step = 1 if mode.endswith("I") else -1 if mode.startswith("D") else 0
    pointer = {"X": 26, "Y": 28, "Z": 30}.get(mode.strip("ID"), 0)
    source = pointer if operation(one.name) in ("LOAD", "STORE") else one.r
    return OPERATIONS.index(operation(one.name)), one.d, source, one.k, one.words, step


def loop(
    code: Any, flash: Any, memory: Any, end: int, counts: Any, taken: Any, report: Any, limit: int, floor: int
) -> int:
    """Run from report[PC] until `end` is reached; return DONE, or why it stopped.

    `code` has a row (see `row`) for each word of flash. `counts` and `taken` get for each how often it
    ran and how often it jumped or skipped. All addresses of code are in words.
    Every array is of signed words: Numba would make floats of sums of signed and unsigned ones.
    """
    size, pc, steps = len(code), report[PC], 0
    path, places, lowest = report[PATH], report[ADDRESSES], report[LOWEST]
    sreg, status = memory[SREG], DONE
    while pc != end:
        if pc < 0 or pc >= size or code[pc, 0] < 0:
            status = NO_INSTRUCTION
            break
        if steps >= limit:
            status = TOO_LONG
            break
        op, d, r, k, step = code[pc, 0], code[pc, 1], code[pc, 2], code[pc, 3], code[pc, 5]
        counts[pc] += 1
        steps += 1
        here, pc = pc, pc + code[pc, 4]
        flags, a, b, result, at = PLAIN, 0, 0, 0, -1
        if op == LDI:
            memory[d] = k
        elif op == MOV:
            memory[d] = memory[r]
        elif op == MOVW:
            memory[d], memory[d + 1] = memory[r], memory[r + 1]
        elif op in (ADD, ADC):
            a, b, flags = memory[d], memory[r], ADDED
            result = a + b + (sreg & 1 if op == ADC else 0)
            memory[d] = result & 255
        elif op in (SUB, SBC, CP, CPC):
            a, b, flags = memory[d], memory[r], SUBTRACTED
            result = a - b - (sreg & 1 if op in (SBC, CPC) else 0)
            if op in (SUB, SBC):
                memory[d] = result & 255
        elif op in (SUBI, SBCI, CPI):
            a, b, flags = memory[d], k, SUBTRACTED
            result = a - b - (sreg & 1 if op == SBCI else 0)
            if op != CPI:
                memory[d] = result & 255
        elif op == NEG:
            b, flags = memory[d], SUBTRACTED
            result = -b
            memory[d] = result & 255
        elif op in (AND, OR, EOR, ANDI, ORI, COM):
            a, flags = memory[d], LOGICAL
            b = k if op in (ANDI, ORI) else memory[r]
            if op in (AND, ANDI):
                result = a & b
            elif op in (OR, ORI):
                result = a | b
            elif op == EOR:
                result = a ^ b
            else:
                result = 255 - a
                sreg |= 1
            memory[d] = result
        elif op in (LSR, ASR, ROR):
            a, flags = memory[d], SHIFTED
            top = 0 if op == LSR else (a & 128 if op == ASR else (sreg & 1) << 7)
            result = a >> 1 | top
            memory[d] = result
        elif op in (INC, DEC):
            result = (memory[d] + (1 if op == INC else -1)) & 255
            memory[d] = result
            over = result == (128 if op == INC else 127)
            sreg = sreg & 0xE1 | (result == 0) << 1 | result >> 7 << 2 | over << 3 | (result >> 7 ^ over) << 4
        elif op in (ADIW, SBIW):
            a, flags = memory[d] | memory[d + 1] << 8, WIDE
            result = (a + k if op == ADIW else a - k) & 0xFFFF
            memory[d], memory[d + 1] = result & 255, result >> 8
        elif op in (MUL, MULS, MULSU):
            a, b = memory[d], memory[r]
            if op != MUL and a > 127:
                a -= 256
            if op == MULS and b > 127:
                b -= 256
            result = a * b & 0xFFFF
            memory[0], memory[1] = result & 255, result >> 8
            sreg = sreg & 0xFC | result >> 15 | (result == 0) << 1
        elif op in (BRBS, BRBC):
            if (sreg >> d & 1) == (1 if op == BRBS else 0):
                pc = k
                taken[here] += 1
            path = (path ^ pc) * PRIME
        elif op in (CPSE, SBRC, SBRS):
            skip = memory[d] == memory[r] if op == CPSE else (memory[d] >> k & 1) == (1 if op == SBRS else 0)
            if skip and step:  # takes its one cycle whether it is skipped or not: the same path in time
                counts[pc] += 1
                steps += 1
                pc += 1
            elif not step:
                if skip:
                    pc += code[pc, 4]
                    taken[here] += 1
                path = (path ^ pc) * PRIME
        elif op in (RJMP, JMP):
            pc = k
        elif op in (PUSH, CALL, RCALL):
            sp = memory[SPL] | memory[SPH] << 8
            if op == PUSH:
                memory[sp] = memory[d]
                sp -= 1
            else:
                memory[sp], memory[sp - 1] = pc & 255, pc >> 8
                sp -= 2
                pc = k
            memory[SPL], memory[SPH] = sp & 255, sp >> 8
            lowest = min(lowest, sp)
            if lowest < floor:
                status = TOO_DEEP
                break
        elif op in (POP, RET):
            sp = memory[SPL] | memory[SPH] << 8
            if op == POP:
                sp += 1
                memory[d] = memory[sp]
            else:
                pc = memory[sp + 1] << 8 | memory[sp + 2]
                sp += 2
            memory[SPL], memory[SPH] = sp & 255, sp >> 8
        elif op in (LOAD, STORE):
            at = k
            if r:
                at = (memory[r] | memory[r + 1] << 8) + (step if step < 0 else k) & 0xFFFF
                if step:
                    moved = at + 1 & 0xFFFF if step > 0 else at
                    memory[r], memory[r + 1] = moved & 255, moved >> 8
            memory[SREG] = sreg
            if op == LOAD:
                memory[d] = memory[at]
            else:
                memory[at] = memory[d]
            sreg = memory[SREG]
        elif op == LPM:
            at = memory[Z] | memory[Z + 1] << 8
            memory[d] = flash[at]
            if step:
                memory[Z], memory[Z + 1] = at + 1 & 255, at + 1 >> 8 & 255
        elif op in (IN, OUT):
            memory[SREG] = sreg
            if op == IN:
                memory[d] = memory[IO + r]
            else:
                memory[IO + r] = memory[d]
            sreg = memory[SREG]
            if op == OUT and IO + r == SPL:  # compilers write the upper byte first
                lowest = min(lowest, memory[SPL] | memory[SPH] << 8)
        elif op == SWAP:
            memory[d] = memory[d] >> 4 | (memory[d] & 15) << 4
        elif op == BSET:
            sreg |= 1 << k
        elif op == BCLR:
            sreg &= 255 - (1 << k)
        elif op == BST:
            sreg = sreg & 0xBF | (memory[d] >> k & 1) << 6
        elif op == BLD:
            memory[d] = memory[d] & 255 - (1 << k) | (sreg >> 6 & 1) << k
        if flags != PLAIN:
            carry, over, half, zero = sreg & 1, 0, sreg >> 5 & 1, 0
            if flags == WIDE:
                zero, negative = result == 0, result >> 15
                over = (result & ~a if op == ADIW else a & ~result) >> 15 & 1
                carry = (a & ~result if op == ADIW else result & ~a) >> 15 & 1
            else:
                small = result & 255
                zero, negative = small == 0, small >> 7
                if flags == ADDED:
                    moved = a & b | (a | b) & ~small
                    over = (a & b & ~small | ~a & ~b & small) >> 7 & 1
                elif flags == SUBTRACTED:
                    moved = ~a & b | (~a | b) & small
                    over = (a & ~b & ~small | ~a & b & small) >> 7 & 1
                    if op in (SBC, SBCI, CPC):
                        zero = zero and (sreg >> 1 & 1) == 1
                else:
                    moved = carry << 7 | half << 3
                    if flags == SHIFTED:
                        moved = (a & 1) << 7 | half << 3
                        over = negative ^ a & 1
                carry, half = moved >> 7 & 1, moved >> 3 & 1
            tops = half << 5 | (negative ^ over) << 4 | over << 3
            sreg = sreg & 0xC0 | tops | negative << 2 | (1 if zero else 0) << 1 | carry
        if at >= 0:
            places = (places ^ at) * PRIME
    memory[SREG] = sreg
    report[PC], report[PATH], report[ADDRESSES], report[LOWEST] = pc, path, places, lowest
    return status
