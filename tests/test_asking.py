"""A server's filter: against fractions, against the device's own count, with power that goes at every byte."""

import copy
import hashlib
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from threading import Thread

import naive_device as naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorsim.device import Clock, Firmware, Flash, PowerCut, SeededEntropy, Sensor, Status
from sensorsim.errors import InputError
from sensorsim.hospital.asking import Filter, Odometer
from sensorsim.hospital.ledger_file import LedgerFile
from sensorsim.privacy.certificate import certify
from sensorsim.privacy.tables import make_table, ready_table

MODES = ("bytes", "bits", "erase first", "whole store")
EPSILONS = st.decimals("0.001", "3", places=3)


# ── what is allowed ──


@settings(max_examples=40, deadline=None)
@given(EPSILONS, st.decimals("0.01", "0.5", places=3), st.lists(st.tuples(EPSILONS, EPSILONS), max_size=12))
def test_adaptive_questions_against_fractions(
    budget: Decimal, unit: Decimal, plan: list[tuple[Decimal, Decimal]]
) -> None:
    """Which of two epsilons comes next depends on the answer before, as a server's would."""
    whole, spent, answered, said = Fraction(budget) // Fraction(unit), 0, Fraction(0), False
    if whole < 1:
        with pytest.raises(InputError, match="units"):
            Filter(budget, unit)
        return
    asked = Filter(budget, unit)
    for pair in plan:
        epsilon = pair[said]
        cost = math.ceil(Fraction(epsilon) / Fraction(unit))
        ref = spent + cost <= whole
        said = asked.ask(epsilon)
        assert said == ref
        spent, answered = spent + cost * ref, answered + Fraction(epsilon) * ref
        assert Fraction(asked.spent) == spent * Fraction(unit)
        assert Fraction(asked.left) == (whole - spent) * Fraction(unit)
        assert Fraction(asked.odometer.spent) == answered <= min(Fraction(asked.spent), Fraction(budget))


ONE_TABLE = [("1.6", "16"), ("1.6", "15.999999"), ("0.4", "3"), ("6.4", "6.4")]


@pytest.mark.parametrize("name, budget", ONE_TABLE)
def test_one_table_is_allowed_as_often_as_a_device_releases(name: str, budget: str) -> None:
    table = ready_table(name, 1)
    asked, releases = Filter(budget, table), Firmware(table, budget_epsilon=budget).releases
    assert [asked.ask(table) for _ in range(releases + 2)] == [True] * releases + [False] * 2


@pytest.mark.slow  # the sensor is compiled
@pytest.mark.parametrize("name, budget", ONE_TABLE)
def test_one_table_is_counted_as_the_device_counts_it(name: str, budget: str) -> None:
    table = ready_table(name, 1)
    firmware = Firmware(table, budget_epsilon=budget)
    flash, memory = Flash(), Flash()
    sensor, asked = Sensor(firmware, flash, SeededEntropy(1), Clock(0)), Filter(budget, table, memory)
    assert sensor.open() == Status.OK
    for _ in range(firmware.releases + 3):
        assert (sensor.release([0] * 14)[0] == Status.OK) == asked.ask(table)
        for slot in (0, 1):  # epoch and count, byte for byte; the identity is another
            assert flash.load(slot)[12:20] == memory.load(slot)[12:20]
    assert asked.odometer.questions == firmware.releases == asked.budget
    assert Fraction(asked.spent) == firmware.releases * Fraction(firmware.epsilon)


def test_what_is_refused_is_not_counted() -> None:
    asked = Filter("1", "0.1")
    assert not asked.ask("1.01") and asked.spent == 0
    assert asked.ask("0.95") and asked.spent == 1 and asked.odometer.spent == Decimal("0.95")
    assert not asked.ask("0.001") and asked.left == 0


