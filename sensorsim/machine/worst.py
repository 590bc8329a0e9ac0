"""A bound on what one call can cost, where there is one: the single path that all inputs take, at its largest prices.

That there is one path is proved on the compiled code, by `following`: no branch, conditional return or computed jump
on the way looks at anything that depends on data. So every input at these lengths takes the same way, and the counts of
one run are those of all; the other side of such a branch is for other lengths. What is left to vary is how long each
instruction takes, and of that the table has the maximum. A branch that does look at data ends the proof, however rarely
it goes the other way, and then there is no bound.

It rests on that no index leaves its array, which the kernel's ranges prove; on the disassembler's word for what an
instruction reads and writes; on the table. It holds for the core as its table describes it: no wait states of the
memory, no interrupts, no cache.
"""

import math
from dataclasses import dataclass

from sensorsim.cost.prices import Cpu
from sensorsim.language import ir
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.machine.counting import BlockCounter, Tally

ON_DATA = ("u32", "i32")  # types of a loop's end that is data; lengths and constants have others


@dataclass(frozen=True)
class WorstCase:
    """The largest cost of a call, in the unit of the core's table; None with the reason where there is no bound."""

    cost: float | None
    unit: str
    core: str  # the configuration that it holds for
    why: str


def core_of(cpu: Cpu) -> str:
    """The core that a worst case speaks of, with what its table takes for granted."""
    return f"{cpu.title} as in {cpu.path.name}" + (f" ({cpu.configuration})" if cpu.configuration else "")


def worst_case(
    kernel: Kernel, counter: BlockCounter, tally: Tally, cpu: Cpu, prefix: str, decided: str = ""
) -> WorstCase:
    """The bound for calls at the lengths that the tally's calls had; `decided` is what `decided_by_data` said."""
    core = f"{core_of(cpu)}: memory without wait states, no interrupt"
    reason = _no_bound(kernel, counter, tally, prefix) or decided
    if reason:
        return WorstCase(None, cpu.unit, core, f"no bound: {reason}")
    largest = max(part.worst for part in tally.parts.values())
    if math.isnan(largest):
        return WorstCase(None, cpu.unit, core, "no bound: the table has no price for all that ran")
    by = ", by estimated prices" if any(note.endswith(": estimate") for note in tally.notes) else ""
    why = f"no branch depends on data, so every input takes one path; each instruction at its largest price{by}"
    return WorstCase(largest, cpu.unit, core, why)


def _no_bound(kernel: Kernel, counter: BlockCounter, tally: Tally, prefix: str) -> str:
    """Why a run does not show all that can run, or nothing."""
    runtime = sorted(name for name in counter.branching() if not name.startswith(prefix))
    if runtime:
        return f"the steps of {' and '.join(runtime)} of the compiler's runtime depend on data"
    for part in reachable([kernel]):
        for node in part.nodes:
            rounds = (node.first.type, node.last.type) if isinstance(node, ir.For) else ()
            if isinstance(node, ir.If) or any(end in ON_DATA for end in rounds):
                return f"branches on data, `{ir.shown(node)}` ({node.at})"
    if not tally.constant_time:  # the compiler made a branch of what is none in the source
        return "branches on data: " + "; ".join(tally.varying.values() or ["the compiled code took several paths"])
    return ""
