"""Files of others, damaged in every way: a reader takes them or says one sentence, soon and in little memory."""

import hashlib
import json
import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from command import run

from sensorsim._util.errors import InputError
from sensorsim.codegen.manifest import open_package
from sensorsim.codegen.write import check_folder
from sensorsim.commands.lock_file import Figure, Lock, Taken, read_lock
from sensorsim.costing.chips import check_file
from sensorsim.datasets.public_ranges import read_ranges
from sensorsim.device.sketch_file import read_sketch, sketch_text
from sensorsim.device.sketches import Sketch
from sensorsim.encoders import read_encoder
from sensorsim.hospital.sum_files import read_received
from sensorsim.machine.elf import read_elf
from sensorsim.noise.noise_table import certified
from sensorsim.noise.table_file import read_table

ROOT = Path(__file__).parents[2]
NOISE = ROOT / "tables" / "noise"
SECONDS = 5
NUMBERS = (b"-1", b"0", b"1e999", b"NaN", b"Infinity", b"9" * 5000, b"18446744073709551616", b"4294967296",
           b"1000000000000", b"1e-999", b"1e300", b"1e-300", b"x" * 140_000,
           b"null", b"true", b"[]", b"{}", b'""', b"[" * 90_000 + b"]" * 90_000,
           b"-0", b"00", b"0x10", b"1_0", b" ")  # fmt: skip


