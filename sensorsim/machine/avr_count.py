"""What calls on an AVR executed, priced by the processor's table: what `machine.counting` is for other cores."""

from collections import Counter

from sensorsim.cost.prices import Cpu
from sensorsim.machine.avr import DATA, AvrMachine
from sensorsim.machine.avr_decode import Priced, priced
from sensorsim.machine.counting import CallCounter, Sums, Tally
from sensorsim.machine.decode import CLASSES


class AvrCounter(CallCounter):
    """Adds up what the machine executes; every instruction is priced once. Addresses are those of words."""

    machine: AvrMachine

    def __init__(self, machine: AvrMachine, cpu: Cpu) -> None:
        import numpy as np

        super().__init__()
        self.machine, self.cpu = machine, cpu
        self.priced: list[Priced | None] = []
        for place, one in enumerate(machine.decoded):
            after = machine.decoded[place + 1] if place + 1 < len(machine.decoded) else None
            self.priced.append(priced(one, after.words if after else 1, cpu) if one else None)
        self.prices = np.array([one.price if one else np.nan for one in self.priced])
        self.extra = np.array([one.taken - one.price if one else np.nan for one in self.priced])
        self.kinds = np.array([CLASSES.index(one.kind) if one else -1 for one in self.priced])
        symbols = machine.program.symbols.items()
        self.owners = sorted((address // 2, name) for name, (address, _) in symbols if address < DATA)

    def add_up(self, tally: Tally) -> Sums:
        import numpy as np

        counts, taken = self.machine.counts, self.machine.taken
        ran = np.flatnonzero(counts)
        cycles = counts[ran] * self.prices[ran]
        jumps = np.flatnonzero(taken)
        kinds, size = self.kinds[ran], len(CLASSES)
        numbers = np.bincount(kinds, counts[ran], size)
        spent = np.bincount(kinds, cycles, size) + np.bincount(
            self.kinds[jumps], taken[jumps] * self.extra[jumps], size
        )
        classes = {name: round(numbers[place]) for place, name in enumerate(CLASSES) if numbers[place]}
        prices = {name: float(spent[place]) for place, name in enumerate(CLASSES) if numbers[place]}
        functions: Counter[str] = Counter()
        entered: dict[str, int] = {}
        entries = dict(self.owners)
        for place in map(int, ran):
            functions[self.owner(place)] += int(counts[place])
            if place in entries:
                entered[entries[place]] = int(counts[place])
            self.note(place, tally)
        total = sum(prices.values())
        # No price depends on operands: the worst that this way can cost is what it costs.
        return Sums(sum(classes.values()), total, classes, prices, dict(functions), worst=total, entered=entered)

    def note(self, place: int, tally: Tally) -> None:
        """Rows that are estimates, and branches that did not always go the same way."""
        one = self.known(place)
        if one.note:
            tally.notes.add(f"{one.decoded.mnemonic.lower()}: {one.note}")
        if one.conditional:
            went = int(self.machine.counts[place]), int(self.machine.taken[place])
            if tally.branches.setdefault(2 * place, went) != went:
                tally.varying[2 * place] = f"{self.owner(place)}: {one.decoded.text}"

    def known(self, place: int) -> Priced:
        one = self.priced[place]
        assert one is not None, "what ran was decoded"
        return one
