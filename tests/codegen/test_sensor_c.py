"""The sensor in C against the firmware model: the same packets, statuses and counts on emulated cores, and cuts."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sensorsim.kernels.journal import SLOT_BYTES

from sensorsim._util.files import fill
from sensorsim.codegen.sensor_package import SensorCode
from sensorsim.device.entropy import BiasedEntropy, FailingEntropy, SeededEntropy, StuckEntropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.flash import Flash, PowerCut
from sensorsim.device.sensor import Clock, Sensor
from sensorsim.device.status import Status
from sensorsim.encoders import read_encoder
from sensorsim.machine.abi import STACK_BYTES, STACK_PLACES
from sensorsim.machine.elf import read_elf
from sensorsim.machine.emulated_sensor import EmulatedSensor, link_sensor
from sensorsim.machine.targets import TARGETS
from sensorsim.noise.noise_table import certified, make_table, ready_table
from sensorsim.verification.sensor_life import SensorBuild
from sensorsim.verification.sensor_timing import watch_calls, words_to_come

ENCODER = Path(__file__).parents[2] / "tables" / "encoders" / "default.json"
FIRST = 100


def firmware(name: str) -> Firmware:
    """One sensor of every kind of kernel, layout and option."""
    if name == "rows":
        return Firmware(ready_table(1.6, 1), budget_epsilon=8)
    if name == "one bit of all":
        return Firmware(ready_table(1.6, "all"), budget_epsilon=8, numbers=("epoch", "sequence"))
    if name == "mirrored":
        return Firmware(certified(make_table("rows", 7, 14, 1)), budget_epsilon=30, reserve=2)
    if name == "lookup":
        return Firmware(certified(make_table("rows", 2, 14, 1, count_bits=8)), budget_epsilon=9, numbers=("sequence",))
    if name == "three rows":
        return Firmware(certified(make_table("rows", 6, 14, 3)), budget_epsilon=30, reserve=4)
    if name == "stairs":
        return Firmware(ready_table(1.6, 1, "stairs"), budget_epsilon=8, numbers=("epoch",))
    if name == "three stairs":
        return Firmware(certified(make_table("stairs", 6, 14, 3)), budget_epsilon=30)
    if name == "all stairs":
        return Firmware(ready_table(6.4, "all", "stairs"), budget_epsilon=30)
    assert name == "encoder"
    encoder = read_encoder(ENCODER)
    return Firmware(certified(make_table("rows", 1.6, encoder.l, 1)), encoder, budget_epsilon=8)


NAMES = ("rows", "one bit of all", "three rows", "stairs", "all stairs", "encoder")
# Their tables take seconds to make, or their kernels are variants of others.
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("mirrored", "lookup", "three stairs")]


@dataclass
class Board:
    """Flash, entropy and clock of one device; made twice, for the model and for the C."""

    seed: int
    flash: Flash = field(default_factory=Flash)
    clock: Clock = field(default_factory=lambda: Clock(FIRST))
    entropy: Any = None

    def __post_init__(self) -> None:
        self.entropy = SeededEntropy(self.seed)

    def draw(self, count: int) -> bytes:
        given: bytes = self.entropy(count)
        return given


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The linked sensor of a firmware for a core, built once."""
    known: dict[tuple[str, str], tuple[Firmware, Path]] = {}

    def build(name: str, target: str, prefix: str = "ss_") -> tuple[Firmware, Path]:
        if (name, target) not in known:
            folder = tmp_path_factory.mktemp("sensor")
            made = firmware(name)
            fill(folder, SensorCode(made, prefix).sources(""))
            sources = sorted((folder / "src").glob("*.c"))
            include = [folder / "include", folder / "src"]
            known[name, target] = made, link_sensor(TARGETS[target], sources, include, prefix, folder)
        return known[name, target]

    return build


def pair(built: Any, name: str, target: str, seed: int = 1) -> tuple[Board, Sensor, Board, EmulatedSensor]:
    made, program = built(name, target)
    ours, theirs = Board(seed), Board(seed)
    model = Sensor(made, ours.flash, ours.draw, ours.clock)
    core = EmulatedSensor(TARGETS[target], program, made, "ss_", theirs.flash, theirs.draw, theirs.clock)
    return ours, model, theirs, core


