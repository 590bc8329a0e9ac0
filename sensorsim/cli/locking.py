"""`--lock` and `--check`, the same for every command that has figures."""

import sys
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sensorsim.cli.choices import FILE, WRITTEN
from sensorsim.cli.output import emit
from sensorsim.errors import InputError
from sensorsim.locking.choices import KEPT

if TYPE_CHECKING:
    from sensorsim.cost.cost_report import CostReport
    from sensorsim.locking.lock import Lock, Taken, Value

BESIDE = ("cores",)  # choices that are no options
REFUSED = {"cost": ("sweep", "plot"), "verify": (), "kernel": ("out",)}  # what a lock cannot hold, or would do twice
ASKED = {
    "cost": ("fmt",),
    "verify": ("folder", "trust", "jobs", "cc", "elf", "manifest", "symbol", "fmt"),
    "kernel": ("file", "fmt"),
}  # given anew each time


class Locks:
    """What a command is to do with a lock: write one, compare with one, or nothing."""

    def __init__(self, command: str, lock: Path | None, check: Path | None, fmt: str) -> None:
        self.command, self.lock, self.check, self.fmt = command, lock, check, fmt
        self.old: Lock | None = None
        self.choices: dict[str, Value | None] = {}

    def open(self, ctx: click.Context, given: dict[str, Any]) -> dict[str, Any]:
        """The command's arguments: as given, or with --check those that the lock was made with."""
        if self.lock is None and self.check is None:
            return given
        self._refuse(ctx)
        if self.check is None:
            self._look_at_place()
            self.choices = {name: given[name] for name in KEPT[self.command]}
            return given
        from sensorsim.locking.lock import read_lock

        self.old = read_lock(self.check)
        if self.old.command != self.command:
            raise InputError(f"{self.check} is a lock of another command ({self.old.command[:20]!r}); check it there.")
        return given | self._agreed(ctx, self.old.choices)

    def also(self, name: str, value: Callable[[], str]) -> str:
        """A choice that is no option: made when a lock is written, and taken from it when it is checked."""
        kept = self.old.choices.get(name) if self.old else None
        chosen = kept if isinstance(kept, str) else value()
        self.choices[name] = chosen
        return chosen

    def settle(self, take: Callable[[], "Taken"], holds: bool = True, kernels: Collection[str] = ()) -> None:
        """Write the lock, or compare with it: that prints what changed and ends the command.

        `kernels` are those that figures are named by, where they are; a lock of none of them is refused.
        """
        if self.old is not None:
            self._refuse_others(self.old, kernels)
            from sensorsim.locking.compare import compare

            found = compare(self.old.taken, take())
            emit(self.fmt, found.markdown, found.to_dict, found.rows)
            sys.exit(0 if found.same else 1)
        if self.lock is None:
            return
        if not holds:
            click.echo(f"{self.lock} is not written: something is not proved, see the report.", err=True)
            return
        from sensorsim.locking.lock import Lock, write_lock

        taken = take()
        write_lock(self.lock, Lock(self.command, self.choices, taken))
        tools = ", ".join(f"{name} {text}" for name, text in taken.toolchain.items())
        click.echo(f"{len(taken.figures)} figures locked in {self.lock} ({tools}).", err=True)

    def _refuse(self, ctx: click.Context) -> None:
        if self.lock is not None and self.check is not None:
            raise InputError("--lock writes a lock and --check compares with one; give one of them.")
        for name in REFUSED[self.command]:
            if _is_given(ctx, name):
                raise InputError(f"{_shown(ctx, name)} does not go with --lock and --check; leave it out.")

    def _refuse_others(self, old: "Lock", kernels: Collection[str]) -> None:
        """Refuse a lock of other kernels: that all figures differ would be no answer.

        A kernel of the same name in another file may be a copy, and is compared.
        """
        figures = old.taken.figures
        locked = [name.partition("/")[0] for name in figures if name.endswith(("/ranges/proved", "/differing_bits"))]
        alone = [{name.rpartition(".")[2] for name in names} for names in (locked, kernels)]
        if all(alone) and not set.intersection(*alone):
            theirs, ours = (", ".join(list(dict.fromkeys(names))[:3])[:80] for names in (locked, kernels))
            raise InputError(f"{self.check} is a lock of {theirs}, not of {ours}; check it with what it was made of.")

    def _agreed(self, ctx: click.Context, kept: "dict[str, Value | None]") -> dict[str, Any]:
        """The lock's options, as the command line takes them; InputError where one is given that says otherwise."""
        agreed = {}
        for name in kept:
            if name in BESIDE:
                continue
            if name not in KEPT[self.command]:
                raise InputError(f"{self.check} is no lock of this version: {name[:40]!r} is no choice; write it anew.")
            if _is_given(ctx, name) and ctx.params[name] != kept[name]:
                made = "its default" if kept[name] is None else repr(kept[name])[:40]
                raise InputError(
                    f"{_shown(ctx, name)} is given as {ctx.params[name]}, and {self.check} was made with {made}; leave "
                    "it out, or write a lock of its own."
                )
            agreed[name] = _taken(ctx, name, kept[name], self.check)
            if agreed[name] != ctx.params[name]:
                ctx.set_parameter_source(name, click.core.ParameterSource.COMMANDLINE)  # as if it had been given
        return agreed

    def _look_at_place(self) -> None:
        """Before the work, not after it."""
        from sensorsim.locking.lock import check_place

        if self.lock is not None:
            check_place(self.lock)


