"""A lock: a JSON file with one figure on a line, so that a diff of two reads well. Read as a stranger's, written whole.

command    which of ours made it
choices    the options that it was made with
toolchain  what counted: this program, and the compiler where machine code was counted
figures    name: value and unit; a name is the figure's path in the JSON of the command
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sensorsim._util.files import check_target, is_standard_output, read_bounded, write_whole
from sensorsim.errors import InputError
from sensorsim.locking.choices import KEPT

SCHEMA_VERSION = 1
MOST_BYTES = 4 << 20  # the largest of ours have some hundred thousand
CORES = "cores"  # a choice beside: the cores whose machine code is locked, with commas; none at machine level
KEYS = {"schema_version", "command", "choices", "toolchain", "figures"}

Value = bool | int | float | str


class Figure(NamedTuple):
    """One number, yes or no, or short text such as a formula; the unit may be empty."""

    value: Value
    unit: str = ""


@dataclass(frozen=True)
class Taken:
    """Figures as they are now, and what counted them."""

    figures: dict[str, Figure]
    toolchain: dict[str, str]


@dataclass(frozen=True)
class Lock:
    """What the file says."""

    command: str
    choices: dict[str, Value | None]
    taken: Taken

    def text(self) -> str:
        """The file: what could come in another order the next time is sorted."""
        figures = {name: _entry(figure) for name, figure in sorted(self.taken.figures.items())}
        lines = ["{", f' "schema_version": {SCHEMA_VERSION},', f' "command": {_json(self.command)},']
        parts: dict[str, Mapping[str, Any]] = {"choices": self.choices, "toolchain": self.taken.toolchain}
        for key, part in (parts | {"figures": figures}).items():
            inner = [f"  {_json(name)}: {_json(value)}" for name, value in part.items()]
            lines += [f' "{key}": {{', ",\n".join(inner), " }" + ("" if key == "figures" else ",")]
        return "\n".join([*lines, "}", ""])


def write_lock(path: Path, lock: Lock) -> None:
    """Write it whole or not at all, over nothing but an older lock."""
    check_place(path)
    write_whole(path, lock.text())


def check_place(path: Path) -> None:
    """Refuse a place where a lock would end something else."""
    if path.is_symlink():
        raise InputError(f"{path} is a link; give the file itself.")
    check_target(path)
    if is_standard_output(path) or not path.exists():
        return
    try:
        _read(path, whole=False)  # one of an older version may lack a choice, and is there to be written anew
    except InputError:
        raise InputError(f"{path} is there and is no lock; give another name, or remove it first.") from None


def read_lock(path: Path) -> Lock:
    """The lock in a file that anyone may have written; InputError if it is none."""
    return _read(path, whole=True)


def _read(path: Path, whole: bool) -> Lock:
    try:
        content = read_bounded(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; write a lock with --lock first.") from None
    try:
        found = json.loads(content.decode("utf-8"), object_pairs_hook=_object)
        _json(found).encode("utf-8")  # half a character, as JSON can write it, could not be printed
        lock = _checked(found)
        if whole:
            _check_choices(lock)
        return lock
    except RecursionError:
        reason = "it is nested too deeply"
    except UnicodeError:
        reason = "it is not UTF-8 text"
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno} is not JSON"
    except ValueError as error:
        reason = str(error)
    raise InputError(f"{path} is no lock ({reason}); write one with --lock.")


def _entry(figure: Figure) -> dict[str, Value]:
    return {"value": figure.value, "unit": figure.unit} if figure.unit else {"value": figure.value}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is in it twice")
    return found


def _checked(found: Any) -> Lock:
    """The lock that parsed JSON stands for; ValueError with the reason if it stands for none."""
    if not isinstance(found, dict) or found.keys() != KEYS:
        raise ValueError(f"a lock has {', '.join(sorted(KEYS))} and nothing else")
    if type(found["schema_version"]) is not int or found["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"its schema_version is not {SCHEMA_VERSION}")
    if not isinstance(found["command"], str):
        raise ValueError("its command is not a name")
    for part in ("choices", "toolchain", "figures"):
        if not isinstance(found[part], dict):
            raise ValueError(f"its {part} are no object")
    if not all(value is None or _is_value(value) for value in found["choices"].values()):
        raise ValueError("a choice is neither number nor text")
    if not all(isinstance(value, str) for value in found["toolchain"].values()):
        raise ValueError("a part of the toolchain is no text")
    figures = {name: _figure(name, entry) for name, entry in found["figures"].items()}
    return Lock(found["command"], found["choices"], Taken(figures, found["toolchain"]))


def _check_choices(lock: Lock) -> None:
    """ValueError where a choice is missing that the command's locks have, or where the cores are no names."""
    for name in KEPT.get(lock.command, ()):
        if name not in lock.choices:
            raise ValueError(f"its choice {name} is missing")
    if CORES not in lock.choices:
        if lock.command in ("cost", "kernel") and lock.choices["level"] != "machine":
            raise ValueError(f"its choice {CORES} is missing")
        return
    cores = lock.choices[CORES]
    if not isinstance(cores, str) or (cores and not all(name.strip() == name != "" for name in cores.split(","))):
        raise ValueError(f"its {CORES} are no names with commas between them")


def _figure(name: str, entry: Any) -> Figure:
    sound = isinstance(entry, dict) and "value" in entry and entry.keys() <= {"value", "unit"}
    if not sound or not _is_value(entry["value"]) or not isinstance(entry.get("unit", ""), str):
        raise ValueError(f"figure {name[:80]!r} is not a value with its unit")
    return Figure(entry["value"], entry.get("unit", ""))


def _is_value(value: Any) -> bool:
    return isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
