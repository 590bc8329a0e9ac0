"""Objects that must exist once: a copy would repeat secret random words, or spend a privacy budget twice.

A fork copies the memory of a process. Whoever holds a secret compares `process()` with its value when the secret was
made. Copies within a process and pickles are refused.
"""

import os
from threading import RLock
from typing import Any, NoReturn

from sensorsim._util.errors import InputError

_forks = [0]  # between the first process and this one


def _count_fork() -> None:
    _forks[0] += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def process() -> tuple[int, int]:
    """Identify this process among all that it was forked from, also if the system reuses one of their numbers."""
    return os.getpid(), _forks[0]


class Single:
    """Base class of objects that cannot be copied or pickled, and that one thread uses at a time."""

    instead = "make another one instead"  # advice where a copy was wanted

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise InputError(
            f"a {name} is not copied or pickled, because a copy would repeat what it gives; {self.instead}."
        )

    @property
    def one_at_a_time(self) -> Any:
        """Return the lock of this process: the parent may have held its own lock when it forked."""
        return self.__dict__.setdefault("_locks", {}).setdefault(process(), RLock())
