"""The functional mechanism: Algorithm 1 without the stabilization."""

from typing import Any

import naive
import numpy as np
import pytest
from sensorsim.kernels.spof import fm, spof, stabilize

EDGES = (0, 1, 2**14 - 1, 2**14, 2**15 - 1, 2**15, 2**15 + 1, 2**16 - 1)
PRICES = {"MUL": 3, **dict.fromkeys(("ADD", "SUB", "AND", "OR", "NOT"), 1)}  # of the paper, on the K7


def macro_operations(counts: Any) -> int:
    return sum(PRICES.get(operation, 0) * int(count) for (_, operation), count in counts.items())


@pytest.mark.parametrize("size", [2, 5, 256])
def test_against_the_obvious_loop(size: int) -> None:
    """Edges of x, pointers at both ends of the table, and strides of none and of all but one."""
    draws = np.random.default_rng(size)
    noise = draws.integers(-(2**30), 2**30, size).tolist()
    stride = draws.integers(0, size, 2 * len(EDGES)).tolist()
    stride[:4] = [0, size - 1, size - 1, 0]
    for cursor in ([0, size - 1], [size - 1, 0]):
        _, two, three, kept = naive.spof(list(EDGES), [0] * len(EDGES), 0, noise, stride, list(cursor))
        made = fm.run(x=EDGES, noise=noise, stride=stride, cursor=cursor)
        assert made["alpha2"].tolist() == two and made["alpha3"].tolist() == three
        assert made["cursor"].tolist() == list(kept)


def test_spof_is_the_stabilization_and_fm() -> None:
    """The same coefficients of many records, word for word, and the weights that `stabilize` gives."""
    draws = np.random.default_rng(1)
    noise, weights = draws.integers(-(2**20), 2**20, 256), draws.integers(-999, 999, 3 * 2)
    given = {"x": draws.integers(0, 2**16, (150, 3)), "noise": noise, "cursor": [7, 255]}
    whole = spof.batch(**given, weights=weights, constant=81920, seed=3, generator="fast")
    part = fm.batch(**given, seed=3, generator="fast")
    assert np.array_equal(whole["alpha2"], part["alpha2"]) and np.array_equal(whole["alpha3"], part["alpha3"])
    stable = stabilize.run(weights=weights, constant=81920)["stabilized"]
    assert (whole["stabilized"] == stable).all()


def test_costs_and_proofs() -> None:
    """19n macro-operations, and l·n more with the stabilization: the paper's (19+l)·n."""
    for n, l in ((1, 1), (14, 7), (40, 3)):
        assert macro_operations(fm.count(n=n)) == 19 * n
        assert macro_operations(spof.count(n=n, l=l)) == (19 + l) * n
    assert fm.prove()
    assert fm.secrecy().proved and {found.kind for found in fm.secrecy().exceptions} == {"address"}
