"""Make the click command of a declared command."""

import sys
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sensorsim._util.option_kinds import FIGURE, FILE, Choice, Declared, Flag, Kind, Output
from sensorsim.commands import Entry
from sensorsim.commands.declare import REQUIRED, Command, flag_of, make, options_of
from sensorsim.commands.outputs import checked_outputs

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

LOCK = "Write every figure, the choices and the toolchain to a file, for --check."
CHECK = "Compare with a lock, under its own choices: a Markdown table, and exit code 1 if any figure differs."


class KindType(click.ParamType[Any]):
    """A kind of value as a click type."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.name = kind, kind.metavar or "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        label = param.opts[0] if param else "it"
        return self.kind.read(label, value) if isinstance(value, str) and value else value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[Any]]":
        from click.shell_completion import CompletionItem

        how, names = self.kind.complete(incomplete, ctx.params)
        files = [] if how == "plain" else [CompletionItem(incomplete, type=how)]  # bash wants them first
        return [*files, *(CompletionItem(name) for name in names)]


def click_command(name: str, entry: Entry) -> click.Command:
    """Return the click command of a declared command."""
    declared = entry.load()
    parameters = [_parameter(field, one, declared) for field, one in options_of(declared).items() if one.shell]
    for extra, (kind, about) in extras_of(declared).items():
        parameters.append(click.Option([f"--{extra}"], type=KindType(kind), metavar=kind.metavar, help=about))

    @click.pass_context
    def run(ctx: click.Context, /, **values: Any) -> None:
        source = ctx.get_parameter_source
        given = {field: value for field, value in values.items() if source(field) is ParameterSource.COMMANDLINE}
        run_command(name, declared, given)

    word = name.rpartition(" ")[2]
    return click.Command(word, params=parameters, callback=run, help=_help(declared, entry), short_help=entry.about)


def extras_of(command: type[Command[Any]]) -> dict[str, tuple[Kind, str]]:
    """Return the options that a command has beside its own, with their help."""
    found: dict[str, tuple[Kind, str]] = {"plot": (FIGURE, command.plots)} if command.plots else {}
    if command.lockable:
        found |= {"lock": (Output(), LOCK), "check": (FILE, CHECK)}
    if command.formats:
        found["format"] = Choice(*command.formats), f"Form of the output.  [default: {command.formats[0]}]"
    return found


def _parameter(field: str, one: Declared, command: type[Command[Any]]) -> click.Parameter:
    """Return the click parameter of a field; its default stays the dataclass's, and is only shown."""
    default, kind = command.__dataclass_fields__[field].default, one.kind
    made: dict[str, Any] = {"type": KindType(kind), "required": default is REQUIRED, "metavar": kind.metavar}
    if one.argument:
        word = (kind.metavar or field).upper()
        made["metavar"] = (word if default is REQUIRED else f"[{word}]") + "..." * kind.several
        return click.Argument([field], nargs=-1 if kind.several else kind.count, **made)
    flag = f"--{flag_of(field, one)}"
    shown = one.default_text
    if not shown and isinstance(default, int | float | str) and not isinstance(default, bool) and default != "":
        shown = f"{default:g}" if isinstance(default, float) else str(default)
    if isinstance(kind, Flag) and kind.off:
        shown = flag_of(field, one) if default else kind.off
    notes = [*([f"default: {shown}"] if shown else []), *([kind.bounds] if kind.bounds else [])]
    about = f"{one.help}  [{'; '.join(notes)}]" if notes else one.help
    if isinstance(kind, Flag):
        names = f"{flag}/--{kind.off}" if kind.off else flag
        return click.Option([names, field], is_flag=True, default=None, help=about)
    return click.Option([flag, field], help=about, multiple=kind.several, nargs=kind.count, **made)


def _help(command: type[Command[Any]], entry: Entry) -> str:
    """Return the help text: the one line, the command's docstring, its example."""
    import inspect

    parts = [entry.about, inspect.getdoc(command) or ""]
    if command.example:
        first, *more = command.example.strip().splitlines()
        kept = ["\b"] if more else []  # click wraps the others
        parts.append("\n".join([*kept, f"Example: {first}", *(f"         {line}" for line in more)]))
    return "\n\n".join(filter(None, parts))


def run_command(name: str, command: type[Command[Any]], given: dict[str, Any]) -> None:
    """Run a command with the options that were given, and print its answer."""
    known = extras_of(command)
    extras = {extra: known[extra][0].check(f"--{extra}", given.pop(extra)) for extra in known if extra in given}
    command(**given)  # values are refused before paths
    form, plot = extras.get("format", "table"), extras.get("plot")
    locks = None
    with checked_outputs(command, given, extras, form):
        if "lock" in extras or "check" in extras:
            from sensorsim.commands.locks import Locks

            locks = Locks(name, command, extras.get("lock"), extras.get("check"), form)
            given = locks.agree(given, plot)
        made = make(command, given)
        if plot:
            made.check_drawing()
        answer = made.run()
        if plot:
            made.draw(answer, plot)
        if locks is not None:
            locks.settle(made.figures(answer, locks.also), holds=not made.exit_code(answer))
        made.emit(answer, form)
    code = made.exit_code(answer)
    if code:
        sys.exit(code)
