"""What learning must reach on data that differ in kind, by bench/goals.py: a few cells always, all of them when slow.

Seeds are fixed, so a cell has one number until the code changes. The goals are those of the script: never more than 0.3
below what needs no record, above what was, 99.75 from 10^5 records, above the data-free map for many features.
"""

import importlib.util
import math
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parents[2] / "bench" / "goals.py"
RUNS = 20


def _script() -> Any:
    spec = importlib.util.spec_from_file_location("goals", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["goals"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


goals = _script()
NAMES = tuple(goals.BEFORE)


@cache
def sets() -> dict[str, Any]:
    return goals.small_sets()


def some_cells(name: str, runs: int, epsilons: tuple[float, ...]) -> list[Any]:
    return list(goals.cells(name, sets()[name], runs, epsilons))


def below_what_needs_no_record(cells: list[Any]) -> list[str]:
    return [goals.line_of(one) for one in cells if one.accuracy < one.floor - goals.MAY_LOSE]


def not_above_before(cells: list[Any]) -> list[str]:
    """Without noise on the inputs it must be above. With sigma 5 both come to the column means, which nothing exceeds:
    there it may not be below by more than two means of as many runs differ by chance."""
    found = []
    for one in cells:
        if one.before is not None:
            chance = 2 * math.sqrt(2) * one.error if one.sigma else 0.0
            if one.accuracy <= one.before - chance:
                found.append(goals.line_of(one))
    return found


# ── always: few runs of telling cells ──


@pytest.mark.parametrize("name", ["generator", "mirrored", "alternating", "vital signs"])
def test_a_little_epsilon_does_no_harm(name: str) -> None:
    """At 0.1 the twenty points that a prior for small values lost were lost in every run."""
    assert not below_what_needs_no_record(some_cells(name, 3, (0.1,)))


@pytest.mark.parametrize("name", ["half mirrored", "near 0.7", "uniform", "binary"])
def test_enough_epsilon_is_better_than_before(name: str) -> None:
    cells = [one for one in some_cells(name, 4, (6.4,)) if one.mechanism == "sampled"]
    assert len(cells) == 2 and not not_above_before(cells)


# ── slow: the whole table ──


@cache
def all_cells(name: str) -> list[Any]:
    return some_cells(name, RUNS, goals.EPSILONS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_never_below_what_needs_no_record(name: str) -> None:
    cells = all_cells(name)
    assert len(cells) == 28 and not below_what_needs_no_record(cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_above_what_it_was(name: str) -> None:
    cells = all_cells(name)
    assert sum(one.before is not None for one in cells) == 6 and not not_above_before(cells)


@pytest.mark.slow
def test_many_features_are_learnt() -> None:
    cells = [one for one in all_cells("wide") if one.epsilon >= goals.ENOUGH]
    assert len(cells) == 12 and all(one.accuracy > one.data_free_map for one in cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["crowd", "crowd, half mirrored"])
def test_a_crowd_teaches_covariance(name: str) -> None:
    cells = list(goals.cells(name, goals.crowds()[name], 3, (goals.ENOUGH,)))
    found = {(one.mechanism, one.sigma): one.accuracy for one in cells}
    assert found["sketch", 0.0] >= goals.CROWD_GOAL
    assert found["sketch", 0.0] > found["sampled", 0.0] + 0.1  # which means alone do not
