"""Data: what is refused and how, who gets which rows, and the synthetic set."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from sensorsim._util.errors import InputError
from sensorsim.commands.training_options import DataOptions
from sensorsim.datasets import synthetic
from sensorsim.datasets.dataset import PAPER_COLUMNS, assign, prepare
from sensorsim.datasets.public_ranges import Range

MINE = {"a": Range("a", -10.0, 10.0, "g")}


@pytest.fixture(scope="module")
def frame():
    return synthetic.make(rows=90, persons=9)


def broken(frame, column, value):
    changed = frame.copy()
    changed[column] = changed[column].astype(object)
    changed.loc[3, column] = value
    return changed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.drop(columns=["Calories"]), r"Calories is missing.*numeric columns are TotalSteps, "),
        (lambda f: f[["Id", "ActivityDate"]], "TotalSteps and 12 others are missing.*it has no numeric column"),
        (
            lambda f: broken(f, "TotalSteps", float("nan")),
            "row 5, column TotalSteps: the cell is missing.*drop_missing",
        ),
        (lambda f: broken(f, "TotalSteps", "many"), "row 5, column TotalSteps: many is not a finite number"),
        (lambda f: broken(f, "TotalSteps", "m" * 999), "m{40}… is not a finite number"),
        (lambda f: broken(f, "TotalSteps", float("inf")), "inf is not a finite number"),
        (lambda f: broken(f, "TotalSteps", True), "row 5, column TotalSteps: True is not a finite number"),
        (lambda f: f.assign(TotalSteps=f["TotalSteps"] > 0), "row 2, column TotalSteps: True is not a finite number"),
        (lambda f: f.assign(TotalSteps=pd.Timestamp("2016-03-12")), "row 2, column TotalSteps: 2016-03-12"),
        (lambda f: f.assign(TotalSteps=1j), "row 2, column TotalSteps"),
        (lambda f: f.iloc[:0], "no rows"),
        (lambda f: broken(f, "Id", None), "row 5, column Id: the cell is missing"),
        (lambda f: pd.concat([f, f["Calories"]], axis=1), "two columns Calories"),
    ],
)
def test_bad_tables_are_refused_in_one_sentence(frame, change, words):
    with pytest.raises(InputError, match=words) as caught:
        prepare(change(frame))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: broken(f, "TotalSteps", -1), "TotalSteps has values below 0.*normalise ranges"),
        (lambda f: f.assign(Calories=3), "Calories has one value only.*normalise ranges"),
        (lambda f: f.assign(Calories=0), "Calories has one value only"),
        (lambda f: f.iloc[:1], "TotalSteps has one value only"),
    ],
)
def test_what_a_maximum_cannot_scale_a_range_can(frame, change, words):
    with pytest.raises(InputError, match=words):
        prepare(change(frame), m=1, normalise="max")
    made = prepare(change(frame), m=1)
    assert made.x.min() >= 0 and made.x.max() <= 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"m": 10}, "9 persons, fewer than m = 10"),
        ({"m": 0}, "at least one user"),
        ({"columns": ()}, "no columns"),
        ({"columns": ("Calories", "Sleep")}, "no column Sleep; it has Id, .*columns"),
        ({"columns": ("Id", "Calories")}, "column Id names the persons"),
        ({"columns": ("ActivityDate",), "ranges": {"ActivityDate": MINE["a"]}}, "row 2, column ActivityDate"),
        ({"columns": ("Calories",), "person": "Calories"}, "column Calories names the persons"),
        ({"person": "Name"}, "no column Name; it has Id, .*person"),
        ({"normalise": "mean"}, "it is ranges or max"),
        ({"normalise": "max", "ranges": {}}, "max does not use them"),
    ],
)
def test_bad_options_are_refused(frame, options, words):
    with pytest.raises(InputError, match=words):
        prepare(frame, **options)


@pytest.mark.parametrize("n", [1, 2, 64, 300])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_any_width_and_any_number_of_rows(n, rows):
    names = tuple(f"x{place}" for place in range(n))
    values = np.random.default_rng(n).uniform(-1, 3, (rows, n))
    ranges = {name: Range(name, -1.0, 3.0, "g") for name in names}
    made = prepare(pd.DataFrame(values, columns=names), columns=names, ranges=ranges, m=1)
    np.testing.assert_allclose(made.x, (values + 1) / 4, rtol=1e-14)
    assert (made.n, made.m, made.clipped) == (n, 1, 0)
    assert (~made.held_out).any()  # there is always something to train on
    assert made.ranges == tuple(ranges.values())


@pytest.mark.parametrize("m", [1, 2, 5, 9])
def test_a_person_belongs_to_one_user_and_is_held_out_whole(frame, m):
    made = prepare(frame, m=m)
    per_person = pd.DataFrame({"p": made.person, "u": made.user, "h": made.held_out}).groupby("p")
    assert (per_person["u"].nunique() == 1).all()
    assert (per_person["h"].nunique() == 1).all()
    assert set(made.user[~made.held_out]) == set(range(m))  # every user has something to train on
    rows = np.bincount(made.user)
    assert rows.max() - rows.min() <= np.bincount(made.person).max()
    assert made.held_out.any() == (m < 9)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 6), st.integers(0, 9))
def test_persons_go_to_the_user_who_has_least(sizes, m, seed):
    """The same as to look at every user for every person, largest person first."""
    m = min(m, len(sizes))
    user, held_out = assign(np.array(sizes), m, seed, "here")
    shuffled = np.random.default_rng([seed, 1]).permutation(len(sizes)).tolist()
    has, want = [0] * m, {}
    for person in sorted(shuffled, key=lambda person: -sizes[person]):
        want[person] = has.index(min(has))
        has[want[person]] += sizes[person]
    assert user.tolist() == [want[person] for person in range(len(sizes))]
    free = len(sizes) - m  # every user keeps one
    assert held_out.sum() == min(round(0.2 * len(sizes)), free)


def test_normalising(frame):
    by_max, public = prepare(frame, normalise="max"), prepare(frame)
    assert by_max.x.max(axis=0) == pytest.approx(1)
    assert by_max.ranges is None and by_max.clipped == 0
    assert public.x.min() >= 0 and public.x.max() <= 1
    np.testing.assert_allclose(public.x[:, 11], frame["SedentaryMinutes"] / 1440)
    assert public.normalise == "ranges" and [known.name for known in public.ranges] == list(PAPER_COLUMNS)


def test_the_digest_tells_ranges_and_persons_apart():
    table_of = pd.DataFrame({"Id": [1, 1, 2, 3], "a": [0.0, 1.0, 2.0, 4.0]})
    one = prepare(table_of, columns=("a",), ranges={"a": Range("a", 0, 4, "")}, m=1)
    twice = prepare(table_of.assign(a=table_of["a"] * 2), columns=("a",), ranges={"a": Range("a", 0, 8, "")}, m=1)
    by_max = prepare(table_of, columns=("a",), normalise="max", m=1)
    others = prepare(table_of.drop(columns="Id"), columns=("a",), ranges={"a": Range("a", 0, 4, "")}, m=1)
    regrouped = replace(one, person=np.array([0, 1, 1, 2]))
    assert (one.x == twice.x).all() and (one.x == by_max.x).all()
    assert len({made.digest for made in (one, twice, by_max, others, regrouped)}) == 5
    again = prepare(table_of, columns=("a",), ranges={"a": Range("a", 0, 4, "")}, m=1)
    assert again.digest == one.digest


def test_what_was_done_to_the_data_is_noted(written):
    ranges = written('name,low,high,unit\n"a, left",0,10,g\nb,0,10,mV\n', "ranges.csv")
    path = written('"a, left",b\n1,2\n11,3\n-1,20\n4,\n')
    chosen = {"columns": ' "a, left",b', "ranges": ranges, "drop_missing": True, "m": 1}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = DataOptions(data=path, **chosen).load()
    assert made.columns == ("a, left", "b")
    assert [str(one.message) for one in said] == [
        "Note: no column of mine.csv names persons (--person), so every row counts as one.",
        "Note: 1 of 4 rows have a missing cell and are left out.",
        "Note: 3 of 6 readings lie outside of their ranges and are clipped, 2 of them in a, left (0 … 10 g).",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing to note about the synthetic set
        DataOptions().load()


def test_the_synthetic_set_is_reproducible_and_like_its_tables():
    pd.testing.assert_frame_equal(synthetic.make(seed=3), synthetic.make(seed=3))
    assert not synthetic.make(seed=3).equals(synthetic.make(seed=4))
    known = synthetic.shipped()
    many = synthetic.make(rows=20_000, persons=20_000)
    for place, name in enumerate(known.columns):
        values = many[name].to_numpy()
        assert (values == 0).mean() == pytest.approx(known.zero_share[place], abs=0.015)
        above = values[values > 0]
        assert np.median(above) == pytest.approx(known.quantiles[place][8], rel=0.08)
    latent = np.linalg.eigvalsh(known.correlation)
    assert latent.min() > -1e-3


def test_fitting_the_generator_to_its_own_output_gives_it_back():
    known = synthetic.shipped()
    again = synthetic.fit(synthetic.make(rows=6000, persons=3000))
    np.testing.assert_allclose(again.zero_share, known.zero_share, atol=0.03)
    assert np.abs(again.correlation - known.correlation).mean() < 0.05


def test_interval_by_hand():
    from sensorsim.training.scores import interval

    found = interval([1.0, 2.0, 3.0, 4.0])
    assert found["mean"] == 2.5
    assert found["sd"] == pytest.approx(1.2909944487)
    assert found["high"] - found["mean"] == pytest.approx(3.182446305 * 1.2909944487 / 2)
    assert interval([1.0, None])["mean"] is None
    assert interval([1.0, None])["of_the_rest"] == 1.0
