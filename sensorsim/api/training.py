"""`train`: one model, made privately, with its statement of what was spent."""

import os
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util import progress
from sensorsim._util.errors import RENAMED, InputError
from sensorsim._util.hints import need
from sensorsim.api.noise import Table, read_table
from sensorsim.datasets import TRAINING, Told, chosen_records, column_names, warn
from sensorsim.mechanisms import resolve
from sensorsim.training.config import Config, check_settings, refuse_idle

if TYPE_CHECKING:
    from sensorsim.datasets.public_ranges import Range
    from sensorsim.training.model_files import Model

# What a model of packets can still be asked for; the rest was settled when the sensors were made.
WITH_PACKETS = (
    *("packets", "table", "sketch", "sketch_packets", "columns", "ranges", "m", "l", "bias", "map", "sigma"),
    *("out", "encoder", "told"),
)
Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def train(
    mechanism: str = "sketch",
    epsilon: float = 1.6,
    sigma: float = Config.sigma,
    c: float = Config.c,
    data: str | None = None,
    person: str | None = None,
    columns: str | Sequence[str] | None = None,
    ranges: str | None = None,
    normalise: str = "ranges",
    drop_missing: bool = False,
    m: int = Config.m,
    l: int = Config.l,
    bias: bool = Config.bias,
    optimiser: str | None = Config.optimiser,
    lr: float | None = Config.lr,
    batch: int | None = Config.batch,
    epochs: int | None = Config.epochs,
    start: str | None = Config.start,
    schedule: str | None = Config.schedule,
    loss: str | None = Config.loss,
    sampling: str = Config.sampling,
    redraw: bool = Config.redraw,
    forward: str | None = Config.forward,
    k: int | None = Config.k,
    estimator: str = Config.estimator,
    kind: str = Config.kind,
    map: str | None = Config.map,
    release_sees: str = Config.release_sees,
    share: float | None = Config.share,
    C: float | None = Config.C,
    point: str = Config.point,
    noise: str = Config.noise,
    clipping: str = Config.clipping,
    delta: float = Config.delta,
    decode_c: bool = Config.decode_c,
    seed: int | None = Config.seed,
    out: str | None = None,
    encoder: str | None = None,
    packets: Files = (),
    table: Table | None = None,
    sketch: str | os.PathLike[str] | None = None,
    sketch_packets: Files = (),
    told: Told = warn,
) -> "Model":
    """Train one model privately; it says what its epsilon is and what that covers, and nothing of raw records.

    Without `data` the synthetic set is used; with `packets` and their `table` the model is made of what real sensors
    have sent, and `sketch_packets` with their `sketch` add how features vary together. What is None of the loop's
    settings is the mechanism's own. `out` saves the model, `encoder` writes it in the kernels' integers for `export`.

        >>> import sensorsim as ss
        >>> model = ss.train(epsilon=1.6, out="model.safetensors")  # doctest: +SKIP
    """
    values = dict(locals())
    from sensorsim.training.model_files import check_paths, check_users, write_model

    given = {name: values[name] for name in Config.__dataclass_fields__ if name in values}
    given["mechanism"] = resolve(mechanism)[0].name  # before anything heavy is loaded
    files, sketched = _files(packets), _files(sketch_packets)
    of_packets = bool(files or table is not None or sketch is not None or sketched)
    _refuse_idle(_named(values), Config(**{**given, "runs": 1}), of_packets)
    inputs = [path for path in (data, ranges, table, sketch, *files, *sketched) if isinstance(path, str | os.PathLike)]
    check_paths(out, encoder, [os.fspath(path) for path in inputs if path != "-"])
    check_users(m)
    if not of_packets:
        check_settings(Config(**{**given, "runs": 1}))
    if of_packets:
        choice = {name: given[name] for name in ("m", "l", "bias", "map", "sigma")}
        model = model_of_packets(files, table, sketch, sketched, columns, ranges, choice)
    else:
        model = _of_data(given, data, m, columns, person, ranges, normalise, drop_missing, told)
    return replace(model, written=write_model(model, out, encoder))


