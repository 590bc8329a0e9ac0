"""Result rows written by hand, and every data figure drawn from them: for tests that train nothing."""

import itertools
import math

from sensorsim.datasets.dataset import CROWDS
from sensorsim.mechanisms import every
from sensorsim.training import run_figures
from sensorsim.training.curves import R2

EPSILONS = (0.1, 0.4, 1.6, 6.4)
COVERS = {"spof": "nothing", "fm": "coefficients", "dpsgd": "gradients"}
TRUST = {"dpsgd-weights": "central", "dp-zo": "central"}
PREDICTORS = {"PCA-7": 99.95, "column mean": 98.6, "copy 7": 95.4, "half": 86.4, "untrained net": 86.2, "zeros": 20.0}


def row(mechanism, epsilon, accuracy, **more):
    """Return a result as `sweep.row` does, in the fields that a figure reads."""
    private = mechanism != "none"
    return {
        "mechanism": mechanism,
        "data": "rows written by hand",
        "runs": 5,
        "sigma": 0.0,
        "redraw": False,
        "nominal_epsilon": epsilon if private else None,
        "spent_epsilon": epsilon if private and mechanism != "spof" else None,
        "epsilon_person_median": 3 * epsilon if private and mechanism != "spof" else None,
        "with_secret_noise": COVERS.get(mechanism, "weights too"),
        "covers_short": "nothing",  # a sweep draws from a seed
        "trust": TRUST.get(mechanism, "local"),
        "settings": "tuned" if mechanism == "dpsgd-weights" else "given",
        "accuracy": accuracy,
        "accuracy_low": None if accuracy is None else accuracy - 0.1,
        "accuracy_high": None if accuracy is None else accuracy + 0.01,
        "r2": None if accuracy is None else 1 - (100 - accuracy) / 1.4,
        "diverged": 0,
        "error": None,
    } | more


def trivial(**more):
    scores = {name: {"accuracy": value, "r2": 1 - (100 - value) / 1.4} for name, value in PREDICTORS.items()}
    return {0.0: scores | more}


def crowded(end=88.0):
    """Return rows of every mechanism that end within a fraction of a per cent: the hard case for labels."""
    rows = [row("none", None, 99.0)]
    for place, mechanism in enumerate(each.name for each in every() if each.private):
        for turn, epsilon in enumerate(EPSILONS):
            rows.append(row(mechanism, epsilon, end - 3 + turn + 0.05 * place))
    return rows


def crowd_rows(sizes=(1000, 10_000, 100_000)):
    rows, predictors = [], {}
    for title, size in itertools.product(CROWDS.values(), sizes):
        said = {"set": title, "size": size, "persons": size // 13}
        rows += [row("sampled", 1.6, 98.0 + math.log10(size) / 10) | said, row("none", None, 99.9) | said]
        predictors[title, size] = trivial()[0.0]
    return rows, predictors


FIGURES = {
    "nominal": lambda: run_figures.accuracy_against_epsilon(crowded(), trivial()),
    "spent": lambda: run_figures.accuracy_against_epsilon(crowded(), trivial(), "spent"),
    "person": lambda: run_figures.accuracy_against_epsilon(crowded(97.5), trivial(), "person"),
    "uneven": lambda: run_figures.accuracy_against_epsilon(
        [each | {"spent_epsilon": (i % 3 + 1) * (each["nominal_epsilon"] or 1)} for i, each in enumerate(crowded())],
        trivial(),
        "spent",
    ),
    "r2": lambda: run_figures.accuracy_against_epsilon(crowded(99.0), trivial(), measure=R2),
    "cost": lambda: run_figures.accuracy_against_cost(
        crowded(), trivial(), {"release": 400.0, "sampled": 95.0, "spof": 2900.0, "fm": 2500.0}, "additions"
    ),
    "c": lambda: run_figures.accuracy_against_c(
        [row("spof", 1.6, 85 - c, c=c, decode_c=decoded) for decoded in (False, True) for c in (0.0, 1.0, 2.5)],
        trivial(),
    ),
    "records": lambda: run_figures.accuracy_against_records(*crowd_rows(), 1.6),
    "bmax_density": run_figures.density_of_b_max,
    "bmax_probability": run_figures.probability_of_b_max,
}


def artists(axis, kind, beginning):
    found = axis.texts if kind == "texts" else axis.lines
    return {each.get_gid(): each for each in found if (each.get_gid() or "").startswith(beginning)}
