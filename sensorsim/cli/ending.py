"""How a command ends: its exit code, and one sentence on stderr, short whatever was typed."""

from __future__ import annotations

import os
import re
from typing import Any

import click

from sensorsim._util.hints import did_you_mean
from sensorsim.errors import SHORT, InputError, cut, one_line, shortened

DONE, FAILED, REFUSED, FAULT, INTERRUPTED, TERMINATED = 0, 1, 2, 70, 130, 143
CODES = {
    DONE: "done, and whatever was to be proved holds",
    FAILED: "a proof fails, bits differ, or a figure is not that of the lock",
    REFUSED: "the question is wrong: an argument, a file, a package that is missing; nothing was written",
    FAULT: "a fault of sensorsim; --debug shows where",
    INTERRUPTED: "interrupted by Ctrl-C; what is written is whole",
    TERMINATED: "the same by a signal to end",
}
DEBUG = "--debug"
NUMBERS = re.compile(r"\d+")
MOST_DIGITS = 1000


def without_debug(words: list[str]) -> tuple[list[str], bool]:
    """The arguments without --debug, which may stand anywhere before `--`, and whether it did."""
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != DEBUG]
    return kept + words[end:], len(kept) < end


def check_words(words: list[str]) -> None:
    """Refuse a number that Python itself would not read: no range that follows has to think of it."""
    for word in words:
        if "\0" in word:
            raise InputError(f"{cut(one_line(word), SHORT)!r} holds a zero byte, which no name and no number has.")
        digits = max(map(len, NUMBERS.findall(word)), default=0)
        if digits > MOST_DIGITS:
            shown = cut(one_line(word), SHORT)
            raise InputError(f"{shown} holds a number of {digits} digits; none here takes more than {MOST_DIGITS}.")


def ending_of(error: BaseException, words: list[str]) -> tuple[int, str]:
    """Exit code and sentence of what ended a command."""
    if isinstance(error, InputError):
        return getattr(error, "exit_code", REFUSED), shortened(f"Error: {error}", words)
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "sensorsim"
        hint = f"; see `{where} --help`."
        return error.exit_code, shortened(f"Error: {_said(error)}{hint}", words)
    if isinstance(error, click.Abort | KeyboardInterrupt):
        what = error.__cause__ or error  # click makes an Abort of Ctrl-C
        return INTERRUPTED, shortened(f"Interrupted {what}".strip() + ".", words)
    if isinstance(error, ModuleNotFoundError):
        from sensorsim._util.hints import extra_of, how_to_get

        name = (error.name or "").partition(".")[0]
        if extra_of(name) is not None:
            return REFUSED, shortened(f"Error: {how_to_get([name])}", words)
    if isinstance(error, OSError) and _is_typed(error.filename, words):
        return REFUSED, shortened(f"Error: cannot use {error.filename}: {error.strerror}; give another path.", words)
    return FAULT, shortened(f"Error: {_fault(error)}", words)


def _said(error: click.ClickException) -> str:
    """What click says, without a full stop; of a command or an option that there is none of, with our own guess."""
    context: click.Context | None = getattr(error, "ctx", None)
    if context and isinstance(error, click.NoSuchOption):
        options = context.command.get_params(context)
        known = [word for option in options for word in (*option.opts, *option.secondary_opts)]
        return error.message.rstrip(".") + did_you_mean(error.option_name, known)
    if context and isinstance(context.command, click.Group) and hasattr(error, "command_name"):
        known = context.command.list_commands(context)
        return error.message.rstrip(".") + did_you_mean(error.command_name, known)
    return error.format_message().rstrip(".")


def _is_typed(path: object, words: list[str]) -> bool:
    """Whether it is a path of the user's, not one of ours."""
    return isinstance(path, str) and os.path.normpath(path) in map(os.path.normpath, words)


def prepare(command: click.Command) -> click.Command:
    """Give a command what all have in common: its outputs are checked first, and no option takes an empty text.

    An empty text would pass for an option that was not given, and an empty path for the folder one is in.
    """
    from sensorsim.cli.writing import Checked

    command.context_class = Checked
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        prepare(inner)
    for option in command.params:
        if isinstance(option.type, click.types.StringParamType) and not isinstance(option.default, str):
            option.callback = option.callback or _not_empty
    return command


def _not_empty(_: click.Context, option: click.Parameter, value: Any) -> Any:
    if value == "" or (isinstance(value, tuple) and "" in value):
        name = option.opts[0] if isinstance(option, click.Option) else option.human_readable_name.strip("[].")
        do = "give it a value" if option.required else "give it a value, or leave it out"
        raise InputError(f"{name} is empty; {do}.")
    return value


def _fault(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this; ask for less at once, or run again with {DEBUG} to see where."
    said = f"{type(error).__name__}: {one_line(str(error))}".rstrip(": ")
    said = said if len(said) <= 2 * SHORT else f"{said[: 2 * SHORT]}…"
    return f"{said}; this is a fault of sensorsim, not of what you asked: run again with {DEBUG} for the traceback."
