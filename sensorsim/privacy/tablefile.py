"""The file of a noise table: lines of text that firmware people can read too.

sensorsim-noise-table 1
kind stairs
…                              one parameter a line, then the certificate
counts 73
-36 105                        value and how often it stands in the table
…
sha256 4d2c…                   of every byte before this line
"""

import hashlib
import os
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError
from sensorsim.files import write_whole
from sensorsim.privacy.certificate import Certificate
from sensorsim.privacy.tables import KINDS, NoiseTable

MAGIC = "sensorsim-noise-table"
VERSION = 1
_PARAMETERS = [f.name for f in fields(NoiseTable) if f.name not in ("counts", "certificate")]
_CERTIFICATE = [f.name for f in fields(Certificate)]
_READ: dict[str, Any] = {"kind": str, "epsilon": Decimal, "ratio": Fraction, "neighbours": str}


def write_table(path: str | os.PathLike[str], table: NoiseTable) -> None:
    """Write a table; the same table gives the same bytes."""
    write_whole(path, table_bytes(table))


def table_bytes(table: NoiseTable) -> bytes:
    """The file's content."""
    if table.certificate is None:
        raise InputError("this table has no certificate; certify it before it is written.")
    lines = [f"{MAGIC} {VERSION}"]
    lines += [_line(name, getattr(table, name)) for name in _PARAMETERS]
    lines += [_line(name, getattr(table.certificate, name)) for name in _CERTIFICATE]
    lines += [f"counts {len(table.counts)}"]
    lines += [f"{value} {count}" for value, count in table.counts]
    body = "".join(line + "\n" for line in lines).encode()
    return body + f"sha256 {hashlib.sha256(body).hexdigest()}\n".encode()


def read_table(path: str | os.PathLike[str]) -> NoiseTable:
    """Read a table and verify its checksum. Its certificate is what the file says: `certify` proves it again."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a noise table.") from None
    return parse_table(content, str(path))


def parse_table(content: bytes, name: str) -> NoiseTable:
    """A table from its file's bytes; `name` is for messages."""
    words = content.split(b"\n", 1)[0].decode("ascii", "replace").split()
    if len(words) != 2 or words[0] != MAGIC or not words[1].isdigit():
        raise InputError(f"{name} is not a noise table of sensorsim; make one with `sensorsim noise make`.")
    if int(words[1]) != VERSION:
        raise InputError(
            f"{name} is a noise table of version {words[1]} and this sensorsim reads version {VERSION}; "
            "update sensorsim or make the table again."
        )
    body, mark, digest = content.rpartition(b"sha256 ")
    if not mark or len(digest) != 65 or not body.endswith(b"\n"):
        raise InputError(f"{name} is cut off: its checksum is missing; copy it again or make it again.")
    if digest.decode("ascii", "replace") != hashlib.sha256(body).hexdigest() + "\n":
        raise InputError(f"{name} was altered: its checksum does not match; copy it again or make it again.")
    try:
        return _parse(body.decode("ascii").splitlines())
    except (ValueError, KeyError, IndexError, ArithmeticError):
        raise InputError(f"{name} has a valid checksum but a malformed line; make the table again.") from None


def _parse(lines: list[str]) -> NoiseTable:
    names = _PARAMETERS + _CERTIFICATE
    found: dict[str, Any] = {}
    for name, line in zip(names, lines[1:], strict=False):
        key, text = line.split(" ", 1)
        if key != name:
            raise ValueError(f"expected {name}")
        read = _READ.get(name, Decimal if name in _CERTIFICATE else int)
        found[name] = None if text == "none" else read(text)
    key, number = lines[1 + len(names)].split()
    pairs = [line.split() for line in lines[2 + len(names) :]]
    counts = tuple((int(value), int(count)) for value, count in pairs)
    values = [value for value, _ in counts]
    if key != "counts" or len(counts) != int(number) or values != sorted(set(values)):
        raise ValueError("counts")
    table = NoiseTable(
        **{name: found[name] for name in _PARAMETERS},
        counts=counts,
        certificate=Certificate(**{name: found[name] for name in _CERTIFICATE}),
    )
    _check(table)
    return table


def _check(table: NoiseTable) -> None:
    """Refuse what no maker of ours writes, so that readers need not ask."""
    entries = table.entries
    sound = (
        table.kind in KINDS
        and table.epsilon > 0
        and 1 <= table.release <= table.features
        and table.coefficients in (1, 2)
        and 0 <= table.stair_bits <= table.frac_bits <= 30
        and min(count for _, count in table.counts) >= 0
        and entries >= 2
        and entries & (entries - 1) == 0
    )
    if not sound:
        raise ValueError("parameters")


def _line(name: str, value: object) -> str:
    if value is None:
        return f"{name} none"
    return f"{name} {value:f}" if isinstance(value, Decimal) else f"{name} {value}"
