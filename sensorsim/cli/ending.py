"""End a command: choose its exit code and one short sentence for stderr."""

from __future__ import annotations

import os
import re
from typing import Any

import click

from sensorsim._util.errors import SHORT, InputError, cut, one_line, shortened
from sensorsim._util.hints import did_you_mean, extra_of, how_to_get

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
    """Return the arguments without --debug, and whether it was among those before `--`."""
    end = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:end] if word != DEBUG]
    return kept + words[end:], len(kept) < end


def check_words(words: list[str]) -> None:
    """Refuse zero bytes, and numbers with more digits than Python reads."""
    for word in words:
        shown = cut(one_line(word), SHORT)
        if "\0" in word:
            raise InputError(f"{shown!r} holds a zero byte, which no name and no number has.")
        digits = max(map(len, NUMBERS.findall(word)), default=0)
        if digits > MOST_DIGITS:
            raise InputError(f"{shown} holds a number of {digits} digits; none here takes more than {MOST_DIGITS}.")


def ending_of(error: BaseException, words: list[str]) -> tuple[int, str]:
    """Return exit code and sentence for the error that ended a command with these arguments."""
    code, sentence = _ending(error, words)
    return code, shortened(sentence, words)


def _ending(error: BaseException, words: list[str]) -> tuple[int, str]:
    if isinstance(error, InputError):
        return getattr(error, "exit_code", REFUSED), f"Error: {error}"
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "sensorsim"
        return error.exit_code, f"Error: {_click_message(error)}; see `{where} --help`."
    if isinstance(error, click.Abort | KeyboardInterrupt):
        what = error.__cause__ or error  # click turns Ctrl-C into an Abort
        return INTERRUPTED, f"Interrupted {what}".strip() + "."
    if isinstance(error, ModuleNotFoundError):
        name = (error.name or "").partition(".")[0]
        if extra_of(name) is not None:
            return REFUSED, f"Error: {how_to_get([name])}"
    if isinstance(error, OSError) and _is_typed(error.filename, words):
        return REFUSED, f"Error: cannot use {error.filename}: {error.strerror}; give another path."
    if isinstance(error, MemoryError):
        advice = f"ask for less at once, or run again with {DEBUG} to see where"
        return FAULT, f"Error: there is not enough memory for this; {advice}."
    said = cut(f"{type(error).__name__}: {one_line(str(error))}".rstrip(": "), 2 * SHORT)
    advice = f"run again with {DEBUG} for the traceback"
    return FAULT, f"Error: {said}; this is a fault of sensorsim, not of what you asked: {advice}."


def _click_message(error: click.ClickException) -> str:
    """Return click's message without its full stop; suggest a similar option or command."""
    context: click.Context | None = getattr(error, "ctx", None)
    if context and isinstance(error, click.NoSuchOption):
        options = context.command.get_params(context)
        known = [word for option in options for word in (*option.opts, *option.secondary_opts)]
        return error.message.rstrip(".") + did_you_mean(error.option_name, known)
    if context and isinstance(context.command, click.Group) and hasattr(error, "command_name"):
        return error.message.rstrip(".") + did_you_mean(error.command_name, context.command.list_commands(context))
    return error.format_message().rstrip(".")


def _is_typed(path: object, words: list[str]) -> bool:
    """Return whether the user typed the path."""
    return isinstance(path, str) and os.path.normpath(path) in map(os.path.normpath, words)


def prepare(command: click.Command) -> click.Command:
    """Let a command check its outputs first, and refuse empty texts.

    An empty text would look like an absent option, and an empty path like the current folder.
    """
    from sensorsim.cli.writing import Checked

    command.context_class = Checked
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        prepare(inner)
    for option in command.params:
        if isinstance(option.type, click.types.StringParamType) and not isinstance(option.default, str):
            option.callback = option.callback or _refuse_empty
    return command


def _refuse_empty(_: click.Context, option: click.Parameter, value: Any) -> Any:
    if value == "" or (isinstance(value, tuple) and "" in value):
        name = option.opts[0] if isinstance(option, click.Option) else option.human_readable_name.strip("[].")
        advice = "give it a value" if option.required else "give it a value, or leave it out"
        raise InputError(f"{name} is empty; {advice}.")
    return value