def record(n: int, number: int) -> list[int]:
    return [(3571 * i + 8123 * number) % 40000 for i in range(n)]


def same(ours: Board, model: Sensor, theirs: Board, core: EmulatedSensor, epochs: int, per_epoch: int) -> list[Any]:
    """Both through the same life; what happened, cuts included."""
    lives = []
    for board, sensor in ((ours, model), (theirs, core)):
        seen: list[Any] = []
        for number in range(epochs * per_epoch):
            board.clock.epoch = FIRST + number // per_epoch
            try:
                if number == 0:
                    seen.append(sensor.open())
                seen.append((*sensor.release(record(model.firmware.n, number)), sensor.left()))
            except PowerCut:
                seen.append(("cut", sensor.open(), sensor.left(), bytes(board.flash.load(0) + board.flash.load(1))))
        lives.append(seen)
    assert lives[0] == lives[1]
    return lives[0]


@pytest.mark.parametrize("name", [*NAMES, *SLOW])
def test_every_sensor_gives_the_models_packets(built: Any, name: str) -> None:
    boards = pair(built, name, "cortex-m0plus")
    life = same(*boards, epochs=6, per_epoch=boards[1].firmware.releases + 2)
    assert life[0] == Status.OK
    released = [entry for entry in life[1:] if entry[0] == Status.OK]
    spent = [entry for entry in life[1:] if entry[0] == Status.SPENT]
    assert len(released) == 6 * boards[1].firmware.releases and len(spent) == 12
    assert len({entry[1] for entry in released}) > 6
    assert all(entry[1] == bytes(boards[1].firmware.layout.bytes) for entry in spent)


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "cortex-m0plus"])
def test_every_core_gives_the_models_packets(built: Any, target: str) -> None:
    life = same(*pair(built, "rows", target), epochs=8, per_epoch=6)
    assert sum(entry[0] == Status.OK for entry in life[1:]) == 8 * 5


@pytest.mark.parametrize("mode", ["bytes", "bits", "erase first"])
def test_a_cut_at_every_byte_is_the_same_in_both(built: Any, mode: str) -> None:
    made, _ = built("rows", "cortex-m0plus")
    ours, model, theirs, core = pair(built, "rows", "cortex-m0plus")
    for cut in range(0, 9 * SLOT_BYTES):
        for board in (ours, theirs):
            board.flash = Flash()
            board.flash.cut(cut, mode, bits=0x5A) if mode == "bits" else board.flash.cut(cut, mode)
            board.entropy = SeededEntropy(cut)
        model = Sensor(made, ours.flash, ours.draw, ours.clock)
        core.flash = theirs.flash
        core.reset()
        _live_through(ours, model, theirs, core)


def _live_through(ours: Board, model: Sensor, theirs: Board, core: EmulatedSensor) -> None:
    lives = []
    for board, sensor in ((ours, model), (theirs, core)):
        board.clock.epoch = FIRST
        seen: list[Any] = []
        done, before = 0, model.firmware.releases
        while not seen or seen[-1] != Status.OK:  # until it is open
            try:
                seen.append(sensor.open())
            except PowerCut:
                seen.append("cut")
        lost = seen.count("cut")  # what a bad slot may have counted is counted
        assert lost <= 1
        while True:
            try:
                status, packet = sensor.release(record(14, done))
                seen.append((status, packet, sensor.left()))
                if status != Status.OK:
                    break
                done += 1
            except PowerCut:
                assert sensor.open() == Status.OK
                lost += 1
            assert sensor.left() <= before  # what is spent never comes back
            before = sensor.left()
        assert status == Status.SPENT and done + lost >= model.firmware.releases >= done
        lives.append((seen, done))
    assert lives[0] == lives[1]


@pytest.mark.parametrize(
    ("entropy", "status"),
    [
        (StuckEntropy(), Status.NO_ENTROPY),
        (BiasedEntropy(0.9), Status.NO_ENTROPY),
        (FailingEntropy(), Status.NO_ENTROPY),
        (FailingEntropy(31), Status.NO_ENTROPY),
        (SeededEntropy(7), Status.OK),
    ],
)
def test_bad_entropy_keeps_the_c_closed(built: Any, entropy: Any, status: Status) -> None:
    _, _, board, core = pair(built, "rows", "cortex-m0plus")
    board.entropy = entropy
    assert core.open() == status
    expected = Status.OK if status == Status.OK else Status.NOT_OPEN
    answer, packet = core.release(record(14, 0))
    assert answer == expected and any(packet) == (status == Status.OK)


