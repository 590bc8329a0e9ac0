"""`sensorsim verify`: the proof of a C package, of a build of yours, or of a linked image, on real machine code."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import (
    FILE,
    FOLDER,
    TARGETS,
    Flag,
    Function,
    Kind,
    Known,
    Several,
    Whole,
    split_names,
)
from sensorsim._util.terminal import columns, fold, table, widest
from sensorsim.commands.declare import Also, Command, option

if TYPE_CHECKING:
    from sensorsim.commands.lock_file import Taken
    from sensorsim.verification.binary import BinaryReport
    from sensorsim.verification.kernel_timing import KernelResult
    from sensorsim.verification.verification import Verification

Path_ = str | os.PathLike[str]
ALL = "all"
QUICK = 1000  # random vectors up to which the work is not shared by processes
MOST_ON_HOST, MOST_ON_CORE = 10**9, 10**6  # random vectors; those of a core are all in memory
SHOWN = 6  # branches that one call names
COUNTS = (
    *("on", "vectors", "bits off", "instr. min", "instr. mean", "instr. max", "cost mean", "cost max", "unit"),
    *("flash", "ram", "stack"),
)
DROPPED = ("instr. min", "instr. mean", "cost mean", "ram")  # where a line is too short; --format json and csv have all


class Symbol(Kind):
    """A name and an address, as in ss_sensor_release=0x8000124."""

    metavar = "NAME=ADDRESS"

    def check(self, label: str, value: Any) -> str:
        text: str = super().check(label, value)
        try:
            name, address = _symbol(text)
        except ValueError:
            name, address = "", 0
        if not name or not 0 <= address < 1 << 32:
            raise InputError(f"{label} {text} is no name and address; write it as ss_sensor_release=0x8000124.")
        return text


def _symbol(text: str) -> tuple[str, int]:
    name, _, address = text.partition("=")
    return name, int(address, 0)


@dataclass(frozen=True)
class Verify(Command["Verification | BinaryReport"]):
    """Files: the package is written anew from its manifest, and every byte must be the same. Table and certificate:
    read out of the compiled code and certified again. Every draw: the compiled release is run through its secret words,
    and the observed ratio of likelihoods is compared with the certificate. Then the self-test, and on every target
    (cores in an emulator) golden vectors, edges and random vectors beside the Numba kernels; a build that traps on
    undefined behaviour; and what each kernel executes and costs.

    With --cc your own compiler builds it, with --elf your own image is proved as it is.

    Kernels that are not sensorsim's are loaded from the copies in the package, if these do nothing but declare kernels.
    With the target host the package's C runs on this machine, and every draw is counted there: only where every file is
    as export writes it, and in a process of its own. Where a file differs, only emulated cores run.

    Exit code 0: everything holds. 1: a proof fails; the file or the property is named. 2: the question is wrong: no
    package, one of another version, a tool is missing.
    """

    example = "sensorsim verify firmware/privacy --target host,cortex-m0plus"
    lockable = True
    holds = "passed"

    folder: Path_ | None = option(None, FOLDER, "The package.", argument=True, lock="ask")
    target: str | Sequence[str] = option(
        ALL,
        Known(lambda: [ALL, *TARGETS.names()], several=True, metavar="names"),
        "Where to run it, with commas; all: host and every core but avr.",
    )
    random_host: int = option(1_000_000, Whole(1, MOST_ON_HOST), "Random vectors for each kernel on the host.")
    random_core: int = option(10_000, Whole(1, MOST_ON_CORE), "Random vectors for each kernel on each core.")
    seed: int = option(0, Whole(0), "Of the random vectors.")
    trust: bool = option(False, Flag(), "Run Python of the package where a kernel's primitive needs it.", lock="ask")
    jobs: int | None = option(
        None,
        Whole(0, 64),
        f"Processes that share the work; else 2, and 0, one step at a time, for a quick look of up to {QUICK} vectors.",
        lock="ask",
    )
    cc: str | None = option(
        None, Kind(), "A compiler of yours with its flags, proved in place of the targets.", lock="ask"
    )
    elf: Path_ | None = option(None, FILE, "A linked image of yours, proved as it is.", lock="ask")
    manifest: Path_ | None = option(
        None, FILE, "MANIFEST.json of the package that the image was built from.", lock="ask"
    )
    symbol: Sequence[str] = option(
        (),
        Several(Symbol()),
        "Where a function is that the image has no name for, as ss_sensor_release=0x8000124.",
        lock="ask",
    )
    progress: Callable[[str, int, int], None] | None = option(
        None, Function(), "Is called with each step, its number, and the number of steps.", shell=False, lock="ask"
    )

    def without_effect(self) -> Mapping[str, str]:
        own = self.cc is not None or self.elf is not None
        return {"jobs": "a build of yours is proved in one process"} if own else {}

    def run(self) -> "Verification | BinaryReport":
        from sensorsim.commands.outputs import progress_bar

        with progress_bar("verify", transient=True) as update:
            return self._run(self.progress or (lambda what, step, steps: update(step, what, steps)))

    def _run(self, progress: Callable[[str, int, int], None]) -> "Verification | BinaryReport":
        from sensorsim.machine.targets import HOST, TARGETS
        from sensorsim.verification.binary import verify_elf, verify_with
        from sensorsim.verification.bits import Effort
        from sensorsim.verification.verification import verify

        effort = Effort(max(self.random_host, self.random_core), self.random_core)
        names = split_names(self.target)
        folder, elf, manifest = (
            None if path is None else Path(path) for path in (self.folder, self.elf, self.manifest)
        )
        if self.cc is not None and elf is not None:
            raise InputError("--cc builds a package and --elf takes what is built; give one of the two.")
        if elf is None and (manifest is not None or self.symbol):
            raise InputError("--manifest and --symbol go with --elf; add the image, or leave them out.")
        if self.cc is None and elf is None:
            if folder is None:
                raise InputError("no package is named; give its folder, or --elf with --manifest.")
            jobs = self.jobs if self.jobs is not None else 2 if max(effort.host, effort.core) > QUICK else 0
            names = [HOST, *TARGETS] if names == [ALL] else names
            return verify(folder, names, effort, self.seed, progress, self.trust, jobs)
        if len(names) > 1:
            raise InputError(f"a build is for one core, not for {','.join(names)}; give one --target, or none.")
        target = None if names in ([], [ALL]) else names[0]
        if elf is not None:
            source = manifest or folder
            if source is None or (manifest is not None and folder is not None):
                raise InputError("--elf needs its package; give --manifest DIR/MANIFEST.json and no folder beside it.")
            symbols = dict(map(_symbol, self.symbol))
            return verify_elf(elf, source, symbols, target, progress, effort, self.seed, self.trust)
        if folder is None:
            raise InputError("--cc needs the folder of a package; give it before the options.")
        assert self.cc is not None
        return verify_with(folder, self.cc, target, progress, effort, self.seed, self.trust)

    def text(self, answer: "Verification | BinaryReport") -> str:
        from sensorsim.verification.binary import BinaryReport

        return binary_text(answer) if isinstance(answer, BinaryReport) else _text(answer)

    def figures(self, answer: "Verification | BinaryReport", also: Also) -> "Taken":
        from sensorsim.commands.locked_figures import of_verify

        return of_verify(answer.to_dict())


def wrapped(text: str, lead: str = "") -> list[str]:
    """Wrap text to the terminal's width."""
    return fold(text, columns(), lead)


