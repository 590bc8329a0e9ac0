"""A server that asks adaptively: a filter that refuses what the budget does not pay for, an odometer that adds up.

    allowed = Filter("10", unit="0.1", flash=LedgerFile("ledger.bin"))
    if allowed.ask(table):               True: it is counted, now the devices may be asked with this table
    allowed.left, allowed.spent          epsilon
    allowed.odometer.spent               the same without rounding, since this filter was opened

Every question may have another epsilon, chosen after earlier answers were seen. With delta = 0 epsilons still add up
(Rogers, Roth, Ullman and Vadhan 2016, "Privacy odometers and filters"): what a server sees, questions included, has a
probability that is a product of one factor for each answer, given all before it. Between two people's records the
factor of answer i differs by at most exp(epsilon_i), where epsilon_i is known before it; so the product differs by at
most exp(sum of epsilon_i), and the filter stops before that sum passes the budget. A refusal depends on epsilons alone.

The ledger is the device's journal: the same kernels, two slots, whole numbers. One unit is `unit` of epsilon; a cost is
rounded up to units, the budget down. A question is counted before `ask` says yes, in stores of at most `step` units.
Budget, unit and step belong to the ledger, and with others it is refused: more budget is a new ledger, and what was
spent on the old one is spent on top.

    never given back    A store goes to the older slot. While it is torn the newer one stands, and what the torn store
                        was for has not been answered. When the newer slot is lost later, the older one is behind it by
                        at most `step`; so whoever opens a ledger with one bad slot counts `step` on, first of all.
    one question lost   A question of c units takes ceil(c/step) stores. A cut in the j-th leaves j - 1 of them and the
                        `step` that is counted on: j·step in all, at most c rounded up to `step`; c itself with step 1.
                        A cut while the ledger is begun costs one `step`.
    one at a time       Filters on one slots object share a lock, and each reads the ledger under it before it counts. A
                        filter that a fork took along has a copy of the lock and is refused; for files see LedgerFile.

`step` 1 with the table's own epsilon as the unit is a sensor with reserve 1. A larger step saves stores.
"""

import hashlib
import os
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, Protocol, cast
from weakref import WeakValueDictionary

from sensorsim.device.flash import SLOTS, Flash, Journal
from sensorsim.errors import InputError
from sensorsim.kernels.journal import BUDGET, HOLDS, IDENTITY_BYTES, NEW, RESERVE
from sensorsim.privacy.certificate import certify

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware
    from sensorsim.privacy.tables import NoiseTable

    Question = NoiseTable | Decimal | float | str

LIFE = 0  # the only epoch of a ledger: it is for good
MOST_DIGITS = 40

# By process, as a fork may copy a lock that is locked, and by the id of the slots, which a filter keeps alive.
_locks: WeakValueDictionary[tuple[int, int], Lock] = WeakValueDictionary()
_finding_a_lock = Lock()


class Slots(Protocol):
    """Two slots that survive a power cut: a simulated Flash, or a file (hospital/ledger_file.py)."""

    def load(self, slot: int) -> bytes: ...

    def store(self, slot: int, entry: bytes) -> None: ...


@dataclass(frozen=True)
class Ledger:
    """What the journal asks of a firmware: how many units there are, how many a store counts, and what they are."""

    releases: int
    reserve: int
    journal_identity: bytes


def cost_of(question: "Question") -> Fraction:
    """The epsilon of a question: as proved for a table, as written for a number."""
    from sensorsim.privacy.tables import NoiseTable, budget_of

    if isinstance(question, NoiseTable):
        proved = certify(question).epsilon_record
        if proved is None or not question.for_releases:
            raise InputError(f"a {question.kind} table proves no epsilon to count; ask with a rows or stairs table.")
        return Fraction(proved)
    budget_of(question)
    text = str(question)
    if len(text) > MOST_DIGITS:
        raise InputError(f"epsilon {text[:40]}… has too many digits; give at most {MOST_DIGITS}.")
    return Fraction(Decimal(text))


