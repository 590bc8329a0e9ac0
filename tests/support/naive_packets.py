"""Packets put together and taken apart by obvious steps on strings of bits. Shares no code with the project."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

EMPTY = "empty"


class Form(NamedTuple):
    """The form of a packet: the table's hash, n features of which k are sent, how a value is sent."""

    identity: bytes
    n: int
    k: int
    value_bits: int
    values: int  # how many values there are; a field holds 0 … values-1
    lift: int = 0  # what is added to a value before it is sent

    @property
    def which_bits(self) -> int:
        return len(f"{self.n - 1:b}") if self.k < self.n and self.n > 1 else 0

    def length(self, numbers: int) -> int:
        return ceil((20 + 16 * numbers + self.k * (self.which_bits + self.value_bits)) / 8)


def packed(
    form: Form, features: Sequence[int], values: Sequence[int], epoch: int | None = None, number: int | None = None
) -> bytes:
    """Return a packet. The features are left out where all are sent."""
    bits = turned(1 + (4 if epoch is not None else 0) + (8 if number is not None else 0), 4)
    bits += turned(form.identity[0], 8) + turned(form.identity[1], 8)
    for carried in (epoch, number):
        bits += "" if carried is None else turned(carried % 65536, 16)
    if form.k < form.n:
        bits += "".join(turned(feature, form.which_bits) for feature in features)
    bits += "".join(turned(value + form.lift, form.value_bits) for value in values)
    return from_bits(bits)


def turned(number: int, width: int) -> str:
    """The lowest bit first."""
    return "".join("1" if number // 2**place % 2 else "0" for place in range(width))


def from_bits(bits: str) -> bytes:
    padded = bits + "0" * (-len(bits) % 8)
    return bytes(sum(2**place for place in range(8) if padded[at + place] == "1") for at in range(0, len(padded), 8))


def bits_of(packet: bytes) -> str:
    return "".join(turned(byte, 8) for byte in packet)


def taken_apart(form: Form, packet: bytes) -> str | tuple[list[int], list[int]]:
    """Features and values of a packet, or why it is refused, or that it is empty."""
    if len(packet) not in {form.length(numbers) for numbers in (0, 1, 2)}:
        return "length"
    if set(packet) == {0}:
        return EMPTY
    bits = bits_of(packet)
    code = _number(bits[:4])
    if code % 4 != 1:
        return "layout"
    numbers = code // 4 % 2 + code // 8
    if len(packet) != form.length(numbers):
        return "length"
    if packet_identity(bits) != form.identity[:2]:
        return "identity"
    at = 20 + 16 * numbers
    end = at + form.k * (form.which_bits + form.value_bits)
    if "1" in bits[end:]:
        return "padding"
    features = list(range(form.n))
    if form.k < form.n:
        features = [_number(bits[at + j * form.which_bits :][: form.which_bits]) for j in range(form.k)]
        at += form.k * form.which_bits
    if max(features) >= form.n:
        return "feature"
    if len(set(features)) < len(features):
        return "repeated"
    fields = [_number(bits[at + j * form.value_bits :][: form.value_bits]) for j in range(form.k)]
    if max(fields) >= form.values:
        return "value"
    return features, [field - form.lift for field in fields]


def packet_identity(bits: str) -> bytes:
    return from_bits(bits[4:20])


def _number(bits: str) -> int:
    return sum(2**place for place, bit in enumerate(bits) if bit == "1")


class Summary(NamedTuple):
    accepted: int
    refused: dict[str, int]  # EMPTY among them
    values: list[list[int]]  # received of each feature, in their order


def summed(form: Form, packets: Iterable[bytes]) -> Summary:
    """Sum up packets, each of which speaks for itself."""
    accepted, refused = 0, Counter[str]()
    values: list[list[int]] = [[] for _ in range(form.n)]
    for packet in packets:
        found = taken_apart(form, packet)
        if isinstance(found, str):
            refused[found] += 1
            continue
        accepted += 1
        for feature, value in zip(*found, strict=True):
            values[feature].append(value)
    return Summary(accepted, dict(refused), values)
