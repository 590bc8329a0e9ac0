"""The command line. One module per command; a command's module is imported only when the command is used."""

import contextlib
import gc
import importlib
import io
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

import click

from sensorsim._util.errors import on_the_command_line
from sensorsim._util.terminal import show_plainly

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# A command that starts makes many small objects that all stay: to look for garbage among them every 700 takes a fifth
# of the time that `cost` needs.
gc.set_threshold(50_000)

NAME, COMPLETE = "sensorsim", "_SENSORSIM_COMPLETE"  # of the program, and what a shell sets to ask it
# name: (module, one line for --help). The line stands here so that --help imports no command.
COMMANDS = {
    "cost": ("sensorsim.cli.cost", "What a private record costs on a sensor's processor."),
    "cpus": ("sensorsim.cli.cpus", "The processors and chips whose tables are known."),
    "plan": ("sensorsim.cli.plan", "What a fleet of sensors reaches within a budget, before it is built."),
    "fleet": ("sensorsim.cli.fleet", "Simulate many sensors over days: intervals, spend, batteries, faults."),
    "train": ("sensorsim.cli.train", "Train one on-body encoder privately and save it."),
    "evaluate": ("sensorsim.cli.evaluate", "How well a model does on raw records. Not private."),
    "decode": ("sensorsim.cli.decode", "Packets of hidden units back to readings, at the hospital."),
    "sweep": ("sensorsim.cli.sweep", "Accuracy over a grid of mechanisms and budgets, resumable."),
    "figures": ("sensorsim.cli.figures", "Draw the paper's figures, and our own."),
    "data": ("sensorsim.cli.data", "Public ranges, and synthetic daily-activity data."),
    "noise": ("sensorsim.cli.noise", "Tables of noise with a proof of what they protect."),
    "kernel": ("sensorsim.cli.kernel", "Cost, proof, secrecy and C of a kernel of your own."),
    "export": ("sensorsim.cli.export", "Write the kernels as a C package for firmware."),
    "verify": (
        "sensorsim.cli.verify",
        "Prove a C package on machine code, bit for bit.",
    ),
    "receive": ("sensorsim.cli.receive", "Packets of sensors: mean and interval of every feature."),
    "claims": ("sensorsim.cli.claims", "Every checkable statement of the paper, and ours, recomputed."),
    "report": ("sensorsim.cli.report", "One page: what a record costs, protects and delivers."),
    "completion": ("sensorsim.cli.completion", "The script that lets a shell complete commands, options and names."),
    "sensitivity": ("sensorsim.cli.sensitivity", "What the paper prints as sensitivity, beside what holds."),
}


class LazyGroup(click.Group):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        from sensorsim.cli.ending import prepare

        command: click.Command = importlib.import_module(COMMANDS[name][0]).command
        return prepare(command)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[str]]":
        from click.shell_completion import CompletionItem

        lines = {name: line for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)}
        options = click.Command.shell_complete(self, ctx, incomplete)  # that of a group would import every command
        return [*(CompletionItem(name, help=line) for name, line in lines.items()), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from sensorsim.cli.ending import CODES

        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in CODES.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="sensorsim")
@click.option("--debug", is_flag=True, help="Show where an error came up. Before or after the command.")
def group(debug: bool) -> None:
    """What privacy on a body-worn sensor costs, protects and delivers.

    Example: sensorsim cost --n 14 --l 7
    """
    del debug  # `main` has taken it out of the arguments


def main(args: list[str] | None = None) -> Any:
    """Run a command; whatever ends it is one sentence on stderr and an exit code of `ending.CODES`.

    Letters that the terminal cannot show are replaced, and output that cannot be written is a sentence too.
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
    except (BrokenPipeError, SystemExit) as end:  # the reader of our output went away, as with `| head`
        if isinstance(end, SystemExit) and sys.stdout is given:  # click wraps it then, and would exit with 1
            raise
        _give_up(sys.stdout, sys.stderr)
        sys.exit(0)
    except OSError as error:
        _give_up(sys.stdout)
        with contextlib.suppress(OSError):
            click.echo(f"Error: cannot write the output: {error.strerror}; send it elsewhere.", err=True)
        sys.exit(2)


def _run(args: list[str]) -> Any:
    from sensorsim._util.interrupts import record_signals
    from sensorsim._util.progress import shown
    from sensorsim.cli.ending import check_words, ending_of, without_debug

    words, debug = without_debug(args)
    with record_signals() as signals:
        try:
            check_words(words)
            if os.environ.get(COMPLETE):  # a shell asks what could stand next; the answer ends the program
                importlib.import_module("sensorsim.cli.completion")
            with shown():
                return group.main(args=words, prog_name=NAME, complete_var=COMPLETE, standalone_mode=False)
        except BrokenPipeError:
            raise
        except click.exceptions.NoArgsIsHelpError as error:  # no command given: the help is the answer
            click.echo(error.ctx.get_help() if error.ctx else error.format_message())
            sys.exit(0)
        except BaseException as error:
            if isinstance(error, SystemExit):  # a command that has said its sentence
                sys.exit(error.code if signals.code is None else signals.code)
            if isinstance(error, OSError) and _is_of_output(error):
                raise
            if (debug or os.environ.get("SENSORSIM_DEBUG")) and signals.code is None:
                import traceback

                click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
            stopped = signals.code is not None and not isinstance(error, KeyboardInterrupt | click.Abort)
            code, sentence = ending_of(KeyboardInterrupt() if stopped else error, words)
            click.echo(sentence, err=True)
            sys.exit(signals.code or code)


def _is_of_output(error: OSError) -> bool:
    """Whether it came up where output is written: in `click.echo`, or in the last flush."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__") in ("click.utils", __name__)


def _give_up(*streams: TextIO) -> None:
    """What is left in them goes nowhere, or Python would complain about it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        with contextlib.suppress(OSError):  # no file behind it
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