class Filter:
    """A budget of epsilon, and a ledger of what is spent of it."""

    def __init__(
        self,
        budget_epsilon: Decimal | float | str,
        unit: "Question" = "0.01",
        flash: Slots | None = None,
        step: int = 1,
    ) -> None:
        self.unit = cost_of(unit)
        self.budget = cost_of(budget_epsilon) // self.unit  # in units, rounded down
        if not BUDGET.lo <= self.budget <= BUDGET.hi:
            raise InputError(
                f"a budget of {budget_epsilon} is {self.budget} units of {float(self.unit):g}; give a unit with which "
                f"it is 1 to {BUDGET.hi}."
            )
        most = min(RESERVE.hi, self.budget)
        if type(step) is not int or not RESERVE.lo <= step <= most:
            raise InputError(f"a store counts {step} units; give 1 to {most}, no more than the budget has.")
        self.step = step
        text = f"sensorsim filter 1\nbudget {self.budget}\nunit {self.unit}\nstep {step}\n"
        ledger = Ledger(self.budget, step, hashlib.sha256(text.encode("ascii")).digest()[:IDENTITY_BYTES])
        slots = Flash() if flash is None else flash
        self._journal = Journal(cast("Firmware", ledger), cast("Flash", slots))
        self._known = 0  # units, as the ledger last said
        self._open = False
        self._process = os.getpid()
        self._one_at_a_time = _lock_of(slots)
        with self._one_at_a_time:
            self._begin()
        self.odometer = Odometer(_decimal(self.unit * self._known))

    @property
    def spent(self) -> Decimal:
        """Epsilon that is counted, each question rounded up to whole units; a lost one counts too."""
        return _decimal(self.unit * self._known)

    @property
    def left(self) -> Decimal:
        """Epsilon that can still be asked for: 0 where the filter is closed."""
        return _decimal(self.unit * max(0, self.budget - self._known) * self._open)

    def units(self, question: "Question") -> int:
        """What a question costs, in units, rounded up."""
        return -(-cost_of(question) // self.unit)

    def ask(self, question: "Question") -> bool:
        """Count a question; False, and nothing counted, where the budget does not pay for it."""
        if os.getpid() != self._process:  # before the lock: a fork may have copied it locked
            raise InputError("this filter belongs to the process that opened it, not to a fork of it; ask there.")
        cost = self.units(question)
        with self._one_at_a_time:
            if not self._open:
                raise InputError("this filter is closed; open the ledger again with a new one.")
            self._open = False  # whatever goes wrong from here on leaves it closed
            self._look()
            allowed = cost <= self.budget - self._known
            if allowed:
                self._count(self._known + cost)
                self.odometer.note(question)
            self._open = True
        return allowed

    def _count(self, goal: int) -> None:
        while self._known < goal:
            self._store(min(self._known + self.step, goal))

    def _begin(self) -> None:
        """Read the ledger; begin it where memory is blank; count on where one slot is bad."""
        state = self._read()
        if state == NEW:
            for slot in range(SLOTS):
                self._write(slot, 0)
        elif state == HOLDS:
            self._known = self._journal.found[1]
            if self._journal.alone and self._known < self.budget:
                self._store(min(self._known + self.step, self.budget))
        else:
            raise InputError("the ledger is damaged or not of this budget, unit and step; nothing is asked on it.")
        self._open = True

    def _look(self) -> None:
        """The ledger as it stands; another filter may have counted on it, and nobody may have put it back."""
        if self._read() != HOLDS or self._journal.found[1] < self._known:
            raise InputError("the ledger is not what it was when this filter last wrote it; nothing more is asked.")
        self._known = self._journal.found[1]

    def _store(self, units: int) -> None:
        self._write(self._journal.next_slot, units)
        self._look()
        if self._known != units:
            raise InputError("somebody else counts on this ledger at the same time; let one filter hold it.")

    def _read(self) -> int:
        if not self._journal.load():
            raise InputError("the ledger cannot be read; nothing is asked without it.")
        return self._journal.read()

    def _write(self, slot: int, units: int) -> None:
        if not self._journal.write(slot, LIFE, units):
            raise InputError("the ledger cannot be written, so the question is not allowed; see to its memory.")


class Odometer:
    """The epsilon spent so far on each person who was asked, with no budget: read it whenever you like."""

    def __init__(self, before: Decimal = Decimal(0)) -> None:
        self.before = before  # spent before this odometer was started
        self._asked: Counter[Fraction] = Counter()

    def note(self, question: "Question") -> None:
        """A question that was asked."""
        self._asked[cost_of(question)] += 1

    @property
    def questions(self) -> int:
        return self._asked.total()

    @property
    def spent(self) -> Decimal:
        """The sum of all epsilons, exact; it holds however the questions were chosen. delta is 0."""
        return _decimal(Fraction(self.before) + sum(cost * often for cost, often in self._asked.items()))

    def fixed_in_advance(self, delta: float = 1e-6) -> float:
        """What privacy-loss distributions say at `delta`; never above `spent`.

        It holds only where all these epsilons, and how many, were fixed before the first answer was seen. What was
        asked with them may depend on answers. For a server that chose them as it went, `spent` is what is proved.
        """
        from sensorsim.privacy import pld
        from sensorsim.privacy.spending import LEAST_DELTA

        if not LEAST_DELTA <= delta < 1:
            raise InputError(f"delta is {delta}; give {LEAST_DELTA:g} or more, below 1.")
        costs = self._asked + Counter({Fraction(self.before): 1} if self.before else {})
        if not costs:
            return 0.0
        step = pld.step_for(float(max(costs)), costs.total())
        whole = pld.compose([(pld.pure(float(cost), step), often) for cost, often in costs.items()])
        return min(float(self.spent), whole.epsilon(delta))


def _lock_of(slots: Slots) -> Lock:
    """The one lock of all filters on these slots."""
    with _finding_a_lock:
        return _locks.setdefault((os.getpid(), id(slots)), Lock())


def _decimal(value: Fraction) -> Decimal:
    """A sum of decimals as one: its denominator divides a power of ten."""
    with localcontext(prec=200):
        return Decimal(value.numerator) / Decimal(value.denominator)
