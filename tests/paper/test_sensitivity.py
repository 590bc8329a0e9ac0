"""Sensitivities: the printed numbers, the bounds, and what holds against a search through pairs of records."""

import itertools
import json
import math
from collections.abc import Iterable
from pathlib import Path

import naive_noise as naive
import numpy as np
import pytest
from scipy.optimize import minimize

from sensorsim.accounting import sensitivities as sensitivity
from sensorsim.commands.program import main
from sensorsim.paper.printed_sensitivities import sensitivity_table

POINTS = (-2.0, -1.0, -0.3, 0.0, 0.9057, 3.0)


def furthest(points: Iterable[Iterable[float]]) -> float:
    """The largest L1 distance over all pairs."""
    return max(sum(abs(p - q) for p, q in zip(*pair, strict=True)) for pair in itertools.combinations(points, 2))


def derivatives(a: float, x: float) -> list[float]:
    """Printed: of x·log(1 + e^-z) and (1 - x)·log(1 + e^z) at z = a, from the zeroth to the second."""
    e = math.exp(a)
    first = [x * math.log(1 + 1 / e), -x / (1 + e), x * e / (1 + e) ** 2]
    second = [(1 - x) * math.log(1 + e), (1 - x) * e / (1 + e), -(1 - x) * e / (1 + e) ** 2]
    return first + second


def stabilized_coefficients(x: float, c_j: float) -> list[float]:
    """Of 1, z and z² in alpha2·(z + c_j) + alpha3·(z + c_j)², by its values at -1, 0 and 1."""
    at = [(0.5 - x) * (z + c_j) + (0.5 * x - 0.25) * (z + c_j) ** 2 for z in (-1, 0, 1)]
    return [at[1], (at[2] - at[0]) / 2, (at[2] + at[0]) / 2 - at[1]]


def clipped(gradient: np.ndarray, C: float) -> np.ndarray:
    norm = np.sqrt((gradient**2).sum(-1, keepdims=True))
    return gradient / np.maximum(1, norm / C)


def largest_clipped_norm(sides: list[float], C: float) -> float:
    """The largest sum of numbers from 0 to these sides with an L2 norm of at most C, by a general solver."""
    start = np.array(sides) * min(1, C / math.dist(sides, [0] * len(sides))) * 0.9
    room = {"type": "ineq", "fun": lambda u: C**2 - u @ u, "jac": lambda u: -2 * u}
    found = minimize(lambda u: -u.sum(), start, jac=lambda u: -np.ones_like(u), bounds=[(0, s) for s in sides],
                     constraints=[room], method="SLSQP", options={"ftol": 1e-13, "maxiter": 300})  # fmt: skip
    return -float(found.fun)


def test_printed_terms_and_bounds() -> None:
    grid = [k / 10000 for k in range(-20000, 20001)]
    least = min(grid, key=sensitivity.spof_term_printed)
    assert least == pytest.approx(0.9057, abs=1e-4)
    assert sensitivity.spof_term_printed(least) == pytest.approx(4.0348, abs=5e-5)
    assert sensitivity.spof_term_printed(0) == pytest.approx(4.6931, abs=5e-5)
    assert sensitivity.spof_term(0) == pytest.approx(2.8863, abs=5e-5)
    assert min(grid, key=sensitivity.spof_term) == 0
    for a in POINTS:
        assert sensitivity.spof_term(a) == pytest.approx(naive.spof_term(a), rel=1e-12)
        term = 2 * max(abs(math.exp(a) / (1 + math.exp(a)) - x) for x in (0, 1))
        assert sensitivity.dpsgd_term(a) == pytest.approx(term)
        assert (sensitivity.dpsgd_term_printed(a) == pytest.approx(term)) == (a >= 0)


@pytest.mark.parametrize("a", POINTS)
def test_the_distance_of_a_feature(a: float) -> None:
    records = [k / 20 for k in range(21)]
    six = [derivatives(a, x) for x in records]
    assert sensitivity.spof_term_distance(a) == pytest.approx(furthest(six), rel=1e-12)
    three = [[d[0] + d[3], d[1] + d[4], d[2] + d[5]] for d in six]
    assert sensitivity.coefficients_distance(a) == pytest.approx(furthest(three), rel=1e-12)
    gradients = [[math.exp(a) / (1 + math.exp(a)) - x] for x in records]
    assert sensitivity.dpsgd_unclipped(1) == pytest.approx(furthest(gradients), rel=1e-12)
    assert sensitivity.spof_term_distance(a) <= sensitivity.spof_term(a) + 1e-12


def test_sensitivities_of_a_record() -> None:
    assert sensitivity.spof() == 21 and sensitivity.release() == 14
    c_j = sensitivity.typical_c_j()
    assert c_j == 8.75 and sensitivity.stabilized_printed(c_j) == pytest.approx(801.94, abs=0.01)
    assert sensitivity.stabilized_printed(c_j) / sensitivity.spof() == pytest.approx(38, abs=0.5)
    assert sensitivity.stabilized(2.5) == 2654.75
    assert sensitivity.stabilized_distance(2.5) == 238
    assert sensitivity.stabilized_distance(2.5, constant=True) == 2136.75
    assert sensitivity.dpsgd_clipped_printed(4) == 112
    assert sensitivity.dpsgd_clipped(4) == pytest.approx(29.93, abs=0.005)
    assert sensitivity.dpsgd(4) == 14 and sensitivity.dpsgd(1) == pytest.approx(7.483, abs=1e-3)
    assert sensitivity.noisy_inputs_printed([1.0] * 7) == 7 * sensitivity.noisy_inputs(1.0)
    assert sensitivity.noisy_inputs(2.0) == 14 * (2 + 2)


