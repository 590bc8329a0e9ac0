"""`sensorsim train`: one model, saved with its privacy statement and with nothing that was measured on raw records."""

from __future__ import annotations

from typing import Any

import click

from sensorsim._util.terminal import columns, counted, fold
from sensorsim.api.training import refuse_beside_packets, train
from sensorsim.cli.choices import ENCODERS, FILE, MECHANISM, MODEL
from sensorsim.cli.output import emit, format_option, given_options, tell
from sensorsim.cli.training import (
    MOST_SEED,
    base_config,
    data_options,
    model_options,
    option,
    refuse_unread,
    shown,
)
from sensorsim.mechanisms import names
from sensorsim.noise.certificate import format_epsilon_column as epsilon_to

NOT_PRIVATE = "How well it does, `sensorsim evaluate` says: it reads raw records, so its figures are not private."


@click.command()
@option("--mechanism", type=MECHANISM, help=f"{names()}.")
@option("--epsilon", type=float, help="Nominal budget per record.")
@option("--sigma", type=float, help="Environmental noise on the inputs.")
@option("--c", "c", type=float, help="Stabilization constant of spof.")
@data_options
@model_options
@option(
    "--seed",
    type=click.IntRange(0, MOST_SEED),
    help="Draw all noise from this seed: reproducible, so not private.  [default: secret noise]",
)
@option("--out", type=MODEL, help="Where to save: .safetensors or .npz.  [default: nowhere]")
@option(
    "--encoder",
    type=ENCODERS,
    help="Write encoders in the kernels' integers, as JSON for export: FILE, or FILE with -0, -1 … where users differ.",
)
@option(
    "--packets",
    type=FILE,
    multiple=True,
    help="Learn from what sensors sent: packets, or what `sensorsim receive --out` wrote. Needs --table.",
)
@option("--table", type=FILE, help="Noise table that the packets were made with.")
@option("--sketch", type=FILE, help="Sketch that the packets of --sketch-packets went through.")
@option("--sketch-packets", type=FILE, multiple=True, help="Packets of that sketch, or their sums.")
@format_option
def command(fmt: str, **chosen: Any) -> None:
    """Train one model privately and save it; say what its epsilon is and what that covers.

    Mechanisms that release (sketch, sampled, release) see no record: a model of the sensor releases each one once, and
    the model is made of that. With --packets it is made of what real sensors have sent, in the same way.

    \b
    Example: sensorsim train --epsilon 1.6 --out model.npz --encoder encoder.json
             sensorsim train --packets week12.json \\
               --table rows-eps1.6-1.txt --out model.safetensors
    """
    packets = any(chosen[name] not in (None, ()) for name in ("packets", "table", "sketch", "sketch_packets"))
    if packets:  # `train` refuses too, but cannot see an option that was typed with its default
        refuse_beside_packets({name: typed for name, typed in given_options().items() if name != "fmt"})
    else:
        chosen["mechanism"] = (asked := base_config(chosen, 1)).mechanism
        refuse_unread([asked.mechanism], asked)
    model = train(**chosen, told=tell)
    emit(fmt, lambda: table({**model.about, **model.written}), model.to_dict, model.rows)


def table(result: dict[str, Any]) -> str:
    """What there is to tell. No accuracy: that is evaluate's."""
    from sensorsim.training.model_files import SENSORS

    source = "packets" if result["noise"] == SENSORS else "records"
    kind = f", {result['kind']} table" if result["kind"] else ""
    both = "; a record or person in both phases spends the sum" if len(result["identity"]) > 1 else ""
    said = {
        "epsilon": f"{epsilon_to(result['spent_epsilon'], 4)} spent per {source[:-1]}, "
        f"{shown(result['nominal_epsilon'])} nominal; delta {result['delta']:g}; {result['trust']}{both}",
        "noise": result["noise"],
        "covers": result["covers"],
        "model": f"{result['form']}; n = {counted(result['n'], 'feature')}, l = "
        f"{counted(result['l'], 'hidden unit')}, m = {counted(result['m'], 'user')}",
        "readings": _scaled(result),
    }
    if "saved" in result:
        said["saved in"] = f"{result['saved']}, statement included"
    if "encoder" in result:
        said["encoder in"] = f"{result['encoder']}{', one for all users' if result['encoder_shared'] else ''}"
    if result.get("weights_saturated"):
        said["note"] = f"{result['weights_saturated']} weights are larger than the kernel's format holds"
    width = columns()
    lines = [line for name, text in said.items() for line in fold(text, width, f"  {name:<13} ")]
    head = f"{result['mechanism']} from {counted(result['records'], source[:-1])}{kind}; settings {result['settings']}"
    return "\n".join([head, *lines, *fold(NOT_PRIVATE, width)])


def _scaled(result: dict[str, Any]) -> str:
    if result["normalise"] == "max":
        return "divided by private column maxima, as printed: no epsilon holds"
    known = "in public ranges, kept in the file; what lies outside is clipped"
    return known if result["ranges"] else "0 … 1; no ranges are known (--ranges)"
