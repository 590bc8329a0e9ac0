"""`sensorsim train`: one model, saved with its privacy statement and with nothing that was measured on raw records."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.hints import need
from sensorsim._util.option_kinds import ENCODERS, FILE, MECHANISM, MODEL, Several, option_of
from sensorsim._util.terminal import columns, counted, fold
from sensorsim.commands.declare import Command, option, options_of
from sensorsim.commands.noise import NOISE_TABLE, proved_table
from sensorsim.commands.training_options import DataOptions, known_mechanism, settings_of
from sensorsim.datasets import TRAINING, column_names
from sensorsim.mechanisms import names
from sensorsim.noise.certificate import format_epsilon_column
from sensorsim.training.config import Config, ModelSettings, check_settings, idle_settings

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable
    from sensorsim.training.model_files import Model

OF_PACKETS = ("packets", "table", "sketch", "sketch_packets")
# What a model of packets can still be asked for; the rest was settled when the sensors were made.
WITH_PACKETS = (*OF_PACKETS, "columns", "ranges", "m", "l", "bias", "map", "sigma", "out", "encoder")
NOT_PRIVATE = "How well it does, `sensorsim evaluate` says: it reads raw records, so its figures are not private."


@dataclass(frozen=True)
class TrainModel(ModelSettings, DataOptions, Command["Model"]):
    """State what its epsilon is and what that covers. Mechanisms that release (sketch, sampled, release) see no
    record: a model of the sensor releases each one once, and the model is made of that. With --packets it is made of
    what real sensors have sent, in the same way.
    """

    example = """sensorsim train --epsilon 1.6 --out model.npz --encoder encoder.json
