"""`sensorsim noise audit`: run what releases, and look for a leak."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import Budget, Folder, Function, Known, Number, Path, Several, Whole
from sensorsim._util.progress import step
from sensorsim._util.terminal import columns, hung
from sensorsim.commands.declare import Command, option
from sensorsim.commands.noise import NOISE_TABLE, proved_table
from sensorsim.commands.training_options import MOST_JOBS, known_mechanism
from sensorsim.noise.noise_table import NoiseTable

if TYPE_CHECKING:
    from sensorsim.auditing import Audit, Check, Source

UNKNOWN = {
    "distribution": "none is known to compare with",
    "dependence": "not asked: packets of a capture may depend on each other, as by a counter",
}


def _observed() -> list[str]:
    from sensorsim.mechanisms import every
    from sensorsim.mechanisms.spof import AUDITED_VARIANTS

    return [*(mechanism.name for mechanism in every() if mechanism.audited), *AUDITED_VARIANTS]


@dataclass(frozen=True)
class AuditTable(Command["Audit"]):
    """Look at every field of a packet, at two fields together, at packets that follow each other and at which
    features were picked, after growing numbers of draws, and stop as soon as a leak is certain. Exit code 1 if there
    is a leak; no leak found is no proof: that is the certificate.

    With --samples it judges what a board has sent: the claim then comes from TABLE, the board's table, or from
    --epsilon. With --package it runs compiled C on this machine; TABLE is then the table that the package was made
    with.
    """

    example = """sensorsim noise audit rows-eps1-all.txt
