"""What the hospital receives, beside a reading of the same packets by obvious steps."""

import json
import os
import random
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_packets import EMPTY, Form, bits_of, from_bits, packed, summed

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim.device import Firmware
from sensorsim.encoders import read_encoder
from sensorsim.hospital import Received, packets, read_received, receive
from sensorsim.noise.batch_release import release_records, sampled_records
from sensorsim.noise.noise_table import NoiseTable, certified, make_table, ready_table
from sensorsim.noise.table_file import write_table

ENCODER = Path(__file__).parents[2] / "tables" / "encoders" / "default.json"
# kind and epsilon of a ready table for one feature or all, features, released of them
TABLES = {
    "rows, 1 of 14": ("rows", "1.6", 14, 1),
    "rows, all": ("rows", "1.6", 14, 14),
    "rows, 3 of 14": ("rows", "1.6", 14, 3),
    "rows, 1 of 16": ("rows", "6.4", 16, 1),  # no pattern of its four bits is free
    "rows, 2 of 2": ("rows", "0.4", 2, 2),
    "rows, 1 of 1": ("rows", "1", 1, 1),
    "stairs, 1 of 14": ("stairs", "1.6", 14, 1),
    "stairs, all": ("stairs", "6.4", 14, 14),
    "stairs, 3 of 14": ("stairs", "1.6", 14, 3),
}


@cache
def table_named(name: str) -> NoiseTable:
    """A table for one feature serves for k of n, each with that epsilon."""
    kind, epsilon, features, release = TABLES[name]
    if release == 14:
        return ready_table(epsilon, "all", kind)
    one = ready_table(epsilon, 1, kind)
    return certified(replace(one, epsilon=one.epsilon * release, features=features, release=release))


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest) -> NoiseTable:
    return table_named(request.param)


def form_of(table: NoiseTable, encoder: Any = None) -> Form:
    """What the hospital knows, from the table's counts and the firmware's hash."""
    identity = Firmware(table, encoder).identity
    if table.kind == "rows":
        symbols = len(table.counts[0])
        return Form(identity, table.features, table.release, len(f"{symbols - 1:b}"), symbols)
    return Form(identity, table.features, table.release, len(f"{2 * table.limit:b}"), 2 * table.limit + 1, table.limit)


def released(table: NoiseTable, records: int, seed: int) -> tuple[Any, Any, Any]:
    """Records, the features picked of them, and their values, by the kernels of the sensor."""
    x = np.random.default_rng(seed).integers(0, 2**15 + 1, (records, table.features), np.uint16)
    if table.release < table.features:
        return x, *sampled_records(x, table, seed)
    return x, np.tile(np.arange(table.features), (records, 1)), release_records(x, table, seed)