def test_doubts_keep_the_c_closed(built: Any) -> None:
    _, _, board, core = pair(built, "rows", "cortex-m0plus")
    assert core.left() == 0 and core.release(record(14, 0))[0] == Status.NOT_OPEN
    assert core.open() == Status.OK
    board.flash.wear = True
    status, packet = core.release(record(14, 0))
    assert status == Status.NO_STORE and not any(packet)
    board.flash.wear = False
    board.flash.fail_load = True
    assert core.release(record(14, 0))[0] == Status.NO_STORE and core.open() == Status.NO_STORE
    board.flash.fail_load = False
    assert core.open() == Status.OK and core.release(record(14, 0))[0] == Status.OK
    board.clock.epoch = FIRST - 1
    assert core.release(record(14, 0)) == (Status.BAD_CLOCK, bytes(4)) and core.open() == Status.BAD_CLOCK
    board.clock.epoch = FIRST
    other = Firmware(ready_table(0.8, 1))
    Sensor(other, board.flash, board.draw, board.clock)
    foreign = Flash()
    assert Sensor(other, foreign, board.draw, board.clock).open() == Status.OK
    core.flash = foreign
    assert core.open() == Status.BAD_JOURNAL and core.release(record(14, 0)) == (Status.NOT_OPEN, bytes(4))


def test_two_cores_on_one_journal_share_its_budget(built: Any) -> None:
    _, _, board, first = pair(built, "rows", "cortex-m0plus")
    made, program = built("rows", "cortex-m0plus")
    second = EmulatedSensor(TARGETS["cortex-m0plus"], program, made, "ss_", board.flash, board.draw, board.clock)
    assert first.open() == second.open() == Status.OK
    answers = [sensor.release(record(14, k))[0] for k in range(made.releases) for sensor in (first, second)]
    assert answers.count(Status.OK) == made.releases and set(answers) == {Status.OK, Status.SPENT}


@pytest.mark.parametrize("name", ["rows", "all stairs", "encoder"])
@pytest.mark.parametrize("target", list(TARGETS))
def test_nothing_that_was_drawn_with_stays_on_the_stack(built: Any, name: str, target: str) -> None:
    """After open no key, after a release no word and no key; in the sensor's memory no word, and closed no key."""
    _, model, theirs, core = pair(built, name, target)
    seen: list[bytes] = []
    drawn: list[bytes] = []
    draw = model._drawn

    def spy(record: Any) -> bytes:
        drawn.extend(word.tobytes() for word in words_to_come(model))
        seen.extend([*drawn, *(word.tobytes() for word in model._memory.key.array)])
        packet = draw(record)
        seen.extend(word.tobytes() for word in model._memory.key.array)
        return packet

    model._drawn = spy  # type: ignore[method-assign]
    assert model.open() == core.open() == Status.OK
    after_open = bytes(core.machine.uc.mem_read(STACK_PLACES[0], STACK_BYTES))
    assert not any(word.tobytes() in after_open for word in model._memory.key.array)
    assert model.release(record(model.firmware.n, 1)) == core.release(record(model.firmware.n, 1))
    after = bytes(core.machine.uc.mem_read(STACK_PLACES[0], STACK_BYTES))
    assert seen and not any(word in after for word in seen)
    memory = bytes(core.machine.uc.mem_read(core.sensor, core.ram_bytes))
    key = model._memory.key.array.tobytes()
    assert drawn and not any(word in memory for word in drawn) and key in memory
    theirs.entropy = StuckEntropy()
    assert core.open() == Status.NO_ENTROPY
    assert key not in bytes(core.machine.uc.mem_read(core.sensor, core.ram_bytes))


def test_a_copy_of_an_open_sensor_is_closed(built: Any) -> None:
    _, _, _, core = pair(built, "three rows", "cortex-m0plus")
    assert core.open() == Status.OK and core.release(record(14, 0))[0] == Status.OK
    memory, first = core.machine.uc.mem_read(core.sensor, core.ram_bytes), core.sensor
    core.sensor = first + 4096
    core.machine.uc.mem_write(core.sensor, bytes(memory))
    assert core.left() == 0 and core.release(record(14, 1))[0] == Status.NOT_OPEN
    core.sensor = first
    assert core.release(record(14, 1))[0] == Status.OK


