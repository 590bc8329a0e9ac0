"""Write, or compare with, the lock of a command: `--lock` and `--check`."""

import dataclasses
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.progress import note
from sensorsim.commands.declare import Command, flag_of
from sensorsim.commands.lock_file import CORES, Lock, Taken, Value, check_place, compare, read_lock, write_lock
from sensorsim.commands.outputs import emit


class Locks:
    """The lock that a command line asks to write or to compare with."""

    def __init__(self, name: str, command: type[Command[Any]], lock: str | None, check: str | None, form: str) -> None:
        if lock is not None and check is not None:
            raise InputError("--lock writes a lock and --check compares with one; give one of them.")
        self.name, self.form = name, form
        self.fields = {each.name: each for each in dataclasses.fields(command)}
        self.lock = None if lock is None else Path(lock)
        self.check = None if check is None else Path(check)
        self.old: Lock | None = None
        self.choices: dict[str, Value | None] = {}

    def agree(self, given: dict[str, Any], plot: str | None) -> dict[str, Any]:
        """Return the options of the command: as given, or with --check those of the lock."""
        ways = {name: each.metadata["option"].lock for name, each in self.fields.items()}
        for name in [*(name for name in given if ways[name] == "refuse"), *(["plot"] if plot else [])]:
            raise InputError(f"{self._flag(name)} does not go with --lock and --check; leave it out.")
        kept = [name for name, way in ways.items() if way == "keep"]
        if self.lock is not None:
            check_place(self.lock)
            self.choices = {name: given.get(name, self.fields[name].default) for name in kept}
            return given
        assert self.check is not None
        self.old = read_lock(self.check, self.name, kept)
        taken = {name: value for name, value in self.old.choices.items() if name != CORES}
        for name, value in taken.items():
            if name not in kept:
                raise InputError(f"{self.check} is no lock of this version: {name[:40]!r} is no choice; write it anew.")
            if name in given and given[name] != value:
                made = "its default" if value is None else repr(value)[:40]
                raise InputError(
                    f"{self._flag(name)} is given as {given[name]}, and {self.check} was made with {made}; leave it "
                    "out, or write a lock of its own."
                )
            self._check_choice(name, value)
        changed = {name: value for name, value in taken.items() if value != self.fields[name].default}
        return given | changed

    def _flag(self, name: str) -> str:
        return f"--{flag_of(name, self.fields[name].metadata['option']) if name in self.fields else name}"

    def _check_choice(self, name: str, value: "Value | None") -> None:
        """Refuse a value that the option of this name does not take: a lock is untrusted."""
        default = self.fields[name].default
        if value is None and default is None:
            return
        try:
            same = value == default and isinstance(value, bool) == isinstance(default, bool)
            if not same and self.fields[name].metadata["option"].kind.check(name, value) != value:
                raise InputError
        except InputError:
            raise InputError(
                f"{self.check} is no lock: {str(value)[:40]!r} is no {self._flag(name)}; write one with --lock."
            ) from None

    def also(self, name: str, value: Callable[[], str]) -> str:
        """Return a choice that is no option: computed for a new lock, taken from a lock that is checked."""
        stored = self.old.choices.get(name) if self.old else None
        chosen = stored if isinstance(stored, str) else value()
        self.choices[name] = chosen
        return chosen

    def settle(self, take: Callable[[], Taken], holds: bool = True, kernels: Collection[str] = ()) -> None:
        """Write the lock, or print the comparison with it and exit.

        `kernels` are those that figures are named by; a lock of none of them is refused.
        """
        if self.old is not None:
            self._refuse_others(self.old, kernels)
            found = compare(self.old.taken, take())
            emit(self.form, found.markdown, found.to_dict, found.rows)
            sys.exit(0 if found.same else 1)
        assert self.lock is not None
        if not holds:
            note(f"{self.lock} is not written: something is not proved, see the report.")
            return
        taken = take()
        write_lock(self.lock, Lock(self.name, self.choices, taken))
        tools = ", ".join(f"{name} {text}" for name, text in taken.toolchain.items())
        note(f"{len(taken.figures)} figures locked in {self.lock} ({tools}).")

    def _refuse_others(self, old: Lock, kernels: Collection[str]) -> None:
        """Refuse a lock of other kernels, of which all figures would differ; a file's name may differ."""
        figures = old.taken.figures
        locked = [name.partition("/")[0] for name in figures if name.endswith(("/ranges/proved", "/differing_bits"))]
        alone = [{name.rpartition(".")[2] for name in names} for names in (locked, kernels)]
        if all(alone) and not set.intersection(*alone):
            theirs, ours = (", ".join(list(dict.fromkeys(names))[:3])[:80] for names in (locked, kernels))
            raise InputError(f"{self.check} is a lock of {theirs}, not of {ours}; check it with what it was made of.")
