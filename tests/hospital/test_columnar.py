"""Packets and sums in CSV and Parquet: beside an obvious reading, in any division and order, and by hostile files."""

import csv
import io
import json
import os
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import run
from hypothesis import given, settings
from hypothesis import strategies as st
from test_receive import TABLES, doubtful, form_of, hex_lines, packets_of, same, table_named

from sensorsim._util.errors import InputError
from sensorsim.device import Firmware
from sensorsim.hospital import read_received, receive
from sensorsim.hospital.packets import REASONS, Expected
from sensorsim.hospital.receiver import Received
from sensorsim.hospital.sum_files import Statistics, check_size, received_content, write_days
from sensorsim.noise.table_file import write_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS, STAIRS = "rows, 1 of 14", "stairs, 1 of 14"


def parquet(column: Any, **options: Any) -> bytes:
    """A file with packets, between two columns that are nobody's business."""
    file = io.BytesIO()
    count = len(column)
    pq.write_table(pa.table({"at": list(range(count)), "packet": column, "who": [[1]] * count}), file, **options)
    return file.getvalue()


def as_csv(packets: list[bytes], comma: str = ",") -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=comma)
    writer.writerow(["who", "packet", "note"])
    writer.writerows(
        [f"Ward {i}, bed {i % 3}", packet.hex(), 'said "no"\nand left'] for i, packet in enumerate(packets)
    )
    return text.getvalue().encode()


def texts(packets: list[bytes]) -> Any:
    return pa.array([packet.hex() for packet in packets], pa.string())


COLUMNS: dict[str, Callable[[list[bytes]], Any]] = {
    "bytes": lambda packets: pa.array(packets, pa.binary()),
    "large bytes": lambda packets: pa.array(packets, pa.large_binary()),
    "hex": texts,
    "large hex": lambda packets: texts(packets).cast(pa.large_string()),
    "categories": lambda packets: texts(packets).dictionary_encode(),
    "categories of bytes": lambda packets: pa.array(packets, pa.binary()).dictionary_encode(),
}
# Every form in which the same packets can be given.
FORMS: dict[str, Callable[[list[bytes]], bytes]] = {
    "lines": hex_lines,
    "csv": as_csv,
    "semicolons": lambda packets: as_csv(packets, ";"),
    "tabs": lambda packets: as_csv(packets, "\t"),
    **{name: (lambda packets, make=make: parquet(make(packets), row_group_size=5)) for name, make in COLUMNS.items()},
}


# ---- packets


@settings(max_examples=40, deadline=None)
@given(doubtful(), st.sampled_from(sorted(FORMS)))
def test_doubtful_packets_in_every_form(given_: tuple[str, list[bytes]], form: str) -> None:
    name, packets = given_
    table = table_named(name)
    same(receive(FORMS[form](packets), table), form_of(table), packets)


@pytest.mark.parametrize("name", TABLES)
def test_bytes_of_a_fixed_length(name: str) -> None:
    table = table_named(name)
    for numbers in ((), ("epoch",), ("epoch", "sequence")):
        packets = packets_of(table, 60, numbers=numbers)
        packets[5] = bytes(len(packets[0]))
        column = pa.array([*packets, None], pa.binary(len(packets[0])))
        for options in ({}, {"use_dictionary": False, "compression": "zstd"}, {"row_group_size": 7}):
            same(receive(parquet(column, **options), table), form_of(table), packets)
    other = pa.array([packet + b"\0" * 9 for packet in packets], pa.binary(len(packets[0]) + 9))
    assert receive(parquet(other), table).statistics.rejected["length"] == 60


def test_nothing_is_no_packet_and_spaces_are_none() -> None:
    table = table_named(ROWS)
    first, second = (packet.hex() for packet in packets_of(table, 2))
    cells = [first, None, "", "  ", " ".join(second[i : i + 2] for i in range(0, 8, 2)).upper(), "zz" * 4, "12"]
    received = receive(parquet(pa.array(cells)), table).statistics
    assert (received.accepted, received.rejected["hex"], received.rejected["length"]) == (2, 1, 1)
    text = f'n,packet\n1,{first}\n\n2,\n,\n3,"{second}"\n4\n5,zzzzzzzz,{first}\n6,1g\n'
    received = receive(text.encode(), table).statistics
    assert (received.accepted, received.rejected["hex"], received.rejected["length"]) == (2, 1, 2)
    assert receive(f"\ufeffpacket\r\n{first}\r\n{second}".encode(), table).accepted == 2
    assert receive(b"packet\n", table).statistics.accepted == 0


