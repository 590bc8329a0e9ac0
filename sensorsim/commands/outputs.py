"""Print answers as table, JSON or CSV, and check every output path of a command before it begins."""

import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path as FilePath
from typing import Any

import click

from sensorsim._util.errors import InputError
from sensorsim._util.files import STANDARD_STREAM, brief_path, check_folder_target, check_targets, standard_output
from sensorsim._util.option_kinds import FIGURE, Known, Output, Path, Several, split_names
from sensorsim._util.terminal import is_utf8
from sensorsim.commands.declare import Command, flag_of, options_of

WRITTEN = {"folder": "is a folder", "database": "is a database", "several": "may be several files"}
Outputs = dict[str, tuple[str, Output]]  # by option: the path and its kind
Update = Callable[..., None]  # with how much is done, what is done now, and the total
EXTRA_OUTPUTS = {"plot": FIGURE, "lock": Output()}


# ---- answers on stdout


def emit(answer: Any, form: str, text: Callable[[Any], str]) -> None:
    """Print an answer as table, JSON or CSV; only that form is computed."""
    if form == "json":
        click.echo(as_json(answer.to_dict()))
    elif form == "csv":
        click.echo(as_csv(answer.rows()), nl=False)
    else:
        click.echo(text(answer))


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV text; the columns are those of the first row."""
    rows = list(rows)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def as_json(data: Any, indent: int | None = 2) -> str:
    """Return JSON text, which is UTF-8 by its standard; where stdout is not, other characters are escaped."""
    import json

    return json.dumps(data, indent=indent, ensure_ascii=not is_utf8(sys.stdout.encoding), allow_nan=False)


# ---- output files


@contextmanager
def checked_outputs(
    command: type[Command[Any]], given: Mapping[str, Any], extras: Mapping[str, Any], form: str
) -> Iterator[None]:
    """Refuse outputs that cannot be written; within, `-` is standard output and reports go to stderr."""
    outputs: Outputs = {}
    for name, one in options_of(command).items():
        value = given.get(name, command.__dataclass_fields__[name].default)
        if isinstance(one.kind, Output) and isinstance(value, str):
            outputs[f"--{flag_of(name, one)}"] = value, one.kind
    outputs |= {f"--{name}": (extras[name], kind) for name, kind in EXTRA_OUTPUTS.items() if name in extras}
    inputs = [*_inputs(command, given), *([FilePath(extras["check"])] if "check" in extras else [])]
    shown = [option for option, (path, _) in outputs.items() if path == STANDARD_STREAM]
    if not shown:
        _check(outputs, inputs)
        yield
        return
    for option in shown:
        written = outputs[option][1].form
        if written != "file":
            raise InputError(f"{option} - is standard output, and what is written {WRITTEN[written]}; give a path.")
    if len(shown) > 1:
        raise InputError(f"{' and '.join(shown)} cannot both be -, which is standard output; give one of them a path.")
    if form != "table":
        raise InputError(f"{shown[0]} - and --format {form} both write to standard output; leave one of them out.")
    stdout = sys.stdout
    with standard_output(lambda data: click.echo(data, stdout, nl=False)), redirect_stdout(sys.stderr):
        _check(outputs, inputs)
        yield


def _check(outputs: Outputs, inputs: Iterable[FilePath]) -> None:
    """Refuse a path that cannot be written, that another output has, that is read, or that has a wrong ending."""
    files = [path for path, kind in outputs.values() if kind.form != "folder"]
    check_targets(files, read=inputs if files else ())
    for option, (path, kind) in outputs.items():
        if kind.form == "folder":
            check_folder_target(path)
        ending = FilePath(path).suffix
        if kind.endings and path != STANDARD_STREAM and ending.lower() not in kind.endings:
            found = f"{option} {brief_path(path)} ends in {ending or 'nothing'}"
            raise InputError(f"{found}; give a name that ends in {' or '.join(kind.endings)}.")


def _inputs(command: type[Command[Any]], given: Mapping[str, Any]) -> Iterator[FilePath]:
    """Yield the files that a command reads, with those that a processor's table builds on."""
    from sensorsim.costing.chips import own_files

    for name, one in options_of(command).items():
        kind = one.kind.kind if isinstance(one.kind, Several) else one.kind
        value = given.get(name)
        values = [str(each) for each in (value if isinstance(value, tuple) else (value,)) if each is not None]
        if isinstance(kind, Output):
            continue
        if isinstance(kind, Path):
            yield from map(FilePath, values)
        elif isinstance(kind, Known) and kind.files:
            parts = [part for each in values for part in split_names(each)]
            yield from (FilePath(part.partition(":")[0]) for part in parts if ".py" in part)
            yield from (path for part in parts for path in own_files(part))


# ---- progress on stderr


@contextmanager
def progress_bar(name: str, unit: str = "", total: int | None = None, transient: bool = False) -> Iterator[Update]:
    """Yield a function that moves a bar on stderr; in Python the bar shows nothing.

    The bar starts with the first call, so that bad input leaves no trace of it. Beside it no step is shown on a
    terminal. Elsewhere a bar shows nothing before its end, so that steps are.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from sensorsim._util import progress

    of = f"{unit} · " if unit else ""
    parts = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn(f"{of}{{task.description}} ·"))
    times = (TimeRemainingColumn(compact=True), TextColumn("left"))
    console = Console(stderr=True)
    bar = Progress(TextColumn(name), *parts, *times, console=console, transient=transient)
    task = bar.add_task("starting", total=total)

    def update(done: int, description: str = "", total: int | None = None) -> None:
        bar.update(task, completed=done, description=description, total=total)
        if bar.live.is_started or not progress.is_shown() or (transient and not console.is_terminal):
            return  # of a transient bar nothing would stay in a file but an empty line
        if console.is_terminal:
            progress.hide(bar)
        with suppress(RuntimeError):  # where no thread can be started, the bar stands still
            bar.start()

    try:
        yield update
    finally:
        if bar.live.is_started:
            bar.stop()
            progress.show(bar)
