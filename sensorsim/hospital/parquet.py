"""Parquet of anybody's, read with a bound on all that a file can claim: its pages may say more than its bytes hold.

A file is opened here and handed on; a name is never looked up elsewhere, so neither links nor addresses are followed.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, BinaryIO

import numpy as np

from sensorsim._util.hints import how_to_get
from sensorsim.errors import InputError
from sensorsim.hospital.expected import Expected
from sensorsim.hospital.reading import BLOCK, LINES, MAGIC, OF_SUMS, PACKET, SPACE, hex_cells, name_of
from sensorsim.hospital.tally import FITS, Tally
from sensorsim.hospital.unpack import Bytes
from sensorsim.ranges import brief

MOST_ABOUT = 1 << 25  # bytes at the end of a file that say what it holds
MOST_COLUMNS = 1 << 14
MOST_NAMES = 1 << 20  # of any list in there
MOST_GROUPS = 1 << 14  # each takes some tenth of a millisecond, whatever it holds
SHOWN_NAMES, SHOWN_LETTERS = 16, 100  # in a message
SAFE = {"PLAIN", "RLE", "BIT_PACKED", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "DELTA_LENGTH_BYTE_ARRAY"}

_IS_SPACE = np.zeros(256, bool)
_IS_SPACE[list(SPACE)] = True


def need_arrow() -> Any:
    """pyarrow with its reader of Parquet, or a sentence that says how to get it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError(how_to_get(["pyarrow"], "Parquet", "give CSV")) from None
    return pyarrow


@contextmanager
def opened_parquet(file: BinaryIO, name: str, dictionaries: tuple[str, ...] = ()) -> Iterator[Any]:
    """A file as pyarrow's ParquetFile, its columns `dictionaries` kept as such; what breaks within is one sentence."""
    arrow = need_arrow()
    if not file.seekable():
        raise InputError(f"{name} is Parquet, which is read from its end, and a pipe has none; give it as a file.")
    try:
        _check_end(file, name)
        yield _open(file, name, dictionaries)
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = brief(str(error).partition("\n")[0]) or type(error).__name__
        raise InputError(f"{name} cannot be read as Parquet ({reason}); write it again.") from None


def _open(file: BinaryIO, name: str, dictionaries: tuple[str, ...]) -> Any:
    file.seek(0)
    try:
        found = need_arrow().parquet.ParquetFile(
            file,
            read_dictionary=list(dictionaries),
            buffer_size=LINES,
            pre_buffer=False,
            thrift_string_size_limit=MOST_ABOUT,
            thrift_container_size_limit=MOST_NAMES,
        )
    except KeyError:
        raise InputError(f"{name} has a nested column {' or '.join(dictionaries)}; make it a plain one.") from None
    if found.num_row_groups > MOST_GROUPS:
        raise InputError(
            f"{name} has {found.num_row_groups} row groups, and more than {MOST_GROUPS} are not read; write it with "
            "more rows in each."
        )
    rows, columns = found.metadata.num_rows, found.metadata.num_columns
    if not (0 <= rows <= FITS and columns <= MOST_COLUMNS):
        raise InputError(f"{name} says that it has {rows} rows of {columns} columns; give a part of it.")
    return found


