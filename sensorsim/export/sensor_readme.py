"""The README of a sensor's package."""

from collections.abc import Sequence
from importlib.metadata import version

from sensorsim.device.status import Status
from sensorsim.export.encoder import trained_line
from sensorsim.export.files import template
from sensorsim.export.sensor import SensorCode
from sensorsim.export.sensor_words import about, protects
from sensorsim.export.sketch import SKETCH
from sensorsim.kernels import health
from sensorsim.language.c.text import ascii_text
from sensorsim.machine.emulated_sensor import CALLS, SensorCost
from sensorsim.machine.targets import SHOWN_FLAGS, TARGETS, compiler_version
from sensorsim.terminal import counted

DO = {
    Status.OK: "send the packet",
    Status.SPENT: "wait for the next period",
    Status.NO_ENTROPY: "look at the random generator; nothing is released without it",
    Status.NO_STORE: "try again later; if it stays, the memory is worn",
    Status.BAD_JOURNAL: "stay silent; to erase both slots starts anew, budget included",
    Status.BAD_CLOCK: "set the clock and open again",
    Status.NOT_OPEN: "call open first",
}


def sensor_readme(code: SensorCode, vectors: int, costs: Sequence[SensorCost]) -> str:
    """The README, with what was measured for this package."""
    firmware, prefix = code.firmware, code.prefix
    days = firmware.budget_days
    fill = {
        "ABOUT": about(firmware),
        "PROTECTS": protects(firmware) + (trained_line(firmware.encoder) if firmware.encoder else ""),
        "VERSION": version("sensorsim"),
        "RECEIVE_MORE": _beside(code),
        "BUDGET": counted(firmware.releases, "release"),
        "EPOCH": "day" if days == 1 else f"{days} days",
        "STATUS": "\n".join(f"| `{prefix.upper()}{one.name}` | {one.about} | {DO[one]} |" for one in Status),
        "LOST": counted(firmware.reserve, "release"),
        "START_UP": str(health.START_UP),
        "CLAIMED_BITS": str(health.CLAIMED_BITS),
        "LONGEST_CYCLE": str(health.LONGEST_CYCLE),
        "BUDGET_EPSILON": str(firmware.budget),
        "EPSILON": str(firmware.epsilon),
        "PACKET_BYTES": str(firmware.layout.bytes),
        "FIELDS": "\n".join(f"| {at} | {bits} | {_field(what, code)} |" for what, at, bits in firmware.layout.fields()),
        "CODE": str(firmware.layout.code),
        "IDENTITY": f"{firmware.layout.identity:04X}",
        "VALUES": _values(code),
        "COMPILER": f"{compiler_version()}, {SHOWN_FLAGS}",
        "COSTS": _costs(costs, prefix),
        "TIMING": "\n".join(_timing(code)),
        "VECTORS": str(vectors),
        "NAMESPACE": prefix.rstrip("_"),
        "MACRO": prefix.upper(),
        "PREFIX": prefix,
    }
    text = template("sensor/README.md")
    for key, value in fill.items():
        text = text.replace(f"@{key}@", value)
    return text


def _beside(code: SensorCode) -> str:
    """What `sensorsim receive` is given beside the table."""
    if code.firmware.sketch is not None:
        return f" --sketch {SKETCH}"
    return f" --encoder {code.firmware.encoder.name}" if code.firmware.encoder else ""


def _field(what: str, code: SensorCode) -> str:
    return "number of the direction" if code.firmware.sketch and what == "features" else what


def _values(code: SensorCode) -> str:
    """How the hospital makes an unbiased value of what is in a packet."""
    remark = ascii_text(" ".join(code.firmware.table.c_remark()))
    sketch = code.firmware.sketch
    if sketch is None:
        return remark
    return f"{remark} Here x is the square over R^2, R = {sketch.root:.9g}, cut off at 1."


def _costs(costs: Sequence[SensorCost], prefix: str) -> str:
    lines = [
        "| core | call | instructions | cost | stack, bytes |",
        "|---|---|---|---|---|",
    ]
    for cost in costs:
        for call in cost.calls:
            price = f"{call.cost:.0f} {call.unit}" if call.cost is not None else "no price"
            name = f"`{prefix}sensor_{call.call.split(',')[0]}`" + call.call[len(call.call.split(",")[0]) :]
            lines.append(
                f"| {TARGETS[cost.target].title} | {name} | {call.instructions:.0f} | {price} | {call.stack_bytes} |"
            )
    assert all(tuple(call.call for call in cost.calls) == CALLS for cost in costs)
    sizes = ", ".join(f"{TARGETS[cost.target].title} {cost.flash_bytes}" for cost in costs)
    rams = sorted({cost.ram_bytes for cost in costs})
    lines += [
        "",
        f"Code and tables in bytes: {sizes}. An `{prefix}sensor` takes {' or '.join(map(str, rams))} bytes of RAM.",
    ]
    return "\n".join(lines)


def _timing(code: SensorCode) -> list[str]:
    return [
        f"- `{code.names.functions[kernel]}`: {ascii_text(kernel.secrecy().statement)}."
        for kernel in code.kernels
        if kernel.secrecy().secrets
    ]
