"""`sensorsim train --packets`: a model from what sensors sent. No record is read; a linear map needs no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sensorsim.cli.training import column_names, need
from sensorsim.errors import InputError

if TYPE_CHECKING:
    from sensorsim.hospital import Received
    from sensorsim.ranges import Range
    from sensorsim.train.save import Model

TAKEN = (
    *("packets", "table_file", "sketch", "sketch_packets", "columns", "ranges", "m", "l", "bias", "map", "sigma"),
    *("out", "encoder", "fmt"),
)


def model_of_packets(context: click.Context) -> Model:
    """Receive and train."""
    chosen = context.params
    need("scipy", *(["torch"] if chosen["map"] == "sigmoid" else []))
    if not chosen["packets"] or chosen["table_file"] is None:
        raise InputError("--packets and --table go together: packets, and the table that the sensors were made with.")
    if (chosen["sketch"] is None) != (not chosen["sketch_packets"]):
        raise InputError("--sketch and --sketch-packets go together: a sketch, and the packets that went through it.")
    _refuse_others(context)
    from sensorsim.privacy.tablefile import read_table
    from sensorsim.train.received import config_of, model_of_received

    received, sketched = _received(chosen, read_table(chosen["table_file"]))
    given = {name: chosen[name] for name in ("m", "l", "bias", "map", "sigma")}
    config = config_of(received, sketched, **given)
    columns = column_names(chosen["columns"]) or tuple(f"feature{place}" for place in range(received.table.features))
    return model_of_received(received, sketched, config, columns, _ranges(chosen, columns))


def _received(chosen: dict[str, Any], table: Any) -> tuple[Received, Received | None]:
    """The packets of features, and those of a sketch where there is one."""
    from sensorsim.device.sketch_file import read_sketch
    from sensorsim.hospital import receive

    received = receive(chosen["packets"], table)
    if chosen["sketch"] is None:
        return received, None
    return received, receive(chosen["sketch_packets"], table, sketch=read_sketch(chosen["sketch"]))


def _ranges(chosen: dict[str, Any], columns: tuple[str, ...]) -> tuple[Range, ...] | None:
    """Those of a file, or ready ones for columns that are named; None where neither is there."""
    from sensorsim.ranges import ranges_for

    if chosen["ranges"] is not None:
        return ranges_for(columns, chosen["ranges"])
    try:
        return ranges_for(columns) if chosen["columns"] else None
    except InputError:
        return None  # then it is said that readings stay on 0 … 1


def _refuse_others(context: click.Context) -> None:
    """What the packets have already settled cannot be chosen any more."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in TAKEN and context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise InputError(
                f"{parameter.opts[0]} is settled by the packets or by the estimator; leave it out with --packets."
            )
