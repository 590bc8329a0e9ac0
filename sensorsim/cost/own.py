"""The files of a stranger's board: a chip, its core's table beside it, and the tables that this one builds on."""

from pathlib import Path

from sensorsim.cost.prices import CHIP_COLUMNS, base_file, base_name, cpu_folder, cpu_names, is_own
from sensorsim.cost.rows import read_cells


def own_files(name: str | None) -> list[Path]:
    """Every file that is read for a chip or a processor of that name; none for one of ours.

    What is wrong with a file is told by who reads it.
    """
    waiting = [Path(name)] if name is not None and is_own(name) else []
    found: list[Path] = []
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.append(path)
            waiting += _built_on(path)
    return found


def _built_on(path: Path) -> list[Path]:
    try:
        header, columns, lines = read_cells(path)
    except (OSError, ValueError):
        return []
    names = [base_name(header)]
    if columns == list(CHIP_COLUMNS):
        cores = {cells[columns.index("cpu")] for _, cells in lines if len(cells) == len(columns)}
        names = sorted(cores - set(cpu_names()))  # ours first, as the chip's reader has it
    places = [base_file(path, name) for name in names if name]
    return [place for place in places if place is not None and place.parent != cpu_folder()]
