"""Noise tables that are made for tests."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from sensorsim.noise.kinds.rows_table import RowsTable
from sensorsim.noise.noise_table import NoiseTable, certified, ready_table

ROWS = (  # certified by 2991/604 < exp(1.6); symmetric under x -> 1-x
    (32637, 17946, 2369, 2369, 3624, 6591),
    (13913, 17946, 11731, 11731, 3624, 6591),
    (6591, 14450, 11727, 11727, 14450, 6591),
)


def rows_table(features: int, release: int) -> NoiseTable:
    counts = (*ROWS, ROWS[1][::-1], ROWS[0][::-1])
    return certified(RowsTable(Decimal("1.6") * release, features, release, 15, 16, counts))


def several(table: Any, k: int) -> Any:
    """Return the table with the draw for k features of a record."""
    return certified(replace(table, release=k, epsilon=table.epsilon * k))


def mirrored() -> Any:
    whole = ready_table("6.4", 1)
    return certified(RowsTable(whole.epsilon, 14, 1, 15, 16, whole.counts[:9], mirrored=True))
