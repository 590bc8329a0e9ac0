"""`sensorsim train`: one model, saved with its privacy statement."""

from __future__ import annotations

import math
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from sensorsim.cli.output import emit, format_option
from sensorsim.cli.training import (
    MAXIMUM_NOTE,
    MOST_SEED,
    base_config,
    data_options,
    load_data,
    model_options,
    shown,
    trivial_lines,
)
from sensorsim.errors import InputError
from sensorsim.mechanisms import names

SCHEMA_VERSION = 2


@click.command()
@click.option("--mechanism", default="sampled", show_default=True, help=f"{names()}.")
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
@click.option("--encoder", metavar="FILE", help="Write user 0's encoder in the kernels' integers, as JSON for export.")
@click.option(
    "--packets",
    metavar="FILE",
    multiple=True,
    help="Learn from what sensors sent: packets, or what `sensorsim receive --out` wrote. Needs --table.",
)
@click.option("--table", "table_file", metavar="FILE", help="Noise table that the packets were made with.")
@format_option
@click.pass_context
def command(
    context: click.Context,
    /,
    fmt: str,
    out: str | None,
    encoder: str | None,
    packets: tuple[str, ...],
    table_file: str | None,
    **chosen: Any,
) -> None:
    """Train one model privately; print its accuracy beside the trivial predictors, and what its epsilon covers.

    With --packets no record is read: the model is made of what sensors have released, and no accuracy is known.

    \b
    Example: sensorsim train --mechanism sampled --epsilon 1.6 --out model.safetensors
             sensorsim train --packets week12.json --table rows-eps1.6-1.txt --out model.safetensors
    """
    if packets or table_file:
        from sensorsim.cli.train_packets import train_packets

        train_packets(context, packets, table_file, out, encoder, fmt)
        return
    result, trivial = train_one(chosen, out, encoder)
    emit(
        fmt,
        lambda: table(result, trivial),
        lambda: {"schema_version": SCHEMA_VERSION, **result, "trivial": trivial},
        lambda: [
            {
                name: value
                for name, value in result.items()
                if name not in ("config", "columns", "column_mse", "quantisation")
            }
        ],
    )


def train_one(
    chosen: dict[str, Any], out: str | None, encoder: str | None
) -> tuple[dict[str, Any], dict[str, dict[str, float | None]]]:
    """Train, save if asked, and give what there is to tell."""
    from sensorsim.train import metrics, save
    from sensorsim.train.cell import ready, train_and_score
    from sensorsim.train.statement import statement

    check_paths(out, encoder)
    dataset = load_data(chosen)
    config, dataset = ready(base_config(chosen, 1), dataset)
    weights, scores = train_and_score(dataset, config)
    result: dict[str, Any] = {"mechanism": config.mechanism, "data": dataset.source}
    result |= statement(config, dataset.n, dataset.normalise).as_dict()
    if scores.diverged:
        raise InputError(f"training diverged: weights that are no numbers; try a smaller --lr than {config.lr:g}.")
    for name in metrics.PARTS:
        value = float(getattr(scores, name)[0])
        result[name] = None if math.isnan(value) else value  # no person may be held out
    result |= {
        "columns": list(dataset.columns),
        "column_mse": scores.column_mse[0].tolist(),
        "config": without_seed(config.as_dict()),  # who knows the seed can take the noise off
    }
    if out is not None:
        save.save(out, save.tensors_of(weights, config), result)
        result["saved"] = out
    if encoder is not None:
        result["quantisation"] = _write_encoder(
            encoder, save.tensors_of(weights, config), config, dataset, dict(result)
        )
    return result, metrics.trivial_predictors(dataset, config)


def check_paths(out: str | None, encoder: str | None) -> None:
    """Refuse places that cannot be written to before anything is computed."""
    from sensorsim.train import save

    if out is not None:
        save.check_path(out)
    if encoder is not None and not encoder.endswith(".json"):
        raise InputError(f"{encoder} is no JSON file; give --encoder a name that ends in .json.")
    if encoder is not None and not Path(encoder).resolve().parent.is_dir():
        raise InputError(f"there is no folder for {encoder}; make it first, or give another path.")


def without_seed(config: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != "seed"}


def _write_encoder(path: str, tensors: Any, config: Any, dataset: Any, provenance: dict[str, Any]) -> dict[str, Any]:
    """User 0's encoder in integers; returns what that cost."""
    from sensorsim.encoders import as_json
    from sensorsim.files import write_whole
    from sensorsim.train.quantise import quantise

    made = quantise(tensors, config, dataset, provenance)[0]
    write_whole(path, as_json(made))
    lost: dict[str, Any] = made.provenance["quantisation"] | {"file": path}
    return lost


def table(result: dict[str, Any], trivial: dict[str, dict[str, float | None]]) -> str:
    lines = [
        f"{result['mechanism']} on {result['data']} · nominal epsilon {shown(result['nominal_epsilon'])}, "
        f"spent {shown(result['spent_epsilon'], 4)} per record, delta {result['delta']:g}",
        *wrap(f"Covers {result['covers']}.", 118),
        "",
        f" {'accuracy, 1 - MSE in per cent':<34}{'all rows':>9}{'':>15}{'held out':>9}",
        f" {'this model':<34}{shown(result['accuracy']):>9}{'':>15}{shown(result['accuracy_held_out']):>9}",
        *trivial_lines(trivial),
        "",
        f" worst column: {_worst(result)}",
    ]
    if "saved" in result:
        lines.append(f" saved in {result['saved']}, statement included")
    if "quantisation" in result:
        lost = result["quantisation"]["accuracy_lost_points"]
        lines.append(
            f" encoder in integers in {result['quantisation']['file']}; lost to quantisation: {lost:.4f} points"
        )
    if "column maxima" in result["covers"]:
        lines.append(f" {MAXIMUM_NOTE}")
    return "\n".join(lines)


def _worst(result: dict[str, Any]) -> str:
    error, name = max(zip(result["column_mse"], result["columns"], strict=True))
    return f"{name}, root of the mean squared error {error**0.5:.3f} of its range"
