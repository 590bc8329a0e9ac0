"""What every command prints alike: data on stdout as table, JSON or CSV."""

import csv
import io
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from sensorsim._util.errors import InputError
from sensorsim._util.terminal import columns, fold, is_utf8

if TYPE_CHECKING:
    from rich.progress import Progress

format_option = click.option(
    "--format",
    "fmt",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="Form of the output.",
)


def given_options() -> dict[str, str]:
    """The parameters that stand on the command line of the command that runs, each with its option."""
    from click.core import ParameterSource

    context = click.get_current_context(silent=True)
    if context is None:
        return {}
    options = {parameter.name or "": parameter.opts[0] for parameter in context.command.params}
    source = context.get_parameter_source
    return {name: option for name, option in options.items() if source(name) == ParameterSource.COMMANDLINE}


def refuse_idle(names: Collection[str], reads: str) -> None:
    """An option of these that was given is refused: it changes nothing; `reads` says where it would."""
    for name, option in given_options().items():
        if name in names:
            raise InputError(f"{option} changes nothing here: {reads}; leave it out.")


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV text; the columns are those of the first row."""
    rows = list(rows)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def as_json(data: Any, indent: int | None = 2) -> str:
    """The data as JSON text, which is UTF-8 by its standard; elsewhere every other letter is escaped, and none lost."""
    import json

    return json.dumps(data, indent=indent, ensure_ascii=not is_utf8(sys.stdout.encoding), allow_nan=False)


def tell(text: str) -> None:
    """A note on stderr, in lines that the terminal has room for."""
    click.echo("\n".join(fold(text, columns())), err=True)


def emit(
    fmt: str, table: Callable[[], str], data: Callable[[], Any], rows: Callable[[], Iterable[Mapping[str, Any]]]
) -> None:
    """Print a result in the form asked for; only that form is computed."""
    if fmt == "json":
        click.echo(as_json(data()))
    elif fmt == "csv":
        click.echo(as_csv(rows()), nl=False)
    else:
        click.echo(table())


def progress_bar(name: str, unit: str, transient: bool = False) -> "Progress":
    """A bar on stderr: how many of what are done, what is being done, and how long it will take."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    return bar(
        TextColumn(name),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(f"{unit} · {{task.description}} ·"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        transient=transient,
    )


def bar(*columns: Any, transient: bool = True) -> "Progress":
    """A bar on stderr with these columns; one that never began leaves no line.

    Beside it no step is shown on a terminal. Elsewhere a bar shows nothing before its end, so that steps are.
    """
    from rich.console import Console
    from rich.progress import Progress

    from sensorsim._util import progress

    class Bar(Progress):
        def start(self) -> None:
            if transient and not self.console.is_terminal:
                return  # nothing of it would stay but an empty line
            if not self.live.is_started and self.console.is_terminal:
                progress.hide(self)
            with suppress(RuntimeError):  # where no thread can be started, the bar stands still
                super().start()

        def stop(self) -> None:
            if self.live.is_started:
                super().stop()
                progress.show(self)

    return Bar(*columns, console=Console(stderr=True), transient=transient)
