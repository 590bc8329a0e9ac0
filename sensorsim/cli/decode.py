"""`sensorsim decode`: released codes of hidden units back to readings, at the hospital."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sensorsim._util.errors import InputError
from sensorsim._util.hints import need
from sensorsim._util.terminal import columns, counted, hung
from sensorsim.cli.choices import FILE
from sensorsim.cli.output import as_json, emit, format_option, tell
from sensorsim.noise.certificate import format_epsilon as epsilon

if TYPE_CHECKING:
    from sensorsim.encoders import Encoder
    from sensorsim.hospital.decoding import Codes
    from sensorsim.training.model_files import Model

NARROWEST = 12  # letters of a column
SCHEMA_VERSION = 1


@click.command()
@click.option("--model", "model_file", type=FILE, required=True, help="A model of `sensorsim train --out`.")
@click.option("--packets", type=FILE, multiple=True, required=True, help="What sensors with its encoder sent.")
@click.option("--table", "table_file", type=FILE, required=True, help="Noise table that they were made with.")
@click.option("--user", type=int, default=0, show_default=True, help="Whose encoder it is, where users differ.")
@click.option("--each", is_flag=True, help="A record for every packet, in place of the mean record.")
@format_option
def command(model_file: str, packets: tuple[str, ...], table_file: str, user: int, each: bool, fmt: str) -> None:
    """The mean record behind the packets of hidden units, in the units of the ranges; or one for every packet.

    Sensors are made with `sensorsim train --encoder` and `sensorsim export --encoder`. Packets of another table or
    encoder are refused and counted. A single private code says little of its record: read means over many. Exit code 1
    and no record if no packet is accepted.

    \b
    Example: sensorsim decode --model model.npz --packets w3.bin --table rows.txt
             sensorsim decode --model model.npz --packets w3.bin \\
               --table rows.txt --each --format csv
    """
    need("scipy")
    from sensorsim.noise.table_file import read_table
    from sensorsim.training.model_files import load

    model, table = load(model_file), read_table(table_file)
    if not 0 <= user < model.trained.m:
        raise InputError(f"the model has no user {user}; give --user 0 to {model.trained.m - 1}.")
    codes, encoder = _codes(model, user)
    printed = _print_each if each else _print_mean
    accepted, refused = printed(model, packets, table, encoder, codes, fmt)
    if not accepted:
        click.echo(
            f"no packet was accepted and {refused:,} were refused, so there is no record; give packets of this table "
            "and of this model's encoder.",
            err=True,
        )
        sys.exit(1)


def privacy_of(about: dict[str, Any]) -> str:
    """What covers the output: it is made of codes and of a model, and both were made of records."""
    from sensorsim.accounting.composition import Covers

    weights = (Covers.RELEASE, Covers.STEPS, Covers.REAL_STEPS)
    if about["spent_epsilon"] is None or about["covers_short"] not in [one.value for one in weights]:
        return (
            "not covered: the codes' own epsilon covers them, but the model that reads them was made of records, and "
            f"its statement covers {about['covers']}"
        )
    spent = f"epsilon {epsilon(about['spent_epsilon'])} at delta {about['delta']:g} per record"
    return (
        f"made of released codes, which their epsilon covers, and of a model that spent, as its file states, {spent} "
        f"and covers {about['covers']}; who is in both spends the sum"
    )


def _codes(model: Model, user: int) -> tuple[Codes, Encoder]:
    """What is expected of the user's units, and the encoder whose packets are accepted."""
    from sensorsim.hospital.decoding import Codes
    from sensorsim.mechanisms.base import LINEAR
    from sensorsim.training.model_files import in_integers

    made, trained = in_integers(model), model.trained
    codes = Codes(model.middle[user], model.spread[user], trained.form == LINEAR, lambda h: trained.decode(user, h))
    return codes, made[user if len(made) > 1 else 0]


def _print_mean(model: Model, packets: Any, table: Any, encoder: Any, codes: Codes, fmt: str) -> tuple[int, int]:
    """Returns how many packets were accepted and refused."""
    from sensorsim.hospital import receive
    from sensorsim.hospital.decoding import mean_record

    received = receive(packets, table, encoder)
    if not received.accepted:
        return 0, received.rejected
    found = mean_record(received, codes)
    low, high = (_in_units(model, part) for part in (found.low, found.high))
    mean, deviation = _in_units(model, found.mean), found.deviation * _spans(model)
    names, units = model.about["columns"], _units(model)
    rows = [
        {"column": name, "unit": unit, "mean": float(a), "deviation": float(b), "low": float(c), "high": float(d)}
        for name, unit, a, b, c, d in zip(names, units, mean, deviation, low, high, strict=True)
    ]
    head: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "accepted": received.accepted,
        "refused": received.rejected,
    }
    head |= {"epsilon": float(received.statistics.epsilon), "privacy": privacy_of(model.about), "confidence": 0.95}
    emit(fmt, lambda: _mean_text(head, rows), lambda: head | {"mean_record": rows}, lambda: rows)
    return received.accepted, received.rejected


