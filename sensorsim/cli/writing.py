"""Check every output path of a command before it begins, and write to standard output where the path is `-`.

It works from the types of the options (`sensorsim.cli.choices.Output`), so a new command has it without code of its
own: `prepare` gives every command a context that does this.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import click

from sensorsim._util.errors import InputError
from sensorsim._util.files import STANDARD_STREAM, brief_path, check_folder_target, check_targets, standard_output
from sensorsim.cli.choices import Names, Output, Paths

TABLE = "table"  # the form of a report for people, which may go to stderr
WRITTEN = {"folder": "is a folder", "database": "is a database", "several": "may be several files"}


class Checked(click.Context):
    """A context that checks the outputs of its command before the command runs."""

    def invoke(self, callback: Any, /, *args: Any, **kwargs: Any) -> Any:
        own = callback is self.command.callback
        with _outputs_checked(self) if own else nullcontext():
            return super().invoke(callback, *args, **kwargs)


@contextmanager
def _outputs_checked(context: click.Context) -> Iterator[None]:
    """Refuse outputs that cannot be written; within, `-` is standard output and reports go to stderr."""
    outputs = given_outputs(context)
    shown = [option for option, (path, _) in outputs.items() if path == STANDARD_STREAM]
    if not shown:
        _check(context, outputs)
        yield
        return
    _check_standard_output(shown, outputs, context.params.get("fmt", TABLE))
    stdout = sys.stdout
    with standard_output(lambda data: click.echo(data, stdout, nl=False)), redirect_stdout(sys.stderr):
        _check(context, outputs)
        yield


def given_outputs(context: click.Context) -> dict[str, tuple[str, Output]]:
    """Return the output paths of a command line by their options; defaults count too."""
    found = {}
    for option in context.command.params:
        value = context.params.get(option.name or "")
        if isinstance(option.type, Output) and value is not None:
            found[option.opts[0]] = str(value), option.type
    return found


def _check_standard_output(shown: list[str], outputs: dict[str, tuple[str, Output]], form: str) -> None:
    """Refuse `-` for what is no single file, and where something else goes to standard output."""
    for option in shown:
        kind = outputs[option][1]
        if kind.form != "file":
            raise InputError(
                f"{option} - would be standard output, and what is written {WRITTEN[kind.form]}; give a path."
            )
    if len(shown) > 1:
        raise InputError(f"{' and '.join(shown)} cannot both be -, which is standard output; give one of them a path.")
    if form != TABLE:
        raise InputError(f"{shown[0]} - and --format {form} both write to standard output; leave one of them out.")


def _check(context: click.Context, outputs: dict[str, tuple[str, Output]]) -> None:
    """Refuse a path that cannot be written, that another output has, that is read, or that has a wrong ending."""
    files = [path for path, kind in outputs.values() if kind.form != "folder"]
    check_targets(files, read=_inputs(context) if files else ())
    for option, (path, kind) in outputs.items():
        if kind.form == "folder":
            check_folder_target(path)
        ending = Path(path).suffix
        if kind.endings and path != STANDARD_STREAM and ending.lower() not in kind.endings:
            allowed = " or ".join([", ".join(kind.endings[:-1]), kind.endings[-1]][len(kind.endings) == 1 :])
            found = f"{option} {brief_path(path)} ends in {ending or 'nothing'}"
            raise InputError(f"{found}; give a name that ends in {allowed}.")


def _inputs(context: click.Context) -> Iterator[Path]:
    """Yield the files that a command line names to be read, with those that a processor's table builds on."""
    from sensorsim.costing.chips import own_files

    for option in context.command.params:
        value = context.params.get(option.name or "")
        values = [str(one) for one in (value if isinstance(value, tuple) else (value,)) if one is not None]
        if isinstance(option.type, Output):
            continue
        if isinstance(option.type, Paths | click.Path):
            yield from map(Path, values)
        elif isinstance(option.type, Names) and option.type.files:
            parts = [part.strip() for one in values for part in one.split(",")]
            yield from (Path(part.partition(":")[0]) for part in parts if ".py" in part)
            yield from (path for part in parts for path in own_files(part))
