"""Let commands check their outputs first, and refuse empty texts."""

from typing import Any

import click

from sensorsim._util.errors import InputError


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