def _images(count: int) -> list[bytes]:
    """Journals as they might be found: whole ones, mixed, cut, with bits turned, blank in parts, and garbage."""
    import random

    chance = random.Random(7)
    clock, flash = Clock(FIRST), Flash()
    sensor = Sensor(firmware("rows"), flash, SeededEntropy(3), clock)
    assert sensor.open() == Status.OK
    slots = [flash.load(0), flash.load(1)]
    for number in range(12):
        assert sensor.release(record(14, number))[0] == Status.OK
        slots += [flash.load(0), flash.load(1)]
        clock.epoch += number % 3 == 2
    other = Flash()
    assert Sensor(Firmware(ready_table(0.8, 1)), other, SeededEntropy(3), clock).open() == Status.OK
    slots += [other.load(0), b"\xff" * SLOT_BYTES, b"\x00" * SLOT_BYTES]
    made = []
    for _ in range(count):
        image = bytearray(chance.choice(slots) + chance.choice(slots))
        for _ in range(chance.choice((0, 0, 1, 2))):
            place, kind = chance.randrange(2), chance.randrange(4)
            at = SLOT_BYTES * place + chance.randrange(SLOT_BYTES)
            end = SLOT_BYTES * (place + 1)
            if kind == 0:
                image[at] ^= 1 << chance.randrange(8)
            elif kind == 1:
                image[at:end] = b"\xff" * (end - at)
            elif kind == 2:
                image[at:end] = chance.choice(slots)[at % SLOT_BYTES :]
            else:
                image[end - SLOT_BYTES : end] = chance.randbytes(SLOT_BYTES)
        made.append(bytes(image))
    return made


def test_any_journal_is_judged_alike(built: Any) -> None:
    """Status, what is left and the first packet, for journals whole and broken."""
    made, _ = built("rows", "cortex-m0plus")
    ours, _, theirs, core = pair(built, "rows", "cortex-m0plus")
    seen = []
    for number, image in enumerate(_images(600)):
        answers = []
        for board in (ours, theirs):
            board.flash, board.entropy, board.clock.epoch = Flash(image), SeededEntropy(number), FIRST + 2
        core.flash = theirs.flash
        core.reset()
        for sensor in (Sensor(made, ours.flash, ours.draw, ours.clock), core):
            answers.append((sensor.open(), sensor.left(), sensor.release(record(14, number)), sensor.left()))
        assert answers[0] == answers[1], image.hex()
        seen.append(answers[0][0])
    assert {Status.OK, Status.BAD_JOURNAL, Status.BAD_CLOCK} <= set(seen)
    assert min(seen.count(Status.OK), seen.count(Status.BAD_JOURNAL)) > 50


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False], ids=["own product", "the compiler's product"])
def test_without_a_multiplier_every_record_takes_as_long(own: bool, tmp_path: Path) -> None:
    """RV32EC: 40 records take one path; with the compiler's product their times differ, and that is found."""
    made, target = firmware("encoder"), TARGETS["rv32ec"]
    texts = SensorCode(made, "ss_").sources("")
    if not own:
        texts["src/ss_arithmetic.h"] = "#define SS_HW_MUL\n" + texts["src/ss_arithmetic.h"]
    fill(tmp_path, texts)
    sources, include = sorted((tmp_path / "src").glob("*.c")), [tmp_path / "include", tmp_path / "src"]
    program = read_elf(link_sensor(target, sources, include, "ss_", tmp_path).read_bytes())
    calls = watch_calls(SensorBuild(target, program, made, "ss_"), 40)
    (release,) = (one for one in calls.results if one.call == "release")
    assert (release.instructions.min == release.instructions.max) == own
    assert (release.paths == 1) == own and calls.same_path == own


def test_the_header_says_on_which_cores_the_time_is_proved() -> None:
    made = firmware("rows")
    for prefix, macro in (("ss_", "SS_"), ("my_", "MY_")):
        header = " ".join(SensorCode(made, prefix).sources("")[f"include/{prefix}sensor.h"].split())
        for word in (f"{macro}NO_HW_MUL", f"{macro}HW_MUL", f"{macro}NO_HW_DIV", "RISC-V with M or", "not hold on AVR"):
            assert word in header
