"""Open untrusted Parquet files with bounds on what they can claim: pages may unfold to far more than their bytes.

The caller opens the file; no name is looked up here, so no links or addresses are followed.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, BinaryIO

from sensorsim._util.errors import InputError
from sensorsim._util.hints import how_to_get
from sensorsim.datasets.public_ranges import brief

MAGIC = b"PAR1"
MOST_METADATA = 1 << 25  # bytes of a string in the footer
MOST_ENTRIES = 1 << 20  # of a list in the footer
MOST_ROWS, MOST_COLUMNS = 1 << 36, 1 << 14
MOST_GROUPS = 1 << 14  # each takes some tenth of a millisecond, however small
SLACK = 1 << 22  # bytes that a column chunk may have beyond its longest cells
BUFFER = 1 << 20
SHOWN_NAMES, SHOWN_CHARACTERS = 16, 100  # in a message
SAFE = {"PLAIN", "RLE", "BIT_PACKED", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "DELTA_LENGTH_BYTE_ARRAY"}


def need_arrow() -> Any:
    """Return pyarrow with its Parquet reader, or raise InputError that says how to install it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError(how_to_get(["pyarrow"], "Parquet", "give CSV")) from None
    return pyarrow


@contextmanager
def open_parquet(file: BinaryIO, name: str, dictionaries: tuple[str, ...] = ()) -> Iterator[Any]:
    """Open a pyarrow ParquetFile, keeping the columns `dictionaries` encoded; raise InputError where it is broken."""
    arrow = need_arrow()
    if not file.seekable():
        raise InputError(f"{name} is Parquet, which is read from its end, and a pipe has none; give it as a file.")
    file.seek(0)
    limits = {"thrift_string_size_limit": MOST_METADATA, "thrift_container_size_limit": MOST_ENTRIES}
    try:
        try:
            found = arrow.parquet.ParquetFile(
                file, read_dictionary=list(dictionaries), buffer_size=BUFFER, pre_buffer=False, **limits
            )
        except KeyError:
            raise InputError(f"{name} has a nested column {' or '.join(dictionaries)}; make it a plain one.") from None
        rows, columns = found.metadata.num_rows, found.metadata.num_columns
        if found.num_row_groups > MOST_GROUPS:
            raise InputError(
                f"{name} has {found.num_row_groups} row groups, and more than {MOST_GROUPS} are not read; write it "
                "with more rows in each."
            )
        if not (0 <= rows <= MOST_ROWS and columns <= MOST_COLUMNS):
            raise InputError(f"{name} says that it has {rows} rows of {columns} columns; give a part of it.")
        yield found
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = brief(str(error).partition("\n")[0]) or type(error).__name__
        raise InputError(f"{name} cannot be read as Parquet ({reason}); is it cut off? Write it again.") from None


def column_names(parquet: Any) -> list[str]:
    """Return the full names of the columns."""
    return list(parquet.schema_arrow.names)


def list_names(names: Iterable[object]) -> str:
    """Join names for a message, as many as fit it."""
    every = [f'"{brief(name)}"' if "," in str(name) else brief(name) for name in names]  # as --columns takes it
    ends = accumulate(len(name) + 2 for name in every)
    some = every[: max(1, min(SHOWN_NAMES, sum(end <= SHOWN_CHARACTERS for end in ends)))]
    more = f" and {len(every) - len(some)} more" if len(some) < len(every) else ""
    return ", ".join(some) + more


def is_text(kind: Any) -> bool:
    """Return whether a column type is text."""
    types = need_arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def check_group(parquet: Any, coded: Any, group: int, column: str, name: str, longest: int) -> None:
    """Refuse a row group whose cells would unfold to far more than the file holds.

    A long cell that is stored once in a dictionary may be used by every row, so check the dictionary first. Reading one
    row of `coded`, the same file with this column kept as a dictionary, loads all of it. Read that row before any
    metadata of the column: pyarrow ends the whole program where the metadata is broken.
    """
    first = next(coded.iter_batches(1, row_groups=[group], columns=[column], use_threads=False), None)
    place = next((i for i in range(len(parquet.schema)) if parquet.schema.column(i).path == column), None)
    if first is None or place is None:
        return  # no rows
    chunk = parquet.metadata.row_group(group).column(place)
    if not set(chunk.encodings) <= SAFE:
        raise InputError(f"{name} encodes its column {brief(column)} as {', '.join(chunk.encodings)}; write it plain.")
    if chunk.total_uncompressed_size > longest * (chunk.num_values + 1) + SLACK:
        raise too_long(name, column, chunk.total_uncompressed_size // max(1, chunk.num_values))
    if chunk.physical_type != "BYTE_ARRAY":
        return
    if not need_arrow().types.is_dictionary(first.column(0).type):
        raise InputError(f"{name} says another type of its column {brief(column)} than it stores; write it again.")
    import pyarrow.compute

    length = pyarrow.compute.max(pyarrow.compute.binary_length(first.column(0).dictionary)).as_py() or 0
    if length > longest:
        raise too_long(name, column, length)


def too_long(name: str, column: str, length: int) -> InputError:
    """Return the error for a cell that is longer than any valid one."""
    return InputError(
        f"{name} has cells of {length} bytes in column {brief(column)}, where none can be so long; give another."
    )
