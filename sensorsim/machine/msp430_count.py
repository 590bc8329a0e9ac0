"""Price what calls on an MSP430 execute by the processor's table: what `machine.counting` is for other cores."""

from collections import Counter

from sensorsim.cost.prices import Cpu
from sensorsim.machine import msp430_core as core
from sensorsim.machine.counting import CallCounter, Sums, Tally
from sensorsim.machine.msp430 import Msp430Machine, form_of

KINDS = {
    **dict.fromkeys(("ADD", "ADDC", "SUB", "SUBC", "DADD"), "add"),
    **dict.fromkeys(("BIC", "BIS", "XOR", "AND", "SXT"), "logic"),
    **dict.fromkeys(("RRC", "RRA", "SWPB"), "shift"),
    **dict.fromkeys(("CMP", "BIT"), "compare"),
    **dict.fromkeys(("JMP", "Jcc"), "branch"),
    **dict.fromkeys(("CALL", "RETI"), "call"),
    "PUSH": "stack",
}
POPS = 0x0130  # of a MOV: the source is what the stack pointer points to, and the pointer moves on


class Msp430Counter(CallCounter):
    """Add up what the machine executes. No cycle count of this core depends on an operand, nor on whether it jumps."""

    machine: Msp430Machine

    def __init__(self, machine: Msp430Machine, cpu: Cpu) -> None:
        super().__init__()
        self.machine, self.cpu = machine, cpu
        self.owners = sorted((address, name) for name, (address, _) in machine.program.symbols.items())

    def add_up(self, tally: Tally) -> Sums:
        """Return the sums of what ran since the last call was taken."""
        import numpy as np

        classes: Counter[str] = Counter()
        prices: dict[str, float] = {}
        functions: Counter[str] = Counter()
        entered: dict[str, int] = {}
        entries = dict(self.owners)
        for place in map(int, np.flatnonzero(self.machine.counts)):
            count, address = int(self.machine.counts[place]), 2 * place
            kind, row = self.kind_at(address), self.cpu.instruction(*form_of(self.machine.word(address)), 16)
            classes[kind] += count
            prices[kind] = prices.get(kind, 0.0) + count * float(row.typical)
            functions[self.owner(address)] += count
            if address in entries:
                entered[entries[address]] = count
            if flag := row.flag("native"):
                tally.notes.add(f"{row.operation.lower()}: {flag}")
            if row.operation.endswith("cc"):
                went = count, int(self.machine.taken[place])
                if tally.branches.setdefault(address, went) != went:
                    tally.varying[address] = f"{self.owner(address)}: a branch"
        total = sum(prices.values())
        return Sums(sum(classes.values()), total, dict(classes), prices, dict(functions), worst=total, entered=entered)

    def kind_at(self, address: int) -> str:
        """Return the class of the instruction at an address."""
        word = self.machine.word(address)
        name, operands = form_of(word)
        source, _, target = operands.partition(",")
        if target == "pc":
            return "call" if word & 0x0F30 == POPS else "branch"
        if name != "MOV":
            return KINDS[name]
        if target == "x":
            written = self.machine.word(address + (4 if source in ("x", "i") else 2))
            multiplies = word & 15 == core.SR and written in (core.OP2, core.OP2H)  # the last operand of a product
            return "multiply" if multiplies else "store"
        if source in ("@", "x"):
            return "stack" if word & 0x0F30 == POPS else "load"
        return "move"
