"""`sensorsim train --packets`: a model from what sensors sent. What they have settled cannot be chosen any more."""

from __future__ import annotations

import click
from click.core import ParameterSource

from sensorsim.errors import InputError

TAKEN = (
    *("packets", "table", "sketch", "sketch_packets", "columns", "ranges", "m", "l", "bias", "map", "sigma"),
    *("out", "encoder", "fmt"),
)


def refuse_others(context: click.Context) -> None:
    """Refuse every other option that was given."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in TAKEN and context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise InputError(
                f"{parameter.opts[0]} is settled by the packets or by the estimator; leave it out with --packets."
            )
