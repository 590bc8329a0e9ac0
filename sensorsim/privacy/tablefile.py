"""The file of a noise table: lines of text that firmware people can read too.

sensorsim-noise-table 1        the version of its kind: 1 for naive, quantile and stairs, 2 for rows
kind stairs
…                              one parameter a line, then the certificate
counts 73                      then what the certificate is about; for rows one line of counts for each knot
-36 105                        value and how often it stands in the table
…
sha256 4d2c…                   of every byte before this line
"""

import hashlib
import os
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sensorsim.errors import InputError
from sensorsim.files import read_bounded, write_whole
from sensorsim.privacy.certificate import Certificate
from sensorsim.privacy.kinds import KINDS, kind_of
from sensorsim.privacy.tables import MOST_FEATURES, NoiseTable, budget_of

MAGIC = "sensorsim-noise-table"
NEWEST = 2
MOST_BYTES = 1 << 27  # a table of 2^24 entries, each in a line of its own, is no larger


def _decimal(text: str) -> Decimal:
    """A number of the certificate: finite, and no longer than one is written."""
    value = Decimal(text)
    if len(text) > 40 or not value.is_finite():
        raise ValueError("number")
    return value


_CERTIFICATE: dict[str, Any] = {f.name: _decimal for f in fields(Certificate)} | {"ratio": Fraction, "neighbours": str}


def write_table(path: str | os.PathLike[str], table: NoiseTable) -> None:
    """Write a table; the same table gives the same bytes."""
    write_whole(path, table_bytes(table))


def table_bytes(table: NoiseTable) -> bytes:
    """The file's content."""
    if table.certificate is None:
        raise InputError("this table has no certificate; certify it before it is written.")
    lines = [f"{MAGIC} {table.file_version}", f"kind {table.kind}"]
    lines += [_line(name, getattr(table, name)) for name in table.parameters]
    lines += [_line(name, getattr(table.certificate, name)) for name in _CERTIFICATE]
    lines += table.body()
    body = "".join(line + "\n" for line in lines).encode()
    return body + f"sha256 {hashlib.sha256(body).hexdigest()}\n".encode()


def read_table(path: str | os.PathLike[str]) -> NoiseTable:
    """Read a table and verify its checksum. Its certificate is what the file says: `certify` proves it again."""
    try:
        content = read_bounded(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a noise table.") from None
    return parse_table(content, str(path))


def parse_table(content: bytes, name: str) -> NoiseTable:
    """A table from its file's bytes; `name` is for messages."""
    words = content.split(b"\n", 1)[0].decode("ascii", "replace").split()
    if len(words) != 2 or words[0] != MAGIC or not words[1].isdigit() or len(words[1]) > 9:
        raise InputError(f"{name} is not a noise table of sensorsim; make one with `sensorsim noise make`.")
    if int(words[1]) > NEWEST:
        raise InputError(
            f"{name} is a noise table of version {words[1]} and this sensorsim reads up to {NEWEST}; "
            "update sensorsim or make the table again."
        )
    body, mark, digest = content.rpartition(b"sha256 ")
    if not mark or len(digest) != 65 or not body.endswith(b"\n"):
        raise InputError(f"{name} is cut off: its checksum is missing; copy it again or make it again.")
    if digest.decode("ascii", "replace") != hashlib.sha256(body).hexdigest() + "\n":
        raise InputError(f"{name} was altered: its checksum does not match; copy it again or make it again.")
    try:
        return _parse(int(words[1]), body.decode("ascii").splitlines())
    except (ValueError, KeyError, IndexError, ArithmeticError, TypeError):
        raise InputError(f"{name} has a valid checksum but a malformed line; make the table again.") from None


def _parse(version: int, lines: list[str]) -> NoiseTable:
    key, _, kind = lines[1].partition(" ")
    if key != "kind" or kind not in KINDS:
        raise ValueError("kind")
    made = kind_of(kind)
    if version != made.file_version:
        raise ValueError("version")
    readers = made.parameters | _CERTIFICATE
    found: dict[str, Any] = {}
    for name, line in zip(readers, lines[2:], strict=False):
        key, text = line.split(" ", 1)
        if key != name:
            raise ValueError(f"expected {name}")
        found[name] = None if text == "none" else readers[name](text)
    certificate = Certificate(**{name: found.pop(name) for name in _CERTIFICATE})
    whole = 1 <= found["release"] <= found["features"] <= MOST_FEATURES and 2 <= found["frac_bits"] <= 30
    if not whole or budget_of(found["epsilon"]) != found["epsilon"]:
        raise ValueError("parameters")
    return made.parse(found | {"certificate": certificate}, lines[2 + len(readers) :])


def _line(name: str, value: object) -> str:
    if value is None:
        return f"{name} none"
    return f"{name} {value:f}" if isinstance(value, Decimal) else f"{name} {value}"
