"""No array whatsoever gives anything but a release or one sentence; and what is released stays in the certificate."""

import ast
import re
from dataclasses import replace
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sensorsim.kernels.formats import ONE

import sensorsim as ss
from sensorsim._util.errors import NO_VALUES, in_python, on_the_command_line
from sensorsim.datasets.public_ranges import as_records, quantised
from sensorsim.noise.batch_release import release_records, sampled_records
from sensorsim.noise.certificate import certify

ROOT = Path(__file__).parents[2]
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
        (3, "ranges= is of type int"),
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


def literals():
    """Every text in the source that mentions an option, f-strings with … in place of what is filled in."""
    for path in (ROOT / "sensorsim").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            raises = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("InputError", "FailedProofError")
            if raises and node.args:
                parts = node.args[0].values if isinstance(node.args[0], ast.JoinedStr) else [node.args[0]]
                yield "".join(one.value if isinstance(one, ast.Constant) else "7" for one in parts if one), path


def test_every_sentence_names_parameters_in_python():
    met = 0
    for text, path in literals():
        if not isinstance(text, str) or "--" not in text:
            continue
        met += 1
        said = in_python(text)
        plain = re.sub(r"`[^`]*`|\bsensorsim [a-z]+.*?(?=[;.,]|$)", "", said)
        assert not re.search(r"(?<![\w-])--[a-z]", plain), f"{path}: {said}"
        for option, value in re.findall(r"--([a-z-]+) ([a-z]+)\b", text):
            quoted = f"{option.replace('-', '_')}='{value}'"
            assert value not in NO_VALUES or quoted not in said
            if quoted in said:
                assert value in VALUES, f"{path}: is {value} a value of {option}, or a word? {said}"
    assert met > 60


VALUES = {"rows", "gaussian", "loss", "raw", "max", "ranges", "all", "chacha", "kernel", "machine"}


def test_the_same_sentence_in_both_places():
    with pytest.raises(ss.InputError) as caught:
        ss.cost(records_per_day=0)
    assert "records_per_day" in str(caught.value) or "records" in str(caught.value)
    assert in_python("make it with --release 14, or leave --cpu out.") == "make it with release=14, or leave cpu= out."
    assert in_python("use --kind rows; see `sensorsim noise make --help`.") == (
        "use kind='rows'; see `sensorsim noise make --help`."
    )
    assert in_python("give --for covariance or --clip 4.") == "give goal='covariance' or C=4."
    error = ss.InputError("give --records-per-day, or more --days.")
    assert str(error) == "give records_per_day=, or more days=."
    with on_the_command_line():
        assert str(error) == "give --records-per-day, or more --days."
    assert str(error) == "give records_per_day=, or more days=."


def test_a_value_of_another_type_is_one_sentence():
    """At every door, before anything begins; `x`, its ranges and packets are looked at one by one."""
    met = 0
    for name in set(ss.__all__) - {"InputError", "FailedProofError", "Sensor", "Firmware"}:
        function = getattr(ss, name)
        for parameter in set(signature(function).parameters) - {"x", "packets", "ranges" if name == "release" else ""}:
            for odd in (object(), 1j, b"\0", [object()], np.zeros((2, 2)), True if parameter == "seed" else {1}):
                with pytest.raises(ss.InputError) as refusal:
                    function(**{parameter: odd})
                assert re.fullmatch(r"[a-zA-Z_]+= is of type \w+; give [^.]+\.", str(refusal.value)), refusal.value
                met += 1
    assert met > 500
    for odd in (None, 5, [1], range(3), [b"", None]):
        with pytest.raises(ss.InputError, match="packets= is of type"):
            ss.receive(odd, ONE_OF)
    for odd in (None, "table.txt", 1.6):
        with pytest.raises(ss.InputError, match="table= is of type"):
            ss.Sensor(odd)
    with pytest.raises(ss.InputError, match="encoder= is of type str; give a Encoder or None"):
        ss.Firmware(ONE_OF, "encoder.txt")
    with pytest.raises(ss.InputError, match="a whole number from 0"):
        ss.fleet(2, 1, ONE_OF, seed=-1)
    with pytest.raises(ss.InputError, match="zero byte"):
        ss.read_table("a\0b")


def test_a_number_of_numpy_is_a_number():
    assert ss.cost(n=np.int64(4), l=np.uint8(2)).to_dict() == ss.cost(n=4, l=2).to_dict()
    assert ss.noise_table(np.float64(3), N, symbols=np.int32(8), knots=5) == ALL


ENDLESS = {
    "audit": "epsilon draws confidence threads",
    "certify": "delta",
    "cost": "n l m width records_per_day battery_mah",
    "evaluate": "sigma runs",
    "export": "budget_epsilon budget_days reserve",
    "fleet": "devices days",
    "noise_table": "epsilon features symbols",
    "plan": "devices records_per_day budget_epsilon accuracy loss battery_mah",
    "report": "n devices battery_mah",
    "train": "epsilon sigma m l share seed C",
    "verify": "random_host random_core seed",
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("name", "word"), [(name, word) for name, words in ENDLESS.items() for word in words.split()])
def test_a_number_too_long_to_be_said_is_refused_in_a_sentence(name, word, sign):
    for value in (sign * 10**5000, sign * 10**310):  # no text, and no float
        with pytest.raises(ss.InputError) as refusal:
            getattr(ss, name)(**{word: value})
        assert str(refusal.value) == f"{word}= has a number of more than 300 digits; give a shorter one."
    with pytest.raises(ss.InputError, match="sigma= has a number of more"):
        ss.evaluate("missing.npz", sigma=[0, 10**5000])
