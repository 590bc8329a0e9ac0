"""`sensorsim train`: one model, saved with its privacy statement and with nothing that was measured on raw records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from sensorsim.cli.output import emit, format_option
from sensorsim.cli.training import MOST_SEED, base_config, data_options, load_data, model_options, note_unused, shown
from sensorsim.errors import InputError
from sensorsim.mechanisms import names

if TYPE_CHECKING:
    from sensorsim.train.save import Model

SCHEMA_VERSION = 3
NOT_PRIVATE = "How well it does, `sensorsim evaluate` says: it reads raw records, so its figures are not private."


@click.command()
@click.option("--mechanism", default="sketch", show_default=True, help=f"{names()}.")
@click.option("--epsilon", type=float, default=1.6, show_default=True, help="Nominal budget per record.")
@click.option("--sigma", type=float, default=0.0, show_default=True, help="Environmental noise on the inputs.")
@click.option("--c", "c", type=float, default=2.5, show_default=True, help="Stabilization constant of spof.")
@data_options
@model_options
@click.option(
    "--seed",
    type=click.IntRange(0, MOST_SEED),
    help="Draw all noise from this seed: reproducible, so not private.  [default: secret noise]",
)
@click.option("--out", metavar="FILE", help="Where to save: .safetensors or .npz.  [default: nowhere]")
@click.option(
    "--encoder",
    metavar="FILE",
    help="Write encoders in the kernels' integers, as JSON for export: FILE, or FILE with -0, -1 … where users differ.",
)
@click.option(
    "--packets",
    metavar="FILE",
    multiple=True,
    help="Learn from what sensors sent: packets, or what `sensorsim receive --out` wrote. Needs --table.",
)
@click.option("--table", "table_file", metavar="FILE", help="Noise table that the packets were made with.")
@click.option("--sketch", metavar="FILE", help="Sketch that the packets of --sketch-packets went through.")
@click.option("--sketch-packets", metavar="FILE", multiple=True, help="Packets of that sketch, or their sums.")
@format_option
@click.pass_context
def command(
    context: click.Context,
    /,
    fmt: str,
    out: str | None,
    encoder: str | None,
    **chosen: Any,
) -> None:
    """Train one model privately and save it; say what its epsilon is and what that covers.

    Mechanisms that release (sketch, sampled, release) see no record: a model of the sensor releases each one once, and
    the model is made of that. With --packets it is made of what real sensors have sent, in the same way.

    \b
    Example: sensorsim train --epsilon 1.6 --out model.safetensors --encoder encoder.json
             sensorsim train --packets week12.json --table rows-eps1.6-1.txt --out model.safetensors
    """
    check_paths(out, encoder, _inputs(chosen))
    from sensorsim.mechanisms import resolve

    resolve(chosen["mechanism"])  # before anything heavy is loaded
    from sensorsim.train.about import check_users

    check_users(chosen["m"])
    if any(chosen[name] not in (None, ()) for name in ("packets", "table_file", "sketch", "sketch_packets")):
        from sensorsim.cli.train_packets import model_of_packets

        model = model_of_packets(context)
    else:
        model = model_of_data(chosen)
    result = {**model.about, **_written(model, out, encoder)}
    emit(
        fmt,
        lambda: table(result),
        lambda: {**result, "schema_version": SCHEMA_VERSION},
        lambda: [{name: value for name, value in result.items() if name not in ("columns", "ranges", "identity")}],
    )


def model_of_data(chosen: dict[str, Any]) -> Model:
    """Train on the persons of a file that are not held out."""
    from sensorsim.train.cell import ready
    from sensorsim.train.fit import fit

    split = {**chosen, "seed": 0}  # who is held out is public, and evaluate must find the same persons
    dataset = load_data(split, counts=False)
    asked = base_config(chosen, 1)
    config, ready_dataset = ready(asked, dataset)
    if config.m != dataset.m:  # a mechanism of one user, whatever m is
        config, ready_dataset = ready(asked, load_data({**split, "m": config.m}, counts=False))
    note_unused([asked.mechanism], asked)
    return fit(ready_dataset, config)


def _inputs(chosen: dict[str, Any]) -> list[str]:
    """Files that are read, and so not written over."""
    given = [chosen[name] for name in ("data", "ranges", "table_file", "sketch")]
    return [path for path in (*given, *chosen["packets"], *chosen["sketch_packets"]) if path not in (None, "-")]


def check_paths(out: str | None, encoder: str | None, inputs: Sequence[str] = ()) -> None:
    """Refuse places that cannot be written to before anything is computed."""
    from sensorsim.files import check_targets

    if out is not None:
        from sensorsim.train import save

        save.check_path(out)
    if encoder is not None and not encoder.endswith(".json"):
        raise InputError(f"{encoder} is no JSON file; give --encoder a name that ends in .json.")
    check_targets([out, encoder], read=inputs)


def _written(model: Model, out: str | None, encoder: str | None) -> dict[str, Any]:
    """Write what was asked for, all of it or nothing; returns where."""
    from sensorsim.encoders import as_json
    from sensorsim.files import write_all
    from sensorsim.train import save
    from sensorsim.train.quantise import in_integers

    done: dict[str, Any] = {}
    contents: dict[str, bytes | str] = {}
    if out is not None:
        contents[out] = save.content_of(out, model)
        done["saved"] = out
    if encoder is not None:
        made = in_integers(model)
        path = Path(encoder)
        files = [encoder] if len(made) == 1 else [str(path.with_stem(f"{path.stem}-{j}")) for j in range(len(made))]
        contents |= {file: as_json(one) for file, one in zip(files, made, strict=True)}
        done |= {"encoder": " ".join(files), "encoder_shared": len(made) == 1 and model.trained.m > 1}
        done["weights_saturated"] = sum(one.provenance["quantisation"]["weights_saturated"] for one in made)
    write_all(contents)
    return done


def table(result: dict[str, Any]) -> str:
    """What there is to tell. No accuracy: that is evaluate's."""
    source = "packets" if result["noise"] == "the sensors' own" else "records"
    kind = f", {result['kind']} table" if result["kind"] else ""
    both = "; a record or person in both phases spends the sum" if len(result["identity"]) > 1 else ""
    lines = [
        f"{result['mechanism']} from {result['records']:,} {source}{kind}",
        f"  epsilon       {shown(result['spent_epsilon'], 4)} spent per {source[:-1]}, "
        f"{shown(result['nominal_epsilon'])} nominal; delta {result['delta']:g}; {result['trust']}; "
        f"settings {result['settings']}{both}",
        f"  noise         {result['noise']}",
        *_indented("covers", result["covers"]),
        f"  model         {result['form']}; n = {result['n']} features, l = {result['l']} hidden units, "
        f"m = {result['m']} users",
        f"  readings      {_scaled(result)}",
    ]
    if "saved" in result:
        lines.append(f"  saved in      {result['saved']}, statement included")
    if "encoder" in result:
        lines.append(f"  encoder in    {result['encoder']}{', one for all users' if result['encoder_shared'] else ''}")
    if result.get("weights_saturated"):
        lines.append(f"  note          {result['weights_saturated']} weights are larger than the kernel's format holds")
    return "\n".join([*lines, NOT_PRIVATE])


def _scaled(result: dict[str, Any]) -> str:
    if result["normalise"] == "max":
        return "divided by private column maxima, as printed: no epsilon holds"
    return "in public ranges, which are in the file" if result["ranges"] else "0 … 1; no ranges are known (--ranges)"


def _indented(name: str, text: str) -> list[str]:
    lines = wrap(text, 102)
    return [f"  {name if place == 0 else '':<13} {line}" for place, line in enumerate(lines)]
