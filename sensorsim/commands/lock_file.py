"""Write, read and compare lock files: the figures of a command in JSON, one on a line so that diffs are short.

command    the command that made it
choices    the options that it was made with
toolchain  this program, and the compiler if machine code was counted
figures    name: value and unit; a name is the path of the figure in the JSON of the command

A lock is untrusted: what names a file, runs a program or trusts one is never taken from it.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim._util.files import check_target, is_standard_output, read_bounded, strict_json, write_whole

SCHEMA_VERSION = 1
MOST_BYTES = 4 << 20  # the largest locks have some hundred thousand
CORES = "cores"  # a choice that is no option: cores with locked machine code, with commas; none at machine level
PARTS = ("choices", "toolchain", "figures")
# Text that cannot leave a code span in a table cell: no backquote, bar, backslash, line end or direction mark.
PLAIN = re.compile(r"[^`|\\\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]*")

Value = bool | int | float | str


class Figure(NamedTuple):
    """A number, a truth value, or a short text such as a formula; the unit may be empty."""

    value: Value
    unit: str = ""


class Taken(NamedTuple):
    """The figures of a command, and the toolchain that counted them."""

    figures: dict[str, Figure]
    toolchain: dict[str, str]


class Lock(NamedTuple):
    """The content of a lock file."""

    command: str
    choices: dict[str, Value | None]
    taken: Taken

    def text(self) -> str:
        """Return the file; figures are sorted, so that equal locks are equal files."""
        figures = {
            name: {"value": figure.value, "unit": figure.unit} if figure.unit else {"value": figure.value}
            for name, figure in sorted(self.taken.figures.items())
        }
        made = [f' "schema_version": {SCHEMA_VERSION}', f' "command": {_json(self.command)}']
        parts: list[Mapping[str, Any]] = [self.choices, self.taken.toolchain, figures]
        for key, part in zip(PARTS, parts, strict=True):
            inner = ",\n".join(f"  {_json(name)}: {_json(value)}" for name, value in part.items())
            made.append(f' "{key}": {{\n{inner}\n }}')
        return "{\n" + ",\n".join(made) + "\n}\n"


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock atomically, over nothing but an older lock."""
    check_place(path)
    write_whole(path, lock.text())


def check_place(path: Path) -> None:
    """Refuse a path where a lock would replace something else."""
    if path.is_symlink():
        raise InputError(f"{path} is a link; give the file itself.")
    check_target(path)
    if is_standard_output(path) or not path.exists():
        return
    try:
        _read(path)  # a lock of an older version may lack a choice, and can be replaced
    except InputError:
        raise InputError(f"{path} is there and is no lock; give another name, or remove it first.") from None


def read_lock(path: Path, command: str = "", kept: Collection[str] = ()) -> Lock:
    """Read an untrusted lock file; raise InputError unless it is a lock, of this command with all its choices."""
    lock = _read(path)
    if command and lock.command != command:
        raise InputError(f"{path} is a lock of another command ({lock.command[:20]!r}); check it there.")
    with_cores = lock.command in ("cost", "kernel") and lock.choices.get("level") != "machine"
    for name in (*kept, *([CORES] if with_cores else [])):
        if name not in lock.choices:
            raise _no_lock(path, f"its choice {name} is missing")
    cores = lock.choices.get(CORES, "")
    if not isinstance(cores, str) or (cores and not all(name.strip() == name != "" for name in cores.split(","))):
        raise _no_lock(path, f"its {CORES} are no names with commas between them")
    return lock


def _read(path: Path) -> Lock:
    try:
        found = strict_json(read_bounded(path, MOST_BYTES).decode("utf-8"))
        _json(found).encode("utf-8")  # refuses infinite numbers and half characters
        return _parse(found)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; write a lock with --lock first.") from None
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise _no_lock(path, str(error)) from None


