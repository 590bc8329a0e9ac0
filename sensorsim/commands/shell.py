"""The program `sensorsim`: a click command for each declared command, made from its declaration."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sensorsim.commands import Entry
from sensorsim.commands.declare import REQUIRED, Command, Declared, flag_of, make, options_of
from sensorsim.commands.option_kinds import Flag, Kind, Output, Path
from sensorsim.commands.outputs import FIGURE, checked_outputs

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class KindType(click.ParamType[Any]):
    """A kind of value as a click type."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.name = kind, kind.metavar or "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        label = param.opts[0] if param else "it"
        return self.kind.read(label, value) if isinstance(value, str) else value

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
    parameters: list[click.Parameter] = [
        _argument(field, one, declared) if one.argument else _option(field, one, declared)
        for field, one in options_of(declared).items()
    ]
    if declared.plots:
        parameters.append(_extra("plot", FIGURE, "Draw the answer into an .svg, .png or .pdf file."))
    if declared.lockable:
        about = "Write every figure, the choices and the toolchain to a file, for --check."
        parameters.append(_extra("lock", Output(), about))
        about = "Compare with a lock, under its own choices: a Markdown table, and exit code 1 if any figure differs."
        parameters.append(_extra("check", Path(), about))
    if declared.formats:
        forms = click.Choice(declared.formats)
        parameters.append(
            click.Option(
                ["--format", "fmt"], type=forms, default="table", show_default=True, help="Form of the output."
            )
        )
    return click.Command(
        name.rpartition(" ")[2],
        params=parameters,
        callback=_callback(declared),
        help=_help(declared, entry),
        short_help=entry.about,
    )


def _option(field: str, one: Declared, command: type[Command[Any]]) -> click.Option:
    """Return the click option of a field; its default stays the dataclass's, and is only shown."""
    flag, kind = f"--{flag_of(field, one)}", one.kind
    default = command.__dataclass_fields__[field].default
    shown = one.default_text or _default_text(default)
    about = f"{one.help}  [default: {shown}]" if shown else one.help
    if isinstance(kind, Flag):
        names = f"{flag}/--{kind.off}" if kind.off else flag
        return click.Option([names, field], is_flag=True, default=None, help=about)
    return click.Option(
        [flag, field],
        type=KindType(kind),
        help=about,
        required=default is REQUIRED,
        multiple=kind.several,
        nargs=kind.count,
        metavar=kind.metavar,
    )


def _default_text(default: Any) -> str:
    """Return the default as the help shows it; what None, False and nothing mean is said in the option's own words."""
    if default is None or default is False or default in ("", ()) or not isinstance(default, int | float | str):
        return ""
    return f"{default:g}" if isinstance(default, float) else str(default)


def _argument(field: str, one: Declared, command: type[Command[Any]]) -> click.Argument:
    required = command.__dataclass_fields__[field].default not in (None, (), "")
    nargs = -1 if one.kind.several else one.kind.count
    return click.Argument([field], type=KindType(one.kind), required=required, nargs=nargs, metavar=one.kind.metavar)


def _extra(name: str, kind: Kind, about: str) -> click.Option:
    return click.Option([f"--{name}"], type=KindType(kind), metavar=kind.metavar, help=about)


def _help(command: type[Command[Any]], entry: Entry) -> str:
    """Return the help text: the one line, the command's docstring, its example."""
    import inspect

    parts = [entry.about, inspect.getdoc(command) or ""]
    if command.example:
        first, *more = command.example.strip().splitlines()
        parts.append("\n".join(["\b", f"Example: {first}", *(f"         {line}" for line in more)]))
    return "\n\n".join(filter(None, parts))


def _callback(command: type[Command[Any]]) -> Callable[..., None]:
    @click.pass_context
    def run(ctx: click.Context, /, **values: Any) -> None:
        given = {name: value for name, value in values.items() if _is_given(ctx, name)}
        run_command(command, given, ctx)

    return run


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


def run_command(command: type[Command[Any]], given: dict[str, Any], ctx: click.Context) -> None:
    """Run a command with the options that were given, and print its answer."""
    from sensorsim.cli.output import emit

    plot, fmt = given.pop("plot", None), given.pop("fmt", "table")
    with checked_outputs(command, given, plot, fmt):
        locks = None
        if command.lockable:
            from sensorsim.cli.locking import Locks

            locks = Locks(command, given.pop("lock", None), given.pop("check", None), fmt)
            given = locks.agreed(given)
        made = make(command, given)
        answer = made.run()
        if plot:
            made.draw(answer, plot)
        if locks is not None:
            made.settle(locks, answer)
        emit(fmt, lambda: made.text(answer), answer.to_dict, answer.rows)
    code = made.exit_code(answer)
    if code:
        sys.exit(code)