sensorsim train --packets week12.json \\
  --table rows-eps1.6-1.txt --out model.safetensors"""
    usage = """
        >>> import sensorsim as ss
        >>> model = ss.train(epsilon=1.6, out="model.safetensors")  # doctest: +SKIP
    """
    mechanism: str = option("sketch", MECHANISM, f"{names()}.")
    epsilon: float = option_of(Config, "epsilon", default=1.6)
    sigma: float = option_of(Config, "sigma")
    c: float = option_of(Config, "c")
    seed: int | None = option_of(Config, "seed")
    out: str | None = option(None, MODEL, "Where to save: .safetensors or .npz.", default_text="nowhere")
    encoder: str | None = option(
        None,
        ENCODERS,
        "Write encoders in the kernels' integers, as JSON for export: FILE, or FILE with -0, -1 … where users differ.",
    )
    packets: tuple[str, ...] = option(
        (),
        Several(FILE),
        "Learn from what sensors sent: packets, or what `sensorsim receive --out` wrote. Needs --table.",
    )
    table: "NoiseTable | str | None" = option(None, NOISE_TABLE, "Noise table that the packets were made with.")
    sketch: str | None = option(None, FILE, "Sketch that the packets of --sketch-packets went through.")
    sketch_packets: tuple[str, ...] = option((), Several(FILE), "Packets of that sketch, or their sums.")

    @property
    def of_packets(self) -> bool:
        return any(getattr(self, name) not in (None, ()) for name in OF_PACKETS)

    @property
    def config(self) -> Config:
        """Return the configuration that the options describe."""
        return Config(**settings_of(self) | {"mechanism": known_mechanism(self.mechanism), "runs": 1})

    def without_effect(self) -> Mapping[str, str]:
        if self.of_packets:
            settled = "it is settled by the packets or by the estimator"
            return {name: settled for name in options_of(type(self)) if name not in WITH_PACKETS}
        return idle_settings([known_mechanism(self.mechanism)], self.config)

    def run(self) -> "Model":
        from sensorsim.training.model_files import check_paths, write_model

        files = (self.data, self.ranges, self.table, self.sketch, *self.packets, *self.sketch_packets)
        inputs = [os.fspath(path) for path in files if isinstance(path, str | os.PathLike) and path != "-"]
        check_paths(self.out, self.encoder, inputs)
        model = self._of_packets() if self.of_packets else self._of_data()
        return replace(model, written=write_model(model, self.out, self.encoder))

    def _of_data(self) -> "Model":
        """Train on the persons of a file that are not held out; who is held out is public, and evaluate finds them."""
        asked = self.config
        check_settings(asked)
        need(*TRAINING)
        dataset = self.load(counts=False)
        from sensorsim.training.cells import ready  # with torch, so only for records that can be read
        from sensorsim.training.fitting import fit

        config, ready_dataset = ready(asked, dataset)
        if config.m != dataset.m:  # a mechanism of one user, for any m
            config, ready_dataset = ready(asked, self.load(config.m, counts=False))
        with progress.step("training"):
            return fit(ready_dataset, config)

    def _of_packets(self) -> "Model":
        """Receive and train. No record is read; a linear map needs no torch."""
        need("scipy", *(["torch"] if self.map == "sigmoid" else []))
        if not self.packets or self.table is None:
            raise InputError("--packets and --table go together: packets, and the table of the sensors that sent them.")
        if (self.sketch is None) != (not self.sketch_packets):
            raise InputError("--sketch and --sketch-packets go together: a sketch, and packets that went through it.")
        from sensorsim.datasets.public_ranges import ranges_for
        from sensorsim.device.sketch_file import read_sketch
        from sensorsim.hospital import receive
        from sensorsim.training.fitting import config_of, model_of_received

        noise = proved_table(self.table)
        received = receive(self.packets, noise)
        sketched = None
        if self.sketch is not None:
            sketched = receive(self.sketch_packets, noise, sketch=read_sketch(FilePath(self.sketch)))
        chosen: dict[str, Any] = {name: getattr(self, name) for name in ("m", "l", "bias", "map", "sigma")}
        config = config_of(received, sketched, **chosen)
        named = column_names(self.columns)
        names = named or tuple(f"feature{place}" for place in range(received.table.features))
        try:
            ranges = ranges_for(names, self.ranges) if named or self.ranges else None
        except InputError:
            if self.ranges:
                raise
            ranges = None  # the answer says that readings stay on 0 … 1
        with progress.step("training"):
            return model_of_received(received, sketched, config, names, ranges)

    def text(self, answer: "Model") -> str:
        """Return the statement for a terminal. No accuracy: that is evaluate's."""
        from sensorsim.training.model_files import SENSORS

        result = {**answer.about, **answer.written}
        source = "packet" if result["noise"] == SENSORS else "record"
        kind = f", {result['kind']} table" if result["kind"] else ""
        both = "; a record or person in both phases spends the sum" if len(result["identity"]) > 1 else ""
        nominal = "–" if result["nominal_epsilon"] is None else f"{result['nominal_epsilon']:.2f}"
        scaled = "divided by private column maxima, as printed: no epsilon holds"
        if result["normalise"] != "max":
            known = "in public ranges, kept in the file; what lies outside is clipped"
            scaled = known if result["ranges"] else "0 … 1; no ranges are known (--ranges)"
        said = {
            "epsilon": f"{format_epsilon_column(result['spent_epsilon'], 4)} spent per {source}, {nominal} nominal; "
            f"delta {result['delta']:g}; {result['trust']}{both}",
            "noise": result["noise"],
            "covers": result["covers"],
            "model": f"{result['form']}; n = {counted(result['n'], 'feature')}, l = "
            f"{counted(result['l'], 'hidden unit')}, m = {counted(result['m'], 'user')}",
            "readings": scaled,
        }
        if "saved" in result:
            said["saved in"] = f"{result['saved']}, statement included"
        if "encoder" in result:
            said["encoder in"] = f"{result['encoder']}{', one for all users' if result['encoder_shared'] else ''}"
        if result.get("weights_saturated"):
            said["note"] = f"{result['weights_saturated']} weights are larger than the kernel's format holds"
        width = columns()
        lines = [line for name, text in said.items() for line in fold(text, width, f"  {name:<13} ")]
        head = f"{result['mechanism']} from {counted(result['records'], source)}{kind}; settings {result['settings']}"
        return "\n".join([head, *lines, *fold(NOT_PRIVATE, width)])
