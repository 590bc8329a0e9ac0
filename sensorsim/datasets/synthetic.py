"""Synthetic daily activity: Gaussian copula, zero-inflated marginals, persons that stay like themselves.

The shipped numbers (tables/fitbit_marginals.csv, tables/fitbit_correlations.csv) are quantiles and rank correlations
of the public Fitbit file of March 2016 (Furberg et al., Zenodo 53894). They are for trying things: no mechanism reads
them.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np
import pandas as pd

from sensorsim._util.errors import InputError
from sensorsim._util.terminal import counted
from sensorsim.datasets.dataset import MAXIMA, NUMERIC_COLUMNS, prepare
from sensorsim.datasets.parquet import list_names
from sensorsim.datasets.record_tables import PERSON, read_table
from sensorsim.tables import folder

ROWS, PERSONS = 457, 35
NOT_PRIVATE = "NOT PRIVATE: exact quantiles of raw records, the smallest and largest readings among them"
LEVELS = (0, 1, 2.5, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 97.5, 99, 100)  # per cent, of the values above zero
FIT_ROUNDS, FIT_ROWS = 12, 40_000
FIRST_DAY = date(2016, 3, 12)
MOST_DAYS = (date.max - FIRST_DAY).days + 1  # of one person


@dataclass(frozen=True)
class Marginals:
    """Everything that the generator knows."""

    columns: tuple[str, ...]
    zero_share: np.ndarray  # (columns,)
    quantiles: np.ndarray  # (columns, len(LEVELS)) of the values above zero
    person_share: np.ndarray  # (columns,) share of the latent variance that a person keeps from day to day
    correlation: np.ndarray  # (columns, columns) of the latent normals


def make(rows: int = ROWS, persons: int = PERSONS, seed: int = 0, marginals: Marginals | None = None) -> pd.DataFrame:
    """Make `rows` synthetic days of `persons` people, in the columns of the Fitbit file."""
    if persons < 1 or rows < persons:
        raise InputError(
            f"{counted(rows, 'row')} for {counted(persons, 'person')}; give at least one person and one row for each."
        )
    known = marginals or shipped()
    if type(seed) is not int or seed < 0:
        raise InputError(f"seed is {seed}; give a whole number of at least 0.")
    rng = np.random.default_rng(seed)
    person = np.sort(np.concatenate([np.arange(persons), rng.integers(0, persons, rows - persons)]))
    place = np.arange(rows) - np.searchsorted(person, person)  # consecutive days of each person
    most = int(place.max()) + 1
    if most > MOST_DAYS:
        raise InputError(f"{most} days of one person pass the year 9999; give more persons, or fewer rows.")
    days = [FIRST_DAY + timedelta(days=day) for day in range(most)]
    dates = np.array([f"{day.month}/{day.day}/{day.year}" for day in days], dtype=object)[place]
    frame = pd.DataFrame({PERSON: person + 1, "ActivityDate": dates})
    latent = _latent(known, person, rng)
    for column, name in enumerate(known.columns):
        frame[name] = _marginal(known, column, latent[:, column])
    return frame


def shipped() -> Marginals:
    """Return the marginals that ship with the package."""
    rows, pairs = _read_shipped("fitbit_marginals.csv"), _read_shipped("fitbit_correlations.csv")
    columns = tuple(row["column"] for row in rows)
    return Marginals(
        columns,
        np.array([float(row["zero_share"]) for row in rows]),
        np.array([[float(row[f"quantile_{level:g}_percent"]) for level in LEVELS] for row in rows]),
        np.array([float(row["person_share"]) for row in rows]),
        np.array([[float(row[name]) for name in columns] for row in pairs]),
    )


def _read_shipped(name: str) -> list[dict[str, str]]:
    with (folder() / name).open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def fit(frame: pd.DataFrame, columns: tuple[str, ...] = NUMERIC_COLUMNS) -> Marginals:
    """Return quantiles, zero shares and latent correlations of a real file; tune the latter until ranks agree."""
    values = frame[list(columns)].to_numpy(dtype=np.float64)
    quantiles = np.array([np.percentile(column[column > 0], LEVELS) for column in values.T])
    person = np.unique(frame[PERSON].to_numpy(), return_inverse=True)[1]
    wanted = _rank_correlation(values)
    known = Marginals(
        columns, (values == 0).mean(axis=0), quantiles, _person_share(values, person), _nearest_correlation(wanted)
    )
    alone = np.arange(FIT_ROWS)
    for _ in range(FIT_ROUNDS):  # zeros hide rank correlation, so the latent one must be larger than the one we see
        latent = _latent(known, alone, np.random.default_rng(0))
        seen = _rank_correlation(
            np.column_stack([_marginal(known, column, latent[:, column]) for column in range(len(columns))])
        )
        tuned = _nearest_correlation(np.clip(known.correlation + wanted - seen, -0.999, 0.999))
        known = replace(known, correlation=tuned)
    return known


def as_tables(known: Marginals, source: str) -> tuple[str, str]:
    """Return the two CSV texts that `shipped` reads; each says first that it is not private."""
    what = "share of zeros, quantiles of the values above zero (in the column's own unit), person share"
    levels = (f"quantile_{level:g}_percent" for level in LEVELS)
    first = [f"# {NOT_PRIVATE}", f"# {source}: {what}", ",".join(["column", "zero_share", "person_share", *levels])]
    for row, name in enumerate(known.columns):
        cells = (known.zero_share[row], known.person_share[row], *known.quantiles[row])
        first.append(",".join([name, *(f"{cell:.6g}" for cell in cells)]))
    what = "correlations of the latent normals of the Gaussian copula"
    second = [f"# {NOT_PRIVATE}", f"# {source}: {what}", ",".join(["column", *known.columns])]
    for row, name in enumerate(known.columns):
        second.append(",".join([name, *(f"{cell:.4f}" for cell in known.correlation[row])]))
    return "\n".join(first) + "\n", "\n".join(second) + "\n"


def need_fitbit(frame: pd.DataFrame, source: str) -> None:
    """Refuse a table without the columns that the generator has."""
    missing = [name for name in NUMERIC_COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(
            f"{source} is no Fitbit daily activity: it has no column {list_names(missing)}; give a file with the "
            "columns that `sensorsim data make` writes."
        )


def distance(path: str, rows: int = ROWS, seed: int = 0) -> list[dict[str, float | str]]:
    """Compare the synthetic set with a real file, column by column, on the max-normalised scale."""
    from scipy.stats import ks_2samp

    real_frame, made_frame = read_table(path), make(rows=rows, seed=seed)
    columns = list(NUMERIC_COLUMNS)
    need_fitbit(real_frame, path)
    prepare(real_frame, m=1, columns=NUMERIC_COLUMNS, normalise=MAXIMA, source=path)  # the same checks as for training
    real, made = (frame[columns].to_numpy(dtype=np.float64) for frame in (real_frame, made_frame))
    apart = np.abs(_rank_correlation(real) - _rank_correlation(made))
    top = real.max(axis=0)
    return [
        {
            "column": name,
            "mean_real": real[:, i].mean() / top[i],
            "mean_synthetic": made[:, i].mean() / top[i],
            "zeros_real": float((real[:, i] == 0).mean()),
            "zeros_synthetic": float((made[:, i] == 0).mean()),
            "ks_distance": float(ks_2samp(real[:, i], made[:, i], method="asymp").statistic),
            "rank_correlation_mean_error": float(apart[i].sum() / (len(columns) - 1)),
        }
        for i, name in enumerate(columns)
    ]


def _latent(known: Marginals, person: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw correlated standard normals: a part that a person keeps, plus one of the day."""
    root = np.linalg.cholesky(known.correlation + 1e-9 * np.eye(len(known.columns)))
    kept = rng.standard_normal((int(person.max()) + 1, len(known.columns))) @ root.T
    day = rng.standard_normal((len(person), len(known.columns))) @ root.T
    share = known.person_share.mean()  # one share for all columns keeps the correlation as it is
    kept *= np.sqrt(share)
    day *= np.sqrt(1 - share)
    day += kept[person]
    return np.asarray(day)