def _check_end(file: BinaryIO, name: str) -> None:
    """The last eight bytes tell how many before them say what the file holds."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    end = file.read(8)
    about = int.from_bytes(end[:4], "little")
    if size < 12 or end[4:] != MAGIC or about > min(MOST_ABOUT, size - 12):
        raise InputError(f"{name} begins as Parquet and does not end as such; is it cut off?")


def names_of(parquet: Any) -> list[str]:
    """Columns, each by its whole name."""
    return list(parquet.schema_arrow.names)


def listed(names: Iterable[object]) -> str:
    """Names for a message, as many as fit it."""
    every = [f'"{brief(name)}"' if "," in str(name) else brief(name) for name in names]  # as --columns takes it
    ends = accumulate(len(name) + 2 for name in every)
    some = every[: max(1, min(SHOWN_NAMES, sum(end <= SHOWN_LETTERS for end in ends)))]
    more = f" and {len(every) - len(some)} more" if len(some) < len(every) else ""
    return ", ".join(some) + more


def sums_are_in(file: BinaryIO) -> bool:
    """Whether it is what `receive --out` wrote."""
    with opened_parquet(file, name_of(file)) as parquet:
        return _holds_sums(parquet)


def _holds_sums(parquet: Any) -> bool:
    names = names_of(parquet)
    return PACKET not in names and set(names) >= OF_SUMS


def parquet_packets(head: bytes, file: BinaryIO, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """A packet a row, in the column `packet`: bytes, or text in hexadecimal. A blank one is nothing."""
    name = name_of(file)
    with opened_parquet(file, name) as parquet:
        if _holds_sums(parquet):
            raise InputError(f"{name} holds sums, of which no single packet can be had; give the packets.")
        if names_of(parquet).count(PACKET) != 1:
            shown = listed(names_of(parquet))
            raise InputError(f"{name} has no column packet; rename the one that holds them (it has {shown}).")
        longest = 4 * max(expected.lengths) + 256  # letters of a cell, spaces among them
        text, width = _kind(parquet.schema_arrow.field(PACKET).type, name, longest)
        rows = max(1, (LINES if text else BLOCK) // width)
        with opened_parquet(file, name, (PACKET,)) as coded:
            for group in range(parquet.num_row_groups):
                check_group(parquet, coded, group, PACKET, name, longest)
                for batch in parquet.iter_batches(rows, row_groups=[group], columns=[PACKET], use_threads=False):
                    yield from _cells(batch.column(0), text, expected, tally)


def _kind(kind: Any, name: str, longest: int) -> tuple[bool, int]:
    """Whether packets are text rather than bytes, and the most bytes of one."""
    types = need_arrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_fixed_size_binary(kind):
        if not 1 <= kind.byte_width <= longest:
            raise _too_long(name, PACKET, kind.byte_width)
        return False, int(kind.byte_width)
    text = types.is_string(kind) or types.is_large_string(kind)
    if not (text or types.is_binary(kind) or types.is_large_binary(kind)):
        raise InputError(f"{name} has a column packet of type {brief(kind)}; packets are bytes, or text in hex.")
    return text, longest


def check_group(parquet: Any, coded: Any, group: int, column: str, name: str, longest: int) -> None:
    """Refuse rows whose cells would unfold to far more than the file holds.

    A long cell that stands once in a dictionary may be meant by every row, so the dictionary is looked at first: with
    the first row of `coded`, the same file whose dictionary of this column stays as it is, all of it comes. That row
    is read before anything is asked about the column, as pyarrow ends the whole program where the answer is broken.
    """
    first = next(coded.iter_batches(1, row_groups=[group], columns=[column], use_threads=False), None)
    place = next((i for i in range(len(parquet.schema)) if parquet.schema.column(i).path == column), None)
    if first is None or place is None:
        return  # no rows
    chunk = parquet.metadata.row_group(group).column(place)
    if not set(chunk.encodings) <= SAFE:
        raise InputError(f"{name} encodes its column {brief(column)} as {', '.join(chunk.encodings)}; write it plain.")
    if chunk.total_uncompressed_size > longest * (chunk.num_values + 1) + BLOCK:
        raise _too_long(name, column, chunk.total_uncompressed_size // max(1, chunk.num_values))
    if chunk.physical_type != "BYTE_ARRAY":
        return
    if not need_arrow().types.is_dictionary(first.column(0).type):
        raise InputError(f"{name} says another type of its column {brief(column)} than it stores; write it again.")
    letters = _longest(first.column(0).dictionary)
    if letters > longest:
        raise _too_long(name, column, letters)


def _longest(values: Any) -> int:
    import pyarrow.compute

    return int(pyarrow.compute.max(pyarrow.compute.binary_length(values)).as_py() or 0)


def _too_long(name: str, column: str, length: int) -> InputError:
    return InputError(
        f"{name} has cells of {length} bytes in column {brief(column)}, where none can be so long; give another."
    )


def _cells(cells: Any, text: bool, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """The packets of some rows."""
    arrow = need_arrow()
    cells = cells.drop_null()
    if arrow.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if arrow.types.is_fixed_size_binary(cells.type):
        length = cells.type.byte_width
        packets = np.frombuffer(cells.buffers()[1], np.uint8)[cells.offset * length :][: len(cells) * length]
        if length in expected.lengths:
            yield packets.reshape(-1, length)
        else:
            tally.rejected["length"] += len(cells)
        return
    letters, starts, widths = _letters(cells)
    if text:
        yield from hex_cells(*_without_space(letters, starts, widths), expected, tally)
        return
    for length in expected.lengths:
        begin = starts[widths == length]
        if len(begin):
            yield letters[begin[:, None] + np.arange(length)]
    tally.rejected["length"] += int(np.count_nonzero(~np.isin(widths, [0, *expected.lengths])))


def _letters(cells: Any) -> tuple[Bytes, Any, Any]:
    """The bytes of cells without nulls, where each starts, and how wide it is."""
    types = need_arrow().types
    wide = types.is_large_string(cells.type) or types.is_large_binary(cells.type)
    _, places, content = cells.buffers()
    ends = np.frombuffer(places, np.int64 if wide else np.int32)[cells.offset :][: len(cells) + 1].astype(np.int64)
    letters = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    return letters, ends[:-1], np.diff(ends)


def _without_space(letters: Bytes, starts: Any, widths: Any) -> tuple[Bytes, Any, Any]:
    """The same without spaces between bytes."""
    space = _IS_SPACE[letters]
    if not space.any():
        return letters, starts, widths
    before = np.concatenate([[0], np.cumsum(~space)])
    return letters[~space], before[starts], before[starts + widths] - before[starts]
