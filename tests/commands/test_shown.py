"""Each number of a screen is in the JSON of its command, or follows from numbers in it: docs/formats.md says so."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sensorsim.tables import folder

from sensorsim.commands.program import main

NUMBER = re.compile(r"(?<![\w.^])\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w^])")
TABLE = f"{folder()}/noise/rows-eps1.6-1.txt"
PLAN = "plan --devices 5000 --budget-epsilon 1"


def leaves(value: Any) -> Iterator[float]:
    """Return every number in JSON, those in words and keys too."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(key)
            yield from leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, str):
        yield from (float(text.replace(",", "")) for text in NUMBER.findall(value))
    elif value is not None and not isinstance(value, bool):
        yield abs(float(value))


def nothing(data: Any) -> list[float]:
    return []


def ratio_of_sds(data: Any) -> list[float]:
    return [data["estimate_sd"] / data["best_known_sd"]]


def other_unit(data: Any) -> list[float]:
    return [radio["nJ_per_event"] / 1000 for radio in data["radios"]]


def sums_over_parts(data: Any) -> list[float]:
    (kernel,) = data["kernels"].values()
    return [*sum((Counter(part) for part in kernel["counts"].values()), Counter()).values()]


CASES: dict[str, Callable[[Any], list[float]]] = {
    "cost": nothing,
    "cost --cpu msp430": nothing,
    "cost --n 30 --l 3 --variant paper": nothing,
    "cost --metric latency": nothing,
    "cost --chip nrf52832 --records-per-day 20 --battery-mah 200": nothing,
    "cost --sweep n=7:9": nothing,
    "cpus": other_unit,
    "cpus show ibex": nothing,
    "sensitivity": nothing,
    f"noise check {TABLE}": ratio_of_sds,
    "kernel spof": sums_over_parts,
    f"{PLAN} --columns TotalSteps --every 7 --budget-days 30": nothing,
    f"{PLAN} --battery-mah 200": nothing,
    "data ranges": nothing,
    "claims cost-spof cost-saving": nothing,
}


def without(text: str, known: list[float]) -> list[str]:
    """Return the numbers of a screen that are none of those known, as rounded as they are shown; shares in per cent."""
    known = [*known, *(100 * value for value in known)]
    found = []
    for shown in NUMBER.findall(text):
        digits, _, power = shown.replace(",", "").partition("e")
        step = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
        if not any(abs(value - float(f"{digits}e{power or 0}")) <= 1.0001 * step for value in known):
            found.append(shown)
    return found


@pytest.mark.parametrize("command", CASES)
def test_each_number_of_a_screen_is_in_the_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for form in ("table", "json"):
        with pytest.raises(SystemExit) as end:
            main([*command.split(), "--format", form])
            raise SystemExit(0)
        assert not end.value.code
        said.append(capsys.readouterr().out)
    data = json.loads(said[1])
    assert len(NUMBER.findall(said[0])) > 5
    assert without(said[0], [*leaves(data), *CASES[command](data)]) == []
