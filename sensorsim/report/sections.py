"""What a record costs, what it protects, the firmware, the claims, and how all of it is computed again."""

import shlex
from collections import Counter
from os import fspath
from typing import TYPE_CHECKING

from sensorsim.claims.claim import MARKS, VERDICTS
from sensorsim.cost.cost_text import LEFT_OUT, SHOWN, describe_record, format_short
from sensorsim.cost.record_energy import PARTS
from sensorsim.plan.protects import Spent
from sensorsim.privacy.rounded import epsilon
from sensorsim.report.asked import Wanted
from sensorsim.report.figures import energy_bars
from sensorsim.report.gather import Findings
from sensorsim.report.package import PackageFacts
from sensorsim.report.parts import Column, Markup, command, figure, joined, listed, paragraph, section, table, tag
from sensorsim.report.settings import PACKAGE, setting_of
from sensorsim.report.words import many, number, percent, power
from sensorsim.terminal import counted

if TYPE_CHECKING:
    from sensorsim.privacy.certificate import Certificate
    from sensorsim.privacy.tables import NoiseTable


def costs(found: Findings) -> Markup:
    record = found.record
    columns = [Column("one record"), Column("cycles", True), *(Column(f"{name}, µJ", True) for name in PARTS)]
    rows = []
    for cost in (record.costs[name] for name in SHOWN if name in record.costs):
        energies = [format_short(cost.parts[name].microjoule) for name in PARTS]
        rows.append([cost.title, number(cost.cycles), *energies, format_short(cost.microjoule)])
    said = paragraph(
        f"A whole record on {describe_record(record).replace('; choose with --chip', '')}. The arithmetic is what the "
        "paper counts; the random words, the journal that keeps the budget over a power cut, and the packet are what a "
        f"battery sees beside it.{_battery(found)}"
    )
    drawn: object = paragraph("There is no figure for a part of this chip, so there is no total to draw.")
    if any(record.costs[name].microjoule for name in SHOWN if name in record.costs):
        told = "Energy of one record in µJ: arithmetic, random words, journal, on air."
        drawn = figure(energy_bars(record), told)
    return section(
        "costs", "What a record costs, and where the energy goes", said, drawn,
        table("One record, by what takes the energy", [*columns, Column("total, µJ", True)], rows),
        paragraph(_change(found)), paragraph(LEFT_OUT.strip(), class_="note"),
        paragraph("What of these figures is not confirmed:", class_="note"), listed(record.unsettled(), "note"),
        command(_cost_command(found.wanted)),
    )  # fmt: skip


def _change(found: Findings) -> str:
    """SPOF over DP-SGD, by the paper's list and in all."""
    whole = found.record.savings().get(PARTS[-1])
    if whole is None or found.printed_saving is None:
        return "Whole records of SPOF and DP-SGD are not compared, as a part of their energy is not known."
    beside = "more" if found.printed_saving < 0 else "fewer"
    return (
        f"By the paper's list of operations SPOF needs {abs(found.printed_saving):.2f} % {beside} than DP-SGD; "
        f"as a whole record it takes {abs(whole):.2f} % {'more' if whole < 0 else 'less'} energy."
    )


def _battery(found: Findings) -> str:
    """What the plan's releases take of the battery."""
    share, days = found.plan.costs.battery_share, found.plan.asked.days
    if not share:
        return ""
    told = percent(share) if share >= 1e-4 else f"1 part in {many(1 / share)}"
    return f" The plan's releases take {told} of a battery of {found.wanted.battery_mah:g} mAh in {days} days."


