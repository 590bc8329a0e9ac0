"""Finds what is wrong with a table of radios, and with the generator and the memory in a row of energy.csv."""

from collections.abc import Sequence

from sensorsim.cost.chip_parts import NONE, STORE_COLUMNS, STORES, TRNG_COLUMNS
from sensorsim.cost.prices import chip_names
from sensorsim.cost.radio import ANY, NUMBERS, RADIO_COLUMNS
from sensorsim.cost.rows import STATUSES, number

SPEAKS_OF = ("", "byte", "event")
NEAR = 0.005  # products are rounded to a few digits

Cells = dict[str, str]


def radio_faults(header: Cells, columns: list[str], lines: list[tuple[int, list[str]]]) -> list[tuple[int, str]]:
    """The faults of a table of radios, each with its line."""
    first = len(header) + 1
    if tuple(columns) != RADIO_COLUMNS:
        return [(first, f"not the columns of a table of radios, which are {','.join(RADIO_COLUMNS)}")]
    faults = [] if header.get("title") else [(1, "no title; the first line is `# title: …`")]
    faults += [(1, f"unknown header {key!r}") for key in header if key != "title"]
    faults += [] if lines else [(first, "no rows")]
    chips = chip_names()
    seen: dict[tuple[str, str], int] = {}
    for line, row in lines:
        if len(row) != len(RADIO_COLUMNS):
            faults.append((line, f"{len(row)} cells, not {len(RADIO_COLUMNS)}"))
            continue
        cells = dict(zip(RADIO_COLUMNS, row, strict=True))
        if seen.setdefault((cells["radio"], cells["chip"]), line) != line:
            faults.append((line, f"a second row for {cells['radio']} of {cells['chip']}"))
        if cells["chip"] not in (ANY, *chips):
            faults.append((line, f"unknown chip {cells['chip']!r}"))
        faults += [(line, what) for what in _row_faults(cells)]
    for radio in dict.fromkeys(radio for radio, _ in seen):
        if (radio, ANY) not in seen:
            faults.append((first, f"no row of {radio} for any chip"))
    return faults


def _row_faults(cells: Cells) -> list[str]:
    faults = [f"empty {name}" for name in RADIO_COLUMNS if not cells[name] and name not in ("status_of", "note")]
    faults += _status_faults(cells, "status", "note")
    if cells["status_of"] not in SPEAKS_OF or (cells["status_of"] and cells["status"] == "confirmed"):
        faults.append(f"status_of {cells['status_of']!r} with status {cells['status']!r}")
    values, wrong = _numbers(cells, NUMBERS)
    if faults or wrong:
        return faults + wrong
    volt = values["supply_V"]
    sent, heard, started = (values[name] * volt for name in ("tx_mA", "rx_mA", "start_mA"))
    event = values["overhead_us"] * sent + values["receive_us"] * heard + values["start_us"] * started
    faults += _product("nJ_per_byte", values["us_per_byte"] * sent, values["nJ_per_byte"])
    faults += _product("nJ_per_event", event, values["nJ_per_event"])
    if not (isinstance(values["max_payload_bytes"], int) and values["max_payload_bytes"] >= 1):
        faults.append(f"max_payload_bytes {cells['max_payload_bytes']} is not a whole number from 1 on")
    if not 0 < values["duty_percent"] <= 100:
        faults.append(f"duty_percent {cells['duty_percent']} is not above 0 and at most 100")
    if cells["chip"] == ANY and not cells["title"].rpartition(", ")[2].startswith(("a ", "an ")):
        faults.append("a row for any chip whose title does not end in whose radio it is, as `…, an nRF52840`")
    return faults


def part_faults(cells: Cells) -> list[str]:
    """The faults of a chip's generator and of its memory."""
    faults = []
    if cells["trng_status"] in ("", NONE):
        faults += [f"{name} where the chip has no generator" for name in TRNG_COLUMNS[:5] if cells[name]]
    else:
        faults += _group_faults(cells, TRNG_COLUMNS, "trng_us_per_word", "trng_mA", "trng_nJ_per_word")
    if not cells["store_status"]:
        faults += [f"{name} without store_status" for name in STORE_COLUMNS if cells[name]]
        return faults
    if cells["store"] not in STORES:
        faults.append(f"unknown store {cells['store']!r}; one of {', '.join(STORES)}")
    columns = tuple(name for name in STORE_COLUMNS if name != "store")
    faults += _group_faults(cells, columns, "store_us_per_word", "store_mA", "store_nJ_per_word")
    if not faults:
        faults += _group_faults(cells, columns, "erase_us", "erase_mA", "erase_nJ")
        if (cells["page_bytes"] == "0") != (cells["erase_us"] == "0"):
            faults.append("page_bytes and erase_us: both or neither are 0")
    return faults


def _group_faults(cells: Cells, columns: tuple[str, ...], time: str, current: str, energy: str) -> list[str]:
    """Cells that are missing or wrong, and an energy that is not time times current times voltage."""
    status, note = (next(name for name in columns if name.endswith(end)) for end in ("_status", "_note"))
    faults = [f"empty {name}" for name in columns if not cells[name] and name != note]
    faults += _status_faults(cells, status, note)
    texts = ("_source", "_status", "_note")
    values, wrong = _numbers(cells, [*(name for name in columns if not name.endswith(texts)), "supply_V"])
    if faults or wrong:
        return faults + wrong
    return _product(energy, values[time] * values[current] * values["supply_V"], values[energy])


def _status_faults(cells: Cells, status: str, note: str) -> list[str]:
    if cells[status] not in STATUSES:
        return [f"unknown {status} {cells[status]!r}; one of {', '.join(STATUSES)}"]
    if cells[status] != "confirmed" and not cells[note]:
        return [f"{status} {cells[status]} without a note that says why"]
    return []


def _numbers(cells: Cells, names: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    values: dict[str, float] = {}
    faults = []
    for name in (name for name in names if cells[name]):
        try:
            values[name] = number(cells[name])
        except ValueError as error:
            faults.append(f"{name}: {error}")
    return values, faults


def _product(name: str, made: float, said: float) -> list[str]:
    if abs(made - said) <= NEAR * max(made, said):
        return []
    return [f"{name} is {said:g}, and times and currents make {made:g}"]
