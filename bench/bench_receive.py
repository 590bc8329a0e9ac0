"""Speed of receiving packets from a file, on one core. Run: pytest bench/bench_receive.py

Goal: 10^8 packets of a wearable's record, 14 features, in a minute, whichever of them are released, in bounded memory.
The peer is the obvious way in NumPy: all bits by np.unpackbits, every field by a product with powers of two. The last
test receives all 10^8, the peer a hundredth of them beside it, and prints nanoseconds per packet.
"""

import io
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sensorsim.device import Layout
from sensorsim.hospital import receive
from sensorsim.hospital.packets import Expected
from sensorsim.noise.noise_table import NoiseTable, ready_table

SOME = 10**6
TABLES = {
    "rows, 1 of 14": ("1.6", 1, "rows"),
    "rows, all": ("1.6", "all", "rows"),
    "stairs, 1 of 14": ("1.6", 1, "stairs"),
    "stairs, all": ("1.6", "all", "stairs"),
}


def packets_of(table: NoiseTable) -> tuple[bytes, Expected, Layout]:
    """Random packets of a table, all of them good."""
    expected = Expected.of(table, None)
    layout = expected.layouts[1]
    draws = np.random.default_rng(1)
    bits = np.zeros((SOME, 8 * layout.bytes), np.uint8)
    fields = [(0, 20, np.full(SOME, layout.head))]
    for j in range(layout.released):
        if layout.which_bits:
            fields.append((layout.chosen_at, layout.which_bits, draws.integers(0, layout.features, SOME)))
        value = draws.integers(0, expected.most + 1, SOME)
        fields.append((layout.values_at + j * layout.value_bits, layout.value_bits, value))
    for at, width, number in fields:
        bits[:, at : at + width] = number[:, None] >> np.arange(width) & 1
    return np.packbits(bits, axis=1, bitorder="little").tobytes(), expected, layout


def by_unpackbits(content: bytes, expected: Expected, layout: Layout) -> tuple[int, Any]:
    """How many packets are good, and the sum of the values of each feature."""
    bits = np.unpackbits(np.frombuffer(content, np.uint8).reshape(-1, layout.bytes), axis=1, bitorder="little")

    def number(at: int, width: int) -> Any:
        return bits[:, at : at + width].astype(np.int64) @ (1 << np.arange(width))

    k, good = layout.released, number(0, 20) == layout.head
    good &= ~bits[:, layout.bits :].any(axis=1)
    features = [np.full(len(bits), j) for j in range(k)]
    if layout.which_bits:
        features = [number(layout.chosen_at + j * layout.which_bits, layout.which_bits) for j in range(k)]
    values = [number(layout.values_at + j * layout.value_bits, layout.value_bits) for j in range(k)]
    for feature, value in zip(features, values, strict=True):
        good &= (feature < layout.features) & (value <= expected.most)
    totals = np.zeros(layout.features)
    for feature, value in zip(features, values, strict=True):
        totals += np.bincount(feature[good], value[good], layout.features)
    return int(good.sum()), totals


@pytest.fixture(scope="module", params=TABLES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    table = ready_table(*TABLES[request.param])
    content, expected, layout = packets_of(table)
    path = tmp_path_factory.mktemp("packets") / "packets.bin"
    path.write_bytes(content)
    return request.param, table, path, content, expected, layout


@pytest.mark.benchmark(group="10^6 packets")
def test_receive(benchmark: Any, case: Any) -> None:
    _, table, path, *_ = case
    received = benchmark.pedantic(receive, (path, table), rounds=5, warmup_rounds=1)
    assert received.accepted == SOME


@pytest.mark.benchmark(group="10^6 packets")
def test_by_unpackbits(benchmark: Any, case: Any) -> None:
    *_, content, expected, layout = case
    good, _ = benchmark.pedantic(by_unpackbits, (content, expected, layout), rounds=3, warmup_rounds=1)
    assert good == SOME


class Repeated(io.RawIOBase):
    """A stream of the same packets many times over, as no file may be given twice."""

    def __init__(self, content: bytes, times: int) -> None:
        self.content, self.left = content, times * len(content)

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        at = -self.left % len(self.content)
        part = memoryview(self.content)[at : at + min(len(room), self.left)]
        room[: len(part)] = part
        self.left -= len(part)
        return len(part)


def test_a_hundred_million_in_a_minute(
    case: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, table, _, content, expected, layout = case
    peer, (good, totals) = _timed(lambda: by_unpackbits(content, expected, layout))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Repeated(content, 100))))
    ours, received = _timed(lambda: receive("-", table))
    assert received.accepted == 100 * good == 10**8
    assert np.allclose(_field_totals(received, expected), 100 * totals)
    with capsys.disabled():
        print(f"\n  {name:<16}{ours * 10:8.1f} ns per packet, np.unpackbits {peer * 1000:8.1f} ns", end="")
    assert ours < 60


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


def _field_totals(received: Any, expected: Expected) -> Any:
    """Sums of what the fields held: symbols, or numbers with the limit added."""
    rows = np.array(received.statistics.sums, float)
    if expected.limit is None:
        return rows @ np.arange(rows.shape[1])
    return rows[:, 1] + expected.limit * rows[:, 0]
