"""What decides how accurate a record is: the kernels' formats, the default encoder and noise table, the packet."""

import hashlib
from typing import Any

from sensorsim.locking.figures import figures_of
from sensorsim.locking.lock import Figure


def accuracy_parameters(n: int) -> dict[str, Figure]:
    """Of the kernels that ship, and of the sensor that is made by default for records of n features."""
    parts = {"formats": _formats(), "tables": _tables(), "encoder": _encoder(), "sensor": _sensor(n)}
    return figures_of({"parameters": parts})


def _formats() -> dict[str, str]:
    """Every fixed-point format, as `u16, 15 fraction bits, 0 … 65535`."""
    from sensorsim.kernels import formats
    from sensorsim.language.types import Q

    found = {name: value for name, value in vars(formats).items() if isinstance(value, Q)}
    return {name: f"{q.storage}, {q.frac_bits} fraction bits, {q.lo} … {q.hi}" for name, q in found.items()}


def _tables() -> dict[str, dict[str, Any]]:
    """The tables of e^a and of the logistic function."""
    from sensorsim.kernels.formats import EXP_TABLE, SIGMOID_TABLE

    tables = {"exp": EXP_TABLE, "sigmoid": SIGMOID_TABLE}
    return {name: {"entries": len(table), "sha256": _sha256(table)} for name, table in tables.items()}


def _encoder() -> dict[str, Any]:
    """The encoder that is shipped: its integers and their formats, as its file has them."""
    import json

    from sensorsim.encoders import DEFAULT
    from sensorsim.tables import folder

    content = (folder() / "encoders" / f"{DEFAULT}.json").read_bytes()
    found = json.loads(content)
    formats = {name: f"{q['storage']}, {q['frac_bits']} fraction bits" for name, q in found["formats"].items()}
    return {
        "sha256": hashlib.sha256(content).hexdigest(),
        "formats": formats,
        "sigmoid_table_bits": found["sigmoid_table_bits"],
        "features": len(found["columns"]),
        "hidden_units": len(found["weights"]),
    }


def _sensor(n: int) -> dict[str, Any]:
    from dataclasses import replace

    from sensorsim.device.firmware import Firmware
    from sensorsim.export.sensor_package import default_table
    from sensorsim.noise.table_report import delivered

    firmware = Firmware(replace(default_table(), features=n))
    table, proved, gives = firmware.table, firmware.certificate, delivered(firmware.table)
    name, values = table.c_array()
    return {
        "kind": table.kind,
        "kernel": firmware.kernel.name,
        "identity": firmware.identity.hex(),
        "released": table.release,
        "nominal_epsilon": str(table.epsilon),
        "certified_epsilon": str(proved.epsilon_record),
        "certified_delta": str(proved.delta_record),
        "worst_sd": gives.estimate_sd,
        "mean_sd": gives.estimate_sd_mean,
        "secret_bits": gives.secret_bits,
        "value_bits": gives.value_bits,
        "on_air_bits": gives.bits_on_air,
        "packet_bits": firmware.layout.bits,
        "table_bytes": gives.table_bytes,
        "constants": dict(table.c_constants()),
        "entries": {name: len(values)},
    }


def _sha256(values: tuple[int, ...]) -> str:
    return hashlib.sha256(",".join(map(str, values)).encode("ascii")).hexdigest()
