"""What must exist once: copies of it would repeat secret words, or spend a budget twice.

A fork copies all memory of a process, so whoever holds a secret compares `process()` with what it was when the secret
was made. Copies within a process and pickles are refused.
"""

import os
from threading import RLock
from typing import Any, NoReturn

from sensorsim.errors import InputError

_forks = [0]  # of this process and those that it was forked from


def _count() -> None:
    _forks[0] += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count)


def process() -> tuple[int, int]:
    """Return what tells this process from all that it was forked from, also where a number of theirs is used again."""
    return os.getpid(), _forks[0]


class Single:
    """Base class of what refuses to be copied or pickled, and is used by one thread at a time."""

    instead = "make another one instead"  # what to do where a copy was wanted

    def __reduce__(self) -> NoReturn:
        raise InputError(
            f"a {type(self).__name__} is not copied or pickled, because a copy would repeat what it gives; "
            f"{self.instead}."
        )

    @property
    def one_at_a_time(self) -> Any:
        """Return the lock of this process: that of the parent may have been forked while it was held."""
        return self.__dict__.setdefault("_locks", {}).setdefault(process(), RLock())