def protects(found: Findings) -> Markup:
    plan, proof = found.plan, found.certificate
    kind, spent = plan.table, plan.protects
    ratio = "unbounded" if proof.ratio is None else f"{proof.ratio.numerator}/{proof.ratio.denominator}"
    facts = paragraph(
        f"The sensor draws from a {kind.kind} table, {kind.release} of {counted(kind.features, 'feature')} of a "
        f"record. Proved just now from its whole numbers: the largest likelihood ratio of a value is {ratio}, so "
        f"one record has epsilon {proof.epsilon_record} with delta {proof.delta_record}, for {proof.neighbours}."
    )
    columns = [Column("of"), Column("days", True), Column("releases", True), Column("basic, delta 0", True),
               Column(f"epsilon, delta {power(spent.delta)}", True), Column("aligned, delta 0", True)]  # fmt: skip
    rows = [_spent_row(one, names) for one, names in _merged(spent.spent)]
    return section(
        "protects", "What it protects: a record, a person, a month", facts,
        table("Epsilon that releases add up to, for one person", columns, rows),
        listed(_sentence(note) for note in plan.notes), command(plan_command(found.wanted)),
    )  # fmt: skip


def _merged(spent: tuple[Spent, ...]) -> list[tuple[Spent, list[str]]]:
    """Those of the same days stand once, with both names."""
    found: dict[int | None, tuple[Spent, list[str]]] = {}
    for one in spent:
        found.setdefault(one.days, (one, []))[1].append(one.name)
    return list(found.values())


def _spent_row(one: Spent, names: list[str]) -> list[object]:
    if one.days is None:
        return ["a record", "–", number(one.releases), *map(epsilon, (one.basic, one.at_delta, one.aligned_basic))]
    said = f"a person, any {counted(one.days, 'day')} ({', '.join(names)})"
    epsilons = map(epsilon, (one.basic, one.at_delta, one.aligned_basic))
    return [said, number(one.days), number(one.releases), *epsilons]


def firmware(found: Findings) -> Markup:
    if found.package is not None:
        told = _of_package(found.package, found.wanted)
        return section("firmware", "The firmware, core by core", *setting_of(found, PACKAGE), *told)
    columns = [Column("core"), Column("processor"), Column("one release", True), Column("range", True), Column("unit")]
    rows = [
        [core.name, core.title, number(core.typical), f"{number(core.least)} … {number(core.most)}", core.unit]
        for core in found.cores
    ]
    said = paragraph(
        "One release of a whole sensor, its journal, generator and packet in it: the kernels' operations, priced by "
        "the table of each core. A range comes from prices that depend on operands. The command below gives one line, "
        "under sensor_release; --cpu takes the other cores. No package was given; with --package DIR the compiled "
        "code of one stands here, as `sensorsim export --out DIR` writes it."
    )
    again = command(_core_command(found))
    return section(
        "firmware", "The firmware, core by core", said, table("One release by the tables", columns, rows), again
    )


def _of_package(package: PackageFacts, wanted: Wanted) -> list[Markup]:
    facts = [
        f"the package {package.name} has {package.files} files, each with its hash in the manifest; "
        f"made by {package.command}"
    ]
    if package.table is not None:
        facts.append(_of_table(package.table, package.certificate))
    facts += [f"its budget, by its manifest: {package.budget}"] if package.budget else []
    facts += [f"not proved, by its manifest: {text}" for text in package.unproved]
    facts += [f"sizes and costs are those of its manifest, by {package.compiler}"]
    columns = [Column("core"), Column("function"), Column("instructions", True), Column("cost", True), Column("unit"),
               Column("stack, B", True), Column("flash, B", True), Column("RAM, B", True)]  # fmt: skip
    rows = [
        [one.core, one.function, number(one.instructions), number(one.cost), one.unit or "–", number(one.stack),
         number(one.flash), number(one.ram)] for one in package.cores
    ]  # fmt: skip
    place = shlex.quote(fspath(wanted.package or "DIR"))
    holds = (
        "That the compiled code holds this table, and every bit of it," if package.table else "Every bit of the code"
    )
    more = f"{holds} is proved by verify, which runs it."
    return [listed(_sentence(fact) for fact in facts), table("Compiled code", columns, rows),
            paragraph(more), command(f"sensorsim verify {place}")]  # fmt: skip


