"""Report everything that is derived from one kernel: `kernel_report(kernel, …)`."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.results import Result, bars
from sensorsim.costing.csv_schema import Number, Span
from sensorsim.costing.prices import CLASSES, Cpu, load_cpu
from sensorsim.costing.pricing import KERNEL_WIDTH, Pricing, sum_steps
from sensorsim.language import Below, Kernel, LanguageError, Q, ir
from sensorsim.language.arguments import array_length, bounds
from sensorsim.language.count import Counts
from sensorsim.language.formula import Formula
from sensorsim.language.kernel import reachable
from sensorsim.language.polynomial import Polynomial
from sensorsim.language.ranges import Proof, RangeError
from sensorsim.language.secrecy import Finding, Secrecy
from sensorsim.language.types import Array, Length

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNSIGNED = False  # the tables' prices of signed operations differ for division alone


@dataclass(frozen=True)
class KernelPrice:
    """Hold the cost of one call on one processor; `total` is None where an operation has no price: see `missing`.

    `by_data` are the least and the largest typical cost over the paths of the source, where the kernel branches on data
    or loops to a value; `total` is then that of the call that was counted.
    """

    cpu: Cpu
    accounting: str
    total: Span | None
    formula: Polynomial | None
    by_data: tuple[Number, Number] | None = None
    flags: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def amount(self) -> str:
        """Format the cost without its unit: both ends where it depends on the data."""
        if self.total is None:
            return "no price"
        return f"{self.by_data[0]:g} to {self.by_data[1]:g}" if self.by_data else f"{self.total.typical:g}"

    def to_dict(self) -> dict[str, Any]:
        total = self.total
        return {
            "unit": self.cpu.unit,
            "width": KERNEL_WIDTH,
            "signed": UNSIGNED,
            "accounting": self.accounting,
            **{name: getattr(total, name, None) for name in ("typical", "min", "max")},
            "formula": None if self.formula is None else str(self.formula),
            "by_data": self.by_data,
            "flags": list(self.flags),
            "missing": list(self.missing),
        }


@dataclass(frozen=True, repr=False)
class KernelReport(Result):
    """Hold the results of every analysis of a kernel. One that failed is None, with its error beside it."""

    kernel: Kernel
    at: dict[str, int]
    counts: Counts
    formula: Formula | None
    formula_error: str | None
    otherwise: Formula | None  # the other branch of each `if`, where the kernel has one
    prices: dict[str, KernelPrice]
    proof: Proof | None
    proof_error: RangeError | None
    secrecy: Secrecy
    machine: dict[str, dict[str, Any]] = field(default_factory=dict)  # by processor: what compiled code executed
    verified: tuple[dict[str, Any], ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether ranges and secrecy are proved and every compared bit is equal."""
        return self.proof is not None and self.secrecy.proved and all(row["passed"] for row in self.verified)

    @property
    def random_words(self) -> int:
        """Return the number of secret words that one call draws."""
        words = 0
        for name, kind in self.kernel.parameters.items():
            element = kind.element if isinstance(kind, Array) else kind
            if not isinstance(element, Length) and element.drawn and "." not in name:  # a field is memory of a record
                words += array_length(self.kernel, name, self.at) if isinstance(kind, Array) else 1
        return words

    def to_dict(self) -> dict[str, Any]:
        error, lines = self.proof_error, sorted(self.proof.lines.items()) if self.proof else []
        return {
            "file": self.kernel.path.name,
            "line": self.kernel.at.line,
            "at": self.at,
            "random_bits": 32 * self.random_words,
            "formula": _by_class(self.formula),
            "formula_error": self.formula_error,
            "formula_otherwise": _by_class(self.otherwise),
            "counts": {step: dict(counts) for step, counts in self.steps().items()},
            "cost": {name: {**price.to_dict(), **self.machine.get(name, {})} for name, price in self.prices.items()},
            "ranges": {
                "proved": self.proof is not None,
                "result": self.proof.result if self.proof else None,
                "lines": [{"file": at.name, "line": at.line, "lo": lo, "hi": hi} for at, (lo, hi) in lines],
                "error": None if error is None else {"file": error.at.name, "line": error.at.line, "text": str(error)},
            },
            "secrecy": {
                "proved": self.secrecy.proved,
                "same_path": self.secrecy.same_path,
                "verdict": self.secrecy.verdict,
                "secrets": list(self.secrecy.secrets),
                "findings": [_finding(found) for found in self.secrecy.findings],
                "exceptions": [_finding(found) for found in self.secrecy.exceptions],
            },
            "verified": list(self.verified),
        }

    def steps(self) -> dict[str, dict[str, int]]:
        """Return the counts by step and class."""
        made: dict[str, dict[str, int]] = {}
        for (step, operation), count in self.counts.items():
            made.setdefault(step, {})[operation] = count
        return made

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one row for each step, operation class and processor."""
        for name, price in self.prices.items():
            pricing = _pricing(self.kernel, price.cpu, price.accounting)
            for (step, operation), count in self.counts.items():
                cost = None if operation in _unpriced(pricing, [operation]) else pricing.price(operation).typical
                yield {
                    "kernel": self.kernel.qualified,
                    "cpu": name,
                    "step": step,
                    "operation": operation,
                    "count": count,
                    "price": cost,
                    "total": None if cost is None else count * cost,
                    "unit": price.cpu.unit,
                    "width": KERNEL_WIDTH,
                    "signed": UNSIGNED,
                    "accounting": price.accounting,
                }

    def title(self) -> str:
        sizes = ", ".join(f"{name} = {value}" for name, value in self.at.items())
        return f"{self.kernel.name} ({self.kernel.at})" + (f", {sizes}" if sizes else "")

    def facts(self) -> dict[str, str]:
        found = {}
        for name, price in self.prices.items():
            formula = f"   {price.formula}" if price.formula is not None else ""
            data = ", by the data" if price.by_data else ""
            found[name] = f"{price.amount} {price.cpu.unit}{data}{formula}" if price.total else price.amount
        found["ranges"] = (
            "proved: no operation wraps, no index leaves its array"
            if self.proof
            else "REFUSED: " + str(self.proof_error)
        )
        found["secrecy"] = self.secrecy.verdict
        for row in self.verified:
            found[f"on {row['target']}"] = f"{row['differing_bits']} bits differ in {row['vectors']} vectors"
        return found

    def figure(self) -> "Figure":
        return bars(self.title(), dict(self.by_operation()), "times that it runs in one call, counted")

    def by_operation(self) -> dict[str, int]:
        """Return how often each operation runs in one call."""
        return sum_steps(self.counts)


def kernel_report(
    kernel: Kernel, at: Mapping[str, int] | None = None, cpus: Sequence[str] = ("k7",), accounting: str = "full"
) -> KernelReport:
    """Run every analysis of a kernel; `at` are lengths or scalars, other lengths take their typical value."""
    given = dict(at or {})
    for name in given:
        if name not in kernel.parameters or name in kernel.arrays:
            scalars = ", ".join(name for name in kernel.parameters if name not in kernel.arrays) or "none"
            raise InputError(f"{kernel.name} has no parameter {name} that takes a number; it has {scalars}.")
    lengths = kernel.lengths_at({name: value for name, value in given.items() if name in kernel.lengths})
    parts = list(reachable([kernel]))
    formula, formula_error = _formula(kernel, otherwise=False)
    branches = any(isinstance(node, ir.If) for part in parts for node in part.nodes)
    otherwise = _formula(kernel, otherwise=True)[0] if branches else None
    proof, proof_error, uncounted = None, None, ""
    try:
        proof = kernel.prove()
    except RangeError as error:
        proof_error = error
    try:
        counts = kernel.count(**{**given, **lengths})
    except LanguageError as error:
        if proof is not None:
            raise
        counts, uncounted = Counter(), str(error)
    paths = [formula, otherwise] if otherwise is not None else [formula]
    prices = {name: _price(kernel, load_cpu(name), accounting, counts, paths, lengths, uncounted) for name in cpus}
    known = {**given, **lengths}, counts, formula, formula_error, otherwise, prices, proof, proof_error
    return KernelReport(kernel, *known, kernel.secrecy())


def _formula(kernel: Kernel, otherwise: bool) -> tuple[Formula | None, str | None]:
    try:
        return kernel.formula(otherwise), None
    except LanguageError as error:
        return None, str(error)


def _price(
    kernel: Kernel,
    cpu: Cpu,
    accounting: str,
    counts: Counts,
    paths: Sequence[Formula | None],
    lengths: Mapping[str, int],
    uncounted: str,
) -> KernelPrice:
    pricing = _pricing(kernel, cpu, accounting)
    read = [sum_steps(path) for path in paths if path is not None]
    whole = sum_steps(counts)
    missing = _unpriced(pricing, dict.fromkeys([*whole, *(name for path in read for name in path)]))
    if uncounted:
        missing = {"": f"nothing was counted ({uncounted.rstrip('.')})."}
    if missing:
        return KernelPrice(cpu, accounting, None, None, missing=tuple(missing.values()))
    total = pricing.total(whole)
    totals = [total.typical]
    for end in range(2):  # values that a loop runs to are taken at both ends of their formats
        kinds = kernel.parameters.items()
        values = {name: bounds(kind, lengths)[end] for name, kind in kinds if isinstance(kind, Q | Below)}
        for path in read:
            times = {operation: each.value({**lengths, **values}) for operation, each in path.items()}
            totals.append(pricing.total(times).typical)
    by_data = (min(totals), max(totals)) if min(totals) != max(totals) else None
    formula = pricing.formula(read[0]) if paths[0] is not None else None
    return KernelPrice(cpu, accounting, total, formula, by_data, tuple(pricing.flags.values()))


def _by_class(formula: Formula | None) -> dict[str, str] | None:
    if formula is None:
        return None
    return {operation: str(times) for operation, times in sorted(sum_steps(formula).items())}


def _pricing(kernel: Kernel, cpu: Cpu, accounting: str) -> Pricing:
    """Return a pricing by the processor's table and the prices of the kernel's own primitives."""
    nodes = (node for part in reachable([kernel]) for node in part.nodes)
    own: dict[str, Number] = {}
    for primitive in (node.primitive for node in nodes if isinstance(node, ir.Apply)):
        for operation in primitive.operations:
            if operation not in CLASSES and cpu.name in primitive.prices:
                own[operation] = primitive.prices[cpu.name]
    return Pricing(cpu, KERNEL_WIDTH, UNSIGNED, cpu.unit, accounting, own=own)


def _unpriced(pricing: Pricing, operations: Iterable[str]) -> dict[str, str]:
    """Return the operations without a price, each with its message."""
    found: dict[str, str] = {}
    for operation in operations:
        try:
            pricing.price(operation)
        except InputError as error:
            how = f"; give the primitive prices={{{pricing.cpu.name!r}: …}}" if operation not in CLASSES else ""
            found[operation] = f"{operation}: {str(error).rstrip('.')}{how}."
    return found


def _finding(found: Finding) -> dict[str, Any]:
    place = {"kind": found.kind, "file": found.at.name, "line": found.at.line}
    return {**place, "text": found.text, "reason": found.reason or None}
