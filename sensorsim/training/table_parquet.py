"""A Parquet file of records as a table: its columns of numbers and the one that names persons, nothing else of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from sensorsim._util.errors import InputError
from sensorsim.hospital.parquet_files import column_names, need_arrow, open_parquet

OTHERS = "others"  # of the table's attributes: columns that hold something else, and what
MOST_CELLS = 1 << 29  # 4 GB as numbers


def read_parquet(
    file: BinaryIO, path: str, person: str, checked: Callable[[list[str], str], list[str]]
) -> pd.DataFrame:
    """The table; `checked` refuses names that stand twice. What is nested or no number is left out and remembered."""
    with open_parquet(file, path) as found:
        stored = column_names(found)
        names = checked([name.strip() for name in stored], path)
        kinds = dict(zip(names, found.schema_arrow.types, strict=True))
        texts = tuple(old for old, name in zip(stored, names, strict=True) if name == person and _is_text(kinds[name]))
        rows = found.metadata.num_rows
    used = {
        name: old
        for old, name in zip(stored, names, strict=True)
        if _is_number(kinds[name]) or (name == person and (old in texts or _is_coded(kinds[name])))
    }
    if rows * max(1, len(used)) > MOST_CELLS:
        raise InputError(f"{path} has {rows} rows of {len(used)} columns, more than {MOST_CELLS} cells; give a part.")
    made: dict[str, Any] = {}
    with open_parquet(file, path, texts) as found:
        for name, old in used.items():
            cells = found.read([old], use_threads=False).column(0)
            made[name] = _persons(cells) if name == person else _numbers(cells)
    if {rows} != {len(column) for column in made.values()} and made:
        raise InputError(f"{path} has columns of other lengths than the {rows} rows it says; write it again.")
    frame = pd.DataFrame(made, index=pd.RangeIndex(rows), copy=False)
    frame.attrs[OTHERS] = {name: str(kind) for name, kind in kinds.items() if name not in used}
    return frame


def _is_number(kind: Any) -> bool:
    types = need_arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))


def _is_text(kind: Any) -> bool:
    types = need_arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_coded(kind: Any) -> bool:
    """Whether it is a dictionary of texts or numbers."""
    return need_arrow().types.is_dictionary(kind) and (_is_text(kind.value_type) or _is_number(kind.value_type))


def _numbers(cells: Any) -> Any:
    """NaN where a cell is empty."""
    arrow = need_arrow()
    plain = arrow.types.is_integer(cells.type) or arrow.types.is_floating(cells.type)
    return (cells if plain else cells.cast(arrow.float64())).to_numpy()


def _persons(cells: Any) -> pd.Categorical:
    """Names as text, None where there is none. A file's dictionary may hold a name twice: here it is one."""
    arrow = need_arrow()
    if arrow.types.is_floating(cells.type):  # whole numbers with gaps, as pandas writes them
        cells = arrow.chunked_array([arrow.array(cells.to_numpy(), from_pandas=True)])
    coded = (
        cells.combine_chunks() if arrow.types.is_dictionary(cells.type) else cells.combine_chunks().dictionary_encode()
    )
    texts = [
        None if text is None or not text.strip() else text for text in coded.dictionary.cast(arrow.string()).to_pylist()
    ]
    place, names = pd.factorize(np.array(texts, object))
    place = np.append(place, -1)  # where a code is -1
    return pd.Categorical.from_codes(place[coded.indices.fill_null(-1).to_numpy()], names)