def _of_table(table: "NoiseTable", proof: "Certificate | None") -> str:
    assert proof is not None  # a table has one
    said = f"delta {proof.delta_record}, for {proof.neighbours}; the manifest says the same"
    if not proof.holds(table.epsilon):
        return f"its {table.kind} table is NOT PRIVATE: at its nominal epsilon {table.epsilon} a record has {said}"
    return f"its {table.kind} table was proved again just now: epsilon {proof.epsilon_record} a record, {said}"


def claims(found: Findings) -> Markup:
    assert found.claims is not None
    counted = Counter(one.verdict for one in found.claims)
    said = ", ".join(f"{MARKS[one]} {one}: {counted[one]}" for one in VERDICTS if counted[one])
    said += ". What holds as arithmetic follows from what is printed before it, which does not hold"
    columns = [
        Column("claim", whole=True), Column("where"), Column("printed"), Column("computed"),
        Column("verdict", whole=True),
    ]  # fmt: skip
    rows = [
        [
            tag("code", one.id),
            one.where,
            one.printed,
            one.computed,
            f"{MARKS[one.verdict]} {one.verdict}",
        ]
        for one in found.claims
    ]
    return section(
        "claims", "The claims, recomputed",
        paragraph(f"Statements of the paper and of this project, each recomputed just now. Verdicts: {said}."),
        table("Printed beside computed", columns, rows),
        command("sensorsim claims", "sensorsim claims --full"),
    )  # fmt: skip


def made(found: Findings) -> Markup:
    """Versions and hashes."""
    versions = joined((f"{name} {version}" for name, version in found.versions), " · ")
    inputs: object = paragraph("No file was read but those that ship.")
    if found.inputs:
        rows = [[one.option, one.name, tag("code", one.sha256)] for one in found.inputs]
        inputs = table("Files that were read", [Column("given as"), Column("file"), Column("SHA-256")], rows)
    return section(
        "made", "How this page was made", paragraph(versions), inputs, command(_report_command(found.wanted))
    )


def _sentence(said: str) -> str:
    return f"{said[:1].upper()}{said[1:].rstrip('.')}."


def _given(wanted: Wanted, *names: str) -> list[str]:
    """Options whose values are not the default ones."""
    options = []
    for name in names:
        value = getattr(wanted, name)
        if value != getattr(Wanted(), name) and value is not None:
            shown = fspath(value) if hasattr(value, "__fspath__") else value
            options += [f"--{name.replace('_', '-')}", f"{shown:g}" if isinstance(shown, float) else str(shown)]
    return options


def _cost_command(wanted: Wanted) -> str:
    sizes = ["--n", str(wanted.n), "--l", str(wanted.l), "--battery-mah", f"{wanted.battery_mah:g}"]
    return shlex.join(["sensorsim", "cost", *sizes, *_given(wanted, "chip", "radio")])


def _core_command(found: Findings) -> str:
    """The release on the core of the board."""
    sizes = ["--n", str(found.wanted.n), "--l", str(found.wanted.l), "--cpu", found.record.chip.cpu]
    return shlex.join(["sensorsim", "cost", *sizes, "--format", "json"])


def plan_command(wanted: Wanted) -> str:
    names = ("devices", "records_per_day", "budget_epsilon", "budget_days", "every")
    chosen = [word for name in names for word in (f"--{name.replace('_', '-')}", str(getattr(wanted, name)))]
    sizes = ["--features", str(wanted.n), *chosen, "--battery-mah", f"{wanted.battery_mah:g}"]
    return shlex.join(["sensorsim", "plan", *sizes, *_given(wanted, "chip", "radio", "noise")])


def _report_command(wanted: Wanted) -> str:
    names = [name for name in wanted.__dataclass_fields__ if name != "claims"]
    flag = [] if wanted.claims else ["--no-claims"]
    return shlex.join(["sensorsim", "report", "--out", "report.html", *_given(wanted, *names), *flag])
