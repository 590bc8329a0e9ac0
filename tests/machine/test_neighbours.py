"""Prices of RISC-V instructions where they stand: cycles that a simulated Ibex with its writeback stage takes."""

import pytest

from sensorsim.costing.prices import load_cpu
from sensorsim.machine.instructions import Decoder
from sensorsim.machine.targets import TARGETS

START = 0x10000
# Encoded by hand from the instruction set manual.
ADD_T1_T0_A1 = 0x00B28333
ADD_T1_A1_A1 = 0x00B58333
LW_T0 = 0x00052283  # lw t0, 0(a0)
SW_T0 = 0x00552023  # sw t0, 0(a0)
BEQ_6 = 0x00B58363  # beq a1, a1, .+6
BEQ_8 = 0x00B58463
JAL_6 = 0x006000EF  # jal ra, .+6
AUIPC_RA = 0x00000097  # auipc ra, 0
JALR_RA_14 = 0x00E080E7  # jalr ra, 14(ra)
NOP = 0x00000013
C_NOP, C_MV_A0_T0, C_ADDI_T0 = 0x0001, 0x8516, 0x0285  # c.nop; c.mv a0, t0; c.addi t0, 1


def code_of(*instructions):
    """32-bit instructions and, below 2^16, those of 16 bits."""
    return b"".join(one.to_bytes(4 if one & 3 == 3 else 2, "little") for one in instructions)


def prices(block, behind=b"", table="ibex-large"):
    """(price, price when it jumps) of each instruction of a block, with what lies behind it in memory."""
    memory = block + behind + bytes(16)
    decoder = Decoder(TARGETS["rv32imc"], load_cpu(table))
    found = decoder.block(START, block, lambda address, size: memory[address - START :][:size])
    return [(one.price, one.price_taken) for one in found]


@pytest.mark.parametrize(
    "after, cycles",
    [
        (ADD_T1_T0_A1, 2),
        (ADD_T1_A1_A1, 1),
        (SW_T0, 2),  # what is stored counts
        (LW_T0, 1),  # it is written again, not read
        (C_MV_A0_T0, 2),
        (C_ADDI_T0, 2),  # its one register is read and written
        (NOP, 1),
    ],
)
def test_a_load_waits_for_nobody_unless_it_is_used_next(after, cycles):
    assert prices(code_of(LW_T0, after))[0][0] == cycles
    assert prices(code_of(LW_T0, NOP, after))[0][0] == 1
    assert prices(code_of(LW_T0, after), table="ibex")[0][0] == 2  # without the stage it always waits


def test_a_taken_branch_to_a_whole_word_and_across_two():
    assert prices(code_of(BEQ_8), code_of(NOP, NOP)) == [(1, 2)]
    assert prices(code_of(BEQ_6), code_of(C_NOP, NOP)) == [(1, 3)]
    assert prices(code_of(BEQ_6), code_of(C_NOP, C_NOP)) == [(1, 2)]  # 16 bits lie in one word
    assert prices(code_of(BEQ_6), code_of(C_NOP, NOP), "ibex") == [(1, 4)]


def test_a_call_and_where_it_returns_to():
    assert prices(code_of(JAL_6), code_of(C_NOP, C_NOP)) == [(2, 2)]
    assert prices(code_of(JAL_6), code_of(C_NOP, NOP)) == [(3, 3)]
    # At 2: it returns to 6, a word of 32 bits across two; it lands on 8.
    assert prices(code_of(C_NOP, JAL_6), code_of(NOP, NOP))[1] == (3, 3)


def test_a_far_call():
    assert prices(code_of(AUIPC_RA, JALR_RA_14), code_of(NOP, C_NOP, NOP))[1] == (3, 3)
    assert prices(code_of(AUIPC_RA, JALR_RA_14), code_of(NOP, C_NOP, C_NOP))[1] == (2, 2)
    assert prices(code_of(AUIPC_RA, JALR_RA_14), code_of(NOP, C_NOP, NOP), "cv32e40p")[1] == (5, 5)


def test_a_jump_that_does_not_come_back():
    tail = 0x00C30067  # jalr zero, 12(t1)
    auipc = 0x00000317  # auipc t1, 0
    block = code_of(C_NOP, auipc, tail)  # it would return to 10, across two words; it lands on 14, across two as well
    assert prices(block, code_of(NOP, NOP, NOP))[2] == (3, 3)
    assert prices(block, code_of(NOP, C_NOP, C_NOP))[2] == (2, 2)


def test_without_the_code_around_it_a_jump_takes_what_is_typical():
    decoder = Decoder(TARGETS["rv32imc"], load_cpu("ibex"))
    (branch,) = decoder.block(START, code_of(BEQ_6))
    assert (branch.price, branch.price_taken) == (1, 3)
