"""Packets of a sketch at the hospital: beside an obvious reading, up to 65,536 directions, and by the command."""

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import naive_sketch
import numpy as np
import pytest
from command import run
from naive_packets import Form, packed
from test_receive import hex_lines, same

from sensorsim._util.errors import InputError
from sensorsim.device import Firmware, Sketch, read_sketch, sketch_records, write_sketch
from sensorsim.hospital import receive
from sensorsim.hospital.packets import Expected
from sensorsim.noise.batch_release import sampled_records
from sensorsim.noise.noise_table import NoiseTable, ready_table
from sensorsim.noise.table_file import write_table

CENTRE = tuple(2000 * i for i in range(14))
ROWS, STAIRS = ready_table("1.6", 1), ready_table("1.6", 1, "stairs")
EITHER = pytest.mark.parametrize("table", [ROWS, STAIRS], ids=["rows", "stairs"])


def sketch_of(bits: int, factor: int = 40000) -> Sketch:
    return Sketch(14, CENTRE, factor, 1, bits)


def form_of(table: NoiseTable, sketch: Sketch) -> Form:
    identity, directions = Firmware(table, sketch=sketch).identity, 2**sketch.direction_bits
    if table.kind == "rows":
        symbols = len(table.counts[0])
        return Form(identity, directions, 1, len(f"{symbols - 1:b}"), symbols)
    return Form(identity, directions, 1, len(f"{2 * table.limit:b}"), 2 * table.limit + 1, table.limit)


@cache
def sent(table: NoiseTable, sketch: Sketch, count: int, seed: int = 1) -> tuple[list[int], list[int], list[bytes]]:
    """Directions, values and packets of as many records."""
    x = np.random.default_rng(seed).integers(0, 2**15 + 1, (count, 14)).astype(np.uint16)
    numbers, y = (made.tolist() for made in sketch_records(x, table, sketch, seed))
    form = form_of(table, sketch)
    return numbers, y, [packed(form, [q], [value]) for q, value in zip(numbers, y, strict=True)]


@EITHER
@pytest.mark.parametrize("bits", [1, 5, 10])
def test_packets_are_counted_by_direction(table: NoiseTable, bits: int) -> None:
    sketch = sketch_of(bits)
    _, _, packets = sent(table, sketch, 300)
    for content in (b"".join(packets), hex_lines(packets)):
        same(receive(content, table, sketch=sketch), form_of(table, sketch), packets)


@EITHER
def test_means_are_those_of_the_unbiased_values(table: NoiseTable) -> None:
    sketch = sketch_of(3)
    numbers, y, packets = sent(table, sketch, 400)
    received = receive(b"".join(packets), table, sketch=sketch)
    values = [float(table.estimate(value)) for value in y]
    square = (2**15 * 2 / 40000) ** 2
    for row, (total, count) in zip(received.directions, zip(*received.total_and_count(), strict=True), strict=True):
        mine = [value for value, number in zip(values, numbers, strict=True) if number == row.direction]
        assert row.count == count == len(mine)
        assert total == pytest.approx(sum(mine))
        assert row.mean == pytest.approx(square * sum(mine) / len(mine))
    told = received.sketched
    assert told is not None and received.features == ()
    assert (told.features, told.directions, told.met) == (14, 8, 8)
    assert told.root**2 == pytest.approx(square)
    assert told.mean == pytest.approx(square * sum(values) / 400)
    assert told.low < told.mean < told.high and told.low >= 0 and told.high <= square


def test_the_interval_holds_the_records_own_mean() -> None:
    """The mean of u over 20,000 records by the definition, in the interval; at 1.6 that is a fifth of R² wide."""
    sketch, count = sketch_of(6), 20_000
    x = np.random.default_rng(4).integers(0, 2**15 + 1, (count, 14)).astype(np.uint16)
    vectors = np.array([naive_sketch.entries(number, 14) for number in range(64)])
    numbers, y = sketch_records(x, ROWS, sketch, seed=11)
    form = form_of(ROWS, sketch)
    packets = b"".join(packed(form, [q], [s]) for q, s in zip(numbers.tolist(), y.tolist(), strict=True))
    along = (vectors[numbers] * (x / 2**15 - np.array(CENTRE) / 2**15)).sum(axis=1)
    wanted = np.minimum(along**2, sketch.root**2).mean()
    told = receive(packets, ROWS, sketch=sketch).sketched
    assert told is not None and told.low < wanted < told.high and told.high - told.low < 0.1


def test_nothing_came() -> None:
    told = receive(b"", ROWS, sketch=sketch_of(4)).sketched
    assert told is not None and told.mean is None and (told.met, told.low) == (0, 0)
    assert told.high == pytest.approx(told.root**2)


def test_packets_of_features_or_of_another_sketch_are_refused() -> None:
    sketch, other = sketch_of(10), sketch_of(10, 40001)
    _, _, packets = sent(ROWS, sketch, 50)
    assert receive(b"".join(packets), ROWS, sketch=other).statistics.rejected["identity"] == 50
    plain = receive(b"".join(packets), ROWS)
    assert plain.accepted == 0 and plain.rejected > 0 and plain.sketched is None and plain.directions == ()


