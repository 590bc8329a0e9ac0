"""A lock beside the figures of today: what changed, as a Markdown table for a pull request."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sensorsim.locking.lock import Figure, Taken, Value

SCHEMA_VERSION = 1
# What a code span in a cell cannot be left by: no backquote, bar, backslash, line end or turn of the writing direction.
PLAIN = re.compile(r"[^`|\\\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]*")


@dataclass(frozen=True)
class Change:
    """One figure, or one part of the toolchain, that is not what it was; None where it is not there."""

    kind: str  # changed, added, removed
    figure: str
    was: Value | None
    now: Value | None
    unit: str
    percent: float | None


@dataclass(frozen=True)
class Comparison:
    """All changes. Two compilers with the same figures are a change too: the next program may not be so lucky."""

    figures: int  # how many there are, now or in the lock
    toolchain: tuple[Change, ...]
    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        return not self.toolchain and not self.changes

    def to_dict(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "same": self.same, **asdict(self)}

    def rows(self) -> Iterator[dict[str, Any]]:
        for change in (*self.toolchain, *self.changes):
            yield asdict(change)

    def markdown(self) -> str:
        """The table, or one line where nothing changed."""
        if self.same:
            return f"no change, {self.figures} figures"
        lines = [f"**{_said(self)}**", "", "| figure | was | now | change |", "|:---|---:|---:|---:|"]
        for change in (*self.toolchain, *self.changes):
            cells = (_code(change.figure), _cell(change.was), _cell(change.now), _how(change))
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)


def compare(was: Taken, now: Taken) -> Comparison:
    """Every figure of either, exactly; the toolchain apart, because it explains the rest."""
    tools = [{f"toolchain/{name}": Figure(text) for name, text in taken.toolchain.items()} for taken in (was, now)]
    names = was.figures.keys() | now.figures.keys()
    return Comparison(len(names), tuple(_changes(*tools)), tuple(_changes(was.figures, now.figures)))


def _changes(was: Mapping[str, Figure], now: Mapping[str, Figure]) -> Iterator[Change]:
    for name in sorted(was.keys() | now.keys()):
        old, new = was.get(name), now.get(name)
        if old is None and new is not None:
            yield Change("added", name, None, new.value, new.unit, None)
        elif new is None and old is not None:
            yield Change("removed", name, old.value, None, old.unit, None)
        elif old is not None and new is not None and not _equal(old, new):
            unit = new.unit if old.unit == new.unit else f"{old.unit or 'no unit'} → {new.unit or 'no unit'}"
            yield Change("changed", name, old.value, new.value, unit, _percent(old, new))


def _equal(old: Figure, new: Figure) -> bool:
    """Exactly; yes and no are not 1 and 0, as they are to Python."""
    return old == new and isinstance(old.value, bool) == isinstance(new.value, bool)


def _percent(old: Figure, new: Figure) -> float | None:
    a, b = old.value, new.value
    for value in (a, b):
        if isinstance(value, bool | str) or abs(value) > 2**63:  # what is larger is no figure of ours
            return None
    if old.unit != new.unit or not a:
        return None
    return 100 * (float(b) - float(a)) / abs(float(a))


def _said(found: Comparison) -> str:
    parts = [f"{len(found.changes)} of {found.figures} figures differ from the lock"]
    if found.toolchain:
        parts.append("the toolchain is another")
    return ", ".join(parts)


def _how(change: Change) -> str:
    unit = f" {_code(change.unit)}" if change.unit else ""
    if change.percent is None:
        return change.kind + unit
    return f"{change.percent:+.3g} %{unit}"


def _cell(value: Value | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return _code(value) if value else "(empty)"
    return f"{value}".lower() if isinstance(value, bool) else f"{value}"


def _code(text: str) -> str:
    """Text in a cell that no Markdown is read from: a code span, or where that could be left, entities."""
    if text.strip() and PLAIN.fullmatch(text):
        return f"`{text}`"
    return "".join(char if char.isalnum() else f"&#{ord(char)};" if char.isprintable() else "&#65533;" for char in text)