def _text(report: "Verification") -> str:
    lines = [f"{report.folder}: {'every proof holds' if report.passed else 'FAILED'}"]
    lines += wrapped(f"Compiled with {report.compiler}, {report.flags}")
    if report.gcc:
        lines += wrapped(f"No warning from it, nor from {report.gcc}")
    lines += ["", "Proved just now" if report.passed else "Proved just now, or not", *_proof_lines(report)]
    for kernel in dict.fromkeys(result.kernel for result in report.results):
        results = [result for result in report.results if result.kernel == kernel]
        lines += ["", *_kernel_lines(kernel, results)]
    return "\n".join(lines)


def _proof_lines(report: "Verification | BinaryReport") -> list[str]:
    """Return every proof with its verdict, and what was not proved."""
    width = max(len(proof.name) for proof in report.proofs)
    lines = []
    for proof in report.proofs:
        lines += wrapped(proof.detail, f"  {proof.name:<{width}}  {'yes' if proof.passed else 'NO '}  ")
    return lines + [line for text in report.left_out for line in wrapped(f"Not proved: {text}", "  ")]


def _kernel_lines(kernel: str, results: list["KernelResult"]) -> list[str]:
    """Return what one call takes, and below it what its timing tells: two tables, so that both fit on a screen."""
    from sensorsim.verification.kernel_timing import TIMING_HEAD, timing_cells, timing_lines

    counted = next((result for result in results if result.instructions), None)
    sizes = ", ".join(f"{name} = {value}" for name, value in counted.lengths.items()) if counted else ""
    lines = [f"{kernel}" + (f"   one call, {sizes}" if sizes else "")]
    width = columns()
    lines += table(COUNTS, [_cells(result) for result in results], width, COUNTS[1:8] + COUNTS[9:], drop=DROPPED)
    timed = [[result.target, *timing_cells(result)] for result in results if result.sequences is not None]
    if timed:
        made = table(["on", *TIMING_HEAD], timed, width, folded=(TIMING_HEAD[-1], 24))
        if widest(made) > width:  # one below the other, where the cells do not fit side by side
            texts = ((on, [": ".join(pair) for pair in zip(TIMING_HEAD, cells, strict=True)]) for on, *cells in timed)
            made = [line for on, parts in texts for line in wrapped(f"{on}  {'; '.join(parts)}", " ")]
        lines += made
    for result in results:
        if result.runtime:
            lines += wrapped(f"{result.target}: linked from the compiler's runtime: {', '.join(result.runtime)}", "  ")
        for note in result.table_notes:
            if "no price" in note:
                lines += wrapped(f"{result.target}: {note}", "  ")
        lines += [part for line in timing_lines(result) for part in wrapped(line, "  ")]
    return lines


