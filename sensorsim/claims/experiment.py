"""The experiment: the data, accuracies and their order, the constant, noise, training time."""

import math
from collections.abc import Iterable, Sequence
from statistics import mean, variance
from typing import NamedTuple

from sensorsim.claims.claim import DATA, DEPENDS, FULL, HOLDS, NOT, Found, across, agrees, as_arithmetic, claim, whether
from sensorsim.claims.setting import EPSILONS, SIGMA, Setting

SECTION = "Section on the DP-WBAN"
FIGURE = f"{SECTION}, figure of privacy and utility"
CONSTANTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
AS_TRAINED = "20 runs as printed, at epsilon 0.1, 0.4, 1.6 and 6.4; within two standard errors counts as chance"
SLACK = 5  # points of per cent: no two runs of a clock agree better


class Difference(NamedTuple):
    """Of two means of accuracy, in points, with its standard error."""

    points: float
    error: float

    @property
    def sign(self) -> int:
        """0 where chance alone could have made it: within two standard errors."""
        return 0 if not abs(self.points) > 2 * self.error else int(math.copysign(1, self.points))

    def __str__(self) -> str:
        return f"{self.points:+.2f} (+/- {2 * self.error:.2f})"


Differences = dict[float, Difference]  # by epsilon


def difference(first: Sequence[float], second: Sequence[float]) -> Difference:
    """Of the means of two sets of runs."""
    if min(len(first), len(second)) < 2:
        return Difference(math.nan, math.inf)
    return Difference(
        mean(first) - mean(second), math.sqrt(variance(first) / len(first) + variance(second) / len(second))
    )


def gains(setting: Setting, sigma: float) -> Differences:
    """Points by which SPOF is more accurate than DP-SGD."""
    return {
        e: difference(setting.accuracy("spof", e, sigma=sigma), setting.accuracy("dpsgd", e, sigma=sigma))
        for e in EPSILONS
    }


def by_noise(setting: Setting, mechanism: str) -> Differences:
    """Points that environmental noise adds to a mechanism's accuracy."""
    return {
        e: difference(setting.accuracy(mechanism, e, sigma=SIGMA), setting.accuracy(mechanism, e)) for e in EPSILONS
    }


def on_average(found: Differences) -> Difference:
    """The mean over epsilon."""
    each = found.values()
    return Difference(mean(one.points for one in each), math.sqrt(sum(one.error**2 for one in each)) / len(each))


def all_of(signs: Iterable[int]) -> str:
    """Of a statement that differences are above 0: they all are, none is while some are below, or neither."""
    seen = set(signs)
    return HOLDS if seen == {1} else NOT if -1 in seen and 1 not in seen else DEPENDS


def over(values: Differences) -> str:
    """Differences by epsilon, for a text."""
    return ", ".join(f"{value} at {epsilon:g}" for epsilon, value in values.items())


@claim(
    "exp-samples",
    SECTION,
    "{} training samples",
    "36480",
    how="rows of the file, four fifths of which are trained on, times 100 Monte-Carlo runs; and the distinct "
    "records that there are",
    needs=DATA,
)
def exp_samples(setting: Setting, printed: str) -> Found:
    runs, share = 100, 0.8
    rows = int(printed) / runs / share
    here = len(setting.scaled.x)
    text = f"{rows:g} rows, {share:g} of them, {runs} times; {here} records in {setting.name}"
    return Found(text, as_arithmetic(rows == int(rows), here >= int(printed)))


@claim(
    "exp-columns",
    SECTION,
    "distance, steps, calories and eleven other parameters: n = {}",
    "14",
    how="columns of Fitbit's daily activity that hold numbers, identity and date left out",
)
def exp_columns(printed: str) -> Found:
    from sensorsim.train.data import NUMERIC_COLUMNS, PAPER_COLUMNS

    text = f"{len(NUMERIC_COLUMNS)} columns; {len(PAPER_COLUMNS)} where Calories stands twice"
    return Found(text, as_arithmetic(agrees(len(PAPER_COLUMNS), printed), agrees(len(NUMERIC_COLUMNS), printed)))


