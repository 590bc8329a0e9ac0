"""Who gets whom: persons go to users whole, and are trained on or held out whole."""

from __future__ import annotations

import heapq

import numpy as np

from sensorsim._util.errors import InputError

HELD_OUT_SHARE = 0.2


def assign(rows_of: np.ndarray, m: int, seed: int, source: str) -> tuple[np.ndarray, np.ndarray]:
    """A user and a held-out flag for every person: users get nearly equal row counts, each keeps a training person.

    `rows_of` has the rows of every person, at least one each.
    """
    persons = len(rows_of)
    if m < 1:
        raise InputError(f"m = {m}; there is at least one user, so give --m 1 or more.")
    if persons < m:
        people = "1 person" if persons == 1 else f"{persons} persons"
        allowed = "1" if persons == 1 else f"between 1 and {persons}"
        raise InputError(f"{source} has {people}, fewer than m = {m} users; give --m {allowed}.")
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(persons)
    order = order[np.argsort(-rows_of[order], kind="stable")]  # large persons first, ties at random
    user = np.empty(persons, dtype=np.int64)
    least = [(0, j) for j in range(m)]  # a heap: the rows that user j has so far
    for person, rows in zip(order.tolist(), rows_of[order].tolist(), strict=True):
        had, j = least[0]
        user[person] = j
        heapq.heapreplace(least, (had + rows, j))
    return user, _held_out(user, m, rng)


def _held_out(user: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """A fifth of the persons, drawn at random among those whose user keeps another."""
    held_out = np.zeros(len(user), dtype=bool)
    wanted = round(HELD_OUT_SHARE * len(user))
    kept = np.bincount(user, minlength=m)
    for person in rng.permutation(len(user)):
        if not wanted:
            break
        if kept[user[person]] > 1:
            held_out[person] = True
            kept[user[person]] -= 1
            wanted -= 1
    return held_out
