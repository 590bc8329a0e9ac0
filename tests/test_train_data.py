"""Data: what is refused and how, who gets which rows, and the synthetic set."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")

from sensorsim.errors import InputError
from sensorsim.train import data, metrics, synthetic
from sensorsim.train.config import Config


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
        (lambda f: f.drop(columns=["Calories"]), "no column Calories"),
        (lambda f: f.drop(columns=["Id"]), "no column Id"),
        (lambda f: broken(f, "TotalSteps", float("nan")), "row 5, column TotalSteps: nan is not a finite number"),
        (lambda f: broken(f, "TotalSteps", "many"), "many is not a finite number"),
        (lambda f: broken(f, "TotalSteps", float("inf")), "inf is not a finite number"),
        (lambda f: broken(f, "TotalSteps", -1), "-1 is negative"),
        (lambda f: f.assign(Calories=3), "Calories has one value only"),
        (lambda f: f.iloc[:0], "no rows"),
        (lambda f: broken(f, "Id", None), "without an Id"),
    ],
)
def test_bad_tables_are_refused_in_one_sentence(frame, change, words):
    with pytest.raises(InputError, match=words) as caught:
        data.prepare(change(frame))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"m": 10}, "9 persons, fewer than m = 10"),
        ({"m": 0}, "at least one user"),
        ({"columns": ()}, "no columns"),
        ({"normalise": "mean"}, "max or public"),
    ],
)
def test_bad_options_are_refused(frame, options, words):
    with pytest.raises(InputError, match=words):
        data.prepare(frame, **options)


def test_files_that_are_no_tables_are_refused(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)) * 4)
    for name in ("absent.csv", "empty.csv", "binary.csv"):
        with pytest.raises(InputError):
            data.load(str(tmp_path / name))


def test_a_written_file_reads_back(frame, tmp_path):
    frame.to_csv(tmp_path / "days.csv", index=False)
    read = data.load(str(tmp_path / "days.csv"), m=3)
    np.testing.assert_allclose(read.x, data.prepare(frame, m=3).x)
    assert read.columns == data.PAPER_COLUMNS
    assert read.n == 14


@pytest.mark.parametrize("m", [1, 2, 5, 9])
def test_a_person_belongs_to_one_user_and_is_held_out_whole(frame, m):
    made = data.prepare(frame, m=m)
    per_person = pd.DataFrame({"p": made.person, "u": made.user, "h": made.held_out}).groupby("p")
    assert (per_person["u"].nunique() == 1).all()
    assert (per_person["h"].nunique() == 1).all()
    assert set(made.user[~made.held_out]) == set(range(m))  # every user has something to train on
    rows = np.bincount(made.user)
    assert rows.max() - rows.min() <= np.bincount(made.person).max()
    assert made.held_out.any() == (m < 9)


def test_normalising(frame):
    by_max, public = (data.prepare(frame, normalise=how).x for how in ("max", "public"))
    assert by_max.max(axis=0) == pytest.approx(1)
    assert public.min() >= 0 and public.max() <= 1
    np.testing.assert_allclose(public[:, 11], frame["SedentaryMinutes"] / 1440)


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


def test_trivial_predictors_by_hand(frame):
    made = data.prepare(frame)
    found = metrics.trivial_predictors(made, Config("none"))
    x = made.x
    assert found["zeros"]["accuracy"] == pytest.approx(100 * (1 - np.mean(x**2)))
    assert found["half"]["accuracy_mae"] == pytest.approx(100 * (1 - np.mean(np.abs(x - 0.5))))
    held = x[made.held_out]
    mean = x[~made.held_out].mean(axis=0)
    assert found["column mean"]["accuracy_held_out"] == pytest.approx(100 * (1 - np.mean((held - mean) ** 2)))
    assert found["PCA-7"]["accuracy"] > found["column mean"]["accuracy"]
    assert found["copy 7"]["accuracy"] == pytest.approx(100 * (1 - np.mean((x - 0.5) ** 2) / 2))


def test_interval_by_hand():
    found = metrics.interval([1.0, 2.0, 3.0, 4.0])
    assert found["mean"] == 2.5
    assert found["sd"] == pytest.approx(1.2909944487)
    assert found["high"] - found["mean"] == pytest.approx(3.182446305 * 1.2909944487 / 2)
    assert metrics.interval([1.0, None])["mean"] is None
    assert metrics.interval([1.0, None])["of_the_rest"] == 1.0