@claim(
    "exp-maximum",
    SECTION,
    "division by the column maximum ensures 0 <= x <= 1",
    how="least and largest value of the records so divided; and what epsilon covers then, the maximum being private",
    needs=DATA,
)
def exp_maximum(setting: Setting) -> Found:
    from sensorsim.train.config import Config, checked
    from sensorsim.train.statement import statement

    x = setting.dataset.x
    low, high = float(x.min()), float(x.max())
    said = statement(checked(Config("dpsgd", 1.0), setting.dataset.n), setting.dataset.n, setting.dataset.normalise)
    text = f"{low:g} to {high:g}; an epsilon then covers {said.covers}"
    return Found(text, as_arithmetic(0 <= low <= high <= 1, said.spent_epsilon is not None))


@claim(
    "exp-unaffected",
    SECTION,
    "DP-SGD's utility is unaffected by the stabilization constant",
    how="configurations of DP-SGD with c = 0 and c = 2.5, as they run",
    needs=DATA,
)
def exp_unaffected(setting: Setting) -> Found:
    from sensorsim.train.config import Config, checked

    n = setting.dataset.n
    same = len({checked(Config("dpsgd", 1.0, c=c), n).key for c in (0.0, 2.5)}) == 1
    return Found("the same run: no step of Algorithm 2 reads c" if same else "two runs", whether(same))


@claim(
    "exp-gain",
    FIGURE,
    "SPOF is {} % more accurate than DP-SGD on average, noiseless inputs",
    "2.90",
    how=f"mean accuracy, 1 - MSE in per cent, of {AS_TRAINED}; SPOF decodes without c",
    needs=FULL,
)
def exp_gain(setting: Setting, printed: str) -> Found:
    found = on_average(gains(setting, 0.0))
    kept = mean(setting.mean("spof", e, decode_c=True) for e in EPSILONS)
    text = f"{found} points; decoding with c, SPOF's mean accuracy is {kept:.1f}"
    return Found(text, whether(abs(found.points - float(printed)) <= 2 * found.error))


@claim(
    "exp-gain-noise",
    FIGURE,
    "SPOF is {} % more accurate than DP-SGD on average, sigma = 5",
    "3.52",
    how=f"as exp-gain, with environmental noise of sigma = 5; {AS_TRAINED}",
    needs=FULL,
)
def exp_gain_noise(setting: Setting, printed: str) -> Found:
    found = on_average(gains(setting, SIGMA))
    return Found(f"{found} points", whether(abs(found.points - float(printed)) <= 2 * found.error))


@claim(
    "exp-order",
    FIGURE,
    "SPOF is more accurate than DP-SGD",
    needs=FULL,
    how=f"difference of mean accuracies at each epsilon, with and without environmental noise; {AS_TRAINED}",
)
def exp_order(setting: Setting) -> Found:
    clean, noisy = gains(setting, 0.0), gains(setting, SIGMA)
    text = f"points, noiseless: {over(clean)}; sigma = 5: {over(noisy)}"
    return Found(text, all_of(gain.sign for gain in (*clean.values(), *noisy.values())))


@claim(
    "exp-trivial",
    FIGURE,
    "SPOF and DP-SGD keep a high reconstruction accuracy",
    needs=FULL,
    how=f"their best mean accuracy beside predictors of the same records that read none of x; {AS_TRAINED}",
)
def exp_trivial(setting: Setting) -> Found:
    best = {name: max(setting.mean(name, e) for e in EPSILONS) for name in ("spof", "dpsgd")}
    trivial = setting.trivial()
    text = ", ".join(f"{name} {value:.1f}" for name, value in best.items()) + " at best; "
    text += ", ".join(f"{name} {trivial[name]:.1f}" for name in ("zeros", "untrained net", "column mean"))
    return Found(text, across(value > trivial["column mean"] for value in best.values()))


@claim(
    "exp-fm",
    FIGURE,
    "FM has a worse trade-off than SPOF and DP-SGD",
    needs=FULL,
    how=f"mean accuracy of SPOF and of DP-SGD less that of FM, which has one user and no constant; {AS_TRAINED}",
)
def exp_fm(setting: Setting) -> Found:
    found = {
        name: {e: difference(setting.accuracy(name, e), setting.accuracy("fm", e)) for e in EPSILONS}
        for name in ("spof", "dpsgd")
    }
    text = f"points above FM, SPOF: {over(found['spof'])}; DP-SGD: {over(found['dpsgd'])}"
    return Found(text, all_of(one.sign for each in found.values() for one in each.values()))


