"""`kernel`: all that can be said of a kernel: formula, counts, price, ranges, secrecy, and its C on real cores."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import temporary_folder
from sensorsim._util.results import Result, bars
from sensorsim.calls import checked, listed
from sensorsim.costing.kernel_report import KernelReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        """Whether all ranges are proved, nothing secret shows, and every proof of the C holds."""
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
        """How often each operation runs in one call, of every kernel."""
        several = len(self.kernels) > 1
        counts: dict[str, float | None] = {
            f"{report.kernel.name}: {name}" if several else name: count
            for report in self.kernels.values()
            for name, count in report.by_operation().items()
        }
        return bars(self.title(), counts, "times that it runs in one call, counted")


@checked
def kernel(
    kernel: "str | os.PathLike[str] | Kernel",
    at: str | Mapping[str, int] = "",
    cpu: str | Sequence[str] = "k7",
    accounting: str = "full",
    level: str = "kernel",
    c: str | os.PathLike[str] | None = None,
    verify: str | Sequence[str] = "",
) -> KernelReports:
    """Ask every reader about a kernel: FILE.py:name, the name of one that ships, or a kernel itself.

    `at` are lengths to count at, `cpu` processors to price it on; `level="machine"` also compiles it and counts what
    runs. `c` is a folder to write its C package into, `verify` the targets to prove that C on, bit for bit.

        >>> import sensorsim as ss
        >>> ss.kernel("spof", at={"n": 14}, cpu="cortex-m0plus").holds
        True
    """
    from sensorsim.codegen.package_options import choose
    from sensorsim.costing.kernel_report import kernel_report
    from sensorsim.costing.prices import load_cpu
    from sensorsim.language import Kernel
    from sensorsim.machine.targets import check_targets

    if c is not None:
        from sensorsim.codegen.write import check_folder

        check_folder(Path(c))
    kernels = [kernel] if isinstance(kernel, Kernel) else choose([os.fspath(kernel)], "paper")
    lengths, cpus = _numbers(at), listed(cpu)
    if not cpus:
        raise InputError("no processor is named; give --cpu k7, or see `sensorsim cpus`.")
    targets = listed(verify)
    if verify and not targets:
        raise InputError("--verify names no target; give host, a core, or several with commas.")
    if level not in ("kernel", "machine"):
        raise InputError(f"level {level!r} is not known; give --level kernel or machine.")
    if isinstance(kernel, Kernel) and (c is not None or targets):
        raise InputError("C is made of kernels in a file; give FILE.py:name in place of the kernel.")
    for name in cpus:
        load_cpu(name)
    targets = check_targets(targets) if targets else []
    _each_length_is_someones(kernels, lengths)
    reports = {one.qualified: kernel_report(one, _own(one, lengths), cpus, accounting) for one in kernels}
    if level == "machine":
        reports = {name: _with_machine(report) for name, report in reports.items()}
    if c is None and not targets:
        return KernelReports(reports)
    assert not isinstance(kernel, Kernel)
    return _with_package(os.fspath(kernel), reports, None if c is None else Path(c), targets)


def _numbers(at: str | Mapping[str, int]) -> dict[str, int]:
    """`n=14,rate=3` as numbers."""
    if isinstance(at, Mapping):
        return dict(at)
    found: dict[str, int] = {}
    for part in listed(at):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name.isidentifier() or not value.lstrip("-").isdecimal() or len(value) > 12:
            raise InputError(f"--at {part!r} is no length with its value; write --at n=14,rate=3.")
        found[name] = int(value)
    return found


def _own(kernel: "Kernel", lengths: dict[str, int]) -> dict[str, int]:
    return {name: value for name, value in lengths.items() if name in kernel.parameters}


def _each_length_is_someones(kernels: "Sequence[Kernel]", lengths: dict[str, int]) -> None:
    for name in lengths:
        if not any(name in kernel.parameters for kernel in kernels):
            known = ", ".join(dict.fromkeys(length for kernel in kernels for length in kernel.lengths)) or "none"
            raise InputError(f"--at names {name}, which is no length of these kernels; they have {known}.")


def _with_machine(report: KernelReport) -> KernelReport:
    """The report with what compiled code executes on each processor that there is a compiler for."""
    from sensorsim.machine.machine_cost import count_kernel

    if report.proof is None:
        return report
    return replace(report, machine={name: count_kernel(report.kernel, report.at, name) for name in report.prices})


def _with_package(file: str, reports: dict[str, KernelReport], out: Path | None, targets: list[str]) -> KernelReports:
    """Write the C package, and verify it where that is asked for."""
    from sensorsim.codegen.kernels_package import make_package
    from sensorsim.codegen.package_options import Options
    from sensorsim.codegen.write import write_folder

    unproved = [report for report in reports.values() if report.proof_error is not None]
    if unproved and out is not None:
        raise InputError(f"{str(unproved[0].proof_error).rstrip('.')}; C is written of proved kernels only.")
    if unproved:  # the report says what is not proved
        return KernelReports(reports, unverified=True)
    texts = make_package(Options(kernels=tuple(listed(file)), variant="paper"))
    if out is not None:
        write_folder(out, texts)
    return _verified(reports, texts, targets) if targets else KernelReports(reports, texts)


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