def _named(values: dict[str, Any]) -> dict[str, str]:
    """The parameters that are not at their defaults, each with its option."""
    options = {parameter: option for option, parameter in RENAMED.items()}
    defaults = {name: parameter.default for name, parameter in signature(train).parameters.items()}
    changed = [name for name, default in defaults.items() if values[name] is not default and values[name] != default]
    return {name: f"--{options.get(name, name).replace('_', '-')}" for name in changed}


def _refuse_idle(given: dict[str, str], asked: Config, of_packets: bool) -> None:
    """A parameter that was given and changes nothing is refused."""
    if of_packets:
        refuse_beside_packets(given)
    else:
        known = Config.__dataclass_fields__
        refuse_idle([asked.mechanism], asked, {name: option for name, option in given.items() if name in known})


def refuse_beside_packets(given: dict[str, str]) -> None:
    """What packets or their estimator have settled cannot be chosen any more; `given` are parameters with options."""
    for name, option in given.items():
        if name not in WITH_PACKETS:
            raise InputError(f"{option} is settled by the packets or by the estimator; leave it out with --packets.")


def _of_data(
    given: dict[str, Any],
    data: str | None,
    m: int,
    columns: str | Sequence[str] | None,
    person: str | None,
    ranges: str | None,
    normalise: str,
    drop_missing: bool,
    told: Told,
) -> "Model":
    """Train on the persons of a file that are not held out."""
    need(*TRAINING)

    def records(users: int) -> Any:  # who is held out is public, and evaluate must find the same persons
        return chosen_records(
            data, users, columns, person, ranges, normalise, drop_missing, seed=0, counts=False, told=told
        )

    dataset = records(m)
    from sensorsim.training.cells import ready  # with torch, so only for records that can be read
    from sensorsim.training.fitting import fit

    asked = Config(**{**given, "runs": 1})
    config, ready_dataset = ready(asked, dataset)
    if config.m != dataset.m:  # a mechanism of one user, whatever m is
        config, ready_dataset = ready(asked, records(config.m))
    with progress.step("training"):
        return fit(ready_dataset, config)


def model_of_packets(
    packets: Sequence[str],
    table: Table | None,
    sketch: str | os.PathLike[str] | None,
    sketch_packets: Sequence[str],
    columns: str | Sequence[str] | None,
    ranges: str | None,
    chosen: dict[str, Any],
) -> "Model":
    """Receive and train. No record is read; a linear map needs no torch."""
    need("scipy", *(["torch"] if chosen["map"] == "sigmoid" else []))
    if not packets or table is None:
        raise InputError("--packets and --table go together: packets, and the table that the sensors were made with.")
    if (sketch is None) != (not sketch_packets):
        raise InputError("--sketch and --sketch-packets go together: a sketch, and the packets that went through it.")
    from sensorsim.device.sketch_file import read_sketch
    from sensorsim.hospital import receive
    from sensorsim.training.fitting import config_of, model_of_received

    noise = read_table(table)
    received = receive(packets, noise)
    sketched = None if sketch is None else receive(sketch_packets, noise, sketch=read_sketch(Path(sketch)))
    config = config_of(received, sketched, **chosen)
    names = column_names(columns) or tuple(f"feature{place}" for place in range(received.table.features))
    with progress.step("training"):
        return model_of_received(received, sketched, config, names, _ranges(names, columns is not None, ranges))


def _files(given: Files) -> list[str]:
    return [os.fspath(given)] if isinstance(given, str | os.PathLike) else [os.fspath(path) for path in given]


def _ranges(names: tuple[str, ...], named: bool, ranges: str | None) -> "tuple[Range, ...] | None":
    """Those of a file, or ready ones for columns that are named; None where neither is there."""
    from sensorsim.datasets.public_ranges import ranges_for

    if ranges is not None:
        return ranges_for(names, ranges)
    try:
        return ranges_for(names) if named else None
    except InputError:
        return None  # then it is said that readings stay on 0 … 1