@pytest.mark.parametrize("most", [0.0, 0.8, 1.5, 2.0, 3.0, 17.5])
def test_the_distance_of_stabilized_coefficients(most: float) -> None:
    """Over all x and all c_j from 0 to c·l. n features alike differ n times as much as one."""
    places = [most * k / 12 for k in range(13)]
    found = [stabilized_coefficients(x, c_j) for x in (0, 0.25, 0.5, 0.75, 1) for c_j in places]
    for constant, kept in ((True, found), (False, [row[1:] for row in found])):
        comp = sensitivity.stabilized_distance(most / 7, 7, 14, constant)
        assert comp == pytest.approx(14 * furthest(kept), rel=1e-12)


@pytest.mark.parametrize(("n", "steps"), [(1, 100), (2, 40), (3, 10)])
@pytest.mark.parametrize("C", [0.3, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("a", [-1.5, 0.0, 0.4])
def test_the_distance_of_clipped_gradients(n: int, steps: int, C: float, a: float) -> None:
    """Clipping brings no two gradients apart (L2), so a grid of records is at most n·step below the largest L1."""
    records = np.array(list(itertools.product(np.linspace(0, 1, steps + 1), repeat=n)))
    gradients = clipped(1 / (1 + math.exp(-a)) - records, C)
    ref = max(float(abs(gradients - one).sum(-1).max()) for one in gradients)
    comp = sensitivity.dpsgd(C, n, a)
    assert ref - 1e-12 <= comp <= ref + n / steps
    assert comp <= min(n, sensitivity.dpsgd_clipped(C, n)) + 1e-12


@pytest.mark.parametrize("n", [5, 14])
@pytest.mark.parametrize(("C", "a"), [(0.5, -1.0), (1.5, -1.0), (1.5, 2.0), (2.1, -1.0), (1.0, 0.0)])
def test_the_distance_of_clipped_gradients_of_a_long_record(C: float, a: float, n: int) -> None:
    """The two furthest gradients have opposite signs everywhere; any number k of plus signs is tried."""
    up, down = 1 / (1 + math.exp(-a)), 1 / (1 + math.exp(a))
    ref = max(
        largest_clipped_norm([up] * k + [down] * (n - k), C) + largest_clipped_norm([down] * k + [up] * (n - k), C)
        for k in range(n + 1)
    )
    assert sensitivity.dpsgd(C, n, a) == pytest.approx(ref, rel=1e-6)


def test_what_never_clips() -> None:
    assert sensitivity.largest_gradient_norm(50.0) < 4 and sensitivity.largest_gradient_norm() == math.sqrt(14) / 2
    assert sensitivity.never_clips(14, 4.0) and sensitivity.never_clips(14, 4.0, anywhere=True)
    assert sensitivity.never_clips(14, 2.0) and not sensitivity.never_clips(14, 2.0, anywhere=True)
    assert sensitivity.never_clips(16, 2.0) and not sensitivity.never_clips(16, 2.0, a=0.1)
    assert not sensitivity.never_clips(16, 2.0, a=-0.1) and not sensitivity.never_clips(14, 1.0)
    for n, C, a in itertools.product((1, 2, 3), (0.4, 0.7, 1.0, 1.5), (-1.0, 0.0, 2.0)):
        corners = 1 / (1 + math.exp(-a)) - np.array(list(itertools.product((0, 1), repeat=n)))
        assert sensitivity.never_clips(n, C, a) == bool(np.allclose(clipped(corners, C), corners, atol=1e-12))


def test_what_holds_is_never_above_its_bound() -> None:
    for a, n, C, c in itertools.product((-3.0, -1.0, 0.0, 2.0), (1, 7, 14), (0.1, 1.0, 4.0), (0.0, 0.1, 2.5)):
        for row in sensitivity_table(a, n, C, c, 1):
            assert row.sensitivity <= row.bound * (1 + 1e-12), row


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["sensitivity", "--format", "json", "--a", "-1"])
    found = json.loads(capsys.readouterr().out)
    rows = {row["name"]: (row["printed"], row["bound"], row["sensitivity"]) for row in found["rows"]}
    assert found["schema_version"] == 2
    assert rows["DP-SGD, clipped"] == (112, pytest.approx(29.93, abs=5e-3), 14)
    assert rows["SPOF, per feature at a"][1:] == (pytest.approx(4.48, abs=5e-3), pytest.approx(3.02, abs=5e-3))
    assert rows["DP-SGD, per feature at a"][1:] == (pytest.approx(1.46, abs=5e-3), 1)
    assert rows["SPOF, stabilized"][1:] == (2654.75, 238)


@pytest.mark.parametrize("more", [[], ["--n", "4096", "--l", "100", "--constant", "1e9", "--a", "-99.5"]])
def test_eighty_columns_are_enough(
    more: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main(["sensitivity", *more])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) <= 50
    assert any(line.strip().startswith("2nC: an L2 norm") for line in lines)


def test_the_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["sensitivity", "--plot", str(tmp_path / "s.svg")])
    assert b"<svg" in (tmp_path / "s.svg").read_bytes()


@pytest.mark.parametrize("bad", [["--a", "nan"], ["--l", "20"], ["--clip", "0"], ["--constant", "1e300"], ["--n", "0"]])
def test_bad_input(bad: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["sensitivity", *bad])
    assert exit_.value.code == 2
