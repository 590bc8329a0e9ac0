"""Load chips (energy.csv), radios (radio/*.csv) and published cycles (published.csv), and check any table.

>>> load_radio("ble-1m", "cc2340r2").nJ_per_byte
122.4
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim.costing.csv_schema import (
    NOTE,
    STATUS,
    STATUSES,
    Column,
    Schema,
    UnreadableTableError,
    columns_for,
    number,
    one_of,
    read_cells,
    whole,
)
from sensorsim.costing.prices import (
    CPU_SCHEMA,
    base_chain,
    check_own_table,
    cpu_folder,
    cpu_names,
    is_own,
    unknown_name,
)
from sensorsim.tables import folder

ANY = "any"  # the chip of a radio's row for all chips without a row of their own
DEFAULT_RADIO = "ble-1m"
MICROSECONDS = 1_000_000  # of a second
NONE = "none"  # the status of a generator that a chip does not have; an empty one: nothing is known
WORD_BYTES = 4
ENTRY_BYTES = 8  # that a log in flash adds to each entry, as Zephyr's NVS does
NEAR = 0.005  # relative error of a product: the tables round to a few digits


class Chip(NamedTuple):
    """Hold a chip's energy per cycle, by its maker's supply current. `cpu` is "" where its core has no table."""

    chip: str
    name: str
    core: str
    cpu: str
    uA_per_MHz: float  # noqa: N815 - the unit's own spelling
    supply_V: float  # noqa: N815
    MHz: float | None
    pJ_per_cycle: float  # noqa: N815
    condition: str
    source: str
    status: str
    note: str


class Trng(NamedTuple):
    """Describe a true random number generator: it starts once for a record, then each 32-bit word takes its time."""

    start_us: float
    us_per_word: float
    mA: float  # noqa: N815
    nJ_per_word: float  # noqa: N815
    source: str
    status: str
    note: str

    def nanojoule(self, words: int) -> float:
        """Return the energy of `words` words, with the start."""
        start = self.nJ_per_word * self.start_us / self.us_per_word
        return words * self.nJ_per_word + (start if words else 0.0)


class Store(NamedTuple):
    """Describe non-volatile memory. `page_bytes` is 0 where nothing has to be erased before a write."""

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
        """Return the energy of appending `size` bytes; in flash to a log whose page is erased when it is full."""
        if not self.page_bytes:
            return size / WORD_BYTES * self.nJ_per_word
        entry = size + ENTRY_BYTES
        return entry / WORD_BYTES * self.nJ_per_word + self.erase_nJ * entry / self.page_bytes

    def nanojoule_erasing(self, size: int) -> float:
        """Return the energy of writing `size` bytes where every write erases a page first."""
        return size / WORD_BYTES * self.nJ_per_word + self.erase_nJ


class Radio(NamedTuple):
    """Hold one row of a radio table. An event is what every packet takes beside its own bytes."""

    radio: str
    chip: str
    title: str
    us_per_byte: float
    overhead_us: float  # sent beside the payload: preamble, addresses, headers, checksums
    receive_us: float  # listening: a poll before, an acknowledgement or windows after
    start_us: float  # crystal, ramp-up, gaps
    tx_mA: float  # noqa: N815
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
    status_of: str  # byte or event where the status is about one of them alone
    note: str

    @property
    def owner(self) -> str:
        """Return whose radio it is if not the chip's own, as the row's title ends: "an nRF52840"; else ""."""
        return self.title.rpartition(", ")[2] if self.chip == ANY else ""

    def packets(self, size: int) -> int:
        """Return the number of packets for `size` bytes; an empty record still is one."""
        return max(1, -(-size // self.max_payload_bytes))

    def nanojoule(self, size: int) -> float:
        """Return the energy of sending `size` bytes, each packet an event of its own."""
        return self.packets(size) * self.nJ_per_event + size * self.nJ_per_byte

    def sending_seconds(self, size: int) -> float:
        """Return the time that `size` bytes are on the air."""
        return (size * self.us_per_byte + self.packets(size) * self.overhead_us) / MICROSECONDS

    def busy_seconds(self, size: int) -> float:
        """Return the time that `size` bytes occupy the radio: sending, listening, starting."""
        return self.sending_seconds(size) + self.packets(size) * (self.receive_us + self.start_us) / MICROSECONDS


TRNG_COLUMNS = columns_for(Trng, "trng_", optional=True, status=Column("trng_status", one_of(*STATUSES, NONE), ""))
STORE_COLUMNS = columns_for(
    Store,
    "store_",
    optional=True,
    kind=Column("store", one_of("flash", "FRAM", "RRAM", "EEPROM"), ""),
    page_bytes=Column("page_bytes", whole(0), None),
    status=Column("store_status", one_of(*STATUSES), ""),
    **{name: Column(name, number, None) for name in ("erase_us", "erase_mA", "erase_nJ")},
)


def _check_chip(path: Path, row: dict[str, Any]) -> Iterator[str]:
    cpu, volt = row["cpu"], row["supply_V"]
    beside = re.fullmatch(r"[\w-]{1,60}", cpu) and path.with_name(f"{cpu}.csv").is_file()
    if cpu and cpu not in cpu_names() and not beside:
        yield f"unknown cpu {cpu!r}"
    if not (row["uA_per_MHz"] > 0 and volt > 0 and row["pJ_per_cycle"] > 0):
        yield "uA_per_MHz, supply_V and pJ_per_cycle: each is above 0"
    else:
        yield from _product_faults(row, "pJ_per_cycle", row["uA_per_MHz"] * volt)  # 1 µA/MHz at 1 V is 1 pJ per cycle
    for part, columns in (("trng", TRNG_COLUMNS), ("store", STORE_COLUMNS)):
        status, note = f"{part}_status", f"{part}_note"
        known = row[status] not in ("", NONE)  # all cells of the part are given, or none
        cells = [column.name for column in columns if column.name not in (status, note)]
        wrong = [name for name in cells if (row[name] in (None, "")) == known]
        yield from (f"empty {name}" if known else f"{name} without {status}" for name in wrong)
        if known and row[status] != "confirmed" and not row[note]:
            yield f"{status} {row[status]} without a note that says why"
        if known and not wrong:
            word = row[f"{part}_us_per_word"] * row[f"{part}_mA"] * volt
            yield from _product_faults(row, f"{part}_nJ_per_word", word)
            if part == "store":
                yield from _product_faults(row, "erase_nJ", row["erase_us"] * row["erase_mA"] * volt)
                if (row["page_bytes"] == 0) != (row["erase_us"] == 0):
                    yield "page_bytes and erase_us: both or neither are 0"


def _product_faults(row: dict[str, Any], name: str, product: float) -> Iterator[str]:
    """Yield a fault where a cell is not the product of others."""
    if abs(product - row[name]) > NEAR * max(product, row[name]):
        yield f"{name} is {row[name]:g}, and times, currents and voltage make {product:g}"


CHIP_SCHEMA = Schema(
    "chip",
    (
        *columns_for(Chip, cpu=Column("cpu", str, ""), MHz=Column("MHz", number, None), status=STATUS, note=NOTE),
        *TRNG_COLUMNS,
        *STORE_COLUMNS,
    ),
    _check_chip,
    key=("chip",),
)


def energy_file() -> Path:
    """Return the packaged table of chips."""
    return Path(folder(), "energy.csv")


def load_chips(path: Path | None = None) -> list[Chip]:
    """Load every chip of the energy table, or of another, in the file's order."""
    return [Chip(*row[: len(Chip._fields)]) for row in CHIP_SCHEMA.load(path or energy_file())]


