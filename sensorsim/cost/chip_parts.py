"""What a chip has beside its core: a generator of true random words, and memory that keeps a journal (energy.csv)."""

import csv
from pathlib import Path
from typing import NamedTuple

from sensorsim.cost.rows import number
from sensorsim.tables import folder

NONE = "none"  # the status of a generator that a chip does not have; an empty one: nothing is known
TRNG_COLUMNS = (
    *("trng_start_us", "trng_us_per_word", "trng_mA", "trng_nJ_per_word"),
    *("trng_source", "trng_status", "trng_note"),
)
STORE_COLUMNS = (
    *("store", "store_us_per_word", "store_mA", "store_nJ_per_word"),
    *("page_bytes", "erase_us", "erase_mA", "erase_nJ"),
    *("store_source", "store_status", "store_note"),
)
STORES = ("flash", "FRAM", "RRAM", "EEPROM")
WORD_BYTES = 4
ENTRY_BYTES = 8  # that a log in flash adds to each entry, as Zephyr's NVS does


class Trng(NamedTuple):
    """A generator of true random words: it starts once for a record, then a word of 32 bits takes its time."""

    start_us: float
    us_per_word: float
    mA: float  # noqa: N815 - the unit's own spelling
    nJ_per_word: float  # noqa: N815
    source: str
    status: str
    note: str

    def nanojoule(self, words: int) -> float:
        """What so many words take, with the start."""
        start = self.nJ_per_word * self.start_us / self.us_per_word
        return words * self.nJ_per_word + (start if words else 0.0)


class Store(NamedTuple):
    """Memory that keeps its content. `page_bytes` is 0 where nothing has to be erased before a write."""

    kind: str
    us_per_word: float
    mA: float  # noqa: N815
    nJ_per_word: float  # noqa: N815
    page_bytes: int
    erase_us: float
    erase_mA: float  # noqa: N815
    erase_nJ: float  # noqa: N815
    source: str
    status: str
    note: str

    def nanojoule(self, size: int) -> float:
        """What it takes to keep `size` bytes more: in flash as a log, whose page is erased when it is full."""
        if not self.page_bytes:
            return size / WORD_BYTES * self.nJ_per_word
        entry = size + ENTRY_BYTES
        return entry / WORD_BYTES * self.nJ_per_word + self.erase_nJ * entry / self.page_bytes

    def nanojoule_erasing(self, size: int) -> float:
        """The same where every write erases a page of its own first."""
        return size / WORD_BYTES * self.nJ_per_word + self.erase_nJ


def load_parts(chip: str, path: str | None = None) -> tuple[Trng | None, Store | None]:
    """The generator and the memory of a chip, of ours or in a file; None for what the table says nothing about."""
    with Path(path or Path(folder(), "energy.csv")).open(encoding="utf-8", newline="") as file:
        for cells in csv.DictReader(line for line in file if not line.startswith("#")):
            if cells["chip"] == chip:
                return _trng(cells), _store(cells)
    return None, None


def _trng(cells: dict[str, str]) -> Trng | None:
    if not cells["trng_status"]:
        return None
    start, per_word, current, energy = (number(cells[name] or "0") for name in TRNG_COLUMNS[:4])
    source, status, note = (cells[name] for name in TRNG_COLUMNS[4:])
    return Trng(start, per_word, current, energy, source, status, note)


def _store(cells: dict[str, str]) -> Store | None:
    if not cells["store_status"]:
        return None
    return Store(
        kind=cells["store"],
        us_per_word=number(cells["store_us_per_word"]),
        mA=number(cells["store_mA"]),
        nJ_per_word=number(cells["store_nJ_per_word"]),
        page_bytes=int(cells["page_bytes"]),
        erase_us=number(cells["erase_us"]),
        erase_mA=number(cells["erase_mA"]),
        erase_nJ=number(cells["erase_nJ"]),
        source=cells["store_source"],
        status=cells["store_status"],
        note=cells["store_note"],
    )
