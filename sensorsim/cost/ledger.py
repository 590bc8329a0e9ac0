"""The paper's printed operation list (tables/paper_operations.csv), as polynomials."""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sensorsim.language.polynomial import Polynomial, parse
from sensorsim.tables import folder


class Entry(NamedTuple):
    """One line of the printed list. `on` is `value`, or `pointer` for the noise pointer's C_N."""

    step: str
    operation: str
    on: str
    times: Polynomial


def printed(mechanism: str) -> tuple[Entry, ...]:
    """The printed list of a mechanism, in the paper's order; empty for what the paper does not print."""
    return _whole_list().get(mechanism, ())


@cache
def _whole_list() -> dict[str, tuple[Entry, ...]]:
    lists: dict[str, list[Entry]] = {}
    with Path(folder(), "paper_operations.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            entry = Entry(row["step"], row["operation"], row["on"], parse(row["count"]))
            lists.setdefault(row["mechanism"], []).append(entry)
    return {mechanism: tuple(entries) for mechanism, entries in lists.items()}


def describe(mechanism: str, step: str) -> str:
    """A step's operations in words: `n ADD + n SUB + n DIV`, with the pointer's six operations written C_N."""
    entries = [entry for entry in printed(mechanism) if entry.step == step]
    words = [f"{entry.times} {entry.operation}" for entry in entries if entry.on == "value"]
    words += [f"{entry.times} C_N" for entry in entries if entry.on == "pointer" and entry.operation == "NOT"]
    return " + ".join(words)
