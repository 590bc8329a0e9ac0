"""What a model's file says of itself: how private it is and what its numbers mean. The list below is all that is told.

No accuracy and no error of a column, which are measured on raw records; no seed and no configuration from which noise
could be drawn again; no name of a file, no count of a person's records, no maximum of a column.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.encoders import MOST_NAME, name_of, range_of
from sensorsim.ranges import brief
from sensorsim.training.config import MOST_SIGMA
from sensorsim.training.trained import FORMS

if TYPE_CHECKING:
    from sensorsim.ranges import Range
    from sensorsim.training.statement import Statement

SCHEMA_VERSION = 3
CONTENT = "sensorsim model"
SECRET, SEEDED, SENSORS, NONE = "secret", "from a seed, so not private", "the sensors' own", "none"
NOISE = (SECRET, SEEDED, SENSORS, NONE)
NORMALISE = ("ranges", "max", None)  # None: from packets, and nobody said how readings became 0 … 1
MOST_USERS, MOST_FEATURES, MOST_LETTERS = 1 << 16, 4096, 2000
MOST_EPSILON = 1e6
SIZES = {"n": MOST_FEATURES, "l": MOST_FEATURES, "m": MOST_USERS, "records": 1 << 50}
WORDS = ("mechanism", "covers", "covers_short", "trust", "settings")
FIELDS = (
    *("schema_version", "content", "form", "n", "l", "m", "columns", "ranges", "normalise", "mechanism", "kind"),
    *("nominal_epsilon", "spent_epsilon", "delta", "covers", "covers_short", "trust", "settings", "noise"),
    *("records", "identity", "sigma"),
)


def about_model(
    statement: Statement,
    *,
    form: str,
    mechanism: str,
    kind: str | None,
    sizes: tuple[int, int, int],
    columns: tuple[str, ...],
    ranges: tuple[Range, ...] | None,
    normalise: str | None,
    noise: str,
    records: int,
    identity: list[str],
    sigma: float = 0.0,
) -> dict[str, Any]:
    """`sizes` are n, l and m; `records` is how many were trained on or how many packets came; both are public.

    `sigma` is the noise of the environment that it was made for.
    """
    n, l, m = sizes
    check_columns(columns, ranges)
    for epsilon in (statement.nominal_epsilon, statement.spent_epsilon):
        if epsilon is not None and not 0 < epsilon <= MOST_EPSILON:
            raise InputError(
                f"a record spends an epsilon of {epsilon:g}; a model can state one up to {MOST_EPSILON:g}."
            )
    made = {"schema_version": SCHEMA_VERSION, "content": CONTENT, "form": form, "n": n, "l": l, "m": m}
    made |= {"columns": list(columns), "ranges": None if ranges is None else [asdict(one) for one in ranges]}
    made |= {"normalise": normalise, "mechanism": mechanism, "kind": kind, "noise": noise}
    made |= {"records": records, "identity": identity, "sigma": sigma}
    told = ("nominal_epsilon", "spent_epsilon", "delta", "covers", "covers_short", "trust", "settings")
    return checked_about(made | {name: getattr(statement, name) for name in told})


def checked_about(found: Any) -> dict[str, Any]:
    """The same, if it is whole and holds nothing else. Errors of any kind where it does not."""
    if type(found) is not dict or found.get("content") != CONTENT:
        raise InputError("it is no model of this sensorsim; make it again with sensorsim train --out.")
    if found["schema_version"] != SCHEMA_VERSION:
        raise InputError(f"it has another schema version than {SCHEMA_VERSION}; make it again with sensorsim train.")
    if set(found) != set(FIELDS):
        raise ValueError("fields")
    for name, most in SIZES.items():
        if type(found[name]) is not int or not 1 <= found[name] <= most:
            raise ValueError(name)
    if found["form"] not in FORMS or found["noise"] not in NOISE or found["normalise"] not in NORMALISE:
        raise ValueError("form")
    if found["l"] > found["n"] or len(_listed(found["columns"])) != found["n"]:
        raise ValueError("columns")
    for name in (*found["columns"], *_listed(found["identity"]), found["kind"] or ""):
        name_of(name)
    for name in WORDS:
        if type(found[name]) is not str or not found[name].isprintable() or len(found[name]) > MOST_LETTERS:
            raise ValueError(name)
    for name in ("nominal_epsilon", "spent_epsilon"):
        if found[name] is not None and not 0 < _number(found[name]) <= MOST_EPSILON:
            raise ValueError(name)
    for name, limit in (("delta", 1.0), ("sigma", MOST_SIGMA)):
        if not 0 <= _number(found[name]) <= limit:
            raise ValueError(name)
    ranges_of(found)
    return {name: found[name] for name in FIELDS}


def check_columns(columns: tuple[str, ...], ranges: tuple[Range, ...] | None = None) -> None:
    """Refuse names and units that no file could hold, before anything is trained."""
    if len(columns) > MOST_FEATURES:
        raise InputError(f"there are {len(columns)} columns; a model has at most {MOST_FEATURES}, so choose --columns.")
    for name in (*columns, *(one.unit for one in ranges or ())):
        try:
            name_of(name)
        except TypeError:
            raise InputError(
                f"{brief(name)} cannot be the name or unit of a column; a model holds up to {MOST_NAME} printable "
                "letters, so give another."
            ) from None


def check_users(m: int) -> None:
    """Refuse a number of users that would fill the memory before the file refuses it."""
    if not 1 <= m <= MOST_USERS:
        raise InputError(f"m = {m} users; a model has 1 to {MOST_USERS}, so give another --m.")


def ranges_of(about: dict[str, Any]) -> tuple[Range, ...] | None:
    """The ranges of the columns, in their order."""
    found = about["ranges"]
    if found is None:
        return None
    made = tuple(range_of(one) for one in _listed(found))
    if [one.name for one in made] != about["columns"]:
        raise ValueError("ranges")
    return made


def _number(value: Any) -> Any:
    """As it is, so that a whole number that no float can hold is compared and not converted."""
    if type(value) not in (int, float):
        raise ValueError("number")
    return value


def _listed(value: Any) -> list[Any]:
    if type(value) is not list:
        raise ValueError("list")
    return value
