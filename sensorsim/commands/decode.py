"""`sensorsim decode`: released codes of hidden units back to readings, at the hospital."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sensorsim._util.errors import InputError
from sensorsim._util.hints import need
from sensorsim._util.option_kinds import Flag, Path, Whole
from sensorsim._util.results import Listing, Result, bars
from sensorsim._util.terminal import columns, counted, hung
from sensorsim.commands.declare import REQUIRED, Command, option
from sensorsim.commands.noise import NOISE_TABLE, proved_table
from sensorsim.commands.outputs import as_json
from sensorsim.commands.receive import PacketSources
from sensorsim.commands.training_options import tell
from sensorsim.noise.certificate import format_epsilon

if TYPE_CHECKING:
    from sensorsim.hospital import Received
    from sensorsim.noise.noise_table import NoiseTable
    from sensorsim.training.model_files import Model

NARROWEST = 12  # characters of a column
SCHEMA_VERSION = 1
SHOWN = 6  # columns of a record that a repr lists


@dataclass(frozen=True, repr=False)
class DecodedRecords(Result):
    """A record for every packet, decoded as it is read: `batches` yields arrays, and nothing of them is kept."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    privacy: str
    read: Callable[[dict[str, int]], Iterator[Any]]
    counts: dict[str, int] = field(default_factory=lambda: {"accepted": 0, "refused": 0})

    def batches(self) -> Iterator[Any]:
        """Yield arrays of records; `counts` holds how many packets were accepted and refused so far."""
        self.counts.update(accepted=0, refused=0)
        for records in self.read(self.counts):
            self.counts["accepted"] += len(records)
            yield records

    def to_dict(self) -> dict[str, Any]:
        records = [record for batch in self.batches() for record in batch.tolist()]
        head = {"schema_version": SCHEMA_VERSION, "privacy": self.privacy, "columns": list(self.names)}
        return {**head, "units": list(self.units), "records": records, **self.counts}

    def rows(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            yield from (dict(zip(self.names, record, strict=True)) for record in batch.tolist())

    def title(self) -> str:
        return f"Records of {counted(len(self.names), 'column')}, decoded as they are read"

    def facts(self) -> dict[str, str]:
        return {"privacy": self.privacy, "columns": ", ".join(self.names[:SHOWN])}

    def print(self, form: str) -> None:
        """Print the records piece by piece, as a table, CSV or JSON; nothing where no packet is accepted."""
        shape, number = FORMS[form](self), 0
        for batch in self.batches():
            lines = [] if number else [shape.head]
            for record in batch.tolist():
                lines.append((shape.between if number else "") + shape.row(record))
                number += 1
            click.echo("".join(lines) if number else "", nl=False)
        if not number:
            return
        refused = self.counts["refused"]
        click.echo(shape.tail % (number, refused) if shape.tail else "", nl=False)
        tell(f"{counted(number, 'packet')} accepted, {refused:,} refused; a single private code says little.")
        tell(f"Records are {self.privacy}.")
        if shape.left_out:
            left = counted(shape.left_out, "column")
            tell(f"Not shown for want of room: {left}; --format csv and json have all.")


@dataclass(frozen=True)
class DecodePackets(Command[Listing | DecodedRecords]):
    """Estimate the mean record behind the packets, in the units of the ranges; or a record for every packet.

    Sensors are made with `sensorsim train --encoder` and `sensorsim export --encoder`. Packets of another table or
    encoder are refused and counted. A single private code says little of its record: read means over many. Exit code 1
    and no record if no packet is accepted.
    """

    example = """sensorsim decode --model model.npz --packets w3.bin --table rows.txt
sensorsim decode --model model.npz --packets w3.bin \\
  --table rows.txt --each --format csv"""

    model: "Model | str" = option(REQUIRED, Path("file", "Model"), "A model of `sensorsim train --out`.")
    packets: Any = option(REQUIRED, PacketSources(Path("file", "bytes")), "What sensors with its encoder sent.")
    table: "NoiseTable | str" = option(REQUIRED, NOISE_TABLE, "Noise table that they were made with.")
    user: int = option(0, Whole(0), "Whose encoder it is, where users differ.")
    each: bool = option(False, Flag(), "A record for every packet, in place of the mean record.")

    def run(self) -> Listing | DecodedRecords:
        need("scipy")
        from sensorsim.hospital import receive
        from sensorsim.hospital.decoding import Codes, each_record, posterior_codes
        from sensorsim.hospital.packets import Expected
        from sensorsim.hospital.receiver import is_stream
        from sensorsim.mechanisms.base import LINEAR
        from sensorsim.training.model_files import Model, in_integers, load, ranges_of

        model, table = self.model if isinstance(self.model, Model) else load(str(self.model)), proved_table(self.table)
        trained, about, user = model.trained, model.about, self.user
        if user >= trained.m:
            raise InputError(f"the model has no user {user}; give --user 0 to {trained.m - 1}.")
        made = in_integers(model)
        encoder = made[user if len(made) > 1 else 0]
        codes = Codes(model.middle[user], model.spread[user], trained.form == LINEAR, lambda h: trained.decode(user, h))
        privacy, ranges = privacy_of(about), ranges_of(about)
        units = tuple("" if ranges is None else known.unit for known in (ranges or about["columns"]))
        if not self.each:
            received = receive(self.packets, table, encoder)
            return _mean_listing(received, _mean_rows(received, codes, about["columns"], units, ranges), privacy)

        def read(counts: dict[str, int]) -> Iterator[Any]:
            expected = codes
            if not any(map(is_stream, self.packets)):  # files are read twice: all packets tell of the mean first
                received = receive(self.packets, table, encoder)
                counts["refused"] = received.rejected
                if not received.accepted:
                    return
                expected = posterior_codes(received, codes)
            for records, kept in each_record(self.packets, Expected.of(table, encoder), expected):
                counts["refused"] = sum(kept.rejected.values())
                yield _readings(records, ranges)

        return DecodedRecords(tuple(_distinct(about["columns"])), units, privacy, read)

    def emit(self, answer: Listing | DecodedRecords, form: str) -> None:
        if isinstance(answer, DecodedRecords):
            answer.print(form)
        elif answer.found:
            super().emit(answer, form)
        counts = _counts(answer)
        if not counts["accepted"]:
            click.echo(
                f"no packet was accepted and {counts['refused']:,} were refused, so there is no record; give packets "
                "of this table and of this model's encoder.",
                err=True,
            )

    def exit_code(self, answer: Listing | DecodedRecords) -> int:
        return 0 if _counts(answer)["accepted"] else 1


def _counts(answer: Listing | DecodedRecords) -> Mapping[str, int]:
    return answer.counts if isinstance(answer, DecodedRecords) else answer.data


def _mean_rows(received: "Received", codes: Any, names: list[str], units: tuple[str, ...], ranges: Any) -> list[Any]:
    """Return the mean of every column with its 95 % interval, in the units of the ranges; none without packets."""
    from sensorsim.hospital.decoding import mean_record

    if not received.accepted:
        return []
    found = mean_record(received, codes)
    spans = 1.0 if ranges is None else [known.span for known in ranges]
    low, mean, high = (_readings(part, ranges) for part in (found.low, found.mean, found.high))
    numbers = zip(names, units, mean, found.deviation * spans, low, high, strict=True)
    keys = ("mean", "deviation", "low", "high")
    return [
        {"column": name, "unit": unit, **dict(zip(keys, map(float, of), strict=True))} for name, unit, *of in numbers
    ]


def _mean_listing(received: "Received", rows: list[dict[str, Any]], privacy: str) -> Listing:
    """Return the mean record behind packets of hidden units."""
    accepted, refused, epsilon = received.accepted, received.rejected, float(received.statistics.epsilon)
    title = f"{counted(accepted, 'packet')} accepted, {refused:,} refused"
    head = {"accepted": accepted, "refused": refused, "epsilon": epsilon, "privacy": privacy, "confidence": 0.95}

    def text() -> str:
        lines = [
            title,
            f"  epsilon {format_epsilon(epsilon, 6)} per packet; {privacy}",
            "  mean record, and 95 % of what noise and numbers leave open; what the encoder drops is not in it, nor is "
            "how far the model is from these records",
        ]
        wide = max((len(row["column"]) for row in rows), default=0)
        for row in rows:
            interval = f"{row['low']:>10.5g} … {row['high']:<10.5g}"
            lines.append(f"  {row['column']:<{wide}}  {row['mean']:>11.5g}   {interval} {row['unit']}".rstrip())
        return hung("\n".join(lines), columns())

    values = {f"{row['column']}, {row['unit']}".strip(", "): row["mean"] for row in rows}
    return Listing(
        title,
        rows,
        {"schema_version": SCHEMA_VERSION, **head, "mean_record": rows},
        lambda title: bars(title, values, "mean of the decoded records, in the unit of each column"),
        {row["column"]: f"{row['mean']:.5g} {row['unit']}".strip() for row in rows[:SHOWN]},
        text,
    )


def privacy_of(about: dict[str, Any]) -> str:
    """Say what covers the output: it is made of codes and of a model, and both were made of records."""
    from sensorsim.accounting.composition import Covers

    weights = (Covers.RELEASE, Covers.STEPS, Covers.REAL_STEPS)
    if about["spent_epsilon"] is None or about["covers_short"] not in [one.value for one in weights]:
        return (
            "not covered: the codes' own epsilon covers them, but the model that reads them was made of records, and "
            f"its statement covers {about['covers']}"
        )
    spent = f"epsilon {format_epsilon(about['spent_epsilon'])} at delta {about['delta']:g} per record"
    return (
        f"made of released codes, which their epsilon covers, and of a model that spent, as its file states, {spent} "
        f"and covers {about['covers']}; who is in both spends the sum"
    )


def _readings(x: Any, ranges: Any) -> Any:
    """Return readings, or numbers in 0 … 1 where no ranges are known."""
    from sensorsim.datasets.public_ranges import from_unit

    return x if ranges is None else from_unit(x, ranges)


def _distinct(names: list[str]) -> list[str]:
    """Number a column that stands twice the second time."""
    return [name if names.index(name) == i else f"{name}.{names[:i].count(name)}" for i, name in enumerate(names)]


class Form(NamedTuple):
    """The pieces of records as they are printed."""

    head: str
    row: Callable[[list[float]], str]
    between: str = ""
    tail: str = ""  # with the packets that were accepted and refused
    left_out: int = 0  # columns that a line has no room for


def _csv(found: DecodedRecords) -> Form:
    names = ['"' + name.replace('"', '""') + '"' for name in found.names]
    return Form(",".join(names) + "\n", lambda record: ",".join(f"{value:.6g}" for value in record) + "\n")


def _table(found: DecodedRecords) -> Form:
    """Return columns, as many as a line has room for; names are cut where they would not all fit."""
    names, units = found.names, found.units
    widths = [max(NARROWEST, len(name), len(unit)) for name, unit in zip(names, units, strict=True)]
    if sum(widths) + len(widths) - 1 > columns():
        widths = [NARROWEST] * min(len(names), (columns() + 1) // (NARROWEST + 1))

    def line(cells: Iterable[str]) -> str:
        return " ".join(f"{cell[:wide]:>{wide}}" for cell, wide in zip(cells, widths, strict=False)) + "\n"

    left_out = len(names) - len(widths)
    return Form(line(names) + line(units), lambda record: line(f"{value:.5g}" for value in record), left_out=left_out)


def _json(found: DecodedRecords) -> Form:
    privacy, names, units = as_json(found.privacy), as_json(found.names, None), as_json(found.units, None)
    head = f'{{"schema_version": {SCHEMA_VERSION}, "privacy": {privacy},\n "columns": {names},\n "units": {units},\n'
    tail = '],\n "accepted": %d, "refused": %d}\n'

    def row(record: list[float]) -> str:
        return "\n  [" + ", ".join(f"{value:.6g}" for value in record) + "]"

    return Form(head + ' "records": [', row, ",", tail)


FORMS = {"csv": _csv, "table": _table, "json": _json}