sensorsim noise audit --samples x0.hex x1.hex --epsilon 1"""
    usage = """
        >>> import sensorsim as ss
        >>> ss.audit(ss.noise_table(epsilon=1.6, release=1), draws=100_000).passed
        True
    """
    holds = "passed"

    table: NoiseTable | str | None = option(None, NOISE_TABLE, "A noise table.", argument=True)
    mechanism: str | None = option(
        None,
        Known(_observed),
        "release, sampled: the certified kernels; lean: SPOF with one secret draw per feature; spof: as printed; "
        "prefetch: SPOF that reads the table in a fixed order; shared: SPOF with one draw for both coefficients.",
        default_text="what the table is for",
    )
    epsilon: Decimal | float | str | None = option(
        None, Budget(), "Audit the ready table of this budget.", default_text="1"
    )
    samples: tuple[str, str] | None = option(
        None,
        Several(Path(), words=2),
        "Two files of packets of a real board, one a line in hex, for two records that differ.",
    )
    package: str | None = option(None, Folder("folder"), "Run the C of this exported package in place of the kernel.")
    draws: int = option(10**8, Whole(0, 10**12, spelled=True), "Values to draw at most, over all inputs.")
    confidence: float = option(0.9999, Number(), "Confidence of the whole audit: all tests, all looks.")
    threads: int = option(2, Whole(1, MOST_JOBS), "Threads; the result does not depend on them.")
    seed: int = option(0, Whole(0), "Seed of the random words. Not secret.")
    progress: Callable[[int], None] | None = option(
        None, Function(), "Called with the number of new draws.", shell=False
    )

    def without_effect(self) -> dict[str, str]:
        why = "packets of a board are judged as they are, and nothing is drawn"
        return dict.fromkeys(("draws", "seed"), why) if self.samples else {}

    def run(self) -> "Audit":
        from sensorsim.auditing import examine
        from sensorsim.commands.outputs import progress_bar

        source, name, draws = self._source()
        done = 0
        with step("auditing"), progress_bar("audit", "draws", draws, transient=True) as update:

            def advance(drawn: int) -> None:
                nonlocal done
                done += drawn
                update(done, "drawing")
                if self.progress is not None:
                    self.progress(drawn)

            threads = min(self.threads, os.cpu_count() or 1)
            return replace(examine(source, draws, self.seed, self.confidence, threads, advance), name=name)

    def _source(self) -> "tuple[Source, str, int]":
        """Return what is audited, its name, and how many values are drawn."""
        from sensorsim.auditing import make_source
        from sensorsim.mechanisms.spof import AUDITED_VARIANTS
        from sensorsim.noise.noise_table import certified, ready_table

        table, given = self.table, self.epsilon is not None
        if table is not None and given:
            raise InputError("a file and --epsilon are two tables; give one of them.")
        if self.samples and self.package:
            raise InputError("--samples and --package are two things to audit; give one of them.")
        if self.mechanism and (self.samples or self.package):
            raise InputError("--mechanism is of a kernel that is run here; leave it out with --samples and --package.")
        if self.samples:
            source, draws = self._captures(self.samples)
            return source, f"{self.samples[0]} and {self.samples[1]}", draws
        if self.package:
            from sensorsim.verification.audited_package import package_source

            if given:
                raise InputError("a package claims what its manifest says; leave --epsilon out, or give its table.")
            noise = None if table is None else proved_table(table)
            return package_source(FilePath(self.package), noise), str(self.package), self.draws
        mechanism = self.mechanism
        if mechanism and mechanism not in AUDITED_VARIANTS:
            mechanism = known_mechanism(mechanism)
        if table is not None:
            noise = proved_table(table)
            name = str(table) if isinstance(table, str | os.PathLike) else noise.title()
        else:
            release, budget = 1 if mechanism == "sampled" else "all", str(self.epsilon) if given else "1"
            noise = certified(ready_table(budget, release))
            name = f"ready table, epsilon {budget}, release {release}"
        return make_source(noise, mechanism), name, self.draws

    def _captures(self, samples: tuple[str, str]) -> "tuple[Source, int]":
        """Return the packets of a board, and how many there are."""
        from sensorsim.auditing.packet_source import capture_source, read_capture
        from sensorsim.noise.certificate import certify
        from sensorsim.noise.noise_table import budget_of

        if self.table is not None:
            noise = proved_table(self.table)
            proved = certify(noise).epsilon_record
            claimed = float(noise.epsilon if proved is None else min(proved, noise.epsilon))
        elif self.epsilon is not None:
            claimed = float(budget_of(str(self.epsilon)))
        else:
            raise InputError("packets alone claim nothing; give the table that the board draws from, or --epsilon.")
        packets = [read_capture(path) for path in samples]
        return capture_source(packets, samples, claimed), 2 * min(map(len, packets))

    def text(self, answer: "Audit") -> str:
        return hung(audit_text(answer), columns())


def audit_text(found: "Audit") -> str:
    """Return what was observed, the tests, the largest leak and the verdict."""
    last, event = found.last, found.last.event
    values = "packets" if found.per_record == 1 else f"values in {last.packets:,} packets"
    looks = "1 look" if len(found.looks) == 1 else f"{len(found.looks)} looks"
    seed = "" if found.mechanism == "capture" else f", seed {found.seed}: not secret, so that the audit can be repeated"
    lines = [
        f"{found.name}: {found.mechanism}, {found.draws:,} {values}, {looks}{'' if found.passed else ', then certain'}",
        f"  observed      {found.sees}",
        f"  at x =        {', '.join(found.inputs)}",
        f"  words         {found.words}{seed}",
        *_test("distribution", last.distribution, "as the certificate says" if last.matches else "NOT as certified"),
        *_test("dependence", last.dependence, "none seen" if last.independent else "NOT independent"),
        f"  best event    {event.of}",
        f"                x = {event.inputs[0]} against x = {event.inputs[1]}: {event.rates[0]:.4%} under one, "
        f"{event.rates[1]:.4%} under the other",
        f"  epsilon       claimed {event.claimed:.6g} for this event, {found.claimed:.6g} for a whole packet",
        f"                more than {event.bound:.6g} with confidence {found.confidence:g} (Clopper–Pearson)",
    ]
    if found.passed:
        fewest = int(1 / found.rarest)
        share = f"fewer than one packet in {fewest:,}" if fewest > 1 else "every packet"
        leak = f"{'a' if fewest > 1 else 'even a'} leak that shows in one field of {share}"
        unless = ", unless as a value that cannot be" if last.distribution else ""
        lines.append(f"  not seen      {leak} is beyond {found.draws:,} draws{unless}")
    return "\n".join([*lines, "", found.verdict])


def _test(label: str, test: "Check | None", verdict: str) -> list[str]:
    if test is None:
        return [f"  {label:<13} {UNKNOWN[label]}"]
    place = f"{'':16}{test.of}, x = {test.input}, the worst of {test.tests:,}"
    figures = f"chi-square {test.chi_square:.0f} on {test.degrees} degrees of freedom, p = {test.p_value:.3g}"
    if test.chi_square == float("inf"):
        figures = "a value that cannot be"
    return [f"  {label:<13} {figures}: {verdict}", place]