CELL = st.text(st.sampled_from('a1,;"\n ü'), max_size=6)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(CELL, CELL), max_size=12), st.integers(0, 2), st.sampled_from([1, 7, 64, 1 << 20]))
def test_a_csv_against_the_csv_module(rows: list[tuple[str, str]], place: int, size: int) -> None:
    """Whatever stands in other columns, quoted as Python does it, and however the blocks fall."""
    table = table_named(ROWS)
    packets = [packets_of(table, 8)[i % 8] for i in range(len(rows))]
    text = io.StringIO()
    writer = csv.writer(text)
    for packet, others in zip(["packet", *(each.hex() for each in packets)], [("x", "y"), *rows], strict=True):
        writer.writerow([*others[:place], packet, *others[place:]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sensorsim.hospital.packets.LINES", size)
        patch.setattr("sensorsim.hospital.packets.LOOK", max(size, 40))
        same(receive(text.getvalue().encode(), table), form_of(table), packets)


# ---- sums


@pytest.mark.parametrize("end", ["json", "csv", "parquet"])
@settings(max_examples=12, deadline=None)
@given(st.sampled_from(["rows, 3 of 14", "rows, all", STAIRS]), st.data())
def test_sums_come_back_as_they_were(end: str, name: str, data: st.DataObject) -> None:
    """Up to 2^50 packets, whose squares need more than 64 bits."""
    expected = Expected.of(table_named(name))
    whole, limit = st.integers(0, 2**50 // 64), expected.limit or 0
    accepted = data.draw(whole)
    values = [0] * expected.n if expected.k < expected.n else [accepted] * expected.n
    for feature in range(expected.k):
        values[feature] = accepted
    sums = []
    for count in values:
        first = data.draw(st.integers(0, count))
        rest = [0] * (len(expected.columns) - 2)
        sums.append([count, count * limit - first % 2, count * limit**2] if limit else [first, count - first, *rest])
    rejected = {reason: data.draw(whole) for reason in REASONS}
    kept = Statistics.of(expected, sums, accepted, data.draw(whole), rejected)
    content = received_content(f"x.{end}", Received(expected.table, kept))
    assert receive(content, expected.table).statistics == kept


@settings(max_examples=8, deadline=None)
@given(doubtful(), st.randoms(use_true_random=False))
def test_any_division_any_order_any_form(given_: tuple[str, list[bytes]], chance: random.Random) -> None:
    """Two hospitals, files of packets and of sums: to the byte what all packets at once give."""
    name, packets = given_
    table = table_named(name)
    whole = json.dumps(receive(hex_lines(packets), table).to_dict())
    chance.shuffle(packets)
    cuts = sorted(chance.randint(0, len(packets)) for _ in range(3))
    total = Statistics.none(Expected.of(table))
    parts = []
    for first, last in zip([0, *cuts], [*cuts, len(packets)], strict=True):
        content = FORMS[chance.choice(sorted(FORMS))](packets[first:last])
        received = receive(content, table)
        total = received.statistics + total
        end = chance.choice(["json", "csv", "parquet", None])
        parts.append(content if end is None else received_content(f"x.{end}", received))
    chance.shuffle(parts)
    merged = Statistics.none(Expected.of(table))
    for part in parts:
        merged += receive(part, table).statistics
    for found in (merged, total):
        assert json.dumps(Received(table, found).to_dict()) == whole


def test_sums_of_two_tables_do_not_add_up() -> None:
    one, other = (receive(packets_of(table_named(name), 9), table_named(name)) for name in (ROWS, "rows, 1 of 16"))
    with pytest.raises(InputError, match="do not add up"):
        one.statistics + other.statistics
    for end in ("csv", "parquet"):
        with pytest.raises(InputError, match="another table"):
            receive(received_content(f"x.{end}", one), table_named("rows, 1 of 16"))


def test_pandas_reads_the_tables_and_every_column_adds_up(tmp_path: Path) -> None:
    table = table_named("rows, 3 of 14")
    packets = [*packets_of(table, 90), bytes(5), b"\1"]
    received = receive(packets, table)
    for end, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        (tmp_path / f"x.{end}").write_bytes(received_content(f"x.{end}", received))
        frame = read(tmp_path / f"x.{end}")
        assert frame["feature"].tolist() == list(range(14))
        assert frame[list(received.statistics.columns)].to_numpy().tolist() == [
            list(r) for r in received.statistics.sums
        ]
        totals = frame[["accepted", "empty", "rejected_length", "rejected_value"]].sum().tolist()
        assert totals == [90, received.statistics.empty, received.statistics.rejected["length"], 0]
        assert set(frame["identity"]) == {received.statistics.identity} and set(frame["k"]) == {3}
        rewritten = tmp_path / f"again.{end}"
        frame.to_csv(rewritten, index=False) if end == "csv" else frame.to_parquet(rewritten)
        assert receive(rewritten, table).statistics.sums == received.statistics.sums


@pytest.mark.parametrize("name", [ROWS, "rows, 3 of 14", STAIRS])
def test_days_are_kept_apart_and_summed_up_when_read(name: str, tmp_path: Path) -> None:
    table = table_named(name)
    days = [packets_of(table, 20 + day, seed=day + 1) for day in range(5)]
    tally = np.array([receive(day, table).statistics.sums for day in days], np.int64)
    wanted = receive([packet for day in days for packet in day], table)
    for end in ("csv", "parquet", "json"):
        path = tmp_path / f"fleet.{end}"
        write_days(path, Firmware(table), tally)
        assert receive(path, table).to_dict() == wanted.to_dict()
    for frame in (pd.read_csv(tmp_path / "fleet.csv"), pd.read_parquet(tmp_path / "fleet.parquet")):
        assert frame["day"].tolist() == [day for day in range(5) for _ in range(14)]
        assert frame.groupby("day")["accepted"].sum().tolist() == [len(day) for day in days]
        third = frame[frame["day"] == 3][list(wanted.statistics.columns)]
        assert third.to_numpy().tolist() == tally[3].tolist()
    write_days(tmp_path / "one.csv", Firmware(table), tally[:1])
    assert "day" not in pd.read_csv(tmp_path / "one.csv")


def test_too_many_days_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_named(ROWS)
    columns = len(Expected.of(table).columns)
    for limit, most in (("MOST_SUMS", 14 * 5 * 3), ("MOST_TABLE_ROWS", 14 * 3)):
        with monkeypatch.context() as patch:
            patch.setattr(f"sensorsim.hospital.sum_files.{limit}", most)
            check_size(tmp_path / "x.csv", 3, 14, 5)
            with pytest.raises(InputError, match=r"ending \.json"):
                write_days(tmp_path / "x.csv", Firmware(table), np.zeros((4, 14, columns), np.int64))
    assert not (tmp_path / "x.csv").exists()


def test_days_that_fit_64_bits_and_together_do_not(tmp_path: Path) -> None:
    table = table_named(STAIRS)
    limit = Expected.of(table).limit or 0
    count = 2**62 // limit**2
    day = [[count, (-1) ** feature * (count * limit - feature), count * limit**2] for feature in range(14)]
    wanted = [[5 * number for number in row] for row in day]
    assert wanted[0][2] > 2**63 > day[0][2] > 2**61
    for end in ("json", "csv", "parquet"):
        write_days(tmp_path / f"x.{end}", Firmware(table), np.array([day] * 5, np.int64))
        received = receive(tmp_path / f"x.{end}", table)
        assert [list(row) for row in received.statistics.sums] == wanted and received.accepted == 5 * 14 * count


def test_many_days_take_few_row_groups_and_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_named(ROWS)
    columns = len(Expected.of(table).columns)
    tally = np.random.default_rng(7).integers(0, 10**9, (160, 14, columns))
    monkeypatch.setattr("sensorsim.hospital.sum_files.GROUP", 500)
    for end in ("csv", "parquet", "json"):
        write_days(tmp_path / f"x.{end}", Firmware(table), tally[:1])  # what is made once is there
        tracemalloc.start()
        write_days(tmp_path / f"x.{end}", Firmware(table), tally)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.2e6, end  # all rows at once took 1.5 and 2.4 MB
    assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups == 5  # of 504 rows, and the rest
    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert frame[[str(symbol) for symbol in range(columns)]].to_numpy().reshape(tally.shape).tolist() == tally.tolist()
    assert frame["day"].tolist() == [day for day in range(160) for _ in range(14)]
    for end in ("parquet", "json"):
        assert [list(row) for row in read_received(tmp_path / f"x.{end}").sums] == tally.sum(axis=0).tolist()


# ---- files that are wrong


def but(name: str, place: int, value: Any) -> Callable[[pd.DataFrame], Any]:
    """One cell of a column is another."""
    return lambda frame: frame[name].where(frame.index != frame.index[place], value)


# A table of sums that is wrong in one thing: the columns that are other ones.
CHANGES: dict[str, Callable[[pd.DataFrame], dict[str, Any]]] = {
    "a count": lambda frame: {"0": frame["0"] + (frame.index == frame.index[-1])},
    "a negative": lambda frame: {"0": but("0", 0, -1)(frame)},
    "a fraction": lambda frame: {"0": frame["0"] + 0.0},
    "a word": lambda frame: {"0": frame["0"].astype(str) + "x"},
    **{f"{name} {by:+}": (lambda frame, name=name, by=by: {name: frame[name] + by})
       for name in ("accepted", "feature", "schema_version", "n", "k", "day") for by in (-1, 1)
       if (name, by) != ("day", 1)},
    "identity": lambda frame: {"identity": frame["identity"].str[:-2]},
    "two identities": lambda frame: {"identity": but("identity", -1, "ab" * 32)(frame)},
    "days": lambda frame: {"day": frame["day"].where(frame["day"] != 2, 0)},
    "a long name": lambda frame: {"epsilon": frame["epsilon"].astype(str).str.ljust(1000, "0")},
    "truth": lambda frame: {"empty": frame["empty"].astype(bool)},
    "a column more": lambda frame: {"mine": 1},
}  # fmt: skip
PARTS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    **{what: (lambda frame, make=make: frame.assign(**make(frame))) for what, make in CHANGES.items()},
    "a row less": lambda frame: frame.iloc[:-1],
    "a column less": lambda frame: frame.drop(columns="rejected_hex"),
    "no rows": lambda frame: frame.iloc[:0],
}


@pytest.mark.parametrize("end", ["csv", "parquet"])
@pytest.mark.parametrize("what", PARTS)
def test_altered_tables_are_refused(what: str, end: str, tmp_path: Path) -> None:
    table, path = table_named(ROWS), tmp_path / f"sums.{end}"
    tally = np.array([receive(packets_of(table, 50, seed=s), table).statistics.sums for s in (1, 2, 3)], np.int64)
    write_days(path, Firmware(table), tally)
    frame = pd.read_csv(path, dtype={"epsilon": str}) if end == "csv" else pd.read_parquet(path)
    for content in (frame, PARTS[what](frame)):
        content.to_csv(path, index=False) if end == "csv" else content.to_parquet(path, index=False)
        if content is frame:
            assert receive(path, table).accepted == 150
    with pytest.raises(InputError) as caught:
        receive(path, table)
    assert f"sums.{end}" in str(caught.value) and "\n" not in str(caught.value)


def repeated(text: str, count: int) -> Any:
    """One long text, meant by every row."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), [text])


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a long text in every row": (lambda: parquet(repeated("00" * 10**6, 10**5)), "2000000 bytes"),
    "long texts": (lambda: parquet(pa.array(["00" * 2**19] * 20), use_dictionary=False), "bytes in column packet"),
    "shared beginnings": (
        lambda: parquet(
            pa.array([b"0" * 2000 + bytes([i]) for i in range(200)]),
            use_dictionary=False,
            column_encoding={"packet": "DELTA_BYTE_ARRAY", "at": "PLAIN", "who.list.element": "PLAIN"},
        ),
        "Parquet|encodes",
    ),
    "long bytes": (lambda: parquet(pa.array([b"0" * 9000] * 9, pa.binary(9000))), "9000 bytes"),
    "numbers": (lambda: parquet(pa.array([1, 2, 3])), "type int64"),
    "lists": (lambda: parquet(pa.array([[b"a"], [b"b"]])), "type list"),
    "nothing": (lambda: parquet(pa.nulls(3)), "type null"),
    "cut off": (lambda: parquet(pa.array(["00"]))[:-20], "cut off"),
    "the mark alone": (lambda: b"PAR1", "cut off"),
    "a length that lies": (lambda: b"PAR1" + b"\0" * 50 + b"\xff\xff\xff\x7fPAR1", "cut off"),
    "an open quote": (lambda: b'packet,x\nab,"\n' + b"ab,c\n" * 100, "quote left open"),
    "a row without end": (lambda: b'packet,x\nab,"' + b"ab,c\n" * 2**19, "quote left open"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files_are_one_sentence(what: str, tmp_path: Path) -> None:
    make, words = HOSTILE[what]
    path = tmp_path / "theirs"
    path.write_bytes(make())
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match=words) as caught:
        receive(path, table_named(ROWS))
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    assert pa.total_allocated_bytes() - before < 1 << 24


def test_no_column_of_packets() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"payload": ["00"], "Packet": ["00"]}), file)
    with pytest.raises(
        InputError, match=r"no column packet; rename the one that holds them \(it has payload, Packet\)"
    ):
        receive(file.getvalue(), table_named(ROWS))


def test_a_row_group_for_every_packet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sensorsim.datasets.record_tables import read_table

    table, path = table_named(ROWS), tmp_path / "small"
    packets = packets_of(table, 40)
    path.write_bytes(parquet(COLUMNS["bytes"](packets), row_group_size=1))
    monkeypatch.setattr("sensorsim.datasets.parquet.MOST_GROUPS", 40)
    same(receive(path, table), form_of(table), packets)
    monkeypatch.setattr("sensorsim.datasets.parquet.MOST_GROUPS", 39)
    for refuse in (lambda: receive(path, table), lambda: read_table(str(path))):
        with pytest.raises(InputError, match="has 40 row groups, and more than 39 are not read"):
            refuse()


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(sorted(COLUMNS)), st.randoms(use_true_random=False))
def test_any_bytes_changed(name: str, chance: random.Random) -> None:
    """Read the changed file, or refuse it in a sentence."""
    table = table_named(ROWS)
    received = receive(packets_of(table, 30), table)
    whole = chance.choice(
        [received_content("x.parquet", received), parquet(COLUMNS[name](packets_of(table, 30)), row_group_size=9)]
    )
    content = bytearray(whole)
    for _ in range(chance.randint(1, 4)):
        content[chance.randrange(4, len(content))] = chance.randrange(256)
    try:
        assert receive(bytes(content), table).accepted <= 30
    except InputError as error:
        assert "\n" not in str(error)


# ---- the command


@pytest.fixture
def ward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """A folder with a table and 300 packets."""
    table = table_named(ROWS)
    packets = packets_of(table, 300)
    monkeypatch.chdir(tmp_path)
    write_table("table.txt", table)
    Path("p.bin").write_bytes(b"".join(packets))
    Path("p.parquet").write_bytes(parquet(COLUMNS["bytes"](packets)))
    Path("p.csv").write_bytes(as_csv(packets))
    return packets


def test_the_command_reads_and_writes_all_forms(ward: list[bytes], capsys: pytest.CaptureFixture[str]) -> None:
    wanted = run(capsys, "receive", "p.bin", "--table", "table.txt", "--format", "json")
    assert wanted[0] == 0
    for source in ("p.parquet", "p.csv"):
        assert run(capsys, "receive", source, "--table", "table.txt", "--format", "json") == wanted
    for out in ("a.json", "a.csv", "a.parquet", "A.PARQUET"):
        assert run(capsys, "receive", "p.csv", "--table", "table.txt", "--format", "json", "--out", out) == wanted
        assert run(capsys, "receive", out, "--table", "table.txt", "--format", "json") == wanted
    assert Path("a.parquet").read_bytes()[:4] == b"PAR1" and Path("a.csv").read_text().startswith("feature,0,1,")
    code, text, _ = run(capsys, "receive", "a.parquet", "p.parquet", "--table", "table.txt")
    assert code == 0 and text.startswith("600 packets accepted")


def test_the_same_sums_in_two_forms_count_once(ward: list[bytes], capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever wrote them again: another form, another compression, days that were kept apart."""
    table = table_named(ROWS)
    for out in ("a.json", "a.csv", "a.parquet"):
        assert run(capsys, "receive", "p.bin", "--table", "table.txt", "--out", out)[0] == 0
    pq.write_table(pq.read_table("a.parquet"), "b.parquet", compression="gzip")
    halves = [receive(part, table).statistics.sums for part in (ward[:100], ward[100:])]
    write_days("days.csv", Firmware(table), np.array(halves, np.int64))
    forms = ["a.json", "a.csv", "a.parquet", "b.parquet", "days.csv"]
    for first, second in zip(forms, [*forms[1:], forms[0]], strict=True):
        code, text, error = run(capsys, "receive", first, second, "--table", "table.txt")
        assert (code, text, error.count("\n")) == (2, "", 1) and f"{second} and {first} have the same sums" in error
    for name, packets in (("none.json", b""), ("none.csv", b""), ("c.csv", b"".join(ward[:299]))):
        Path(name).write_bytes(received_content(name, receive(packets, table)))
    code, text, _ = run(capsys, "receive", "a.json", "c.csv", "none.json", "none.csv", "--table", "table.txt")
    assert code == 0 and text.startswith("599 packets accepted")


def test_parquet_from_a_pipe(
    ward: list[bytes], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mouth, end = os.pipe()
    os.write(end, Path("p.parquet").read_bytes())
    os.close(end)
    with os.fdopen(mouth) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        code, out, error = run(capsys, "receive", "-", "--table", "table.txt")
    assert (code, out, error.count("\n")) == (2, "", 1) and "give it as a file" in error
    with Path("p.parquet").open() as file:  # redirected, it has an end
        monkeypatch.setattr(sys, "stdin", file)
        assert run(capsys, "receive", "-", "--table", "table.txt")[1].startswith("300 packets accepted")


def test_without_pyarrow(
    ward: list[bytes], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    for words in (["p.parquet"], ["p.bin", "--out", "x.parquet"]):
        code, out, error = run(capsys, "receive", *words, "--table", "table.txt")
        assert (code, out) == (2, "") and "pip install -c constraints.txt '.[data]'" in error and error.count("\n") == 1
    assert run(capsys, "receive", "p.csv", "--table", "table.txt", "--out", "x.csv")[0] == 0
    assert not Path("x.parquet").exists()


# ---- sizes

BIG = """
import re, sys
from sensorsim.hospital import receive
from sensorsim.noise.table_file import read_table
received = receive(sys.argv[1], read_table(sys.argv[2]))
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(received.accepted, int(peak[1]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["fixed", "bytes", "hex", "csv"])
def test_ten_million_packets_take_little_memory(form: str, tmp_path: Path) -> None:
    """All different, in a single row group: no dictionary of them is kept. Peaks of 90 to 130 MB were seen."""
    table, count = table_named(ROWS), 10_000_000
    packet = np.frombuffer(packets_of(table, 1, numbers=("epoch", "sequence"))[0], np.uint8)
    every = np.tile(packet, (count, 1))
    every[:, 2] = every[:, 2] % 16 + np.arange(count) % 16 * 16  # bits of the two numbers, 20 to 51
    for byte in (3, 4, 5):
        every[:, byte] = np.arange(count) >> 4 + 8 * (byte - 3) & 255
    path, fixed = tmp_path / "big", pa.binary(len(packet))
    column = pa.FixedSizeBinaryArray.from_buffers(fixed, count, [None, pa.py_buffer(every.tobytes())])
    if form in ("hex", "csv"):
        digits = np.frombuffer(every.tobytes().hex().encode(), np.uint8).reshape(count, -1)
        lines = np.concatenate([digits, np.full((count, 1), ord("\n"), np.uint8)], axis=1)
        text = pa.py_buffer(digits.tobytes())
        wide = pa.FixedSizeBinaryArray.from_buffers(pa.binary(digits.shape[1]), count, [None, text])
        column = wide.cast(pa.binary()).cast(pa.string())
    if form == "csv":
        path.write_bytes(b"packet\n" + lines.tobytes())
    else:
        kept = column.cast(pa.binary()) if form == "bytes" else column
        pq.write_table(pa.table({"packet": kept}), path, row_group_size=count)
    write_table(tmp_path / "table.txt", table)
    words = [sys.executable, "-c", BIG, str(path), str(tmp_path / "table.txt")]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    accepted, megabytes = map(int, done.stdout.split())
    assert accepted == count and megabytes < 300


def test_two_hospitals_may_have_the_same_few_sums(tmp_path: Path) -> None:
    """Three packets each may well agree; three hundred do not, unless they are the same ones."""
    table = table_named(ROWS)
    for packets, agree in ((3, True), (300, False)):
        content = received_content("a.csv", receive(packets_of(table, packets), table))
        for name in ("a.csv", "b.csv"):
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        both = [tmp_path / "a.csv", tmp_path / "b.csv"]
        if agree:
            assert receive(both, table).accepted == 2 * packets
        else:
            with pytest.raises(InputError, match="have the same sums"):
                receive(both, table)
