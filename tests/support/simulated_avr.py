"""simavr beside our AVR: the same code and memory through both. Needs libsimavr and a C compiler."""

import shutil
import subprocess
from pathlib import Path
from struct import pack, unpack

import pytest

BOARDS = Path(__file__).parent / "boards"


def build_simavr(folder):
    """The reference program, or a skip where simavr is not installed."""
    out = folder / "avr_state"
    if not (shutil.which("gcc") and Path("/usr/include/simavr").exists()):
        pytest.skip("libsimavr-dev is not installed")
    subprocess.run(["gcc", "-O2", BOARDS / "avr_state.c", "-lsimavr", "-o", out], check=True)
    return out


def in_simavr(program, cases):
    """For each (code, start, end, steps, memory): (steps, program counter, cycles, memory) afterwards."""
    sent = b"".join(
        pack("<5I", len(code), start, end, steps, len(memory)) + code + bytes(memory)
        for code, start, end, steps, memory in cases
    )
    got = subprocess.run([program], input=sent, capture_output=True, check=True).stdout
    place, answers = 0, []
    for *_, memory in cases:
        steps, pc, cycles = unpack("<3I", got[place : place + 12])
        answers.append((steps, pc, cycles, got[place + 12 : place + 12 + len(memory)]))
        place += 12 + len(memory)
    assert place == len(got)
    return answers
