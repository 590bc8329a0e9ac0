"""No array whatsoever gives anything but a release or one sentence; and what is released stays in the certificate."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sensorsim.kernels.formats import ONE

import sensorsim as ss
from sensorsim._util.errors import on_the_command_line
from sensorsim._util.option_kinds import Free, Function
from sensorsim.commands.declare import options_of
from sensorsim.datasets.public_ranges import as_records, quantised
from sensorsim.noise.batch_release import release_records, sampled_records
from sensorsim.noise.certificate import certify

N = 3
# Small tables, which take no search.
ALL = ss.noise_table(epsilon=3, features=N, symbols=8, knots=5)
ONE_OF = ss.noise_table(epsilon=1.6, features=N, release=1, symbols=2, knots=2)
SENSOR = ss.Sensor(ONE_OF)
SHAPES = st.one_of(st.just((2, N)), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
ARRAYS = st.one_of(hnp.scalar_dtypes(), st.just(np.dtype(object))).flatmap(
    lambda kind: hnp.arrays(kind, SHAPES) if kind.kind != "O" else SHAPES.map(lambda shape: np.full(shape, None))
)
ODD = st.sampled_from(
    [None, "x", [[0.1, 0.2], [0.3]], [[0.1, 0.2, float("nan")]], {"a": 1}, [[1, 0, 1]], [[True, False, True]],
     np.ma.masked_array([[0.1, 0.2, 0.3]], [[True, False, False]]), [[1e400, 0, 0]], [["a", "b", "c"]], [], [[]],
     np.array([[-1, 5, 7]]), np.array([[2**63 - 1, 0, 0]]), np.full((1, N), 2**64 - 1, np.uint64), object()]
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(ARRAYS, ODD), st.sampled_from([ALL, ONE_OF]))
def test_any_array_is_released_or_refused_in_one_sentence(x, table):
    for release in (ss.release, lambda x, table: (release_records if table is ALL else sampled_records)(x, table)):
        try:
            release(x, table)
        except ss.InputError as error:
            assert 10 < len(str(error)) < 300 and str(error).endswith("."), error
            assert "--" not in str(error)
    try:
        SENSOR._record(x)
    except ss.InputError as error:
        assert str(error).endswith(".")


@settings(max_examples=100, deadline=None)
@given(hnp.arrays(st.sampled_from([np.float16, np.float32, np.float64, np.int64, np.int16]), (4, N)))
def test_what_is_taken_is_within_the_format_and_nothing_is_moved(x):
    try:
        made = as_records(x, N)
    except ss.InputError:
        outside = not np.isfinite(x).all() or x.min() < 0 or x.max() > (1 if x.dtype.kind == "f" else ONE)
        assert outside or (x.dtype.kind == "i" and x.max() == 1)
        return
    assert made.dtype == np.uint16 and made.max() <= ONE
    want = np.rint(x.astype(float) * ONE) if x.dtype.kind == "f" else x
    assert (made == want).all()


def test_a_float_is_quantised_as_the_sensor_does():
    assert quantised(np.array([0.0, 0.5, 1.0, 1 / 3, 1.4 / ONE, 1.6 / ONE])).tolist() == [0, ONE // 2, ONE, 10923, 1, 2]
    floats, whole = np.array([[0.25, 0.5, 1.0]]), np.array([[ONE // 4, ONE // 2, ONE]])
    assert (ss.release(floats, ALL, seed=3).symbols == ss.release(whole, ALL, seed=3).symbols).all()
    readings = np.array([[45, 72.0, 30]])
    ranges = [(20, 120), (0, 144), (0, 30)]
    assert (ss.release(readings, ALL, ranges=ranges, seed=3).symbols == ss.release(floats, ALL, seed=3).symbols).all()


@pytest.mark.parametrize("x, why", [
    (np.full((2, N), 1.01), "holds 1.01"), (np.full((2, N), -0.1), "holds -0.1"), (np.full((2, N), np.nan), "finite"),
    (np.full((2, N), 70_000), "holds 70000"), (np.full((2, N), -7), "holds -7"), (np.full((2, 4), 0.5), "4 features"),
    (np.full(N, 0.5), "1 dimensions"), (np.zeros((0, N)), "at least one record"), (np.ones((2, N), int), "as floats"),
    (np.full((2, N), 0.5 + 0j), "complex128"), (np.full((2, N), True), "bool"),
])  # fmt: skip
def test_what_is_wrong_is_said(x, why):
    with pytest.raises(ss.InputError, match=re.escape(why)):
        ss.release(x, ALL)


def test_ranges_are_checked():
    x = np.full((2, N), 5.0)
    for ranges, why in (
        ([(0, 9)], "3 features meet 1 ranges"),
        ([(9, 0)] * N, "smaller one first"),
        ([3] * N, "range 0"),
        (3, "ranges is of type int"),
    ):
        with pytest.raises(ss.InputError, match=why):
            ss.release(x, ALL, ranges=ranges)
    with pytest.raises(ss.InputError, match="finite"):
        ss.release(np.full((2, N), np.nan), ALL, ranges=[(0, 9)] * N)
    assert ss.release(x, ALL, ranges=np.array([(0, 9)] * N)).symbols.shape == x.shape


@pytest.mark.parametrize("value", [ONE, ONE + 1, 40_000, 2**16 - 1])
def test_a_word_above_one_is_released_as_one(value):
    """The kernels take 16 bits: what is above 1 counts as 1, so every released value lies in the certificate."""
    words = np.full((4000, N), value, np.uint16)
    ones = np.full((4000, N), ONE, np.uint16)
    assert (release_records(words, ALL, seed=5) == release_records(ones, ALL, seed=5)).all()
    for one, other in zip(sampled_records(words, ONE_OF, seed=5), sampled_records(ones, ONE_OF, seed=5), strict=True):
        assert (one == other).all()


def test_what_is_released_follows_the_distribution_that_is_certified():
    x = np.repeat(np.array([[0.0, 0.3, 1.0]]), 40_000, 0)
    symbols = ss.release(x, ALL, seed=1).symbols
    for feature, value in enumerate((0, round(0.3 * ONE), ONE)):
        values, counts = ALL.distribution(value)
        share = counts / counts.sum()
        seen = np.array([(symbols[:, feature] == one).mean() for one in values])
        assert np.abs(seen - share).max() < 0.015


def test_nothing_says_an_epsilon_that_is_not_proved(tmp_path):
    """A table whose certificate was written by hand: its repr, its figure, its JSON and its check prove anew."""
    bad = replace(ALL, epsilon=ALL.epsilon / 2)  # claims half of what it costs, with the certificate that it had
    assert "NOT PRIVATE" in repr(bad) and "NOT PRIVATE" in bad.figure().get_suptitle()
    assert bad.to_dict()["epsilon_record"] == str(certify(bad).epsilon_record)
    assert not ss.certify(bad).holds
    for use in (lambda: ss.release(np.full((2, N), 0.5), bad), lambda: ss.Sensor(bad)):
        with pytest.raises(ss.InputError, match="does not keep its epsilon"):
            use()


def test_a_stairs_table_of_two_coefficients_is_not_certified():
    table = replace(ss.noise_table(1.6, kind="stairs", release=1), coefficients=2)
    with pytest.raises(ss.InputError, match="1 coefficient, not 2"):
        ss.certify(table)
    assert "NOTHING IS PROVED" in repr(table)


def test_the_same_sentence_in_both_places():
    error = ss.InputError("give --records-per-day, or more --days; see `sensorsim plan --help`.")
    assert str(error) == "give records_per_day, or more days; see `sensorsim plan --help`."
    with on_the_command_line():
        assert str(error) == "give --records-per-day, or more --days; see `sensorsim plan --help`."


def declared():
    """Return the options of all public functions whose type is checked by a kind, not by the command."""
    for name in ss.__all__:
        command = getattr(getattr(ss, name), "command", None)
        for option, one in (options_of(command) if command else {}).items():
            if type(one.kind) not in (Free, Function):
                yield f"{name} {option}", one.kind


OPTIONS = dict(declared())


def test_a_value_of_another_type_is_one_sentence():
    for name, kind in OPTIONS.items():
        for odd in (object(), 1j, [object()], {1: 2}):
            if not kind.accepts(odd):
                with pytest.raises(ss.InputError, match=f"^{name} (is of type|takes)"):
                    kind.check(name, odd)
    assert len(OPTIONS) > 150
    for odd in (None, "table.txt", 1.6):
        with pytest.raises(ss.InputError):
            ss.Sensor(odd)
    for wrong in (
        lambda: ss.receive(5, ONE_OF),
        lambda: ss.receive([b"", None], ONE_OF),
        lambda: ss.Firmware(ONE_OF, "encoder.txt"),
        lambda: ss.fleet(2, 1, ONE_OF, seed=-1),
        lambda: ss.read_table("a\0b"),
        lambda: ss.plan(device=3),
        lambda: ss.certify(),
    ):
        with pytest.raises(ss.InputError):
            wrong()


def test_a_number_of_numpy_is_a_number():
    assert ss.cost(n=np.int64(4), l=np.uint8(2)).to_dict() == ss.cost(n=4, l=2).to_dict()
    assert ss.noise_table(np.float64(3), N, symbols=np.int32(8), knots=5) == ALL


@pytest.mark.parametrize(("sign", "power"), [(1, 5000), (-1, 5000), (1, 310)])
def test_a_number_too_long_to_be_said_is_refused_in_a_sentence(sign, power):
    """No text holds the first two, and no float the last."""
    met, value = 0, sign * 10**power
    for name, kind in OPTIONS.items():
        if kind.accepts(5):
            met += 1
            with pytest.raises(ss.InputError, match="digits"):
                kind.check(name, value)
    assert met > 80
    with pytest.raises(ss.InputError, match="digits"):
        ss.evaluate("missing.npz", sigma=[0, value])
