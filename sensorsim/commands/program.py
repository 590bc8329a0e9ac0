"""The program `sensorsim`: the group of its commands, exit codes, and one sentence for whatever ends a command."""

import atexit
import contextlib
import gc
import importlib
import io
import os
import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

import click

from sensorsim._util.errors import SHORT, InputError, cut, on_the_command_line, one_line, shortened
from sensorsim._util.hints import did_you_mean, extra_of, how_to_get
from sensorsim._util.interrupts import record_signals
from sensorsim._util.progress import shown
from sensorsim._util.terminal import show_plainly
from sensorsim.commands import COMMANDS, GROUPS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# A command that starts makes many small objects that all stay: collecting garbage every 700 takes a fifth of the time
# that `cost` needs.
gc.set_threshold(50_000)
atexit.register(gc.freeze)  # nor is garbage looked for at the end of the process, which frees all at once

NAME, COMPLETE = "sensorsim", "_SENSORSIM_COMPLETE"  # of the program, and what a shell sets to ask it
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
MOST_DIGITS = 1000
LONG_NUMBER = re.compile(rf"\d{{{MOST_DIGITS + 1}}}")


class CommandGroup(click.Group):
    """The commands below a name, listed without importing them; all of them below the empty name."""

    prefix = ""  # of the names of commands below it, as "noise "

    @classmethod
    def below(cls, name: str, own: click.Command | None) -> "CommandGroup":
        """Return the group of a command's subcommands; where none is given, the command itself runs."""
        if own is None:
            made = cls(name, help=GROUPS[name], short_help=GROUPS[name].partition("\n")[0])
        else:
            more = {"params": own.params, "callback": _unless_below(own), "invoke_without_command": True}
            made = cls(name, help=own.help, short_help=own.short_help, **more)
        made.prefix = f"{name} "
        return made

    def lines(self) -> dict[str, str]:
        """Return the names and the one line of each command."""
        found: dict[str, str] = {}
        for name, entry in COMMANDS.items():
            if name.startswith(self.prefix) and entry.shell:
                word, _, below = name.removeprefix(self.prefix).partition(" ")
                if word not in found:
                    found[word] = GROUPS[self.prefix + word].partition("\n")[0] if below else entry.about
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lines())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.lines():
            return None
        from sensorsim.commands.shell import click_command

        full = self.prefix + name
        own = click_command(full, COMMANDS[full]) if full in COMMANDS else None
        return CommandGroup.below(full, own) if any(each.startswith(f"{full} ") for each in COMMANDS) else own

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[str]]":
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=line) for name, line in self.lines().items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]  # that of a group imports every command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lines().items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.prefix:
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(code), meaning) for code, meaning in CODES.items()])


def _unless_below(own: click.Command) -> Any:
    """Return the callback of a command with subcommands: it runs where none of them is given."""

    @click.pass_context
    def run(ctx: click.Context, /, **values: Any) -> None:
        if ctx.invoked_subcommand is None:
            ctx.invoke(own.callback, **values)  # type: ignore[arg-type]

    return run


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="sensorsim")
@click.option("--debug", is_flag=True, help="Show where an error came up. Before or after the command.")
def group(debug: bool) -> None:
    """Compute what privacy on a body-worn sensor costs, protects and delivers.

    Example: sensorsim cost --n 14 --l 7
    """
    del debug  # `main` has taken it out of the arguments


def main(args: list[str] | None = None) -> Any:
    """Run a command; whatever ends it is one sentence on stderr and an exit code of CODES.

    Characters that the terminal cannot show are replaced, and output that cannot be written is a sentence too.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # a shell can start us without one
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper):
            show_plainly(stream)
    given = sys.stdout
    try:
        try:
            with on_the_command_line():
                return _run(sys.argv[1:] if args is None else args)
        finally:
            sys.stdout.flush()
    except SystemExit:
        if sys.stdout is given:  # click wraps it where the reader of our output went away, and would exit with 1
            raise
        _give_up(sys.stdout, sys.stderr)
        sys.exit(0)
    except BrokenPipeError:  # the reader of our output went away, as with `| head`
        _give_up(sys.stdout, sys.stderr)
        sys.exit(0)
    except OSError as error:
        _give_up(sys.stdout)
        with contextlib.suppress(OSError):
            click.echo(f"Error: cannot write the output: {error.strerror}; send it elsewhere.", err=True)
        sys.exit(2)


def _run(args: list[str]) -> Any:
    words, debug = without_debug(args)
    with record_signals() as signals, shown():
        try:
            check_words(words)
            if os.environ.get(COMPLETE):  # a shell asks what could stand next; the answer ends the program
                importlib.import_module("sensorsim.commands.completion")
            return group.main(args=words, prog_name=NAME, complete_var=COMPLETE, standalone_mode=False)
        except click.exceptions.NoArgsIsHelpError as error:  # no command given: the help is the answer
            click.echo(error.ctx.get_help() if error.ctx else error.format_message())
            sys.exit(0)
        except SystemExit as error:  # a command that has said its sentence
            sys.exit(error.code if signals.code is None else signals.code)
        except BaseException as error:
            if isinstance(error, BrokenPipeError) or (isinstance(error, OSError) and _is_of_output(error)):
                raise
            if (debug or os.environ.get("SENSORSIM_DEBUG")) and signals.code is None:
                import traceback

                click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
            stopped = signals.code is not None and not isinstance(error, KeyboardInterrupt | click.Abort)
            code, sentence = ending_of(KeyboardInterrupt() if stopped else error, words)
            click.echo(shortened(sentence, words), err=True)
            sys.exit(signals.code or code)


def _is_of_output(error: OSError) -> bool:
    """Return whether it came up where output is written: in `click.echo`, or in the last flush."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__") in ("click.utils", __name__)


def _give_up(*streams: TextIO) -> None:
    """Send what is left in the streams nowhere; Python would complain about it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        with contextlib.suppress(OSError):  # no file behind it
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


# ---- endings


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
        if LONG_NUMBER.search(word):
            raise InputError(f"{shown} holds a number of more than {MOST_DIGITS} digits; none here takes so many.")


def ending_of(error: BaseException, words: list[str]) -> tuple[int, str]:
    """Return exit code and sentence for the error that ended a command with these arguments."""
    if isinstance(error, InputError):
        return getattr(error, "exit_code", REFUSED), f"Error: {error}"
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "sensorsim"
        return error.exit_code, f"Error: {_click_message(error)}; see `{where} --help`."
    if isinstance(error, click.Abort | KeyboardInterrupt):
        what = error.__cause__ or error  # click turns Ctrl-C into an Abort
        return INTERRUPTED, f"Interrupted {what}".strip() + "."
    if isinstance(error, ModuleNotFoundError) and extra_of(name := (error.name or "").partition(".")[0]) is not None:
        return REFUSED, f"Error: {how_to_get([name])}"
    typed = map(os.path.normpath, words)
    if isinstance(error, OSError) and isinstance(error.filename, str) and os.path.normpath(error.filename) in typed:
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