def test_threads_share_one_budget() -> None:
    asked, said = Filter("3", "0.01"), []
    threads = [Thread(target=lambda: said.extend(asked.ask("0.02") for _ in range(40))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 240 and sum(said) == 150 and asked.left == 0


class SlowFlash(Flash):
    """Lets other threads run before every store and every load."""

    def store(self, slot: int, entry: bytes) -> None:
        time.sleep(0.001)
        super().store(slot, entry)

    def load(self, slot: int) -> bytes:
        time.sleep(0.0001)
        return super().load(slot)


def test_threads_with_filters_of_their_own_share_one_budget() -> None:
    """Each from n to n + 1 in the same slot: no count tells them apart."""
    flash, said = SlowFlash(), []

    def server() -> None:
        asked = Filter("10", "1", flash)
        while asked.ask("1"):
            said.append(1)

    threads = [Thread(target=server) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 10 and Filter("10", "1", flash).left == 0


# ── power that goes ──

COSTS = (3, 1, 7, 2, 5, 4)  # units, asked over and over until nothing more fits
BUDGET = 24


class Life:
    """A filter on one flash over any number of power-ups, and all that it ever said yes to."""

    def __init__(self, step: int, cuts: Iterator[tuple[int, str, int]], kind: type[Filter] = Filter) -> None:
        self.step, self.cuts, self.kind, self.flash = step, cuts, kind, Flash()
        text = f"sensorsim filter 1\nbudget {BUDGET}\nunit 1\nstep {step}\n"
        self.identity = hashlib.sha256(text.encode()).digest()[:8]
        self.answered = self.lost = self.happened = self.said = 0
        self.next_cut()
        self.power_up(0)

    def next_cut(self) -> None:
        for cut in self.cuts:
            self.flash.cut(*cut)
            return
        self.flash.never_cut()

    def power_up(self, asking: int) -> None:
        """Open until it is open. What a cut may lose is the question that was being asked, in whole stores."""
        while True:
            try:
                self.filter = self.kind(BUDGET, 1, self.flash, self.step)
            except PowerCut:
                self.happened += 1
                self.look()
                self.next_cut()
                continue
            self.look()
            most = max(1, math.ceil(asking / self.step)) * self.step  # the first slots count as one store
            assert self.said <= self.answered + self.lost + most, "a cut lost more than one question"
            self.lost = self.said - self.answered
            return

    def look(self) -> None:
        """The count of the ledger never runs backward, and is never behind what was answered."""
        image = self.flash.image
        state, (_, found), _ = naive.read_journal([image[:24], image[24:]], self.identity)
        assert state == "holds" or (state == "blank" and not self.said), "the ledger is lost"
        assert found >= self.said, "the ledger went back"
        self.said = found
        assert self.said >= self.answered, "more was answered than is counted"

    def ask(self, cost: int) -> bool:
        try:
            allowed = self.filter.ask(cost)
        except PowerCut:
            self.happened += 1
            with pytest.raises(InputError, match="closed"):
                self.filter.ask(cost)
            self.next_cut()
            self.power_up(cost)
            return True
        self.answered += cost * allowed
        self.look()
        return allowed

    def spend_all(self) -> None:
        refused = 0
        while refused < len(COSTS):
            for cost in COSTS:
                refused = 0 if self.ask(cost) else refused + 1
        assert self.answered <= BUDGET, "more was answered than the budget allows"
        assert self.filter.left == 0 and self.answered + self.lost == self.said == BUDGET


def cut_everywhere(step: int, mode: str, kind: type[Filter] = Filter, bits: int = 0x55) -> int:
    happened, after = 0, 0
    while True:
        life = Life(step, iter([(after, mode, bits)]), kind)
        life.spend_all()
        if not life.happened:
            return happened
        happened += 1
        after += 24 if mode == "whole store" else 1


@pytest.mark.parametrize(
    "step, mode",
    [
        *product((1, 3), ("bytes", "whole store")),
        *product((8,), MODES),
        *(pytest.param(*deeper, marks=pytest.mark.slow) for deeper in product((1, 3), ("bits", "erase first"))),
    ],
)
def test_a_cut_at_every_byte_of_every_store(step: int, mode: str) -> None:
    stores = cut_everywhere(step, mode) / (1 if mode == "whole store" else 24)
    assert stores == {1: 2 + 24, 3: 2 + 1 + 1 + 3 + 1 + 2 + 2 + 1 + 1, 8: 2 + 8}[step]  # 3 1 7 2 5 4 1 1


@pytest.mark.parametrize("step", [1, 3, 8])
def test_cuts_again_and_again(step: int) -> None:
    def cuts(source: Random) -> Iterator[tuple[int, str, int]]:
        while True:
            yield source.randrange(100), source.choice(MODES), source.randrange(256)

    happened = 0
    for seed in range(25):
        life = Life(step, cuts(Random(seed)))
        life.spend_all()
        happened += life.happened
    assert happened >= 50


@pytest.mark.parametrize("step", [1, 3])
def test_a_slot_that_rots_gives_nothing_back(step: int) -> None:
    """The newer slot turns a bit at every restart: what it counted is counted on from the older one."""
    flash, answered = Flash(), 0
    for boot in range(60):
        asked = Filter(BUDGET, 1, flash, step)
        cost = COSTS[boot % len(COSTS)]
        answered += cost * asked.ask(cost)
        assert answered <= asked.spent
        slots = [bytearray(flash.load(0)), bytearray(flash.load(1))]
        newer = max((0, 1), key=lambda i: int.from_bytes(slots[i][16:20], "little"))
        slots[newer][boot % 24] ^= 1 << boot % 8
        flash.restore(bytes(slots[0] + slots[1]))
    assert 0 < answered <= BUDGET


class AnswersFirst(Filter):
    """Says yes before it counts."""

    def ask(self, question) -> bool:
        try:
            return super().ask(question)
        except PowerCut:
            self.__init__(BUDGET, 1, self._journal._flash, self.step)  # type: ignore[misc]
            return True


class Forgets(Filter):
    """Writes the slot that it should keep."""

    def _write(self, slot: int, units: int) -> None:
        super()._write(1 - slot if units else slot, units)


class Trusts(Filter):
    """Takes a ledger with a bad slot at its word."""

    def _begin(self) -> None:
        super()._begin()
        if self._journal.load() and self._journal.read() == 0 and self._known > 5:
            self._write(0, 5)
            self._write(1, 4)
            self._known = 5


class Wasteful(Filter):
    """Counts a whole question at every power-up."""

    def _begin(self) -> None:
        super()._begin()
        if self._known:
            self._count(min(self._known + 8, self.budget))


BROKEN = {
    AnswersFirst: "more was answered than",
    Forgets: "the ledger is lost|is not what it was|somebody else|damaged",
    Trusts: "the ledger went back",
    Wasteful: "a cut lost more than one question",
}


@pytest.mark.parametrize("kind, promise", BROKEN.items())
def test_the_trial_finds_a_filter_that_breaks_a_promise(kind: type[Filter], promise: str) -> None:
    with pytest.raises((AssertionError, InputError), match=promise):
        for mode in MODES:
            cut_everywhere(1, mode, kind)


# ── memory that lies ──


def test_a_ledger_put_back_is_seen_and_closes_the_filter() -> None:
    flash = Flash()
    asked = Filter("1", "0.1", flash)
    assert asked.ask("0.2")
    before = flash.image
    assert asked.ask("0.2")
    flash.restore(before)
    with pytest.raises(InputError, match="not what it was"):
        asked.ask("0.1")
    with pytest.raises(InputError, match="closed"):
        asked.ask("0.1")
    assert asked.left == 0


def test_ledgers_of_another_budget_unit_or_step_and_worn_memory_are_refused() -> None:
    flash = Flash()
    assert Filter("1", "0.1", flash).ask("0.1")
    for other in (("1", "0.2", flash), ("1", "0.1", flash, 2), ("2", "0.1", flash), ("0.9", "0.1", flash)):
        with pytest.raises(InputError, match="damaged or not of this budget, unit"):
            Filter(*other)
    again = Filter("1", "0.1", flash)
    flash.wear = True
    with pytest.raises(InputError, match="cannot be written"):
        again.ask("0.1")
    flash.wear, flash.fail_load = False, True
    with pytest.raises(InputError, match="cannot be read"):
        Filter("1", "0.1", flash)
    flash.fail_load = False
    assert Filter("1", "0.1", flash).spent == Decimal("0.1")


def test_two_filters_in_turn_on_one_ledger() -> None:
    flash = Flash()
    one, two = Filter("1", "0.1", flash), Filter("1", "0.1", flash)
    assert one.ask("0.4") and two.ask("0.4") and one.ask("0.2") and not two.ask("0.1")
    assert one.spent == two.spent == 1


def test_slots_that_count_as_false_are_used() -> None:
    class Empty(Flash):
        def __len__(self) -> int:
            return 0

    flash = Empty()
    assert Filter("1", "0.1", flash).ask("1") and Filter("1", "0.1", flash).left == 0


# ── a ledger in a file ──


def test_a_file_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    for boot in range(3):
        file = LedgerFile(path, new=boot == 0)
        asked = Filter("1", "0.1", file)
        assert asked.spent == Decimal("0.3") * boot == asked.odometer.spent
        assert asked.ask("0.3")
        with pytest.raises(InputError, match="is held already"):
            LedgerFile(path)
        file.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["ledger"]


def test_a_path_that_leads_to_no_ledger_gives_no_budget(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot open the ledger"):
        LedgerFile(tmp_path / "mistyped")
    LedgerFile(tmp_path / "ledger", new=True).close()
    with pytest.raises(InputError, match="cannot open the ledger"):
        LedgerFile(tmp_path / "ledger", new=True)
    (tmp_path / "other").write_bytes(b"\xff" * 48)
    with pytest.raises(InputError, match="no ledger"):
        LedgerFile(tmp_path / "other")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["ledger", "other"]


def in_a_fork(work: Callable[[], object]) -> str:
    """What a forked process says: the answer, or the refusal."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # one that waits for ever says nothing
        said = "it broke"
        try:
            said = str(work())
        except InputError as error:
            said = f"refused: {error}"
        finally:
            os.write(write, said.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_has_no_part_in_the_budget(tmp_path: Path) -> None:
    """The lock of a file goes to the fork with it, so it keeps nobody out."""
    file = LedgerFile(tmp_path / "ledger", new=True)
    asked, in_memory = Filter("1", "0.1", file), Filter("1", "0.1")
    assert in_a_fork(lambda: in_memory.ask("0.1")).startswith("refused: this filter belongs to the process")
    assert in_a_fork(lambda: asked.ask("0.1")).startswith("refused: this filter belongs to the process")
    assert "not to a fork" in in_a_fork(lambda: Filter("1", "0.1", file).ask("0.1"))
    assert "held already" in in_a_fork(lambda: Filter("1", "0.1", LedgerFile(file.path)).ask("0.1"))
    assert in_a_fork(file.close) == "None"
    assert asked.ask("1") and asked.spent == 1
    with pytest.raises(InputError, match="held already"):
        LedgerFile(file.path)
    file.close()


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_is_refused_while_a_thread_asks(tmp_path: Path) -> None:
    """It has a copy of the lock that nobody will ever open."""
    file = LedgerFile(tmp_path / "ledger", new=True)
    asked = Filter("1", "0.1", file)
    with asked._one_at_a_time:
        assert in_a_fork(lambda: asked.ask("0.1")).startswith("refused")
        assert in_a_fork(lambda: Filter("1", "0.1", file)).startswith("refused")
    assert asked.ask("0.1")
    file.close()


def copied_over(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def made_anew(path: Path) -> None:
    path.rename(path.with_name("old"))
    LedgerFile(path, new=True).close()


@pytest.mark.parametrize("change", [copied_over, made_anew, Path.unlink])
def test_a_path_that_leads_elsewhere_is_refused(change: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(path, new=True)
    asked = Filter("1", "0.1", file)
    assert asked.ask("0.1")
    change(path)
    for use in (lambda: file.load(0), lambda: file.store(0, bytes(24))):
        with pytest.raises(InputError, match="is not the ledger that was opened"):
            use()
    with pytest.raises(InputError, match="is not the ledger that was opened"):
        asked.ask("0.1")
    with pytest.raises(InputError, match="closed"):
        asked.ask("0.1")
    file.close()


def test_a_path_that_changes_during_a_store_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the look before it: the one that follows sees it, and nobody is told yes."""
    path = tmp_path / "ledger"
    file = LedgerFile(path, new=True)
    asked, write = Filter("1", "0.1", file), os.pwrite

    def late(*given) -> int:
        copied_over(path)
        return write(*given)

    monkeypatch.setattr(os, "pwrite", late)
    with pytest.raises(InputError, match="is not the ledger that was opened"):
        asked.ask("0.1")
    file.close()


def test_a_file_that_is_closed_is_not_touched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number goes to the next file that is opened."""
    monkeypatch.chdir(tmp_path)
    file = LedgerFile("ledger", new=True)
    asked = Filter("1", "0.1", file)
    monkeypatch.chdir(tmp_path.parent)
    assert asked.ask("0.1")
    for a_copy in (pickle.dumps, copy.copy):
        with pytest.raises(InputError, match="not copied"):
            a_copy(file)
    file.close()
    file.close()
    with (tmp_path / "ledger").open("r+b"), pytest.raises(InputError, match="cannot be read"):
        asked.ask("0.1")


SERVER = """
import sys
from sensorsim.hospital.asking import Filter
from sensorsim.hospital.ledger_file import LedgerFile
asked = Filter("1000", "0.1", LedgerFile(sys.argv[1]))
while asked.ask("0.5"):
    print("yes", flush=True)
"""


@pytest.mark.slow
def test_a_server_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    LedgerFile(path, new=True).close()
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(path)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    for _ in range(20):
        assert server.stdout.readline() == "yes\n"
    server.send_signal(signal.SIGKILL)
    answered = 20 + server.stdout.read().count("yes\n")
    server.stdout.close()
    server.wait()
    file = LedgerFile(path)
    spent = Filter("1000", "0.1", file).spent
    file.close()
    assert answered * Decimal("0.5") <= spent <= (answered + 1) * Decimal("0.5")


# ── the odometer ──


def response_delta(epsilon: float, k: int, total: float) -> float:
    """k times randomised response at once, by the number of answers that lie: the textbook sum."""
    high = 1 / (1 + math.exp(-epsilon))
    return sum(
        math.comb(k, j)
        * max(0.0, high ** (k - j) * (1 - high) ** j - math.exp(total) * high**j * (1 - high) ** (k - j))
        for j in range(k + 1)
    )


def test_an_odometer_adds_up_and_says_what_was_fixed_in_advance() -> None:
    odometer = Odometer()
    assert odometer.spent == 0 and odometer.fixed_in_advance() == 0
    for _ in range(40):
        odometer.note("0.1")
    assert odometer.spent == 4 and odometer.questions == 40
    reached = odometer.fixed_in_advance(1e-6)
    assert reached < 4 and response_delta(0.1, 40, reached) <= 1e-6 < response_delta(0.1, 40, reached - 0.002)


def test_an_odometer_is_exact_and_knows_what_was_before() -> None:
    table = ready_table("1.6", 1)
    odometer = Odometer(Decimal("0.3"))
    for question in (table, "0.1", 0.2, Decimal("1e-6"), table):
        odometer.note(question)
    proved = certify(table).epsilon_record
    assert proved is not None
    assert odometer.spent == Decimal("0.600001") + 2 * proved
    assert odometer.fixed_in_advance() <= odometer.spent


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: Filter("0.001"), "0 units"),
        (lambda: Filter(1000, "0.000001", step=0), "step|counts 0"),
        (lambda: Filter(10, step=256), "counts 256"),
        (lambda: Filter(1, "0.5", step=3), "counts 3 units"),
        (lambda: Filter("much"), "privacy budget"),
        (lambda: Filter(1, "0"), "privacy budget"),
        (lambda: Filter(1).ask(-1), "privacy budget"),
        (lambda: Filter(1).ask("0." + "1" * 60), "digits"),
        (lambda: Filter(1).ask(make_table("naive", 1, 14)), "naive table proves no"),
        (lambda: Odometer().fixed_in_advance(0), "delta is 0"),
    ],
)
def test_bad_input_is_one_sentence(call, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()