def _marginal(known: Marginals, column: int, latent: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    zero, below = known.zero_share[column], ndtr(latent)
    above = np.clip((below - zero) / max(1 - zero, 1e-12), 0, 1) * 100
    values = np.interp(above, LEVELS, known.quantiles[column])
    return np.where(below < zero, 0.0, values)


def _rank_correlation(values: np.ndarray) -> np.ndarray:
    return np.asarray(pd.DataFrame(values).corr(method="spearman").to_numpy())


def _person_share(values: np.ndarray, person: np.ndarray) -> np.ndarray:
    """Return the intra-person correlation of the ranks (one-way analysis of variance), in [0, 0.95]."""
    ranks = pd.DataFrame(values).rank().to_numpy()
    sizes = np.bincount(person)
    if len(sizes) in (1, len(person)):  # one person, or one day of each: nothing to compare
        return np.zeros(values.shape[1])
    means = np.column_stack([np.bincount(person, column) / sizes for column in ranks.T])
    within = ((ranks - means[person]) ** 2).sum(axis=0) / (len(person) - len(sizes))
    between = (sizes[:, None] * (means - ranks.mean(axis=0)) ** 2).sum(axis=0) / (len(sizes) - 1)
    size = (len(person) - (sizes**2).sum() / len(person)) / (len(sizes) - 1)
    return np.asarray(np.clip((between - within) / (between + (size - 1) * within), 0, 0.95))


def _nearest_correlation(matrix: np.ndarray) -> np.ndarray:
    """Lift negative eigenvalues, and restore a diagonal of ones."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    lifted = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    scale = 1 / np.sqrt(np.diag(lifted))
    return np.asarray(lifted * scale[:, None] * scale)
