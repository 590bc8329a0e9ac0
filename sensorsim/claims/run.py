"""`claims(full, data)`: recompute."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from sensorsim._util.hints import did_you_mean
from sensorsim.claims.claim import FULL, STATEMENTS, Claim, Statement
from sensorsim.claims.result import Claims
from sensorsim.errors import InputError

Progress = Callable[[str, int, int], None]  # what begins, how many are done, how many there are
# In the order of the answer.
FILES = ("costs", "exponential", "prices", "loss", "taylor", "privacy", "release", "noise", "experiment", "own")


def statements() -> list[Statement]:
    """All of them, whether they train or compile or not."""
    place = {import_module(f"sensorsim.claims.{name}").__name__: number for number, name in enumerate(FILES)}
    # Sorted, as someone may have imported another file first.
    return sorted(STATEMENTS.values(), key=lambda one: place.get(one.function.__module__, len(FILES)))


def claims(
    full: bool = False,
    data: str | None = None,
    only: str | Sequence[str] = (),
    progress: Progress = lambda what, done, total: None,
) -> Claims:
    """Recompute every claim that can be checked without training, with `full` also those that need it.

    `data` is a file of daily activity in place of the synthetic set; `only` names the claim or claims that are wanted.
    `progress` is told what begins, how many are done and how many there are.
    """
    from sensorsim.claims.setting import Setting

    known, only = statements(), [only] if isinstance(only, str) else only
    wanted = _named(known, only, full) if only else [one for one in known if full or one.needs != FULL]
    setting = Setting(data, full)
    setting.check()
    found: list[Claim] = []
    for one in wanted:
        progress(one.id, len(found), len(wanted))
        setting.said = partial(_say, progress, one.id, len(found), len(wanted))
        found.append(one.check(setting))
    left = 0 if full or only else sum(one.needs == FULL for one in known)
    return Claims(tuple(found), full, setting.name, left)


def _say(progress: Progress, id: str, done: int, total: int, what: str) -> None:
    progress(f"{id}: {what}", done, total)


def _named(known: list[Statement], only: Sequence[str], full: bool) -> list[Statement]:
    by_id = {one.id: one for one in known}
    for name in only:
        if name not in by_id:
            hint = did_you_mean(name, by_id)
            raise InputError(f"there is no claim {name[:40]!r}{hint}; `sensorsim claims --format csv` lists them.")
        if by_id[name].needs == FULL and not full:
            raise InputError(f"claim {name} trains or compiles; add --full.")
    return [by_id[name] for name in dict.fromkeys(only)]
