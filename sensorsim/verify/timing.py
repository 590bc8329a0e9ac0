"""What a stopwatch would learn of a kernel, in three columns, and why: which branch or address depends on what."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sensorsim.language import ir
from sensorsim.language.c.comments import with_prefix
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.machine.counting import Tally

if TYPE_CHECKING:
    from sensorsim.verify.bits import KernelResult

SHOWN = 2  # places that a proof names
RUNTIME = "the compiler's runtime: its steps depend on the operands"
DIVISION = " (define SS_NO_HW_DIV for a division that does not)"
TIMING_HEAD = ("same path", "same addresses", "operations timed by data")


def timing_cells(result: "KernelResult") -> tuple[str, str, str]:
    """The cells under TIMING_HEAD: proved by the secrecy proof, or tried with so many secrets."""
    if result.sequences is None:
        return "", "", ""
    return _path(result), _addresses(result), _operations(result)


def _path(result: "KernelResult") -> str:
    if not result.constant_time:
        return _no(result, f"{result.sequences_by_secret} in {result.tried} tried")
    if {"branch", "loop"} & set(result.exposed):
        return f"no by its source, {result.tried} tried"
    return "proved" if result.proved_same_path else f"tried {result.tried}: yes"


def _addresses(result: "KernelResult") -> str:
    if not result.same_addresses:
        return _no(result, f"{result.addresses_by_secret} in {result.watched} tried")
    if "address" in result.exposed:
        return f"no by its source, {result.watched} tried"
    return "proved" if result.proved_same_addresses else f"tried {result.watched}: yes"


def _operations(result: "KernelResult") -> str:
    """Those on secrets, as `36 divisions (2–12 cycles)`; `none` where no operation has such a time at all."""
    slow = [operation.text(result.unit) for operation in result.operations if operation.on_data]
    if slow:
        return ", ".join(slow) + ("" if result.secrets else ", nothing secret")
    if not result.operations:
        return "none"
    return "none on secrets, " + ("proved" if result.proved_operations else f"tried {result.watched}")


def _no(result: "KernelResult", what: str) -> str:
    """A dependence on data; where the kernel declares no secret, the data is nobody's secret."""
    return f"no, {what}" if result.secrets else f"{what}, nothing secret"


def timing_lines(result: "KernelResult") -> list[str]:
    """Why a cell is no, for the lines below a table; nothing where all three are as they should be."""
    lines = [f"not the same path for all inputs: {reason}" for reason in result.varying]
    whose = "secrets" if result.secrets else "inputs"
    lines += [f"not the same addresses for all {whose}: {reason}" for reason in result.moving]
    lines += [f"FAILED: changes with a secret and is not declared: {name}" for name in result.leaks]
    return [f"{result.target}: {line}" for line in lines]


def leaks_told(results: "Iterable[KernelResult]") -> list[str]:
    """Name for each kernel and target what changes with a secret and is not declared, and the first branches of it."""
    found = []
    for one in results:
        if one.leaks:
            where = f" ({'; '.join((*one.varying, *one.moving)[:SHOWN])})" if one.varying or one.moving else ""
            found.append(f"{one.kernel} on {one.target}: secrets change the {', the '.join(one.leaks)}{where}")
    return found


def reasons(tally: Tally, functions: Mapping[Kernel, str], prefix: str) -> tuple[str, ...]:
    """One line for each function with a branch that depends on data; nothing when the sequence is always the same."""
    if tally.constant_time:
        return ()
    by_function: dict[str, list[str]] = {}
    for address, text in sorted(tally.varying.items()):
        function, _, branch = text.partition(": ")
        by_function.setdefault(function, []).append(f"`{branch}` at 0x{address:x}")
    own = {function: kernel for kernel, function in functions.items()}
    lines = []
    for function, branches in by_function.items():
        because = _conditions(own[function]) if function in own else _runtime(function, prefix)
        more = f" and {len(branches) - 3} more" if len(branches) > 3 else ""
        lines.append(f"{function} ({', '.join(branches[:3])}{more}): {because}")
    if not lines:  # a return that is conditional ends the call, so no branch was seen to go two ways
        entry = next(one for one in functions if not any(one in other.called for other in functions))
        lines.append(f"{functions[entry]}: {_conditions(entry)}")
    return tuple(lines)


def _runtime(function: str, prefix: str) -> str:
    if function.startswith(prefix):
        return "a choice without a branch in the source, of which the compiler made one"
    return RUNTIME + (with_prefix(DIVISION, prefix) if "div" in function else "")


def address_reason(function: str, text: str, address: int, kernel: Kernel) -> str:
    """Which instruction touched another address for another secret, and which lines of the kernel say so."""
    read = kernel.secrecy()
    found = dict.fromkeys(
        f"{one.text} at {one.at}{', declared' if one.reason else ''}"
        for one in (*read.findings, *read.exceptions)
        if one.kind == "address"
    )
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    because = next(iter(found), "the address depends on data") + more
    return f"{function} (`{text}` at 0x{address:x}): {because}"


def _conditions(kernel: Kernel) -> str:
    """The `if`s of the kernel and of those compiled into it, as they stand in the source."""
    found = [
        f"`{ir.shown(node)}` ({node.at})"
        for part in reachable([kernel])
        for node in part.nodes
        if isinstance(node, ir.If) or (isinstance(node, ir.For) and node.last.type in ("u32", "i32"))
    ]
    return "depends on " + ", ".join(found) if found else "an operation that became a branch"