def packets_of(table: NoiseTable, records: int, seed: int = 1, numbers: Sequence[str] = ()) -> list[bytes]:
    """Packets of any features and values that there are."""
    form, chance = form_of(table), random.Random(seed)
    made = []
    for i in range(records):
        features = chance.sample(range(form.n), form.k)
        values = [chance.randrange(form.values) - form.lift for _ in range(form.k)]
        carried = (i // 7 if "epoch" in numbers else None, i if "sequence" in numbers else None)
        made.append(packed(form, features, values, *carried))
    return made


def same(received: Received, form: Form, packets: Sequence[bytes]) -> None:
    """All counts and sums are those of the obvious reading."""
    wanted, kept = summed(form, packets), received.statistics
    refused = {reason: count for reason, count in kept.rejected.items() if count}
    assert (kept.accepted, kept.empty) == (wanted.accepted, wanted.refused.pop(EMPTY, 0))
    assert refused == wanted.refused
    for row, values in zip(kept.sums, wanted.values, strict=True):
        if form.lift:
            assert list(row) == [len(values), sum(values), sum(value**2 for value in values)]
        else:
            assert list(row) == [values.count(symbol) for symbol in range(form.values)]


def hex_lines(packets: Sequence[bytes]) -> bytes:
    return "".join(packet.hex() + "\n" for packet in packets).encode()


@pytest.mark.parametrize("numbers", [(), ("epoch",), ("sequence",), ("epoch", "sequence")], ids=str)
def test_packets_are_read_as_they_were_made(table: NoiseTable, numbers: tuple[str, ...]) -> None:
    packets, form = packets_of(table, 60, numbers=numbers), form_of(table)
    for content in (b"".join(packets), hex_lines(packets)):
        same(receive(content, table), form, packets)
    assert receive(b"".join(packets), table).accepted == 60


RELEASED = ["rows, 1 of 14", "rows, 3 of 14", "rows, all", "stairs, 1 of 14"]
DEEPER = [pytest.param(name, marks=pytest.mark.slow) for name in TABLES if name not in RELEASED]


@pytest.mark.parametrize("name", RELEASED + DEEPER)
def test_means_are_unbiased_values_pooled(name: str) -> None:
    table = table_named(name)
    x, chosen, y = released(table, 4000, seed=3)
    form = form_of(table)
    packets = [packed(form, f, v) for f, v in zip(chosen.tolist(), y.tolist(), strict=True)]
    received = receive(b"".join(packets), table)
    total, count = received.total_and_count()
    for feature in range(table.features):
        mine = chosen == feature
        assert count[feature] == mine.sum() == received.features[feature].count
        assert total[feature] == pytest.approx(table.estimate(y[mine]).sum(), rel=1e-9, abs=1e-6)
    inside = 0
    for row in received.features:
        true = (x[np.arange(len(x))[:, None], chosen][chosen == row.feature] / 2**15).mean()
        assert row.mean == pytest.approx(total[row.feature] / row.count)
        assert 0 <= row.low <= row.high <= 1
        inside += row.low <= true <= row.high
    assert inside >= table.features - 2  # the chance of three misses among 14 is 0.03, with this seed there are none


# ---- what is refused


def spoilt(packet: bytes, at: int, width: int, number: int) -> bytes:
    """The packet with another number in one of its fields."""
    bits = bits_of(packet)
    return from_bits(bits[:at] + f"{number:0{width}b}"[::-1] + bits[at + width :])


def test_every_reason_of_refusal() -> None:
    table = table_named("rows, 3 of 14")  # 20 bits of head, 3 × 4 of features, 3 × 3 of values
    form = form_of(table)
    assert (form.which_bits, form.values.bit_count() == 1) == (4, False), "some pattern of a value must be free"
    good = packed(form, [0, 5, 13], [0, 1, form.values - 1])
    wrong = {
        "length": good + b"\0",
        "layout": spoilt(good, 0, 4, 2),
        "identity": spoilt(good, 4, 16, form.identity[0] + 256 * (form.identity[1] ^ 1)),
        "padding": spoilt(good, 8 * len(good) - 1, 1, 1),
        "feature": spoilt(good, 24, 4, 14),
        "repeated": spoilt(good, 24, 4, 13),
        "value": spoilt(good, 32, form.value_bits, form.values),
    }
    assert 20 + 3 * (4 + form.value_bits) < 8 * len(good)
    for reason, packet in wrong.items():
        received = receive(hex_lines([good, packet, packet]), table)
        found = {name: count for name, count in received.statistics.rejected.items() if count}
        assert (received.accepted, found) == (1, {reason: 2})
        same(received, form, [good, packet, packet])
    text = hex_lines([good]) + b"xy" * len(good) + b"\n"
    received = receive(text, table, form="hex")
    assert (received.accepted, received.statistics.rejected["hex"]) == (1, 1)


def test_numbers_beyond_the_limit_are_refused() -> None:
    table = table_named("stairs, 1 of 14")
    form = form_of(table)
    ends = [packed(form, [3], [sign * form.lift]) for sign in (-1, 1)]
    beyond = spoilt(ends[0], 24, form.value_bits, 2 * form.lift + 1)
    received = receive(b"".join([*ends, beyond]), table)
    assert (received.accepted, received.statistics.rejected["value"]) == (2, 1)
    assert received.statistics.sums[3] == (2, 0, 2 * form.lift**2)


def test_packets_of_an_encoder_are_others() -> None:
    encoder = read_encoder(ENCODER)
    table = certified(replace(table_named("rows, 1 of 14"), features=encoder.l))
    packets = [packed(form_of(table, encoder), [i % encoder.l], [i % 2]) for i in range(20)]
    assert receive(packets, table, encoder).accepted == 20
    assert receive(packets, table).statistics.rejected["identity"] == 20
    with pytest.raises(InputError, match="hidden units"):
        receive(packets, table_named("rows, 1 of 14"), encoder)


def test_a_file_that_is_cut_off() -> None:
    table = table_named("rows, 1 of 14")
    packets = packets_of(table, 9)
    received = receive(b"".join(packets)[:-1], table)
    assert (received.accepted, received.statistics.rejected["length"]) == (8, 1)


def test_empty_packets_before_the_first() -> None:
    """Zeros have no layout; the first packet that has one tells their length."""
    for name in ("rows, 1 of 14", "stairs, 3 of 14"):
        table = table_named(name)
        for numbers in ((), ("sequence",), ("epoch", "sequence")):
            packets = packets_of(table, 5, numbers=numbers)
            for empty in (1, 2, 3):
                every = [bytes(len(packets[0]))] * empty + packets
                received = receive(b"".join(every), table)
                assert (received.statistics.empty, received.accepted) == (empty, 5)


def test_the_first_packet_decides_in_binary_and_each_line_in_hex() -> None:
    table = table_named("rows, 1 of 14")
    plain, longer = packets_of(table, 4), packets_of(table, 4, numbers=("epoch",))
    other = packets_of(table, 4, numbers=("sequence",))
    assert receive(hex_lines([*plain, *longer, *other]), table).accepted == 12
    assert receive(b"".join([*longer, *other]), table).accepted == 8, "two layouts of one length"
    mixed = receive(b"".join([*plain, *longer]), table)
    assert mixed.accepted == 4 and sum(mixed.statistics.rejected.values()) == 6  # 24 bytes read as six packets


@st.composite
def doubtful(draw: Callable[..., Any]) -> tuple[str, list[bytes]]:
    """Packets of a table, some with bits turned, some cut, some made of nothing."""
    name = draw(st.sampled_from(sorted(TABLES)))
    good = packets_of(table_named(name), 4, draw(st.integers(1, 3)), draw(st.sampled_from([(), ("epoch",)])))
    packets = []
    for _ in range(draw(st.integers(0, 12))):
        packet = draw(st.sampled_from(good))
        for at in draw(st.lists(st.integers(0, 8 * len(packet) - 1), max_size=3)):
            packet = spoilt(packet, at, 1, draw(st.integers(0, 1)))
        change = draw(st.sampled_from(["keep"] * 6 + ["cut", "longer", "zeros", "noise"]))
        length = draw(st.integers(1, len(packet)))
        made = {"keep": packet, "cut": packet[:length], "longer": packet + packet[:length], "zeros": bytes(len(packet))}
        packets.append(made.get(change) or draw(st.binary(min_size=1, max_size=2 * len(packet))))
    return name, packets


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(TABLES)), st.binary(max_size=200), st.sampled_from([None, "hex", "binary"]))
def test_any_bytes_are_counted_or_refused(name: str, content: bytes, form: str | None) -> None:
    table = table_named(name)
    opening = packets_of(table, 1)[0]
    for given_ in (content, opening + content):
        try:
            kept = receive(given_, table, form=form).statistics
        except InputError as error:
            assert form is None and ("receive --out" in str(error) or "Parquet" in str(error))  # as it opens
            continue
        if form == "binary":
            parts = kept.accepted + kept.empty + sum(kept.rejected.values())
            lengths = {form_of(table).length(numbers) for numbers in (0, 1, 2)}
            assert parts in {-(-len(given_) // length) for length in lengths}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 7), max_size=40), st.randoms(use_true_random=False))
def test_hex_as_people_write_it(picks: list[int], chance: random.Random) -> None:
    """Blank lines, upper case, spaces between bytes, either end of line, none at the end."""
    table = table_named("rows, 3 of 14")
    packets = [packets_of(table, 8)[pick] for pick in picks]
    text = ""
    for packet in packets:
        words = chance.choice(["", " ", "\t"]).join(f"{byte:02x}" for byte in packet)
        text += chance.choice(["", "\n", "  \n"]) + (words.upper() if chance.random() < 0.5 else words)
        text += chance.choice(["\n", "\r\n", " \n", "\n\n"])
    received = receive((text.rstrip() if chance.random() < 0.5 else text).encode(), table)
    same(received, form_of(table), packets)
    remarks = receive(f"\ufeffopen: 100 releases left.\n{text}# the end\nzz\n".encode(), table)
    assert remarks.accepted == received.accepted and remarks.rejected == received.rejected + 3


# ---- sizes


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch, table: NoiseTable) -> None:
    packets = packets_of(table, 50)
    packets[7] = spoilt(packets[7], 5, 1, 1 - packets[7][0] // 32 % 2)
    packets[30] = bytes(len(packets[0]))
    form = form_of(table)
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr("sensorsim.hospital.packets.BLOCK", size)
        monkeypatch.setattr("sensorsim.hospital.packets.LINES", size)
        monkeypatch.setattr("sensorsim.hospital.packets.LOOK", max(size, 40))
        monkeypatch.setattr("sensorsim.hospital.packets.IN_CACHE", size)
        for content in (b"".join(packets), hex_lines(packets)):
            same(receive(content, table), form, packets)


def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one line of a wrong length, however many blocks it takes."""
    monkeypatch.setattr("sensorsim.hospital.packets.LINES", 16)
    table = table_named("rows, 1 of 14")
    good = hex_lines(packets_of(table, 3))
    received = receive(good + b"a" * 5000 + b"\n" + good, table)
    assert (received.accepted, received.statistics.rejected["length"]) == (6, 1)


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Files of ten blocks, and of a single line, take no more than a few blocks of memory."""
    table = table_named("rows, 1 of 14")
    some = b"".join(packets_of(table, 64))
    binary, line = tmp_path / "packets.bin", tmp_path / "line.hex"
    binary.write_bytes(some * (10 * packets.BLOCK // len(some)))
    line.write_bytes(b"0" * 10 * packets.BLOCK)
    for path, accepted in ((binary, 10 * packets.BLOCK // 4), (line, 0)):
        tracemalloc.start()
        received = receive(path, table)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert received.accepted == accepted
        assert peak < 6 * packets.BLOCK < path.stat().st_size


@cache
def widest() -> NoiseTable:
    return make_table("stairs", "0.02", 14, "all", entries=2**17)


@pytest.mark.parametrize("release", [14, 1])
def test_squares_are_exact(release: int) -> None:
    """At the ends of the largest numbers, where a float would round the sum of squares."""
    table = widest()
    if release == 1:
        table = certified(replace(table, release=1, epsilon=Decimal("0.00143")))  # a fourteenth
    form = form_of(table)
    y = [form.lift, -form.lift, form.lift - 1, 1 - form.lift, 1, 0, *[form.lift - 1] * 8]
    packet = packed(form, range(14), y) if release == 14 else packed(form, [2], [y[2]])
    assert 70_001 * y[2] ** 2 > 2**55 and y[2] % 2 == 1
    received = receive(packet * 70_001, table)
    for feature, (row, value) in enumerate(zip(received.statistics.sums, y, strict=True)):
        count = 70_001 if release == 14 or feature == 2 else 0
        assert row == (count, count * value, count * value**2)


# ---- what is written, and read again


def test_written_and_read_again(table: NoiseTable, tmp_path: Path) -> None:
    packets = packets_of(table, 90)
    packets[4] = bytes(len(packets[4]))
    packets[5] = packets[5] + b"\1"
    lines = hex_lines(packets)
    whole = receive(lines, table)
    for name, part in (("a.json", packets[:30]), ("b.json", packets[30:60])):
        (tmp_path / name).write_text(json.dumps(receive(hex_lines(part), table).to_dict()))
    assert read_received(tmp_path / "a.json") == receive(hex_lines(packets[:30]), table).statistics
    (tmp_path / "c.hex").write_bytes(hex_lines(packets[60:]))
    again = receive([tmp_path / "a.json", str(tmp_path / "b.json"), tmp_path / "c.hex"], table)
    assert again.statistics == whole.statistics
    assert again.to_dict() == whole.to_dict() and again.features == whole.features
    frame = whole.to_frame()
    assert list(frame.columns) == ["feature", "count", "mean", "low", "high"]
    assert frame["count"].tolist() == [row.count for row in whole.features]


def _changes(good: dict[str, Any]) -> dict[str, Any]:
    """Files that are wrong in one thing each."""
    sums = good["sums"]
    first = next(iter(sums))
    wrong = {
        "no version": {k: v for k, v in good.items() if k != "schema_version"},
        "version of text": good | {"schema_version": "1"},
        "newer version": good | {"schema_version": 99},
        "other content": good | {"content": "table"},
        "no number": good | {"accepted": None},
        "negative": good | {"empty": -1},
        "not whole": good | {"accepted": 20.0},
        "too large": good | {"empty": 10**30},
        "truth": good | {"empty": True},
        **{f"version {version}": good | {"schema_version": version} for version in (True, 1.0, 0, 10**4000)},
        "another total": good | {"accepted": good["accepted"] + 1},
        "no features": good | {"n": 0},
        "a feature less": good | {"n": 13},
        "two of them released": good | {"k": 2},
        "a short identity": good | {"identity": "ab"},
        "no identity": good | {"identity": 5},
        "a reason less": good | {"rejected": {}},
        "no sums": good | {"sums": {}},
        "sums in a list": good | {"sums": list(sums.values())},
        "a column less": good | {"sums": {k: v for k, v in sums.items() if k != first}},
        "a column more": good | {"sums": sums | {"99": [0] * 14}},
        "a row less": good | {"sums": sums | {first: sums[first][1:]}},
        "a negative count": good | {"sums": sums | {first: [-1, *sums[first][1:]]}},
        "a list": [],
        "nothing": None,
        "a string": "{",
    }
    return {**{name: json.dumps(value) for name, value in wrong.items()}, "deep": "{" + "[" * 200_000, "cut": "{",
            "a key twice": json.dumps(good).replace('"empty"', '"empty": 0, "empty"')}  # fmt: skip


@pytest.mark.parametrize("name", ["rows, 1 of 14", "stairs, 1 of 14"])
def test_altered_files_are_refused(name: str, tmp_path: Path) -> None:
    table = table_named(name)
    good = json.loads(json.dumps(receive(b"".join(packets_of(table, 200)), table).to_dict()))
    path = tmp_path / "altered.json"
    for what, text in _changes(good).items():
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            read_received(path)
        assert str(caught.value).count(".") <= 4 and "altered.json" in str(caught.value), what
    path.write_text(json.dumps(good))
    assert read_received(path).accepted == 200


def test_impossible_sums_of_numbers_are_refused() -> None:
    table = table_named("stairs, 1 of 14")
    good = receive(b"".join(packets_of(table, 200)), table).to_dict()
    limit = form_of(table).lift
    for column, value in (("sum", 200 * limit + 1), ("sum_of_squares", 0), ("sum_of_squares", 200 * limit**2 + 1)):
        sums = good["sums"] | {column: [value, *good["sums"][column][1:]]}
        with pytest.raises(InputError, match="no packets of this table"):
            receive(json.dumps(good | {"sums": sums}).encode(), table)


# ---- the command


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command in a folder with a table and packets; gives exit code, stdout and stderr."""
    table = table_named("rows, 1 of 14")
    write_table(tmp_path / "table.txt", table)
    packets = packets_of(table, 300)
    (tmp_path / "packets.bin").write_bytes(b"".join(packets))
    (tmp_path / "packets.hex").write_bytes(hex_lines(packets))
    monkeypatch.chdir(tmp_path)
    return lambda *words: run(capsys, "receive", *words)


def test_the_command_says_the_same_in_every_form(command: Any) -> None:
    wanted = receive(Path("packets.bin"), table_named("rows, 1 of 14"))
    code, text, _ = command("packets.bin", "--table", "table.txt")
    assert code == 0 and "300 packets accepted, 0 refused, 0 empty" in text and "local, per record" in text
    assert len(text.splitlines()) == 5 + 14
    for words in (("packets.bin",), ("packets.hex",), ("--hex", "packets.hex"), ("--binary", "packets.bin")):
        code, text, _ = command(*words, "--table", "table.txt", "--format", "json")
        found = json.loads(text)
        assert (code, found) == (0, wanted.to_dict()) and found["schema_version"] == 1
    code, text, _ = command("packets.bin", "--table", "table.txt", "--format", "csv")
    lines = text.splitlines()
    assert lines[0] == "feature,count,mean,low,high" and len(lines) == 15
    assert sum(int(line.split(",")[1]) for line in lines[1:]) == 300


def test_refusals_are_counted_by_reason(command: Any) -> None:
    other = b"".join(packets_of(ready_table("3.2", 1), 5))
    Path("other.bin").write_bytes(other)
    code, text, _ = command("packets.bin", "other.bin", "--table", "table.txt")
    assert code == 0 and "5 refused" in text and "5 of another table, encoder or sketch" in text
    code, text, _ = command("other.bin", "--table", "table.txt")
    assert code == 1 and "0 packets accepted, 5 refused" in text and "0.00000 … 1.00000" in text
    Path("nothing.bin").write_bytes(b"")
    assert command("nothing.bin", "--table", "table.txt")[0] == 1


@pytest.mark.parametrize(
    "words, what",
    [
        (("packets.bin", "--table", "naive.txt"), "rows or stairs"),
        (("packets.bin", "--table", "coarse.txt"), "fraction bits"),
        (("brace.json", "--table", "table.txt"), "no file of"),
        (("packets.bin", "packets.bin", "--table", "table.txt"), "packets.bin is given twice"),
        (("packets.bin", "./packets.bin", "--table", "table.txt"), "packets.bin and packets.bin have the same content"),
        (("packets.bin", "link.bin", "--table", "table.txt"), "link.bin and packets.bin have the same content"),
        (("packets.hex", "copy.hex", "--table", "table.txt"), "copy.hex and packets.hex have the same content"),
        (("packets.bin", "--table", "table.txt", "--out", "a.json", "--write-sketch", "./a.json"), "are one file"),
        (("packets.bin", "--table", "table.txt", "--out", "a.json", "--write-sketch", "no/s.json"), "no folder"),
    ],
)
def test_bad_input_is_one_sentence(command: Any, words: tuple[str, ...], what: str) -> None:
    write_table("naive.txt", make_table("naive", 1))
    write_table("coarse.txt", make_table("rows", 1, frac_bits=8))
    Path("brace.json").write_text('{"content": 1}')
    Path("link.bin").symlink_to("packets.bin")
    Path("copy.hex").write_bytes(Path("packets.hex").read_bytes())
    code, out, err = command(*words)
    assert not Path("a.json").exists() and not Path("s.json").exists()
    assert (code, out) == (2, "") and what in err and err.startswith("Error: ") and err.count("\n") == 1


def test_files_that_are_equal_by_chance_are_no_copies(command: Any) -> None:
    """A packet of few bits comes from two sensors alike; so do two files of none."""
    packet = Path("packets.bin").read_bytes()[: len(packets_of(table_named("rows, 1 of 14"), 1)[0])]
    for name, content in {"one.bin": packet, "two.bin": packet, "none.bin": b"", "nobody.bin": b""}.items():
        Path(name).write_bytes(content)
    code, text, _ = command("one.bin", "two.bin", "none.bin", "nobody.bin", "--table", "table.txt", "--format", "json")
    assert code == 0 and json.loads(text)["accepted"] == 2


def test_a_pipe_is_read_to_its_end(command: Any) -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=(Path("packets.bin").read_bytes(),))
    writer.start()
    steps: list[str] = []
    with progress.shown(steps.append):
        code, text, _ = command("pipe", "--table", "table.txt", "--format", "json")
    writer.join()
    assert code == 0 and json.loads(text)["accepted"] == 300
    assert "waiting for packets from pipe, up to its end" in steps


def test_a_table_that_does_not_hold_is_refused(command: Any) -> None:
    """Its epsilon is proved again from its counts, whatever the file says."""
    table = table_named("rows, 1 of 14")
    write_table("lies.txt", replace(table, counts=tuple((1, *row[1:-1], row[-1] + row[0] - 1) for row in table.counts)))
    code, _, err = command("packets.bin", "--table", "lies.txt")
    assert code == 2 and err.count("\n") == 1
    code, text, _ = command("packets.bin", "--table", "table.txt", "--format", "json")
    assert Counter(row["count"] > 0 for row in json.loads(text)["features"]) == {True: 14}