def _mean_text(head: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    return hung("\n".join(_mean_lines(head, rows)), columns())


def _mean_lines(head: dict[str, Any], rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"{counted(head['accepted'], 'packet')} accepted, {head['refused']:,} refused"
    yield f"  epsilon {epsilon(head['epsilon'], 6)} per packet; {head['privacy']}"
    yield (
        "  mean record, and 95 % of what noise and numbers leave open; what the encoder drops is not in it, nor is how "
        "far the model is from these records"
    )
    wide = max(len(row["column"]) for row in rows)
    for row in rows:
        interval = f"{row['low']:>10.5g} … {row['high']:<10.5g}"
        yield f"  {row['column']:<{wide}}  {row['mean']:>11.5g}   {interval} {row['unit']}".rstrip()


def _print_each(model: Model, packets: Any, table: Any, encoder: Any, codes: Codes, fmt: str) -> tuple[int, int]:
    """Records as they are made; nothing of them is kept. Files are read twice: all packets tell of the mean first."""
    from sensorsim.hospital import receive
    from sensorsim.hospital.decoding import each_record, posterior_codes
    from sensorsim.hospital.packets import Expected
    from sensorsim.hospital.receiver import is_stream

    if not any(map(is_stream, packets)):
        received = receive(packets, table, encoder)
        if not received.accepted:
            return 0, received.rejected
        codes = posterior_codes(received, codes)
    privacy, number, refused = privacy_of(model.about), 0, 0
    write = WRITERS[fmt](_distinct(model.about["columns"]), _units(model), privacy)
    for records, kept in each_record(packets, Expected.of(table, encoder), codes):
        refused, lines = sum(kept.rejected.values()), [] if number else [write.head]
        for record in _in_units(model, records).tolist():
            lines.append(write.row(number, record))
            number += 1
        click.echo("".join(lines) if number else "", nl=False)  # no record, no head
    if number:
        click.echo(write.tail(number, refused), nl=False)
        tell(f"{counted(number, 'packet')} accepted, {refused:,} refused; a single private code says little.")
        tell(f"Records are {privacy}.")
        if write.left_out:
            left = counted(write.left_out, "column")
            tell(f"Not shown for want of room: {left}; --format csv and json have all.")
    return number, refused


class _Csv:
    """A line for each record."""

    left_out = 0  # columns for which there is no room

    def __init__(self, names: list[str], units: list[str], privacy: str) -> None:
        self.head = ",".join(['"' + name.replace('"', '""') + '"' for name in names]) + "\n"

    def row(self, number: int, record: list[float]) -> str:
        return ",".join(f"{value:.6g}" for value in record) + "\n"

    def tail(self, accepted: int, refused: int) -> str:
        return ""


class _Table(_Csv):
    """The same in columns, as many as a line has room for; names are cut where they would not all fit."""

    def __init__(self, names: list[str], units: list[str], privacy: str) -> None:
        whole = [max(NARROWEST, len(name), len(unit)) for name, unit in zip(names, units, strict=True)]
        fits = sum(whole) + len(whole) - 1 <= columns()
        shown = len(names) if fits else min(len(names), (columns() + 1) // (NARROWEST + 1))
        self.widths = whole if fits else [NARROWEST] * shown
        self.left_out = len(names) - shown
        self.head = self._line(names) + self._line(units)

    def row(self, number: int, record: list[float]) -> str:
        return self._line([f"{value:.5g}" for value in record])

    def _line(self, cells: list[str]) -> str:
        shown = zip(cells[: len(self.widths)], self.widths, strict=True)
        return " ".join(f"{cell[:wide]:>{wide}}" for cell, wide in shown) + "\n"


class _Json(_Csv):
    """One object, written piece by piece."""

    def __init__(self, names: list[str], units: list[str], privacy: str) -> None:
        self.head = f'{{"schema_version": {SCHEMA_VERSION}, "privacy": {as_json(privacy)},\n'
        self.head += f' "columns": {as_json(names, None)},\n "units": {as_json(units, None)},\n "records": ['

    def row(self, number: int, record: list[float]) -> str:
        return (",\n  [" if number else "\n  [") + ", ".join(f"{value:.6g}" for value in record) + "]"

    def tail(self, accepted: int, refused: int) -> str:
        return f'],\n "accepted": {accepted}, "refused": {refused}}}\n'


WRITERS = {"csv": _Csv, "table": _Table, "json": _Json}


def _distinct(names: list[str]) -> list[str]:
    """A column that stands twice gets a number the second time."""
    return [name if names.index(name) == i else f"{name}.{names[:i].count(name)}" for i, name in enumerate(names)]


def _in_units(model: Model, x: Any) -> Any:
    """Readings, or numbers in 0 … 1 where no ranges are known."""
    from sensorsim.datasets.public_ranges import from_unit
    from sensorsim.training.model_files import ranges_of

    ranges = ranges_of(model.about)
    return x if ranges is None else from_unit(x, ranges)


def _spans(model: Model) -> Any:
    import numpy as np

    from sensorsim.training.model_files import ranges_of

    ranges = ranges_of(model.about)
    return 1.0 if ranges is None else np.array([known.span for known in ranges])


def _units(model: Model) -> list[str]:
    from sensorsim.training.model_files import ranges_of

    ranges = ranges_of(model.about)
    return ["" if ranges is None else known.unit for known in (ranges or model.about["columns"])]
