"""What a packet on the air costs: the tables of radios (tables/radio/*.csv).

>>> load_radio("ble-1m", "cc2340r2").nJ_per_byte
122.4
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sensorsim._util.hints import did_you_mean
from sensorsim.cost.rows import number
from sensorsim.errors import InputError
from sensorsim.tables import folder

ANY = "any"  # the chip of a row that stands for all chips without a row of their own
DEFAULT_RADIO = "ble-1m"
MICROSECONDS = 1_000_000  # of a second


class Radio(NamedTuple):
    """One row; the names are the columns'. An event is what every packet takes beside its own bytes."""

    radio: str
    chip: str
    title: str
    us_per_byte: float
    overhead_us: float  # sent beside the payload: preamble, addresses, headers, checksums
    receive_us: float  # listening: a poll before, an acknowledgement or windows after
    start_us: float  # crystal, ramp-up, gaps
    tx_mA: float  # noqa: N815 - the unit's own spelling
    rx_mA: float  # noqa: N815
    start_mA: float  # noqa: N815
    supply_V: float  # noqa: N815
    max_payload_bytes: int
    duty_percent: float  # of the time that the band's rules let a device send; 100: no limit
    nJ_per_byte: float  # noqa: N815
    nJ_per_event: float  # noqa: N815
    condition: str
    source: str
    status: str
    status_of: str  # byte or event where the status speaks of one of them alone
    note: str

    @property
    def owner(self) -> str:
        """Whose radio it is where it is not the chip's own, as the row's title ends: "an nRF52840"; else ""."""
        return self.title.rpartition(", ")[2] if self.chip == ANY else ""

    def packets(self, size: int) -> int:
        """Packets that so many bytes need; a record of no bytes still is one."""
        return max(1, -(-size // self.max_payload_bytes))

    def nanojoule(self, size: int) -> float:
        """What it takes to send so many bytes, each packet an event of its own."""
        return self.packets(size) * self.nJ_per_event + size * self.nJ_per_byte

    def sending_seconds(self, size: int) -> float:
        """How long so many bytes are on the air."""
        return (size * self.us_per_byte + self.packets(size) * self.overhead_us) / MICROSECONDS

    def busy_seconds(self, size: int) -> float:
        """How long they keep the radio busy: sending, listening, starting."""
        return self.sending_seconds(size) + self.packets(size) * (self.receive_us + self.start_us) / MICROSECONDS


RADIO_COLUMNS = Radio._fields
TEXTS = ("radio", "chip", "title", "condition", "source", "status", "status_of", "note")
NUMBERS = tuple(name for name in RADIO_COLUMNS if name not in TEXTS)


def radio_files() -> list[Path]:
    """The tables of radios, in alphabetical order."""
    return sorted(Path(folder(), "radio").glob("*.csv"))


def radio_names() -> list[str]:
    """The radios that there are rows of."""
    return list(dict.fromkeys(cells["radio"] for cells in _rows()))


def load_radios() -> list[Radio]:
    """Every row of every table."""
    return [_radio(cells) for cells in _rows()]


def load_radio(name: str, chip: str = ANY) -> Radio:
    """The row of that radio for a chip, or the one for any chip; InputError with the known names otherwise."""
    named = {cells["chip"]: cells for cells in _rows() if cells["radio"] == name.lower()}
    found = named.get(chip) or named.get(ANY)
    if found is None:
        hint = did_you_mean(name, radio_names())
        raise InputError(f"radio {name!r} is not known{hint}; there are {', '.join(radio_names())}.")
    return _radio(found)


def _rows() -> Iterator[dict[str, str]]:
    """The cells of every row of every table."""
    for path in radio_files():
        lines = path.read_text(encoding="utf-8").splitlines()
        yield from csv.DictReader(line for line in lines if not line.startswith("#"))


def _radio(cells: dict[str, str]) -> Radio:
    values = {name: number(text) if name in NUMBERS else text for name, text in cells.items()}
    return Radio(**values)  # type: ignore[arg-type]  # the columns are the fields, numbers and texts as declared
