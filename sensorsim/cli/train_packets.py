"""`sensorsim train --packets`: a model from what sensors sent. No record is read, so no accuracy is known."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sensorsim.cli.output import emit
from sensorsim.cli.training import need
from sensorsim.errors import InputError

if TYPE_CHECKING:
    from sensorsim.hospital import Received

SCHEMA_VERSION = 1
TAKEN = ("packets", "table_file", "columns", "m", "l", "bias", "seed", "out", "encoder", "fmt")


def train_packets(
    context: click.Context,
    packets: tuple[str, ...],
    table_file: str | None,
    out: str | None,
    encoder: str | None,
    fmt: str,
) -> None:
    """Receive, train, save if asked, print."""
    need("torch", "scipy", "safetensors")
    if not packets or table_file is None:
        raise InputError("--packets and --table go together: packets, and the table that the sensors were made with.")
    _refuse_others(context)
    from sensorsim.cli.train import check_paths
    from sensorsim.hospital import receive
    from sensorsim.privacy.tablefile import read_table

    check_paths(out, encoder)
    result = _train(receive(packets, read_table(table_file)), context.params, out, encoder)
    emit(fmt, lambda: _text(result), lambda: {"schema_version": SCHEMA_VERSION, **result}, lambda: [_row(result)])


def _refuse_others(context: click.Context) -> None:
    """What the packets have already settled cannot be chosen any more."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in TAKEN and context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise InputError(
                f"{parameter.opts[0]} is settled by the packets or by the estimator; leave it out with --packets."
            )


def _train(received: Received, chosen: dict[str, Any], out: str | None, encoder: str | None) -> dict[str, Any]:
    from sensorsim.encoders import as_json
    from sensorsim.files import write_whole
    from sensorsim.train import save
    from sensorsim.train.quantise import in_integers
    from sensorsim.train.received import config_of, statement_of, train_on_received

    columns = _columns(chosen["columns"], received.table.features)
    config = config_of(received, chosen["m"], chosen["l"], chosen["bias"], chosen["seed"])
    tensors = save.tensors_of(train_on_received(received, config, columns), config)
    result: dict[str, Any] = {"mechanism": config.mechanism, "kind": config.kind}
    result |= {"packets": received.accepted, "refused": received.rejected}
    result |= statement_of(received).as_dict() | {"identity": received.statistics.identity}
    result |= {"columns": list(columns), "n": len(columns), "l": config.l, "m": config.m, "bias": config.bias}
    about = dict(result)
    if out is not None:
        save.save(out, tensors, about)
        result["saved"] = out
    if encoder is not None:
        write_whole(encoder, as_json(in_integers(tensors, config, columns, None, about)[0]))
        result["encoder"] = encoder
    return result


def _columns(given: str | None, n: int) -> tuple[str, ...]:
    if given:
        return tuple(name.strip() for name in given.split(",") if name.strip())
    return tuple(f"feature{place}" for place in range(n))


def _row(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "columns"}


def _text(result: dict[str, Any]) -> str:
    lines = [
        f"{result['mechanism']} from {result['packets']:,} packets, {result['refused']:,} refused",
        f"  epsilon {result['spent_epsilon']} per packet, as proved here: local, per record; delta 0",
        *("  " + line for line in wrap(f"Covers {result['covers']}.", 116)),
        f"  {result['n']} features, {result['l']} hidden units, {result['m']} encoders",
        "  No record was read, so no accuracy is known: a figure for it would be private data.",
    ]
    lines += [f"  saved in {result['saved']}, statement included"] if "saved" in result else []
    lines += [f"  encoder in integers in {result['encoder']}"] if "encoder" in result else []
    return "\n".join(lines)
