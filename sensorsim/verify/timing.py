"""Why a kernel does not execute the same instructions for every input: which branch depends on what."""

from collections.abc import Mapping

from sensorsim.language import ir
from sensorsim.language.c.text import with_prefix
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.machine.counting import Tally

RUNTIME = "the compiler's runtime: its steps depend on the operands (define SS_NO_HW_DIV for a division that does not)"


def reasons(tally: Tally, functions: Mapping[Kernel, str], prefix: str) -> tuple[str, ...]:
    """One line for each function with a branch that depends on data; nothing when the sequence is always the same."""
    if tally.constant_time:
        return ()
    by_function: dict[str, list[str]] = {}
    for _, text in sorted(tally.varying.items()):
        function, _, branch = text.partition(": ")
        by_function.setdefault(function, []).append(branch)
    own = {function: kernel for kernel, function in functions.items()}
    lines = []
    for function, branches in by_function.items():
        because = _conditions(own[function]) if function in own else with_prefix(RUNTIME, prefix)
        lines.append(f"{function} ({', '.join(f'`{branch}`' for branch in branches[:3])}): {because}")
    if not lines:  # a return that is conditional ends the call, so no branch was seen to go two ways
        entry = next(one for one in functions if not any(one in other.called for other in functions))
        lines.append(f"{functions[entry]}: {_conditions(entry)}")
    return tuple(lines)


def _conditions(kernel: Kernel) -> str:
    """The `if`s of the kernel and of those compiled into it, as they stand in the source."""
    found = [
        f"`{ir.shown(node)}` ({node.at})"
        for part in reachable([kernel])
        for node in part.nodes
        if isinstance(node, ir.If) or (isinstance(node, ir.For) and node.last.type in ("u32", "i32"))
    ]
    return "depends on " + ", ".join(found) if found else "a division or comparison that became a branch"