def _no_lock(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is no lock ({reason}); write one with --lock.")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _parse(found: Any) -> Lock:
    """Return the lock of parsed JSON; raise ValueError with the reason if it is none."""
    keys = {"schema_version", "command", *PARTS}
    if not isinstance(found, dict) or found.keys() != keys or not all(isinstance(found[part], dict) for part in PARTS):
        raise ValueError(f"a lock has {', '.join(sorted(keys))} and nothing else")
    if type(found["schema_version"]) is not int or found["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"its schema_version is not {SCHEMA_VERSION}")
    choices, toolchain, entries = (found[part] for part in PARTS)
    texts = [found["command"], *toolchain.values()]
    if not all(isinstance(text, str) for text in texts) or not all(
        isinstance(v, Value | None) for v in choices.values()
    ):
        raise ValueError("its command, a choice or a part of the toolchain is neither number nor text")
    for name, entry in entries.items():
        sound = isinstance(entry, dict) and {"value"} <= entry.keys() <= {"value", "unit"}
        if not sound or not isinstance(entry["value"], Value) or not isinstance(entry.get("unit", ""), str):
            raise ValueError(f"figure {name[:80]!r} is not a value with its unit")
    figures = {name: Figure(entry["value"], entry.get("unit", "")) for name, entry in entries.items()}
    return Lock(found["command"], choices, Taken(figures, toolchain))


# ---- compare


@dataclass(frozen=True)
class Change:
    """A figure, or a part of the toolchain, that differs; None where it is absent."""

    kind: str  # changed, added, removed
    figure: str
    was: Value | None
    now: Value | None
    unit: str
    percent: float | None


@dataclass(frozen=True)
class Comparison:
    """All changes. Another compiler with the same figures is a change too: the next program may differ."""

    figures: int  # in the lock or now
    toolchain: tuple[Change, ...]
    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        return not self.toolchain and not self.changes

    def to_dict(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "same": self.same, **asdict(self)}

    def rows(self) -> Iterator[dict[str, Any]]:
        return (asdict(change) for change in (*self.toolchain, *self.changes))

    def markdown(self) -> str:
        """Return a Markdown table of the changes, or one line if there are none."""
        if self.same:
            return f"no change, {self.figures} figures"
        said = f"{len(self.changes)} of {self.figures} figures differ from the lock"
        said += ", the toolchain is another" if self.toolchain else ""
        lines = [f"**{said}**", "", "| figure | was | now | change |", "|:---|---:|---:|---:|"]
        for change in (*self.toolchain, *self.changes):
            how = change.kind if change.percent is None else f"{change.percent:+.3g} %"
            how += f" {_code(change.unit)}" if change.unit else ""
            lines.append(f"| {_code(change.figure)} | {_cell(change.was)} | {_cell(change.now)} | {how} |")
        return "\n".join(lines)


def compare(was: Taken, now: Taken) -> Comparison:
    """Compare every figure exactly; list the toolchain apart, because it explains the rest."""
    tools = [{f"toolchain/{name}": Figure(text) for name, text in taken.toolchain.items()} for taken in (was, now)]
    names = was.figures.keys() | now.figures.keys()
    return Comparison(len(names), tuple(_changes(*tools)), tuple(_changes(was.figures, now.figures)))


def _changes(was: Mapping[str, Figure], now: Mapping[str, Figure]) -> Iterator[Change]:
    for name in sorted(was.keys() | now.keys()):
        old, new = was.get(name), now.get(name)
        if old is None:
            yield Change("added", name, None, now[name].value, now[name].unit, None)
        elif new is None:
            yield Change("removed", name, old.value, None, old.unit, None)
        elif old != new or isinstance(old.value, bool) != isinstance(new.value, bool):  # True is 1 to Python
            unit = new.unit if old.unit == new.unit else f"{old.unit or 'no unit'} → {new.unit or 'no unit'}"
            yield Change("changed", name, old.value, new.value, unit, _percent(old, new))


def _percent(old: Figure, new: Figure) -> float | None:
    a, b = old.value, new.value
    for value in (a, b):
        if isinstance(value, bool | str) or abs(value) > 2**63:  # no figure of ours is larger
            return None
    return 100 * (float(b) - float(a)) / abs(float(a)) if old.unit == new.unit and a else None


def _cell(value: Value | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return _code(value) if value else "(empty)"
    return f"{value}".lower() if isinstance(value, bool) else f"{value}"


def _code(text: str) -> str:
    """Return text for a cell that no Markdown is read from: a code span, or entities if text could leave one."""
    if text.strip() and PLAIN.fullmatch(text):
        return f"`{text}`"
    return "".join(char if char.isalnum() else f"&#{ord(char)};" if char.isprintable() else "&#65533;" for char in text)
