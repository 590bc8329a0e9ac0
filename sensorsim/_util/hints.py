"""Hints for error messages: similar names, and the extra that installs a missing package."""

import re
from collections.abc import Iterable
from importlib.util import find_spec

from sensorsim._util.errors import InputError

LEAST_SIMILARITY = 0.6  # of 1
SHORT = 2  # characters of a name of which half may differ: k8 suggests k7
TESTING = "test"  # the extra that installs everything is suggested last
REQUIREMENT = re.compile(r"""([A-Za-z0-9._-]+)[^;]*(?:;.*extra\s*==\s*["']([^"']+)["'])?""")


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ` (did you mean …?)` with the most similar known name, or nothing; ignore case and leading dashes."""
    from difflib import get_close_matches

    asked = _comparable(str(name))
    names = {_comparable(each): each for each in known}
    near = get_close_matches(asked, names, n=1, cutoff=LEAST_SIMILARITY)
    if not near and len(asked) <= SHORT:
        near = get_close_matches(asked, [each for each in names if len(each) <= SHORT], n=1, cutoff=1 / SHORT)
    return f" (did you mean {names[near[0]]}?)" if near else ""


def _comparable(name: str) -> str:
    return name.casefold().lstrip("-")


def need(*modules: str, why: str = "this", instead: str = "") -> None:
    """Raise InputError if one of the packages is not installed; `instead` is another way to go on."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise InputError(how_to_get(missing, why, instead))


def how_to_get(missing: Iterable[str], why: str = "this", instead: str = "") -> str:
    """Return the message for missing packages; its command works in a clone of the project."""
    names = list(missing)
    otherwise = f", or {instead}" if instead else ""
    command = to_get(names)
    return f"{why} needs {' and '.join(names)}, not installed here; in the project's folder, run {command}{otherwise}."


def to_get(missing: Iterable[str]) -> str:
    """Return the command that installs the packages."""
    extras = sorted({extra for name in missing if (extra := extra_of(name))})
    place = f"'.[{','.join(extras)}]'" if extras else "."
    return f"pip install -c constraints.txt {place}"


def extra_of(module: str) -> str | None:
    """Return the extra that installs a package, "" for a plain install, None if no extra does.

    The extras are read from the metadata of the installed package, so setup.cfg is their only source.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("sensorsim") or []
    except PackageNotFoundError:  # the folder was never installed
        return None
    found = [match for match in map(REQUIREMENT.match, lines) if match]
    extras = {match[2] or "" for match in found if match[1].lower().replace("-", "_") == module}
    return min(extras, key=lambda extra: (extra != "", extra == TESTING, extra), default=None)
