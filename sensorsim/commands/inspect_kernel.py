"""`sensorsim kernel`: formula, counts, price, ranges and secrecy of a kernel, and its C on real cores."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import temporary_folder
from sensorsim._util.option_kinds import (
    CPUS,
    KERNEL,
    KERNEL_FILE,
    NEW_FOLDER,
    TARGETS,
    Choice,
    Kind,
    Known,
    split_names,
)
from sensorsim._util.progress import note
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import columns, fold, hung
from sensorsim.commands.declare import REQUIRED, Command, option
from sensorsim.costing.kernel_report import KernelReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.commands.locks import Locks
    from sensorsim.language import Kernel

SCHEMA_VERSION = 1


@dataclass(frozen=True, repr=False)
class KernelReports(Result):
    """The reports of the kernels of a file, by their qualified names."""

    kernels: Mapping[str, KernelReport]
    package: Mapping[str, str] | None = None  # the C that was made of them, by path
    unverified: bool = False  # C is made of proved kernels only, and one is not
    failed: tuple[str, ...] = ()  # the proofs of the C that do not hold, each with its reason

    @property
    def holds(self) -> bool:
        """Return whether all ranges are proved, nothing secret shows, and every proof of the C holds."""
        return all(report.holds for report in self.kernels.values()) and not self.failed

    def title(self) -> str:
        return "; ".join(report.title() for report in self.kernels.values())

    def facts(self) -> dict[str, str]:
        several = len(self.kernels) > 1
        found = {
            f"{report.kernel.name}: {name}" if several else name: text
            for report in self.kernels.values()
            for name, text in report.facts().items()
        }
        return found | {f"FAILED {number}": text for number, text in enumerate(self.failed, 1)}

    def to_dict(self) -> dict[str, Any]:
        made = {name: report.to_dict() for name, report in self.kernels.items()}
        return {"schema_version": SCHEMA_VERSION, "kernels": made, "failed": list(self.failed)}

    def rows(self) -> list[dict[str, Any]]:
        return [row for report in self.kernels.values() for row in report.rows()]

    def figure(self) -> "Figure":
        """Draw how often each operation runs in one call, of every kernel."""
        several = len(self.kernels) > 1
        counts: dict[str, float | None] = {
            f"{report.kernel.name}: {name}" if several else name: count
            for report in self.kernels.values()
            for name, count in report.by_operation().items()
        }
        return bars(self.title(), counts, "times that it runs in one call, counted")


class Lengths(Kind):
    """Lengths with their values: n=14,rate=3, or a dict in Python."""

    metavar, words, takes = "n=14,rate=3", "text or a dict", (str, Mapping)

    def check(self, label: str, value: Any) -> Any:
        super().check(label, value)
        for part in (split_names(value) or [value]) if isinstance(value, str) else ():
            name, equals, number = (piece.strip() for piece in part.partition("="))
            if not equals or not name.isidentifier() or not number.lstrip("-").isdecimal() or len(number) > 12:
                raise InputError(f"{label} {part!r} is no length with its value; write {self.metavar}.")
        return value


class OwnKernel(Known):
    """A kernel that ships, by name, FILE.py:name, or in Python a kernel itself."""

    def accepts(self, value: Any) -> bool:
        return super().accepts(value) or type(value).__name__ == "Kernel"


@dataclass(frozen=True)
class InspectKernel(Command[KernelReports]):
    """Of a kernel in a file of your own, or of one that ships, by name: formula and counts, price on each processor,
    the proved interval of every line, what an observer of its timing learns of its secrets, and its C.

    Exit code 0: all of it holds. 1: something is not proved, or a bit differs. 2: the file is not in the kernel
    language, or the question cannot be answered.
    """

    example = "sensorsim kernel ema.py:ema --at n=14,rate=3 --cpu cortex-m0plus --verify host,cortex-m0plus"
    lockable = True

    kernel: "str | os.PathLike[str] | Kernel" = option(
        REQUIRED, OwnKernel(KERNEL.names, files=True, metavar=KERNEL_FILE), "The kernel.", argument=True, lock="ask"
    )
    at: str | Mapping[str, int] = option("", Lengths(), "Lengths to count at; the others take their typical value.")
    cpu: str | Sequence[str] = option(
        "k7", CPUS, "Processors, with commas; `sensorsim cpus` lists them, or FILE.csv of your own."
    )
    accounting: str = option(
        "full", Choice("paper", "full"), "full: price every operation; paper: what the SPOF paper prices."
    )
    level: str = option(
        "kernel",
        Choice("kernel", "machine"),
        "machine: also compile it, run the machine code and count what it executes.",
    )
    c: str | os.PathLike[str] | None = option(
        None, NEW_FOLDER, "Write a C package into this folder, as `export` does.", lock="refuse"
    )
    verify: str | Sequence[str] = option("", TARGETS, "Prove its C there, bit for bit: host, cortex-m0plus …")

    def run(self) -> KernelReports:
        from sensorsim.codegen.package_options import choose
        from sensorsim.codegen.write import check_folder
        from sensorsim.costing.kernel_report import kernel_report
        from sensorsim.costing.prices import load_cpu
        from sensorsim.language import Kernel
        from sensorsim.machine.machine_cost import count_kernel
        from sensorsim.machine.targets import check_targets

        if self.c is not None:
            check_folder(Path(self.c))
        loaded = isinstance(self.kernel, Kernel)
        kernels = [self.kernel] if isinstance(self.kernel, Kernel) else choose([os.fspath(self.kernel)], "paper")
        lengths, cpus, targets = self._lengths(), split_names(self.cpu), split_names(self.verify)
        if not cpus:
            raise InputError("no processor is named; give --cpu k7, or see `sensorsim cpus`.")
        if self.verify and not targets:
            raise InputError("--verify names no target; give host, a core, or several with commas.")
        if loaded and (self.c is not None or targets):
            raise InputError("C is made of kernels in a file; give FILE.py:name in place of the kernel.")
        for name in cpus:
            load_cpu(name)
        targets = check_targets(targets) if targets else []
        for name in lengths:
            if not any(name in kernel.parameters for kernel in kernels):
                known = ", ".join(dict.fromkeys(length for kernel in kernels for length in kernel.lengths)) or "none"
                raise InputError(f"--at names {name}, which is no length of these kernels; they have {known}.")
        reports = {}
        for one in kernels:
            own = {name: value for name, value in lengths.items() if name in one.parameters}
            report = kernel_report(one, own, cpus, self.accounting)
            if self.level == "machine" and report.proof is not None:
                counts = {name: count_kernel(report.kernel, report.at, name) for name in report.prices}
                report = replace(report, machine=counts)
            reports[one.qualified] = report
        if self.c is None and not targets:
            return KernelReports(reports)
        return self._with_package(reports, targets)

    def _lengths(self) -> dict[str, int]:
        if isinstance(self.at, Mapping):
            return dict(self.at)
        pairs = (part.partition("=") for part in split_names(self.at))
        return {name.strip(): int(number) for name, _, number in pairs}

    def _with_package(self, reports: dict[str, KernelReport], targets: list[str]) -> KernelReports:
        """Write the C package, and verify it on the targets."""
        from sensorsim.codegen.kernels_package import make_package
        from sensorsim.codegen.package_options import Options
        from sensorsim.codegen.write import write_folder

        unproved = [report for report in reports.values() if report.proof_error is not None]
        if unproved and self.c is not None:
            raise InputError(f"{str(unproved[0].proof_error).rstrip('.')}; C is written of proved kernels only.")
        if unproved:  # the report says what is not proved
            note("Nothing is verified: C is written of proved kernels only.")
            return KernelReports(reports, unverified=True)
        texts = make_package(Options(kernels=tuple(split_names(os.fspath(self.kernel))), variant="paper"))  # type: ignore[arg-type]
        if self.c is not None:
            write_folder(Path(self.c), texts)
        return _verified(reports, texts, targets) if targets else KernelReports(reports, texts)

    def text(self, answer: KernelReports) -> str:
        file, out = str(self.kernel), None if self.c is None else str(self.c)
        parts = [_text(report, file, out) for report in answer.kernels.values()]
        failed = [line for text in answer.failed for line in _paragraph("FAILED", text)]
        return "\n\n".join([*parts, *(["\n".join(failed)] if failed else [])])

    def exit_code(self, answer: KernelReports) -> int:
        return 0 if answer.holds else 1

    def settle(self, locks: "Locks", answer: KernelReports) -> None:
        """Settle the lock: figures of the report, with the machine code of proved kernels on cores."""
        from sensorsim.commands.locked_figures import of_kernel, with_machine_code

        data = with_machine_code(answer.to_dict(), dict(answer.kernels), split_names(self.cpu), self.level, locks.also)
        locks.settle(lambda: of_kernel(data), answer.holds, data["kernels"])


def _verified(reports: dict[str, KernelReport], texts: Mapping[str, str], targets: list[str]) -> KernelReports:
    """Verify the package and add to each report what was found, with every proof that does not hold."""
    from sensorsim._util.files import fill
    from sensorsim.verification.verification import verify

    with temporary_folder() as folder:
        fill(Path(folder), texts)
        found = verify(Path(folder), targets, trust=True, made=texts)  # the user's own file, loaded already
    made = f"{found.compiler}, {found.flags}"
    rows = {name: tuple(_row(result, made) for result in found.results if result.kernel == report.kernel.name)
            for name, report in reports.items()}  # fmt: skip
    failed = tuple(f"{proof.name}: {proof.detail}" for proof in found.proofs if not proof.passed)
    verified = {name: replace(report, verified=rows[name]) for name, report in reports.items()}
    return KernelReports(verified, texts, failed=failed)


def _row(result: Any, compiler: str) -> dict[str, Any]:
    n, price = result.instructions, result.price
    return {
        "target": result.target,
        "vectors": result.vectors,
        "differing_bits": result.differing_bits,
        "instructions": n.mean if n else None,
        "cost": price.mean if price else None,
        "unit": result.unit or None,
        "same_path": result.constant_time,
        "leaks": list(result.leaks),
        "passed": result.passed,
        "compiler": compiler,
    }


def _text(report: "KernelReport", file: str, out: str | None) -> str:
    kernel = report.kernel
    sizes = ", ".join(f"{name} = {value}" for name, value in report.at.items())
    lines = [f"{kernel.name} ({kernel.at})" + (f"   {sizes}" if sizes else "")]
    lines += [f" {text}" for text in _costs(report)]
    counts = _counts(report)
    lines += ["", *counts, ""] if counts else [""]
    lines += _ranges(report)
    leaks = any(row["leaks"] for row in report.verified)
    lines += _paragraph(
        "secrecy", ("NOT kept by the machine code; of the source " if leaks else "") + report.secrecy.verdict
    )
    for row in report.verified:
        same = "every bit is the same" if not row["differing_bits"] else f"{row['differing_bits']} BITS DIFFER"
        ran = f", {row['instructions']:g} instructions on average" if row["instructions"] else ""
        lines.append(f" {'verified':<9} {row['target']}: {same} in {row['vectors']} vectors{ran}")
    if out is not None:
        lines.append(f" {'C':<9} in {out}; next: sensorsim verify {out}")
    elif report.proof is not None and not report.verified:
        lines.append(f" {'C':<9} sensorsim kernel {_alone(file, kernel.name)} --c DIR --verify host")
    return hung("\n".join(lines), columns())


def _alone(file: str, name: str) -> str:
    """Return the name of one kernel of a file: beside another that is not proved no C would be written."""
    path, found, _ = file.rpartition(".py")
    return f"{path}.py:{name}" if found else file


def _costs(report: "KernelReport") -> list[str]:
    lines = []
    for name, price in report.prices.items():
        how = "" if price.accounting == "full" else ", the paper's accounting"
        if price.total is None:
            lines.append(f"no price on {price.cpu.title}: {' '.join(price.missing)}")
        else:
            spread = f" ({price.total.min} … {price.total.max})" if price.total.min != price.total.max else ""
            formula = f"   {price.formula}" if price.formula is not None else ""
            data = ", by the data" if price.by_data else ""
            amount = f"{price.amount} {price.cpu.unit}{'' if data else spread}"
            lines.append(f"{amount} on {price.cpu.title}{data}{how}{formula}")
        ran = report.machine.get(name)
        if ran is not None:
            lines.append(f"  as machine code: {ran.get('machine_text', 'there is no compiler for it here')}")
    words = report.random_words
    lines.append(f"{32 * words} secret random bits" if words else "no secret random bits")
    return lines


def _counts(report: "KernelReport") -> list[str]:
    """Return a row for each operation class: its formula, and how often it runs in each step."""
    steps = report.steps()
    if not steps:
        return []
    formula = report.to_dict()["formula"] or {}
    rows = [["operation", "formula", "count", *(steps if len(steps) > 1 else [])]]
    for operation in dict.fromkeys([*(name for counts in steps.values() for name in counts), *formula]):
        each = [counts.get(operation, 0) for counts in steps.values()]
        cells = [str(count) if count else "" for count in each] if len(steps) > 1 else []
        rows.append([operation, formula.get(operation, "–"), str(sum(each)), *cells])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for row in rows:
        left = f" {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}"
        lines.append((left + "".join(f"  {cell:>{widths[k + 2]}}" for k, cell in enumerate(row[2:]))).rstrip())
    if report.formula_error:
        lines.append(f" {report.formula_error}")
    if report.otherwise is not None:
        lines.append(" The formula is of the way into every `if`, the count of one call; JSON has the other way too.")
    return lines


def _ranges(report: "KernelReport") -> list[str]:
    from sensorsim.language.types import power_of_two

    if report.proof is None:
        return _paragraph("REFUSED", str(report.proof_error))
    lines = [" proved    no operation wraps, no index leaves its array, for every input and length"]
    for at, (lo, hi) in sorted(report.proof.lines.items()):
        interval = power_of_two(lo) if lo == hi else f"{power_of_two(lo)} … {power_of_two(hi)}"
        lines.append(f"   {at!s:<20} {interval}")
    return lines


def _paragraph(head: str, text: str) -> list[str]:
    return fold(text, columns(), f" {head:<9} ")
