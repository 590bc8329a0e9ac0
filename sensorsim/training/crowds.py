"""Data for the question how many people it takes: sets of any size from the shipped generator, and turned ones.

In the turned sets every second column is 1 - x. Nothing in them is new to a mechanism without prejudice; one with a
prior made for step counts shows it there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.training.data import Dataset, prepare

SETS = {"generator": "the shipped generator", "flipped": "half of its columns flipped (x → 1 − x)"}
MECHANISMS = ("none", "sampled", "sketch")
LEAST_SIZE = 20  # records; fewer have no persons to hold out


def crowd(name: str, size: int, *, m: int = 2, seed: int = 0, normalise: str = "ranges") -> Dataset:
    """`size` records, of as many people as the file that the generator was made from would have for them."""
    from sensorsim.training.synthetic import PERSONS, ROWS, make

    if size < LEAST_SIZE:
        raise InputError(f"{size} records are too few for a crowd; give --records {LEAST_SIZE} or more.")
    persons = max(round(size * PERSONS / ROWS), 2 * m)
    dataset = prepare(make(size, persons, 0), m=m, normalise=normalise, seed=seed, source=f"{SETS[name]}, {size} rows")
    if name != "flipped":
        return dataset
    order = list(dict.fromkeys(dataset.columns))  # a column that stands twice is turned twice, or not at all
    turned = [order.index(column) % 2 == 1 for column in dataset.columns]
    return replace(dataset, x=np.where(turned, 1 - dataset.x, dataset.x))
