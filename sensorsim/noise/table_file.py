"""Read and write the file of a noise table: lines of text that firmware engineers can read too.

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
import re
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import read_bounded, write_whole
from sensorsim.datasets.public_ranges import brief
from sensorsim.noise.certificate import Certificate
from sensorsim.noise.kinds import KINDS, kind_of
from sensorsim.noise.noise_table import MOST_FEATURES, NoiseTable, budget_of

MAGIC = "sensorsim-noise-table"
NEWEST = 2
LIMITS = {"release": (1, MOST_FEATURES), "features": (1, MOST_FEATURES), "frac_bits": (2, 30)}
MOST_BYTES = 1 << 27  # a table of 2^24 entries, each in a line of its own, is no larger


class MalformedError(ValueError):
    """A malformed line of a table's file."""

    def __init__(self, line: int, expected: str) -> None:
        super().__init__(expected)
        self.line = line


def _decimal(text: str) -> Decimal:
    """Parse a number of the certificate: finite and of bounded length."""
    value = Decimal(text)
    if len(text) > 40 or not value.is_finite():
        raise ValueError("number")
    return value


def _ratio(text: str) -> Fraction:
    """Parse a ratio of two counts. No exponent: a short text could be a vast number."""
    if not re.fullmatch(r"\d{1,40}(/\d{1,40})?", text):
        raise ValueError("ratio")
    return Fraction(text)


_CERTIFICATE: dict[str, Any] = {f.name: _decimal for f in fields(Certificate)} | {"ratio": _ratio, "neighbours": str}


def write_table(path: str | os.PathLike[str], table: NoiseTable) -> None:
    """Write a table; equal tables give equal bytes."""
    write_whole(path, table_bytes(table))


def table_bytes(table: NoiseTable) -> bytes:
    """Return the content of a table's file."""
    if table.certificate is None:
        raise InputError("this table has no certificate; certify it before it is written.")
    lines = [f"{MAGIC} {table.file_version}", f"kind {table.kind}"]
    lines += [_line(name, getattr(table, name)) for name in table.parameters]
    lines += [_line(name, getattr(table.certificate, name)) for name in _CERTIFICATE]
    lines += table.body()
    body = "".join(line + "\n" for line in lines).encode()
    return body + f"sha256 {hashlib.sha256(body).hexdigest()}\n".encode()


def read_table(path: str | os.PathLike[str]) -> NoiseTable:
    """Read a table and verify its checksum. The certificate is as in the file; `certify` proves it again."""
    try:
        content = read_bounded(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a noise table.") from None
    return parse_table(content, str(path))


def parse_table(content: bytes, name: str) -> NoiseTable:
    """Parse the bytes of a table's file; `name` is for messages."""
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
    except UnicodeDecodeError as error:
        line = body[: error.start].count(b"\n") + 1
        raise InputError(f"{name} line {line}: a character is not ASCII; make the table again.") from None
    except MalformedError as error:
        raise InputError(f"{name} line {error.line}: {error}; make the table again.") from None


def _parse(version: int, lines: list[str]) -> NoiseTable:
    key, _, kind = (lines[1] if len(lines) > 1 else "").partition(" ")
    if key != "kind" or kind not in KINDS:
        raise MalformedError(2, f"`kind` and one of {', '.join(KINDS)} is expected")
    made = kind_of(kind)
    if version != made.file_version:
        raise MalformedError(1, f"a {kind} table has version {made.file_version}, not {version}")
    readers = made.parameters | _CERTIFICATE
    found: dict[str, Any] = {}
    for number, name in enumerate(readers, 3):
        key, _, text = (lines[number - 1] if number <= len(lines) else "").partition(" ")
        try:
            if key != name:
                raise ValueError(name)
            found[name] = None if text == "none" else readers[name](text)
        except (ValueError, ArithmeticError):
            what = "a word" if readers[name] is str else "a whole number" if readers[name] is int else "a number"
            raise MalformedError(number, f"`{name}` and {what} is expected") from None
        least, most = LIMITS.get(name, (None, None))
        if least is not None and not (found[name] is not None and least <= found[name] <= most):
            raise MalformedError(number, f"{name} is {brief(text)}, outside {least} … {most}")
    certificate = Certificate(**{name: found.pop(name) for name in _CERTIFICATE})
    if found["release"] > found["features"]:
        raise MalformedError(3 + list(readers).index("release"), "release is larger than features")
    try:
        in_normal_form = found["epsilon"] is not None and budget_of(found["epsilon"]) == found["epsilon"]
    except InputError:
        in_normal_form = False
    if not in_normal_form:
        number = 3 + list(readers).index("epsilon")
        raise MalformedError(number, "an epsilon above 0, from 0.000001 to 1000, is expected")
    start = 2 + len(readers)
    if len(lines) <= start:
        raise MalformedError(start + 1, "the counts are missing")
    for number, line in enumerate(lines[start + 1 :], start + 2):
        words = line.split()
        if not words or not all(word.removeprefix("-").isdecimal() and len(word) <= 12 for word in words):
            raise MalformedError(number, "whole numbers with spaces between them are expected")
    try:
        return made.parse(found | {"certificate": certificate}, lines[start:])
    except (ValueError, KeyError, IndexError, ArithmeticError, TypeError):
        raise MalformedError(start + 1, "what begins here does not fit itself or the lines above") from None


def _line(name: str, value: object) -> str:
    if value is None:
        return f"{name} none"
    return f"{name} {value:f}" if isinstance(value, Decimal) else f"{name} {value}"
