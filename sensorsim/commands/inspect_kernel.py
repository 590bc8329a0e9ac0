"""`sensorsim kernel`: formula, counts, price, ranges and secrecy of a kernel, and its C on real cores."""

import os
from collections.abc import Callable, Mapping, Sequence
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
from sensorsim._util.terminal import columns, fold, hung, table
from sensorsim.commands.declare import REQUIRED, Also, Command, option
from sensorsim.costing.kernel_report import KernelReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.commands.lock_file import Taken
    from sensorsim.language import Kernel

SCHEMA_VERSION = 1
MOST_COLUMNS = 1000  # of counts: they are not wrapped


@dataclass(frozen=True, repr=False)
class KernelReports(Result):
    """The reports of the kernels of a file, by their qualified names."""

    kernels: Mapping[str, KernelReport]
    failed: tuple[str, ...] = ()  # the proofs of the C that do not hold, each with its reason

    @property
    def holds(self) -> bool:
        """Return whether all ranges are proved, nothing secret shows, and every proof of the C holds."""
        return all(report.holds for report in self.kernels.values()) and not self.failed

    def title(self) -> str:
        return "; ".join(report.title() for report in self.kernels.values())

    def facts(self) -> dict[str, str]:
        failed = {f"FAILED {number}": text for number, text in enumerate(self.failed, 1)}
        return self._of_each(KernelReport.facts) | failed

    def to_dict(self) -> dict[str, Any]:
        made = {name: report.to_dict() for name, report in self.kernels.items()}
        return {"schema_version": SCHEMA_VERSION, "kernels": made, "failed": list(self.failed)}

    def rows(self) -> list[dict[str, Any]]:
        return [row for report in self.kernels.values() for row in report.rows()]

    def figure(self) -> "Figure":
        """Draw how often each operation runs in one call, of every kernel."""
        return bars(self.title(), self._of_each(KernelReport.by_operation), "times that it runs in one call, counted")

    def _of_each(self, part: Callable[[KernelReport], Mapping[str, Any]]) -> dict[str, Any]:
        """Return a part of all reports; names are those of their kernels too where there are several."""
        head = "{}: {}" if len(self.kernels) > 1 else "{1}"
        reports = self.kernels.values()
        return {head.format(each.kernel.name, name): value for each in reports for name, value in part(each).items()}


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
    """Take a kernel in a file of your own, or one that ships, by name. The report has formula and counts, price on each
    processor, the proved interval of every line, what an observer of its timing learns of its secrets, and its C.

    Exit code 0: all of it holds. 1: something is not proved, or a bit differs. 2: the file is not in the kernel
    language, or the question cannot be answered.
    """

    example = "sensorsim kernel ema.py:ema --at n=14,rate=3 --cpu cortex-m0plus --verify host,cortex-m0plus"
    lockable = True
    holds = "holds"

    kernel: "str | os.PathLike[str] | Kernel" = option(
        REQUIRED, OwnKernel(KERNEL.names, files=True, metavar=KERNEL_FILE), "The kernel.", argument=True, lock="ask"
    )
    at: str | Mapping[str, int] = option("", Lengths(), "Lengths to count at; the others take their typical value.")
    cpu: str | Sequence[str] = option("k7", CPUS, "Processors, with commas; see `sensorsim cpus`, or FILE.csv.")
    accounting: str = option("full", Choice("paper", "full"), "full: price every operation; paper: as the SPOF paper.")
    level: str = option("kernel", Choice("kernel", "machine"), "machine: also compile it and count what it executes.")
    c: str | os.PathLike[str] | None = option(
        None, NEW_FOLDER, "Write a C package here, as `export` does.", lock="refuse"
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
        kernels = [self.kernel] if isinstance(self.kernel, Kernel) else choose([os.fspath(self.kernel)], "paper")
        lengths, cpus, targets = self._lengths(), split_names(self.cpu), split_names(self.verify)
        if not cpus:
            raise InputError("no processor is named; give --cpu k7, or see `sensorsim cpus`.")
        if self.verify and not targets:
            raise InputError("--verify names no target; give host, a core, or several with commas.")
        if isinstance(self.kernel, Kernel) and (self.c is not None or targets):
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
        return KernelReports(reports) if self.c is None and not targets else self._with_package(reports, targets)

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

        unproved = [report.proof_error for report in reports.values() if report.proof_error is not None]
        if unproved and self.c is not None:
            raise InputError(f"{str(unproved[0]).rstrip('.')}; C is written of proved kernels only.")
        if unproved:  # the report says what is not proved
            note("Nothing is verified: C is written of proved kernels only.")
            return KernelReports(reports)
        texts = make_package(Options(kernels=tuple(split_names(os.fspath(self.kernel))), variant="paper"))
        if self.c is not None:
            write_folder(Path(self.c), texts)
        return _verified(reports, texts, targets) if targets else KernelReports(reports)

    def text(self, answer: KernelReports) -> str:
        file, out = str(self.kernel), None if self.c is None else str(self.c)
        failed = [line for text in answer.failed for line in _paragraph("FAILED", text)]
        parts = [*(_text(report, file, out) for report in answer.kernels.values()), "\n".join(failed)]
        return "\n\n".join(filter(None, parts))

    def figures(self, answer: KernelReports, also: Also) -> "Taken":
        from sensorsim.commands.locked_figures import kernel_cores, machine_code, of_kernel

        if self.level == "machine":
            return of_kernel(answer.to_dict(), {})
        cores = also("cores", lambda: kernel_cores(split_names(self.cpu)))
        return of_kernel(answer.to_dict(), machine_code(answer.kernels, cores))


def _verified(reports: dict[str, KernelReport], texts: Mapping[str, str], targets: list[str]) -> KernelReports:
    """Verify the package and add to each report what was found, with every proof that does not hold."""
    from sensorsim._util.files import fill
    from sensorsim.verification.verification import verify

    with temporary_folder() as folder:
        fill(Path(folder), texts)
        found = verify(Path(folder), targets, trust=True, made=texts)  # the user's own file, loaded already
    made = f"{found.compiler}, {found.flags}"
    verified = {}
    for name, report in reports.items():
        own = tuple(_row(result, made) for result in found.results if result.kernel == report.kernel.name)
        verified[name] = replace(report, verified=own)
    failed = tuple(f"{proof.name}: {proof.detail}" for proof in found.proofs if not proof.passed)
    return KernelReports(verified, failed)


def _row(result: Any, compiler: str) -> dict[str, Any]:
    return {
        "target": result.target,
        "vectors": result.vectors,
        "differing_bits": result.differing_bits,
        "instructions": result.instructions.mean if result.instructions else None,
        "cost": result.price.mean if result.price else None,
        "unit": result.unit or None,
        "same_path": result.constant_time,
        "leaks": list(result.leaks),
        "passed": result.passed,
        "compiler": compiler,
    }


def _text(report: KernelReport, file: str, out: str | None) -> str:
    kernel = report.kernel
    sizes = ", ".join(f"{name} = {value}" for name, value in report.at.items())
    lines = [f"{kernel.name} ({kernel.at})" + (f"   {sizes}" if sizes else "")]
    lines += [f" {text}" for text in _costs(report)]
    counts = _counts(report)
    lines += ["", *counts, ""] if counts else [""]
    lines += _ranges(report)
    leaks = any(row["leaks"] for row in report.verified)
    kept = "NOT kept by the machine code; of the source " if leaks else ""
    lines += _paragraph("secrecy", kept + report.secrecy.verdict)
    for row in report.verified:
        same = f"{row['differing_bits']} BITS DIFFER" if row["differing_bits"] else "every bit is the same"
        ran = f", {row['instructions']:g} instructions on average" if row["instructions"] else ""
        lines.append(f" verified  {row['target']}: {same} in {row['vectors']} vectors{ran}")
    if out is not None:
        lines.append(f" C         in {out}; next: sensorsim verify {out}")
    elif report.proof is not None and not report.verified:
        path, found, _ = file.rpartition(".py")  # one kernel: beside another that is not proved no C would be written
        alone = f"{path}.py:{kernel.name}" if found else file
        lines.append(f" C         sensorsim kernel {alone} --c DIR --verify host")
    return hung("\n".join(lines), columns())


def _costs(report: KernelReport) -> list[str]:
    lines = []
    for name, price in report.prices.items():
        if price.total is None:
            lines.append(f"no price on {price.cpu.title}: {' '.join(price.missing)}")
        else:
            varies = price.total.min != price.total.max and not price.by_data
            spread = f" ({price.total.min} … {price.total.max})" if varies else ""
            data = ", by the data" if price.by_data else ""
            how = "" if price.accounting == "full" else ", the paper's accounting"
            formula = f"   {price.formula}" if price.formula is not None else ""
            lines.append(f"{price.amount} {price.cpu.unit}{spread} on {price.cpu.title}{data}{how}{formula}")
        ran = report.machine.get(name)
        if ran is not None:
            lines.append(f"  as machine code: {ran.get('machine_text', 'there is no compiler for it here')}")
    words = report.random_words
    return [*lines, f"{32 * words} secret random bits" if words else "no secret random bits"]


def _counts(report: KernelReport) -> list[str]:
    """Return a row for each operation class: its formula, and how often it runs in each step."""
    steps = report.steps()
    if not steps:
        return []
    formula, rows = report.to_dict()["formula"] or {}, []
    for operation in dict.fromkeys([*(name for counts in steps.values() for name in counts), *formula]):
        each = [counts.get(operation, 0) for counts in steps.values()]
        cells = [str(count or "") for count in each] if len(steps) > 1 else []
        rows.append([operation, formula.get(operation, "–"), str(sum(each)), *cells])
    more = list(steps) if len(steps) > 1 else []
    lines = table(("operation", "formula", "count", *more), rows, MOST_COLUMNS, ("count", *more))
    if report.formula_error:
        lines.append(f" {report.formula_error}")
    if report.otherwise is not None:
        lines.append(" The formula is of the way into every `if`, the count of one call; JSON has the other way too.")
    return lines


def _ranges(report: KernelReport) -> list[str]:
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