def _cells(result: "KernelResult") -> list[str]:
    head = [result.target, f"{result.vectors}", f"{result.differing_bits}"]
    if result.instructions is None:
        return [*head, *[""] * 9]
    n, price = result.instructions, result.price
    counts = [f"{n.min:.0f}", f"{n.mean:.1f}", f"{n.max:.0f}"]
    counts += [f"{price.mean:.1f}", f"{price.max:.0f}", result.unit] if price else ["no price", "", ""]
    memory = [f"{result.flash_bytes}", f"{result.ram_bytes}", f"{result.stack_bytes}"]
    return [*head, *counts, *memory]


def binary_text(report: "BinaryReport") -> str:
    """Return the text of a report on a build: what was proved, then what each function takes."""
    verdict = "every proof holds" if report.passed else "FAILED"
    lines = [f"{report.image}: {verdict}", f"Package {report.folder}, on {report.target}"]
    if report.compiler:
        lines += wrapped(f"Compiled with {report.compiler}, {report.flags}")
    whole = f"The whole image takes {report.flash_bytes} bytes of flash and {report.ram_bytes} of RAM"
    if report.own_bytes and report.calls:
        whole += f"; the sensor {report.own_bytes} of flash, and {report.calls.state_bytes} of RAM for its state"
    lines += [*wrapped(whole), *_proof_lines(report)]
    lines += [line for note in report.notes for line in wrapped(note, "  ")]
    if report.absent:
        lines += wrapped(f"not in the image: {', '.join(report.absent)}", "  ")
    return "\n".join([*lines, *_table(report)])


def _table(report: "BinaryReport") -> list[str]:
    rows = report.rows()
    if not rows:
        return []
    unit = rows[0]["cost_unit"]
    heads = ("function", "instr. mean", "instr. max", f"{unit} mean", f"{unit} max", "stack", "paths by secrets")
    cells = []
    for row in rows:
        cost = ["no price", ""] if row["cost_mean"] is None else [f"{row['cost_mean']:.1f}", f"{row['cost_max']:.0f}"]
        counts = [f"{row['instructions_mean']:.1f}", f"{row['instructions_max']:.0f}"]
        cells.append([row["function"], *counts, *cost, f"{row['stack_bytes']}", f"{row['paths']}"])
    made = ["", *table(heads, cells, columns(), heads[1:], (heads[1], heads[3]))]
    varying = {one.call: one.varying for one in report.calls.results} if report.calls else {}
    varying |= {one.kernel: one.varying for one in report.kernels}
    for name, reasons in varying.items():
        for why in reasons[:SHOWN]:
            made += wrapped(f"{name}: not the same path for all inputs: {why}", "  ")
    if report.calls:
        for operation in report.calls.touches.operations[:SHOWN]:
            made += wrapped(f"release: time depends on secret operands: {operation}", "  ")
    return made