def damaged(content: bytes, choose: random.Random) -> bytes:
    """One of many ways: cut off, bits flipped, a number replaced, a piece doubled, moved or put in."""
    way = choose.randrange(6)
    place = choose.randrange(len(content) + 1)
    if way == 0:
        return content[:place]
    if way == 1:
        made = bytearray(content)
        for _ in range(choose.choice((1, 1, 3, 20))):
            made[choose.randrange(len(made))] ^= 1 << choose.randrange(8)
        return bytes(made)
    if way in (2, 3):
        found = list(re.finditer(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?", content))
        if found:
            one = choose.choice(found)
            return content[: one.start()] + choose.choice(NUMBERS) + content[one.end() :]
    if way == 4:
        return content[:place] + choose.randbytes(choose.randrange(1, 9)) + content[place:]
    end = min(len(content), place + choose.randrange(1, 200))
    return content[:end] + content[place:end] * choose.choice((1, 1, 500)) + content[end:]


def sealed_table(content: bytes) -> bytes:
    """With a checksum that holds, so that its lines are read."""
    body = content.rpartition(b"sha256 ")[0] or content
    return body + b"sha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n"


def same(content: bytes) -> bytes:
    return content


@dataclass(frozen=True)
class Kind:
    """A good file, how it is read, and what makes a damaged one pass for whole."""

    good: Callable[[], bytes]
    read: Callable[[Path], object]
    seal: Callable[[bytes], bytes] = same
    name: str = "file"


def manifest() -> bytes:
    return json.dumps(
        {"schema_version": 1, "sensorsim": "0.1.0", "files": {"a.c": "0" * 64}, "kernels": ["spof"], "prefix": "ss_"}
    ).encode()


def image() -> bytes:
    return b"\x7fELF\1\1\1" + bytes(9) + random.Random(2).randbytes(600)


def proved(path: Path) -> object:
    return certified(read_table(path))


SKETCH = Sketch(3, (100, 200, 300), 1 << 15, 2, 4)
LOCK = Lock("cost", {"n": 14}, Taken({"a b": Figure(3, "cycles")}, {"clang": "1"}))
KINDS = {
    "rows table": Kind((NOISE / "rows-eps1.6-1.txt").read_bytes, proved, sealed_table),
    "stairs table": Kind((NOISE / "stairs-eps1-1.txt").read_bytes, proved, sealed_table),
    "table": Kind((NOISE / "rows-eps1-all.txt").read_bytes, read_table),
    "encoder": Kind((ROOT / "tables" / "encoders" / "default.json").read_bytes, read_encoder),
    "sketch": Kind(lambda: sketch_text(SKETCH).encode(), read_sketch),
    "lock": Kind(lambda: LOCK.text().encode(), read_lock),
    "ranges": Kind((ROOT / "tables" / "ranges.csv").read_bytes, read_ranges),
    "processor": Kind((ROOT / "tables" / "cpu" / "ibex-large.csv").read_bytes, check_file, name="mine.csv"),
    "chips": Kind((ROOT / "tables" / "energy.csv").read_bytes, check_file, name="mine.csv"),
    "radio": Kind(next((ROOT / "tables" / "radio").glob("*.csv")).read_bytes, check_file, name="mine.csv"),
    "published": Kind((ROOT / "tables" / "published.csv").read_bytes, check_file, name="mine.csv"),
    "sums": Kind(lambda: b'{"content": "packets", "schema_version": 1, "sums": [1, 2]}', read_received),
    "manifest": Kind(manifest, lambda path: open_package(path.parent), name="MANIFEST.json"),
    "image": Kind(image, lambda path: read_elf(path.read_bytes())),
}


def check(kind: Kind, count: int, folder: Path) -> None:
    choose = random.Random(count)
    good, path = kind.good(), folder / kind.name
    for _ in range(count):
        content = kind.seal(damaged(good, choose))
        path.write_bytes(content)
        began = time.monotonic()
        try:
            kind.read(path)
        except InputError as error:
            assert "\n" not in str(error)
        except Exception as error:
            (folder.parent / "damaged").write_bytes(content)
            raise AssertionError(f"{type(error).__name__}: {error} of {content[:200]!r}") from error
        assert time.monotonic() - began < SECONDS, content[:500]


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_damaged_files(kind: str, tmp_path: Path) -> None:
    check(KINDS[kind], 25, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_damaged_files(kind: str, tmp_path: Path) -> None:
    check(KINDS[kind], 1500, tmp_path)


TABLES = ("processor", "chips", "radio", "published")


@pytest.mark.parametrize(
    "kind", ["rows table", "stairs table", "table", "encoder", "sketch", "lock", "ranges", *TABLES]
)
def test_the_good_ones_are_read(kind: str, tmp_path: Path) -> None:
    """So that what is damaged was good before."""
    path = tmp_path / "file"
    path.write_bytes(KINDS[kind].seal(KINDS[kind].good()))
    if kind != "lock":  # a short one, which names fewer choices than the command has
        KINDS[kind].read(path)


@pytest.mark.parametrize(
    "content", [b"[" * 100_000, b"{}", b"[]", b'{"files": {}}', b'{"sensorsim": 1, "files": []}', b"\xff", None]
)
def test_a_folder_with_a_manifest_of_others_is_left_alone(content, tmp_path):
    """Nothing is made of it, whatever it holds; None is a pipe, which nobody may wait for."""
    place = tmp_path / "MANIFEST.json"
    place.write_bytes(content) if content is not None else os.mkfifo(place)
    with pytest.raises(InputError, match=r"other files in it \(MANIFEST\.json\)"):
        check_folder(tmp_path)
    assert list(tmp_path.iterdir()) == [place]


FAR = {  # what a line of a good table becomes: a table that reaches so far that nothing may be made of all it spans
    "a value": ("stairs-eps1-1", "3 17\n", "3 16\n2147483647 1\n", 7, 8),
    "a value that never comes": ("stairs-eps1-1", "3 17\n", "3 17\n2147483647 0\n", 7, 8),
    "a value below": ("stairs-eps1-1", "-3 17\n", "-2147483647 1\n-3 16\n", 7, 8),
    "a limit": (
        "stairs-eps1-1",
        "frac_bits 15\nstair_bits 14\nlimit 24576",
        "frac_bits 2\nstair_bits 1\nlimit 1999999997",
    ),
    "many stairs in the range": ("stairs-eps1-1", "stair_bits 14\nlimit 24576", "stair_bits 1\nlimit 3"),
    "many bits": (
        "stairs-eps1-1",
        "frac_bits 15\nstair_bits 14\nlimit 24576",
        "frac_bits 30\nstair_bits 29\nlimit 805306368",
    ),
    "a ratio": ("stairs-eps1-1", "ratio 19/7", "ratio 1e999999999"),
    "samples": ("stairs-eps1-1", "kind stairs", "kind quantile"),
    "certain symbols": ("rows-eps1.6-1", "32966 17612 4746 3556 6656", "65536 0 0 0 0"),
    "a last symbol that never comes": ("rows-eps1.6-1", "32966 17612 4746 3556 6656", "39622 17612 4746 3556 0"),
}


@pytest.mark.parametrize("name", FAR)
def test_a_table_that_reaches_far_is_answered_soon(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, old, new, *counts = FAR[name]
    text = (NOISE / f"{table}.txt").read_text()
    text = text.replace(f"counts {counts[0]}", f"counts {counts[1]}") if counts else text
    assert old in text
    path = tmp_path / "far.txt"
    path.write_bytes(sealed_table(text.replace(old, new, 1).encode()))
    for words in (["check"], ["show"], ["audit", "--draws", "1e4"]):
        began = time.monotonic()
        code, _, said = run(capsys, "noise", *words, path)
        assert code in (0, 1, 2) and time.monotonic() - began < SECONDS, (words, code, said)


def test_a_table_of_two_symbols_that_are_certain_is_refused_for_its_thresholds(tmp_path: Path) -> None:
    head = (NOISE / "rows-eps1.6-1.txt").read_bytes().partition(b"rows 5")[0]
    (tmp_path / "two.txt").write_bytes(sealed_table(head + b"rows 2 symbols 2\n65536 0\n0 65536\n"))
    table = read_table(tmp_path / "two.txt")
    for ask in (table.arguments, table.c_array):
        with pytest.raises(InputError, match="do not fit 16 bits"):
            ask()


def test_values_far_apart_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of samples may have them: its picture has a place for each value, not for all that lies between."""
    text = (NOISE / "stairs-eps1-1.txt").read_text().replace("kind stairs", "kind quantile")
    text = text.replace("stair_bits 14\nlimit 24576", "stair_bits 0\nlimit none").replace("counts 7", "counts 8")
    (tmp_path / "far.txt").write_bytes(sealed_table(text.replace("3 17\nsha", "3 16\n2147483647 1\nsha").encode()))
    code, _, said = run(capsys, "noise", "show", tmp_path / "far.txt", "--plot", tmp_path / "far.svg")
    assert code == 0, said


HEAD = (ROOT / "tables" / "cpu" / "k7.csv").read_text().splitlines()[1]
TABLES_TO_CHECK = {
    "alters twice": (f"# alters: k7\n# alters: k7\n{HEAD}\n", "a second line `# alters`"),
    "alters itself": (f"# alters: mine\n{HEAD}\n", "alters mine"),
    "a long field": (f"# title: x\n{HEAD}\n{'x' * 140_000},1\n", "mine.csv"),
}


@pytest.mark.parametrize("what", TABLES_TO_CHECK)
def test_a_table_that_cannot_be_checked_is_answered_soon(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, said = TABLES_TO_CHECK[what]
    (tmp_path / "mine.csv").write_text(text)
    began = time.monotonic()
    code, out, error = run(capsys, "cpus", "check", tmp_path / "mine.csv")
    assert code in (1, 2) and said in out + error and time.monotonic() - began < SECONDS, (code, out, error)