@claim(
    "exp-fm-noise",
    FIGURE,
    "FM improves in the presence of environmental noise",
    needs=FULL,
    how=f"mean accuracy of FM at sigma = 5 less that at 0; {AS_TRAINED}",
)
def exp_fm_noise(setting: Setting) -> Found:
    found = by_noise(setting, "fm")
    return Found(f"points: {over(found)}", all_of(gain.sign for gain in found.values()))


@claim(
    "exp-plateau",
    f"{SECTION}, figure of the constant",
    "accuracy rises with c and plateaus near c = {}",
    "2.5",
    how="mean accuracy of 20 runs at epsilon 1.6, c = 0 to 2.5 in steps of 0.5: a rise beyond two standard errors, "
    "and a last step within them",
    needs=FULL,
)
def exp_plateau(setting: Setting, printed: str) -> Found:
    found = {c: setting.accuracy("spof", 1.6, c=c) for c in CONSTANTS}
    rise = difference(found[float(printed)], found[0.0])
    last = difference(found[float(printed)], found[CONSTANTS[-2]])
    text = ", ".join(f"{mean(runs):.2f} at c = {c:g}" for c, runs in found.items())
    return Found(f"{text}; from c = 0 to {printed} {rise} points", whether(rise.sign == 1 and last.sign == 0))


@claim(
    "exp-flat",
    f"{SECTION}; conclusion",
    "SPOF's accuracy is almost independent of epsilon",
    needs=FULL,
    how="largest less least of its mean accuracies over epsilon: at most one point, more than one, or undecided within "
    f"chance; {AS_TRAINED}",
)
def exp_flat(setting: Setting) -> Found:
    found = {e: setting.accuracy("spof", e) for e in EPSILONS}
    ranked = sorted(found.values(), key=mean)
    spread = difference(ranked[-1], ranked[0])
    text = ", ".join(f"{mean(runs):.2f} at {e:g}" for e, runs in found.items())
    return Found(f"{text}; spread {spread}", all_of([Difference(1 - spread.points, spread.error).sign]))


@claim(
    "exp-robust",
    f"{SECTION}; conclusion",
    "SPOF keeps its accuracy under environmental noise",
    needs=FULL,
    how=f"mean accuracy at sigma = 5 less that at 0, at each epsilon: above -1 point, below it, or undecided within "
    f"chance; {AS_TRAINED}",
)
def exp_robust(setting: Setting) -> Found:
    found = by_noise(setting, "spof")
    return Found(f"points: {over(found)}", all_of(Difference(one.points + 1, one.error).sign for one in found.values()))


@claim(
    "exp-degrades",
    f"{SECTION}; conclusion",
    "DP-SGD degrades under environmental noise",
    needs=FULL,
    how=f"mean accuracy at sigma = 5 less that at 0, below 0 at every epsilon; {AS_TRAINED}",
)
def exp_degrades(setting: Setting) -> Found:
    found = by_noise(setting, "dpsgd")
    return Found(f"points: {over(found)}", all_of(-change.sign for change in found.values()))


@claim(
    "exp-diverges",
    "Section on loss stabilization",
    "training on the printed coefficients converges",
    how="20 runs without constant and with next to no noise (epsilon 10^9), plain SGD at a rate of 0.01, 10 "
    "epochs: runs that end in numbers",
    needs=FULL,
)
def exp_diverges(setting: Setting) -> Found:
    cell = setting.cell("fm", 1e9, optimiser="sgd", lr=1e-2)
    runs = len(cell["accuracy"])
    return Found(f"{cell['diverged']} of {runs} runs end without a number", whether(cell["diverged"] == 0))


@claim(
    "exp-time",
    "Abstract; Section on the DP-WBAN",
    "SPOF trains in {} % less time than DP-SGD",
    "57.2",
    how="both trained in turn, five times, the same number of steps; the shortest of each, with and without "
    "environmental noise, in this one run of this project's training loop; 5 points of slack",
    needs=FULL,
)
def exp_time(setting: Setting, printed: str) -> Found:
    pairs = [(setting.seconds("spof", s), setting.seconds("dpsgd", s)) for s in (0.0, SIGMA)]
    saved = [100 * (1 - ours / theirs) for ours, theirs in pairs]
    text = f"its time over DP-SGD's: {-saved[0]:+.0f} % noiseless, {-saved[1]:+.0f} % at sigma = 5"
    return Found(text, whether(abs(mean(saved) - float(printed)) <= SLACK))