def chip_names() -> list[str]:
    """List the packaged chips."""
    return [chip.chip for chip in load_chips()]


def load_chip(name: str) -> Chip:
    """Load a packaged chip by its name, or your own by its file name; its core may be a table beside the file."""
    if not is_own(name):
        known = {chip.chip: chip for chip in load_chips()}
        if name.lower() not in known:
            raise InputError(unknown_name("chip", name, list(known)))
        return known[name.lower()]
    path = check_own_table(name, CHIP_SCHEMA)
    chips = load_chips(path)
    if len(chips) != 1:
        raise InputError(f"{path.name}:1: {len(chips)} chips; give a file with one.")
    own_core = chips[0].cpu and chips[0].cpu not in cpu_names()
    return chips[0]._replace(cpu=str(path.with_name(f"{chips[0].cpu}.csv"))) if own_core else chips[0]


def load_priced_chip(name: str) -> Chip:
    """Load a chip; InputError where its core has no table, so that its cycles are not known."""
    chip = load_chip(name)
    if not chip.cpu:
        mend = "name one in its column cpu, or choose another" if is_own(name) else "choose another"
        raise InputError(f"{chip.name} has a {chip.core}, whose cycles are in no table here; {mend}.")
    return chip


def load_parts(chip: str, path: str | None = None) -> tuple[Trng | None, Store | None]:
    """Load the generator and the memory of a packaged chip, or of the one in your own file; None for an unknown one."""
    first, second = len(Chip._fields), -len(STORE_COLUMNS)
    for row in CHIP_SCHEMA.load(Path(path) if path else energy_file()):
        if row[0] == chip:
            trng, store = Trng(*row[first:second]), Store(*row[second:])
            return trng if trng.status else None, store if store.status else None
    return None, None


