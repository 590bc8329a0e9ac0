"""Why a kernel does not execute the same instructions for every input: which branch depends on what."""

import ast

from sensorsim.export.counting import Tally
from sensorsim.export.sources import reachable
from sensorsim.kernels.language import Kernel

RUNTIME = "the compiler's runtime: its steps depend on the operands (define SS_NO_HW_DIV for a division that does not)"


def reasons(tally: Tally, kernel: Kernel, prefix: str) -> tuple[str, ...]:
    """One line for each function with a branch that depends on data; nothing when the sequence is always the same."""
    if tally.constant_time:
        return ()
    by_function: dict[str, list[str]] = {}
    for _, text in sorted(tally.varying.items()):
        function, _, branch = text.partition(": ")
        by_function.setdefault(function, []).append(branch)
    own = {prefix + part.name: part for part in reachable([kernel])}
    lines = []
    for function, branches in by_function.items():
        because = _conditions(own[function]) if function in own else RUNTIME.replace("SS_", prefix.upper())
        lines.append(f"{function} ({', '.join(f'`{branch}`' for branch in branches[:3])}): {because}")
    return tuple(lines)


def _conditions(kernel: Kernel) -> str:
    """The `if`s of the kernel and of those compiled into it, as they stand in the source."""
    found = [
        f"`if {ast.unparse(node.test)}` ({part.path.name}:{node.lineno})"
        for part in reachable([kernel])
        for node in ast.walk(part.tree)
        if isinstance(node, ast.If)
    ]
    return "depends on " + ", ".join(found) if found else "a division or comparison that became a branch"
