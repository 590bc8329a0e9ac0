"""Terminal width, wrapping, tables, and ASCII fallbacks for characters that a stream cannot encode."""

import codecs
import io
import re
import shutil
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest

NARROW, WIDE = 80, 120  # a narrower one breaks our lines itself; longer lines are hard to read
FILE = 100  # columns of what goes into a file or a pipe

PLAIN = "sensorsim_plain"  # name of the error handler for characters that a stream cannot encode
ASCII = "sensorsim_ascii"  # ASCII by another name: click writes UTF-8 to a stream that says ascii
LETTERS = {
    **{"←": "<-", "→": "->", "·": "*", "×": "x", "µ": "u", "μ": "u", "²": "^2", "≤": "<=", "≥": ">=", "…": "..."},
    **{"–": "-", "—": "-", "−": "-", "√": "sqrt ", "±": "+-", "≈": "~", "∞": "inf", "°": " deg", "“": '"', "”": '"'},
    **{"‘": "'", "’": "'", "█": "#", "░": ".", "━": "-", "╸": "-", "╺": "-", "•": "-", "ε": "epsilon", "σ": "sigma"},
}


def columns() -> int:
    """Return the width of a line: that of COLUMNS or the terminal, a hundred in a file."""
    return min(max(shutil.get_terminal_size((FILE, 24)).columns, NARROW), WIDE)


def counted(count: int, what: str) -> str:
    """Format a count with its noun: `1 day`, `7 days`, `1,000 days`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def fold(text: str, width: int, lead: str = "", under: str | None = None) -> list[str]:
    """Wrap text to `width`; the first line begins with `lead`, the others with `under` or as many spaces."""
    under = " " * len(lead) if under is None else under
    return textwrap.wrap(
        text, width, initial_indent=lead, subsequent_indent=under, break_on_hyphens=False, break_long_words=False
    )


def fitting(width: int, *texts: str) -> list[str]:
    """Return the first text that fits on a line, or the last one wrapped; its indent is kept."""
    for text in texts:
        if len(text) <= width:
            return [text]
    lead = texts[-1][: len(texts[-1]) - len(texts[-1].lstrip())]
    return fold(texts[-1].strip(), width, lead)


def hung(text: str, width: int) -> str:
    """Wrap each line with a hanging indent below its text, behind a head such as `  size    `."""
    lines = []
    for line in text.splitlines():
        head = re.match(r" *(?:\S+(?: \S+){0,2} {2,})?", line)
        lead = head[0] if head and len(head[0]) <= width // 2 else ""
        lines += [line] if len(line) <= width else fold(line[len(lead) :], width, lead)
    return "\n".join(lines)


def widest(lines: Iterable[str]) -> int:
    """Return the length of the longest line."""
    return max(map(len, lines), default=0)


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    width: int,
    right: Collection[str] = (),
    drop: Sequence[str] = (),
    folded: tuple[str, int] = ("", 0),
) -> list[str]:
    """Format columns with two spaces between them, those in `right` flush right.

    If lines do not fit, wrap the column `folded[0]` to at least `folded[1]` characters, then drop the columns of `drop`
    in order.
    """
    soft, fewest = folded
    kept = [list(column) for column in zip(heads, *rows, strict=True)]
    dropping = list(drop)
    while True:
        wide = [widest(column) for column in kept]
        over = 1 + sum(wide) + 2 * (len(wide) - 1) - width
        for place, (head, *_) in enumerate(kept):
            if over > 0 and head == soft:
                least = min(wide[place], fewest)
                wide[place], over = max(wide[place] - over, least), over - (wide[place] - least)
        if over <= 0 or not dropping:
            break
        dropped = dropping.pop(0)
        kept = [column for column in kept if column[0] != dropped]
    made: list[str] = []
    places = [">" if column[0] in right else "<" for column in kept]
    for cells in zip(*kept, strict=True):
        parts = [
            textwrap.wrap(cell, size) or [""] if column[0] == soft else [cell]
            for column, cell, size in zip(kept, cells, wide, strict=True)
        ]
        for line in zip_longest(*parts, fillvalue=""):
            placed = (f"{cell:{place}{size}}" for cell, place, size in zip(line, places, wide, strict=True))
            made.append((" " + "  ".join(placed)).rstrip())
    return made


def show_plainly(stream: io.TextIOWrapper) -> None:
    """Let the stream replace characters that it cannot encode, as `<=` for a ≤."""
    ascii_only = codecs.lookup(stream.encoding).name == "ascii"
    stream.reconfigure(encoding=ASCII if ascii_only else None, errors=PLAIN)


def is_utf8(encoding: str | None) -> bool:
    """Return whether the encoding has every character; None is that of text in memory."""
    return encoding is None or codecs.lookup(encoding).name == "utf-8"


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return replacements for characters that cannot be encoded; an error handler of codecs."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text, first, last = error.object, error.start, error.end
    made = [_letter(text, place) for place in range(first, last)]
    return "".join(made).encode(error.encoding, "replace").decode(error.encoding), last


def _letter(text: str, place: int) -> str:
    letter = text[place]
    if letter == "·" and text[place - 1 : place] in ("", " "):
        return "-"  # between words, and not a product
    known = LETTERS.get(letter)
    return known or unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"


def _ascii(name: str) -> codecs.CodecInfo | None:
    if name != ASCII:
        return None
    plain = codecs.lookup("ascii")
    incremental = plain.incrementalencoder, plain.incrementaldecoder
    return codecs.CodecInfo(
        plain.encode, plain.decode, plain.streamreader, plain.streamwriter, *incremental, name=ASCII
    )


codecs.register_error(PLAIN, _plain)
codecs.register(_ascii)
