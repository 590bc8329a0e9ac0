"""Add `--lock` and `--check` to commands that have figures."""

import sys
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sensorsim._util.errors import InputError
from sensorsim.cli.choices import FILE, WRITTEN
from sensorsim.cli.output import emit

if TYPE_CHECKING:
    from sensorsim.commands.lock_file import Lock, Taken, Value
    from sensorsim.costing.cost_report import CostReport

REFUSED = {"cost": ("sweep", "plot"), "verify": (), "kernel": ("out",)}  # options that a lock cannot hold
ASKED = {  # options that are given anew each time
    "cost": ("fmt",),
    "verify": ("folder", "trust", "jobs", "cc", "elf", "manifest", "symbol", "fmt"),
    "kernel": ("file", "fmt"),
}


class Locks:
    """Write a lock, compare with one, or do nothing, as a command line asks."""

    def __init__(self, command: str, lock: Path | None, check: Path | None, fmt: str) -> None:
        self.command, self.lock, self.check, self.fmt = command, lock, check, fmt
        self.old: Lock | None = None
        self.choices: dict[str, Value | None] = {}

    def open(self, ctx: click.Context, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the command: as given, or with --check those of the lock."""
        if self.lock is None and self.check is None:
            return given
        from sensorsim.commands.lock_file import CORES, KEPT, check_place, read_lock

        if self.lock is not None and self.check is not None:
            raise InputError("--lock writes a lock and --check compares with one; give one of them.")
        for name in REFUSED[self.command]:
            if _is_given(ctx, name):
                raise InputError(f"{_shown(ctx, name)} does not go with --lock and --check; leave it out.")
        if self.lock is not None:
            check_place(self.lock)
            self.choices = {name: given[name] for name in KEPT[self.command]}
            return given
        assert self.check is not None
        self.old = read_lock(self.check)
        if self.old.command != self.command:
            raise InputError(f"{self.check} is a lock of another command ({self.old.command[:20]!r}); check it there.")
        options = {name: value for name, value in self.old.choices.items() if name != CORES}
        return given | {name: self._choice(ctx, name, value) for name, value in options.items()}

    def also(self, name: str, value: Callable[[], str]) -> str:
        """Return a choice that is no option: computed for a new lock, taken from a lock that is checked."""
        stored = self.old.choices.get(name) if self.old else None
        chosen = stored if isinstance(stored, str) else value()
        self.choices[name] = chosen
        return chosen

    def settle(self, take: "Callable[[], Taken]", holds: bool = True, kernels: Collection[str] = ()) -> None:
        """Write the lock, or print the comparison with it and exit.

        `kernels` are those that figures are named by; a lock of none of them is refused.
        """
        if self.old is None and self.lock is None:
            return
        from sensorsim.commands.lock_file import Lock, compare, write_lock

        if self.old is not None:
            self._refuse_others(self.old, kernels)
            found = compare(self.old.taken, take())
            emit(self.fmt, found.markdown, found.to_dict, found.rows)
            sys.exit(0 if found.same else 1)
        assert self.lock is not None
        if not holds:
            click.echo(f"{self.lock} is not written: something is not proved, see the report.", err=True)
            return
        taken = take()
        write_lock(self.lock, Lock(self.command, self.choices, taken))
        tools = ", ".join(f"{name} {text}" for name, text in taken.toolchain.items())
        click.echo(f"{len(taken.figures)} figures locked in {self.lock} ({tools}).", err=True)

    def _refuse_others(self, old: "Lock", kernels: Collection[str]) -> None:
        """Refuse a lock of other kernels, of which all figures would differ; a file's name may differ."""
        figures = old.taken.figures
        locked = [name.partition("/")[0] for name in figures if name.endswith(("/ranges/proved", "/differing_bits"))]
        alone = [{name.rpartition(".")[2] for name in names} for names in (locked, kernels)]
        if all(alone) and not set.intersection(*alone):
            theirs, ours = (", ".join(list(dict.fromkeys(names))[:3])[:80] for names in (locked, kernels))
            raise InputError(f"{self.check} is a lock of {theirs}, not of {ours}; check it with what it was made of.")

    def _choice(self, ctx: click.Context, name: str, value: "Value | None") -> Any:
        """Return a choice of the lock as its option takes it; raise InputError if another value is given."""
        from sensorsim.commands.lock_file import KEPT, Value

        if name not in KEPT[self.command]:
            raise InputError(f"{self.check} is no lock of this version: {name[:40]!r} is no choice; write it anew.")
        if _is_given(ctx, name) and ctx.params[name] != value:
            made = "its default" if value is None else repr(value)[:40]
            raise InputError(
                f"{_shown(ctx, name)} is given as {ctx.params[name]}, and {self.check} was made with {made}; leave it "
                "out, or write a lock of its own."
            )
        option = _option(ctx, name)
        taken: Any = None
        if value is not None or isinstance(option.get_default(ctx), Value):  # else the option may be absent
            try:
                taken = None if value is None else option.process_value(ctx, value)
            except click.BadParameter:
                taken = None
            if taken is None or taken != value or isinstance(taken, bool) != isinstance(value, bool):
                shown = f"{str(value)[:40]!r} is no {_shown(ctx, name)}"
                raise InputError(f"{self.check} is no lock: {shown}; write one with --lock.")
        if taken != ctx.params[name]:
            ctx.set_parameter_source(name, click.core.ParameterSource.COMMANDLINE)  # as if it had been given
        return taken


def settle_cost(locks: Locks, report: "CostReport", choices: dict[str, Any]) -> None:
    """Settle the lock of `cost`: its figures, and those of machine code if the tools are installed."""

    def take() -> "Taken":
        cores = locks.also("cores", lambda: _figures().cores_for(choices["cpu"], choices["chip"]))
        taken: Taken = _figures().of_cost(report.to_dict(), choices["variant"], cores)
        return taken

    locks.settle(take)


def settle_machine(locks: Locks, report: dict[str, Any]) -> None:
    """Settle the lock of `cost --level machine`."""
    locks.settle(lambda: _figures().of_machine(report))


def settle_verify(locks: Locks, report: dict[str, Any]) -> None:
    """Settle the lock of `verify`."""
    kernels = [result["kernel"] for result in report.get("results", ())]
    locks.settle(lambda: _figures().of_verify(report), report["passed"], kernels)


def settle_kernel(locks: Locks, report: dict[str, Any], holds: bool) -> None:
    """Settle the lock of `kernel`."""
    locks.settle(lambda: _figures().of_kernel(report), holds, report["kernels"])


def _figures() -> Any:
    """Import what collects figures, which a command without a lock does not need."""
    from sensorsim.commands import locked_figures

    return locked_figures


def lock_options(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command --lock and --check; its function gets `locks` and settles it before it prints."""

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


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _shown(ctx: click.Context, name: str) -> str:
    return _option(ctx, name).opts[0]


def _option(ctx: click.Context, name: str) -> click.Parameter:
    return next(option for option in ctx.command.params if option.name == name)
