"""What an exponential costs where no table is looked up: the C library's, compiled now, on cores without floats."""

import struct
from importlib.util import find_spec
from pathlib import Path

from sensorsim.claims.claim import DEPENDS, FULL, Found, across, agrees, claim
from sensorsim.claims.costs import APPENDIX
from sensorsim.claims.setting import Setting
from sensorsim.files import temporary_folder

CORES = ("cortex-m0plus", "rv32imc")
TENTHS = range(-40, 41)  # the values of a, times ten
NEEDED = ("ziglang", "unicorn", "capstone")
NAME = "exponential"
SOURCE = f"float expf(float a);\nfloat {NAME}(float a);\nfloat {NAME}(float a)\n{{\n    return expf(a);\n}}\n"


def cycles(core: str) -> tuple[float, float]:
    """The mean and the largest cost of a call, by the core's table."""
    from sensorsim.cost.prices import load_cpu
    from sensorsim.machine.counting import BlockCounter, Tally
    from sensorsim.machine.elf import read_elf
    from sensorsim.machine.emulator import Machine
    from sensorsim.machine.instructions import Decoder
    from sensorsim.machine.targets import TARGETS, compile_elf

    target = TARGETS[core]
    with temporary_folder() as folder:
        source = Path(folder, f"{NAME}.c")
        source.write_text(SOURCE, "utf-8")
        program = read_elf(compile_elf(target, [source], [], NAME, Path(folder, f"{NAME}.elf")).read_bytes())
    machine, tally = Machine(target, program), Tally()
    counter = BlockCounter(machine, Decoder(target, load_cpu(target.cpu)))
    for tenths in TENTHS:
        machine.call(NAME, struct.unpack("<I", struct.pack("<f", tenths / 10)))  # a float in a register of words
        counter.take(tally)
    assert tally.price is not None  # each of these tables has all that runs here
    return tally.price.mean, tally.price.max


@claim(
    "cost-expf",
    f"{APPENDIX}, term A_j,i",
    "O_exp = {}, were it computed in place of looked up",
    "0",
    how="expf of the compiler's library, compiled now for two cores without a floating-point unit, run in their "
    "emulator at a = -4 to 4 in steps of 0.1 and priced by their tables",
    needs=FULL,
)
def cost_expf(_setting: Setting, printed: str) -> Found:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        return Found(f"not computed: {' and '.join(missing)} are not installed here", DEPENDS)
    found = {core: cycles(core) for core in CORES}
    text = ", ".join(f"{core} {mean:.0f} cycles, {most:.0f} at most" for core, (mean, most) in found.items())
    return Found(text, across(agrees(mean, printed) for mean, _ in found.values()))
