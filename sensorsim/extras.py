"""Packages that not every install has: which extra brings one, and the sentence that says so.

Which package belongs to which extra stands in setup.cfg alone; it is read from what was installed.
"""

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

from sensorsim.errors import InputError

TESTING = "test"  # brings everything, so it is named last
REQUIREMENT = re.compile(r"""([A-Za-z0-9._-]+)[^;]*(?:;.*extra\s*==\s*["']([^"']+)["'])?""")


def need(*modules: str, why: str = "this", instead: str = "") -> None:
    """Refuse to begin what needs a package that is missing; `instead` is another way out."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise InputError(how_to_get(missing, why, instead))


def how_to_get(missing: Iterable[str], why: str = "this", instead: str = "") -> str:
    """The sentence; it works in a clone, which is where the project is installed from."""
    names = list(missing)
    way_out = f", or {instead}" if instead else ""
    return (
        f"{why} needs {' and '.join(names)}, not installed here; in the project's folder, run {to_get(names)}{way_out}."
    )


def to_get(missing: Iterable[str]) -> str:
    """The command that brings them."""
    extras = sorted({extra for name in missing if (extra := extra_of(name))})
    place = f"'.[{','.join(extras)}]'" if extras else "."
    return f"pip install -c constraints.txt {place}"


def extra_of(module: str) -> str | None:
    """The extra that brings a package; an empty one if a plain install has it; None if we never ask for it."""
    found = _extras().get(module, set())
    return min(found, key=lambda extra: (extra != "", extra == TESTING, extra)) if found else None


def _extras() -> dict[str, set[str]]:
    try:
        lines = requires("sensorsim") or []
    except PackageNotFoundError:  # a folder that was never installed
        return {}
    found: dict[str, set[str]] = {}
    for match in filter(None, map(REQUIREMENT.match, lines)):
        found.setdefault(match[1].lower().replace("-", "_"), set()).add(match[2] or "")
    return found