def settle_cost(locks: Locks, report: "CostReport", choices: dict[str, Any]) -> None:
    """For `cost`: its own figures, and where the tools are installed those of the machine code."""

    def take() -> "Taken":
        from sensorsim.locking.takers import cores_for, of_cost

        cores = locks.also("cores", lambda: cores_for(choices["cpu"], choices["chip"]))
        return of_cost(report.to_dict(), choices["variant"], cores)

    locks.settle(take)


def settle_machine(locks: Locks, report: dict[str, Any]) -> None:
    """For `cost --level machine`, of its JSON."""

    def take() -> "Taken":
        from sensorsim.locking.takers import of_machine

        return of_machine(report)

    locks.settle(take)


def settle_verify(locks: Locks, report: dict[str, Any]) -> None:
    """For `verify`, of its JSON."""

    def take() -> "Taken":
        from sensorsim.locking.takers import of_verify

        return of_verify(report)

    locks.settle(take, report["passed"], [result["kernel"] for result in report.get("results", ())])


def settle_kernel(locks: Locks, report: dict[str, Any], holds: bool) -> None:
    """For `kernel`, of its JSON."""

    def take() -> "Taken":
        from sensorsim.locking.takers import of_kernel

        return of_kernel(report)

    locks.settle(take, holds, report["kernels"])


def lock_options(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command --lock and --check; its function gets `locks` and calls `locks.settle` before it prints."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @click.option("--lock", type=WRITTEN,
                      help="Write every figure, the choices and the toolchain to a file, for --check.")  # fmt: skip
        @click.option("--check", type=FILE,
                      help="Compare with a lock, under its own choices: a Markdown table and exit code 1 if any figure "
                      "differs.")  # fmt: skip
        @wraps(function)
        def run(lock: str | None, check: str | None, **given: Any) -> None:
            written, read = (None if path is None else Path(path) for path in (lock, check))
            locks = Locks(command, written, read, given["fmt"])
            function(locks=locks, **locks.open(click.get_current_context(), given))

        return run

    return decorate


def _taken(ctx: click.Context, name: str, value: "Value | None", file: Path | None) -> Any:
    """A value of the lock where an option would have it; the option's own type says whether it may be there."""
    option = _option(ctx, name)
    if value is None and not isinstance(option.get_default(ctx), bool | int | float | str):
        return None  # an option without a default may be left out
    try:
        taken = None if value is None else option.process_value(ctx, value)
    except click.BadParameter:
        taken = None
    if taken is None or taken != value or isinstance(taken, bool) != isinstance(value, bool):
        raise InputError(f"{file} is no lock: {str(value)[:40]!r} is no {_shown(ctx, name)}; write one with --lock.")
    return taken


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _shown(ctx: click.Context, name: str) -> str:
    return _option(ctx, name).opts[0]


def _option(ctx: click.Context, name: str) -> click.Parameter:
    return next(option for option in ctx.command.params if option.name == name)
