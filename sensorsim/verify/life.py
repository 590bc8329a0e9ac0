"""The sensor inside a program beside the firmware model: both go through one life, step by step.

A life has releases, resets, power cuts in the middle of stores, flash that wears out, entropy that fails, a clock that
runs backward and a journal that is damaged. After every step both must have answered the same and left the same in
flash.
"""

from dataclasses import dataclass, replace
from typing import Any

from sensorsim.device.firmware import Firmware
from sensorsim.device.sensor import Sensor
from sensorsim.device.status import Status
from sensorsim.errors import FailedProofError
from sensorsim.kernels.journal import IDENTITY_AT, IDENTITY_BYTES, RESERVE_AT
from sensorsim.machine.elf import Program
from sensorsim.machine.emulated_sensor import EmulatedSensor
from sensorsim.machine.targets import Target
from sensorsim.verify.life_steps import Answer, Board, answer, steps_of

MOST_TRIED = 1000


@dataclass(frozen=True)
class Life:
    """What both went through. `difference` is the first, in words, and empty where there was none."""

    releases: int
    resets: int
    cuts: int
    steps: int
    difference: str


def core_sensor(target: Target, program: Program, firmware: Firmware, prefix: str, board: Board) -> EmulatedSensor:
    """Return the program's sensor on a board."""
    return EmulatedSensor(target, program, firmware, prefix, board.flash, board.draw, board.clock)


def as_built(target: Target, program: Program, firmware: Firmware, prefix: str) -> tuple[Firmware, tuple[str, ...]]:
    """The firmware with the budget and the reserve that the program was built with, and how they differ.

    A package lets a build allow fewer releases, or count others ahead. What the certificate speaks of must be the same.
    """
    board, notes = Board(), []
    core = core_sensor(target, program, firmware, prefix, board)
    status = answer(core.open)
    if status != Status.OK:
        raise FailedProofError(f"{prefix}sensor_open on blank memory answers {_said(status)}, the model OK.")
    slot = board.flash.load(0)
    if slot[IDENTITY_AT : IDENTITY_AT + IDENTITY_BYTES] != firmware.journal_identity:
        raise FailedProofError(
            "the journal's identity is not the package's: the image was built from another table, encoder, sketch or "
            "length of an epoch; build it from this package."
        )
    upper, reserve = prefix.upper(), slot[RESERVE_AT]
    asks = f"{prefix}sensor_left" in program.symbols
    budget = answer(core.left) if asks else _allowed(core, firmware)
    if not isinstance(budget, int):
        raise FailedProofError(f"{prefix}sensor_left gives no number: {budget}")
    if budget > firmware.releases or budget < 1:
        raise FailedProofError(
            f"{upper}BUDGET: the image allows {budget} releases in an epoch and the package {firmware.releases}; "
            "build it from this package."
        )
    if reserve > budget:
        raise FailedProofError(f"{upper}RESERVE: the image counts {reserve} ahead, more than the {budget} it allows.")
    if budget != firmware.releases:
        notes.append(f"{upper}BUDGET is {budget} in the image and {firmware.releases} in the package, which allows it")
        firmware = replace(firmware, budget_epsilon=str(budget * firmware.epsilon), reserve=1)
    if reserve != firmware.reserve:
        notes.append(f"{upper}RESERVE is {reserve} in the image and {firmware.reserve} in the package")
        firmware = replace(firmware, reserve=reserve)
    return firmware, tuple(notes)


def _allowed(core: EmulatedSensor, firmware: Firmware) -> int:
    """Releases of one epoch, tried; a budget that is too large to try is taken as the package's."""
    if firmware.releases > MOST_TRIED:
        return firmware.releases
    for made in range(firmware.releases + 1):
        status = answer(core.release, [0] * firmware.n)
        if not isinstance(status, tuple) or status[0] != Status.OK:
            return made
    return firmware.releases + 1


def live(target: Target, program: Program, firmware: Firmware, prefix: str, releases: int, seed: int = 1) -> Life:
    """Put both through the same life, until they differ or the releases are made."""
    asks, closes = (f"{prefix}sensor_{call}" in program.symbols for call in ("left", "close"))
    boards = (Board(asks=asks), Board(asks=asks))
    core = core_sensor(target, program, firmware, prefix, boards[1])
    model = Sensor(firmware, boards[0].flash, boards[0].draw, boards[0].clock)
    done = {"release": 0, "reset": 0, "cut": 0}
    for number, (what, step) in enumerate(steps_of(firmware, releases, closes, seed)):
        answers = [step(board, sensor) for board, sensor in zip(boards, (model, core), strict=True)]
        if answers[0] != answers[1]:
            text = f"step {number + 1}, {what}: {_difference(firmware, answers[0], answers[1])}"
            return Life(done["release"], done["reset"], done["cut"], number + 1, text)
        done["release"] += answers[0].get("status") == Status.OK
        if what.split()[0] in ("reset", "cut"):
            done[what.split()[0]] += 1
    return Life(done["release"], done["reset"], done["cut"], number + 1, "")


def _difference(firmware: Firmware, want: Answer, got: Answer) -> str:
    """The first thing that differs; of a packet, which fields."""
    for name, right in want.items():
        own = got.get(name)
        if own == right:
            continue
        if name == "packet" and isinstance(own, bytes):
            a, b = (int.from_bytes(packet, "little") for packet in (own, right))
            fields = [what for what, at, bits in firmware.layout.fields() if (a ^ b) >> at & (1 << bits) - 1]
            return f"the packet is {own.hex()} and the model's {right.hex()} ({', '.join(fields)})"
        if name == "journal":
            return "the journal in flash is not the model's"
        return f"{name} is {_said(own)} and the model's {_said(right)}"
    return "the program answers more than the model"


def _said(value: Any) -> str:
    return value.name if isinstance(value, Status) else str(value)