@EITHER
def test_written_and_read_again(table: NoiseTable, tmp_path: Path) -> None:
    sketch, path = sketch_of(7), tmp_path / "sums.json"
    _, _, packets = sent(table, sketch, 200)
    once = receive(b"".join(packets), table, sketch=sketch)
    path.write_text(json.dumps(once.to_dict()))
    assert receive(path, table, sketch=sketch).statistics == once.statistics
    twice = receive([path, *packets], table, sketch=sketch)
    assert twice.accepted == 400 and twice.sketched is not None and once.sketched is not None
    assert twice.sketched.mean == pytest.approx(once.sketched.mean)
    for foreign in (None, sketch_of(7, 40001)):
        with pytest.raises(InputError, match="another table, encoder or sketch"):
            receive(path, table, sketch=foreign)


def test_sixty_five_thousand_directions(tmp_path: Path) -> None:
    """All fields of a packet fit one word of 64 bits, and numpy makes those."""
    sketch, count = Sketch(300, (100,) * 300, 40000, 3, 16), 200_000
    layout = Expected.of(ROWS, None, sketch).firmware.layout
    chance = np.random.default_rng(2)
    numbers, symbols = chance.integers(0, 2**16, count), chance.integers(0, 5, count)
    words = layout.head | numbers << 20 | symbols << 36
    packets = words.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : layout.bytes].tobytes()
    start = time.perf_counter()
    received = receive(packets, ROWS, sketch=sketch)
    told, written = received.sketched, json.dumps(received.to_dict(), indent=1)
    assert time.perf_counter() - start < 10  # 65,536 searches for intervals would take minutes
    assert told is not None and told.met == len(set(numbers.tolist())) and received.accepted == count
    counts = np.zeros((2**16, 5), int)
    np.add.at(counts, (numbers, symbols), 1)
    assert np.array_equal(counts, np.array(received.statistics.sums))
    path = tmp_path / "sums.json"
    path.write_text(written)
    assert receive(path, ROWS, sketch=sketch).statistics == received.statistics


# ── the command ──


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command in a folder with a table, a sketch and packets; gives code, output and errors."""
    monkeypatch.chdir(tmp_path)
    sketch = sketch_of(4)
    write_table("table.txt", ROWS)
    write_sketch(sketch, "sketch.json")
    Path("packets.bin").write_bytes(b"".join(sent(ROWS, sketch, 120)[2]))
    return lambda *words: run(capsys, "receive", *words, "--table", "table.txt")


def test_the_command_tells_of_all_directions_together(command: Any) -> None:
    told = receive("packets.bin", ROWS, sketch=sketch_of(4)).sketched
    assert told is not None and told.mean is not None
    code, text, _ = command("packets.bin", "--sketch", "sketch.json")
    assert code == 0 and "a sketch of 14 features in a packet" in text and "16 of 16 came" in text
    assert f"{told.mean:.5f}" in text and f"{told.low:.5f} … {told.high:.5f}" in text
    assert len(text.splitlines()) < 10
    _, text, _ = command("packets.bin", "--sketch", "sketch.json", "--format", "json")
    found = json.loads(text)
    assert found["sketch"]["mean"] == told.mean and "features" not in found and found["n"] == 16
    _, text, _ = command("packets.bin", "--sketch", "sketch.json", "--format", "csv")
    assert text.splitlines()[0] == "direction,count,mean" and len(text.splitlines()) == 17


def test_the_command_writes_what_it_reads(command: Any) -> None:
    command("packets.bin", "--sketch", "sketch.json", "--out", "sums.json")
    code, again, _ = command("sums.json", "--sketch", "sketch.json")
    assert code == 0 and again == command("packets.bin", "--sketch", "sketch.json")[1]


def test_the_command_writes_the_sketch_of_the_means(command: Any) -> None:
    x = np.random.default_rng(6).integers(0, 2**13, (3000, 14)).astype(np.uint16) + np.array(CENTRE, np.uint16) // 2
    chosen, y = sampled_records(x, ROWS, 5)
    form = Form(Firmware(ROWS).identity, 14, 1, 3, 5)
    packets = [packed(form, [int(i)], [int(s)]) for i, s in zip(chosen[:, 0], y[:, 0], strict=True)]
    Path("features.bin").write_bytes(b"".join(packets))
    code, text, _ = command("features.bin", "--write-sketch", "new.json")
    found = read_sketch("new.json")
    assert code == 0 and "3,000 packets accepted" in text and found.n == 14
    command("features.bin", "--write-sketch", "other.json", "--root", "3", "--direction-bits", "12")
    other = read_sketch("other.json")
    assert other.centre == found.centre and other.root == pytest.approx(3, rel=1e-4) and other.directions == 4096
    assert abs(found.middle - (x / 2**15).mean(axis=0)).mean() < 0.1  # about 214 of each feature, at 1.6


@pytest.mark.parametrize(
    "words, what",
    [
        (("packets.bin", "--write-sketch", "new.json"), "no packet was accepted"),
        (("packets.bin", "--sketch", "sketch.json", "--write-sketch", "new.json"), "means of features"),
        (("packets.bin", "--root", "2"), "--write-sketch"),
        (("packets.bin", "--direction-bits", "9"), "--write-sketch"),
    ],
)
def test_bad_input_is_one_sentence(command: Any, words: tuple[str, ...], what: str) -> None:
    code, text, error = command(*words)
    assert code != 0 and not text and what in error and len(error.strip().splitlines()) == 1
