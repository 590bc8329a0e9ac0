"""Check every output path of a command before it begins, and write to standard output where the path is `-`."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path as FilePath
from typing import Any

import click

from sensorsim._util.errors import InputError
from sensorsim._util.files import STANDARD_STREAM, brief_path, check_folder_target, check_targets, standard_output
from sensorsim.commands.declare import Command, flag_of, options_of
from sensorsim.commands.option_kinds import Known, Output, Path, Several, split_names

FIGURE = Output(endings=(".svg", ".png", ".pdf"))
TABLE = "table"  # the form of output for people, which may go to stderr
WRITTEN = {"folder": "is a folder", "database": "is a database", "several": "may be several files"}
Outputs = dict[str, tuple[str, Output]]  # by option: the path and its kind


@contextmanager
def checked_outputs(
    command: type[Command[Any]], given: Mapping[str, Any], plot: str | None, form: str
) -> Iterator[None]:
    """Refuse outputs that cannot be written; within, `-` is standard output and reports go to stderr."""
    outputs = _outputs(command, given) | ({"--plot": (plot, FIGURE)} if plot is not None else {})
    shown = [option for option, (path, _) in outputs.items() if path == STANDARD_STREAM]
    if not shown:
        _check(command, given, outputs)
        yield
        return
    _check_standard_output(shown, outputs, form)
    stdout = sys.stdout
    with standard_output(lambda data: click.echo(data, stdout, nl=False)), redirect_stdout(sys.stderr):
        _check(command, given, outputs)
        yield


def _outputs(command: type[Command[Any]], given: Mapping[str, Any]) -> Outputs:
    """Return the output paths of a command by option; defaults count too."""
    found: Outputs = {}
    for name, one in options_of(command).items():
        value = given.get(name, command.__dataclass_fields__[name].default)
        if isinstance(one.kind, Output) and isinstance(value, str):
            found[f"--{flag_of(name, one)}"] = value, one.kind
    return found


def _check_standard_output(shown: list[str], outputs: Outputs, form: str) -> None:
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


def _check(command: type[Command[Any]], given: Mapping[str, Any], outputs: Outputs) -> None:
    """Refuse a path that cannot be written, that another output has, that is read, or that has a wrong ending."""
    files = [path for path, kind in outputs.values() if kind.form != "folder"]
    check_targets(files, read=_inputs(command, given) if files else ())
    for option, (path, kind) in outputs.items():
        if kind.form == "folder":
            check_folder_target(path)
        ending = FilePath(path).suffix
        if kind.endings and path != STANDARD_STREAM and ending.lower() not in kind.endings:
            allowed = " or ".join([", ".join(kind.endings[:-1]), kind.endings[-1]][len(kind.endings) == 1 :])
            found = f"{option} {brief_path(path)} ends in {ending or 'nothing'}"
            raise InputError(f"{found}; give a name that ends in {allowed}.")


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