def _check_radio(path: Path, row: dict[str, Any]) -> Iterator[str]:
    if row["chip"] not in (ANY, *chip_names()):
        yield f"unknown chip {row['chip']!r}"
    sent, heard, started = (row[name] * row["supply_V"] for name in ("tx_mA", "rx_mA", "start_mA"))
    yield from _product_faults(row, "nJ_per_byte", row["us_per_byte"] * sent)
    event = row["overhead_us"] * sent + row["receive_us"] * heard + row["start_us"] * started
    yield from _product_faults(row, "nJ_per_event", event)
    if not 0 < row["duty_percent"] <= 100:
        yield f"duty_percent {row['duty_percent']} is not above 0 and at most 100"


RADIO_SCHEMA = Schema(
    "radio",
    columns_for(
        Radio,
        max_payload_bytes=Column("max_payload_bytes", whole(1)),
        status=STATUS,
        status_of=Column("status_of", one_of("byte", "event"), ""),
        note=NOTE,
    ),
    _check_radio,
    key=("radio", "chip"),
    headers=("title",),
)


def radio_files() -> list[Path]:
    """List the packaged tables of radios in alphabetical order."""
    return sorted(Path(folder(), "radio").glob("*.csv"))


@cache
def load_radios() -> list[Radio]:
    """Load every row of every table of radios."""
    return [Radio(*row) for path in radio_files() for row in RADIO_SCHEMA.load(path)]


def radio_names() -> list[str]:
    """List the radios."""
    return list(dict.fromkeys(radio.radio for radio in load_radios()))


def load_radio(name: str, chip: str = ANY) -> Radio:
    """Load the row of a radio for a chip, or the one for any chip; InputError with the known names otherwise."""
    named = {radio.chip: radio for radio in load_radios() if radio.radio == name.lower()}
    found = named.get(chip) or named.get(ANY)
    if found is None:
        raise InputError(unknown_name("radio", name, radio_names()))
    return found


class Published(NamedTuple):
    """Hold cycles that others published for noise in software. The text after the comma in `what` names the case."""

    cpu: str
    what: str
    cycles: int
    cited: str
    source: str
    status: str
    note: str


def _check_published(path: Path, row: dict[str, Any]) -> Iterator[str]:
    if row["cpu"] not in cpu_names():
        yield f"unknown cpu {row['cpu']!r}"


PUBLISHED_SCHEMA = Schema(
    "published cycles",
    columns_for(Published, cycles=Column("cycles", whole(1)), status=STATUS, note=NOTE),
    _check_published,
    key=("cpu", "what"),
)


def published_file() -> Path:
    """Return the table of published cycles."""
    return Path(folder(), "published.csv")


def load_published(cpu: str) -> list[Published]:
    """Load the published cycles for a core."""
    return [Published(*row) for row in PUBLISHED_SCHEMA.load(published_file()) if row[0] == cpu]


SCHEMAS = {schema.names[0]: schema for schema in (CPU_SCHEMA, CHIP_SCHEMA, RADIO_SCHEMA, PUBLISHED_SCHEMA)}


def table_files() -> list[Path]:
    """List every table that comes with the package."""
    return [*sorted(cpu_folder().glob("*.csv")), energy_file(), *radio_files(), published_file()]


def check_file(path: Path) -> tuple[int, list[str]]:
    """Return the number of rows of a table and its faults. Its first column says what it is a table of."""
    try:
        _, columns, lines = read_cells(path)
        return len(lines), SCHEMAS.get("".join(columns[:1]), CPU_SCHEMA).faults(path)
    except OSError as error:
        return 0, [f"{path.name}:1: cannot be read: {error}"]
    except UnreadableTableError as error:
        return 0, [str(error)]


def own_files(name: str | None) -> list[Path]:
    """List the files that are read for your own chip or processor, with the tables that it builds on.

    Empty for a packaged one. A file with faults is reported by whoever reads it.
    """
    if name is None or not is_own(name):
        return []
    path, core = Path(name), Path(name)
    with suppress(OSError, ValueError, IndexError):
        if cpu := load_chips(path)[0].cpu:
            core = path.with_name(f"{cpu}.csv")
    found = [path, *([core] if core.is_file() else []), *base_chain(core)[0]]
    return [one for one in dict.fromkeys(found) if one.parent != cpu_folder()]
