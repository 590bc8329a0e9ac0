"""Write, or compare with, the lock of a command: `--lock` and `--check`."""

import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.progress import note
from sensorsim.commands.declare import Command, flag_of
from sensorsim.commands.lock_file import CORES, Figure, Lock, Taken, Value, check_place, compare, read_lock, write_lock
from sensorsim.commands.outputs import emit


class Locks:
    """The lock that a command line asks to write or to compare with."""

    def __init__(self, name: str, command: type[Command[Any]], lock: str | None, check: str | None, form: str) -> None:
        if lock is not None and check is not None:
            raise InputError("--lock writes a lock and --check compares with one; give one of them.")
        self.name, self.form, self.path = name, form, Path(lock or check or "")
        self.fields = {each.name: each for each in dataclasses.fields(command)}
        self.checks, self.old = check is not None, Lock(name, {}, Taken({}, {}))
        self.choices: dict[str, Value | None] = {}

    def agree(self, given: dict[str, Any], plot: str | None) -> dict[str, Any]:
        """Return the options of the command: as given, or with --check those of the lock."""
        ways = {name: each.metadata["option"].lock for name, each in self.fields.items()}
        for name in [*(name for name in given if ways[name] == "refuse"), *(["plot"] if plot else [])]:
            raise InputError(f"{self._flag(name)} does not go with --lock and --check; leave it out.")
        kept = [name for name, way in ways.items() if way == "keep"]
        if not self.checks:
            check_place(self.path)
            self.choices = {name: given.get(name, self.fields[name].default) for name in kept}
            return given
        self.old = read_lock(self.path, self.name, kept)
        taken = {name: value for name, value in self.old.choices.items() if name != CORES}
        for name, value in taken.items():
            if name not in kept:
                raise InputError(f"{self.path} is no lock of this version: {name[:40]!r} is no choice; write it anew.")
            if name in given and given[name] != value:
                made = "its default" if value is None else repr(value)[:40]
                raise InputError(
                    f"{self._flag(name)} is given as {given[name]}, and {self.path} was made with {made}; leave it "
                    "out, or write a lock of its own."
                )
            self._check_choice(name, value)
        return given | {name: value for name, value in taken.items() if value != self.fields[name].default}

    def _flag(self, name: str) -> str:
        return f"--{flag_of(name, self.fields[name].metadata['option']) if name in self.fields else name}"

    def _check_choice(self, name: str, value: "Value | None") -> None:
        """Refuse a value that the option of this name does not take: a lock is untrusted."""
        default = self.fields[name].default
        if value == default and isinstance(value, bool) == isinstance(default, bool):
            return
        try:
            if self.fields[name].metadata["option"].kind.check(name, value) != value:
                raise InputError
        except InputError:
            raise InputError(
                f"{self.path} is no lock: {str(value)[:40]!r} is no {self._flag(name)}; write one with --lock."
            ) from None

    def also(self, name: str, value: Callable[[], str]) -> str:
        """Return a choice that is no option: computed for a new lock, taken from a lock that is checked."""
        stored = self.old.choices.get(name)
        chosen = stored if isinstance(stored, str) else value()
        self.choices[name] = chosen
        return chosen

    def settle(self, taken: Taken, holds: bool = True) -> None:
        """Write the lock, or print the comparison with it and exit."""
        if self.checks:
            self._refuse_others(taken.figures)
            found = compare(self.old.taken, taken)
            emit(found, self.form, lambda found: found.markdown())
            sys.exit(0 if found.same else 1)
        if not holds:
            note(f"{self.path} is not written: something is not proved, see the report.")
            return
        write_lock(self.path, Lock(self.name, self.choices, taken))
        tools = ", ".join(f"{name} {text}" for name, text in taken.toolchain.items())
        note(f"{len(taken.figures)} figures locked in {self.path} ({tools}).")

    def _refuse_others(self, figures: Mapping[str, Figure]) -> None:
        """Refuse a lock of other kernels, of which all figures would differ; a file's name may differ."""
        of_kernel = ("/ranges/proved", "/differing_bits")
        kernels = [
            dict.fromkeys(name.partition("/")[0] for name in names if name.endswith(of_kernel))
            for names in (self.old.taken.figures, figures)
        ]
        alone = [{name.rpartition(".")[2] for name in names} for names in kernels]
        if all(alone) and not set.intersection(*alone):
            theirs, ours = (", ".join(list(names)[:3])[:80] for names in kernels)
            raise InputError(f"{self.path} is a lock of {theirs}, not of {ours}; check it with what it was made of.")
