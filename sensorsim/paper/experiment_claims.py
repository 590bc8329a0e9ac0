"""Claims on the experiment: the data, accuracies and their order, the constant, noise, training time."""

import math
from collections.abc import Iterable, Sequence
from statistics import mean, variance
from typing import NamedTuple

from sensorsim.paper.claim import DEPENDS, HOLDS, NOT, Found, agrees, claim, derived_verdict, verdict, verdict_over
from sensorsim.paper.experiment import EPSILONS, SIGMA, Experiment

SECTION = "Section on the DP-WBAN"
FIGURE = f"{SECTION}, figure of privacy and utility"
CONSTANTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
TIMING_SLACK = 5  # percentage points: no two timed runs agree better


class Difference(NamedTuple):
    """Difference of two mean accuracies in percentage points, with its standard error."""

    points: float
    error: float

    @property
    def sign(self) -> int:
        """Sign of the difference; 0 within two standard errors, where it may be chance."""
        return 0 if not abs(self.points) > 2 * self.error else int(math.copysign(1, self.points))

    def __str__(self) -> str:
        return f"{self.points:+.2f} (+/- {2 * self.error:.2f})"


Differences = dict[float, Difference]  # by epsilon


def difference(first: Sequence[float], second: Sequence[float]) -> Difference:
    """Return the difference of the means of two sets of runs."""
    if min(len(first), len(second)) < 2:
        return Difference(math.nan, math.inf)
    error = math.sqrt(variance(first) / len(first) + variance(second) / len(second))
    return Difference(mean(first) - mean(second), error)


def gains(experiment: Experiment, sigma: float) -> Differences:
    """Return the accuracy of SPOF less that of DP-SGD, by epsilon."""
    return {
        e: difference(experiment.accuracy("spof", e, sigma=sigma), experiment.accuracy("dpsgd", e, sigma=sigma))
        for e in EPSILONS
    }


def noise_effects(experiment: Experiment, mechanism: str) -> Differences:
    """Return the effect of environmental noise on a mechanism's accuracy, by epsilon."""
    return {
        e: difference(experiment.accuracy(mechanism, e, sigma=SIGMA), experiment.accuracy(mechanism, e))
        for e in EPSILONS
    }


def mean_difference(found: Differences) -> Difference:
    """Return the mean difference over epsilon."""
    each = found.values()
    return Difference(mean(one.points for one in each), math.sqrt(sum(one.error**2 for one in each)) / len(each))


def verdict_on_signs(signs: Iterable[int]) -> str:
    """Return the verdict on the statement that all differences are positive; 0 is undecided."""
    seen = set(signs)
    return HOLDS if seen == {1} else NOT if -1 in seen and 1 not in seen else DEPENDS


def by_epsilon(values: Differences) -> str:
    """Format differences by epsilon."""
    return ", ".join(f"{value} at {epsilon:g}" for epsilon, value in values.items())


@claim("exp-samples", SECTION, "{} training samples", "36480")
def exp_samples(experiment: Experiment, printed: str) -> Found:
    """rows of the file, four fifths of which are trained on, times 100 Monte-Carlo runs; and the distinct records that
    there are"""
    runs, share = 100, 0.8
    rows = int(printed) / runs / share
    here = len(experiment.scaled.x)
    text = f"{rows:g} rows, {share:g} of them, {runs} times; {here} records in {experiment.name}"
    return Found(text, derived_verdict(rows == int(rows), here >= int(printed)))


@claim("exp-columns", SECTION, "distance, steps, calories and eleven other parameters: n = {}", "14")
def exp_columns(printed: str) -> Found:
    """columns of Fitbit's daily activity that hold numbers, identity and date left out"""
    from sensorsim.datasets.dataset import NUMERIC_COLUMNS, PAPER_COLUMNS

    text = f"{len(NUMERIC_COLUMNS)} columns; {len(PAPER_COLUMNS)} where Calories stands twice"
    return Found(text, derived_verdict(agrees(len(PAPER_COLUMNS), printed), agrees(len(NUMERIC_COLUMNS), printed)))


@claim("exp-maximum", SECTION, "division by the column maximum ensures 0 <= x <= 1")
def exp_maximum(experiment: Experiment) -> Found:
    """least and largest value of the records so divided; and what epsilon covers then, the maximum being private"""
    from sensorsim.training.config import Config, checked
    from sensorsim.training.fitting import statement

    x = experiment.dataset.x
    low, high = float(x.min()), float(x.max())
    said = statement(
        checked(Config("dpsgd", 1.0), experiment.dataset.n), experiment.dataset.n, experiment.dataset.normalise
    )
    text = f"{low:g} to {high:g}; an epsilon then covers {said.covers}"
    return Found(text, derived_verdict(0 <= low <= high <= 1, said.spent_epsilon is not None))


@claim("exp-unaffected", SECTION, "DP-SGD's utility is unaffected by the stabilization constant")
def exp_unaffected(experiment: Experiment) -> Found:
    """configurations of DP-SGD with c = 0 and c = 2.5, as they run"""
    from sensorsim.training.config import Config, checked

    n = experiment.dataset.n
    same = len({checked(Config("dpsgd", 1.0, c=c), n).key for c in (0.0, 2.5)}) == 1
    return Found("the same run: no step of Algorithm 2 reads c" if same else "two runs", verdict(same))


@claim("exp-gain", FIGURE, "SPOF is {} % more accurate than DP-SGD on average, noiseless inputs", "2.90", full=True)
def exp_gain(experiment: Experiment, printed: str) -> Found:
    """mean accuracy, 1 - MSE in per cent, of {trained}; SPOF decodes without c"""
    found = mean_difference(gains(experiment, 0.0))
    kept = mean(experiment.mean("spof", e, decode_c=True) for e in EPSILONS)
    text = f"{found} points; decoding with c, SPOF's mean accuracy is {kept:.1f}"
    return Found(text, verdict(abs(found.points - float(printed)) <= 2 * found.error))


@claim("exp-gain-noise", FIGURE, "SPOF is {} % more accurate than DP-SGD on average, sigma = 5", "3.52", full=True)
def exp_gain_noise(experiment: Experiment, printed: str) -> Found:
    """as exp-gain, with environmental noise of sigma = 5; {trained}"""
    found = mean_difference(gains(experiment, SIGMA))
    return Found(f"{found} points", verdict(abs(found.points - float(printed)) <= 2 * found.error))


@claim("exp-order", FIGURE, "SPOF is more accurate than DP-SGD", full=True)
def exp_order(experiment: Experiment) -> Found:
    """difference of mean accuracies at each epsilon, with and without environmental noise; {trained}"""
    clean, noisy = gains(experiment, 0.0), gains(experiment, SIGMA)
    text = f"points, noiseless: {by_epsilon(clean)}; sigma = 5: {by_epsilon(noisy)}"
    return Found(text, verdict_on_signs(gain.sign for gain in (*clean.values(), *noisy.values())))


@claim("exp-trivial", FIGURE, "SPOF and DP-SGD keep a high reconstruction accuracy", full=True)
def exp_trivial(experiment: Experiment) -> Found:
    """their best mean accuracy beside predictors of the same records that read none of x; {trained}"""
    best = {name: max(experiment.mean(name, e) for e in EPSILONS) for name in ("spof", "dpsgd")}
    trivial = experiment.trivial()
    text = ", ".join(f"{name} {value:.1f}" for name, value in best.items()) + " at best; "
    text += ", ".join(f"{name} {trivial[name]:.1f}" for name in ("zeros", "untrained net", "column mean"))
    return Found(text, verdict_over(value > trivial["column mean"] for value in best.values()))


@claim("exp-fm", FIGURE, "FM has a worse trade-off than SPOF and DP-SGD", full=True)
def exp_fm(experiment: Experiment) -> Found:
    """mean accuracy of SPOF and of DP-SGD less that of FM, which has one user and no constant; {trained}"""
    found = {
        name: {e: difference(experiment.accuracy(name, e), experiment.accuracy("fm", e)) for e in EPSILONS}
        for name in ("spof", "dpsgd")
    }
    text = f"points above FM, SPOF: {by_epsilon(found['spof'])}; DP-SGD: {by_epsilon(found['dpsgd'])}"
    return Found(text, verdict_on_signs(one.sign for each in found.values() for one in each.values()))


@claim("exp-fm-noise", FIGURE, "FM improves in the presence of environmental noise", full=True)
def exp_fm_noise(experiment: Experiment) -> Found:
    """mean accuracy of FM at sigma = 5 less that at 0; {trained}"""
    found = noise_effects(experiment, "fm")
    return Found(f"points: {by_epsilon(found)}", verdict_on_signs(gain.sign for gain in found.values()))


@claim(
    "exp-plateau",
    f"{SECTION}, figure of the constant",
    "accuracy rises with c and plateaus near c = {}",
    "2.5",
    full=True,
)
def exp_plateau(experiment: Experiment, printed: str) -> Found:
    """mean accuracy of 20 runs at epsilon 1.6, c = 0 to 2.5 in steps of 0.5: a rise beyond two standard errors, and a
    last step within them"""
    found = {c: experiment.accuracy("spof", 1.6, c=c) for c in CONSTANTS}
    rise = difference(found[float(printed)], found[0.0])
    last = difference(found[float(printed)], found[CONSTANTS[-2]])
    text = ", ".join(f"{mean(runs):.2f} at c = {c:g}" for c, runs in found.items())
    return Found(f"{text}; from c = 0 to {printed} {rise} points", verdict(rise.sign == 1 and last.sign == 0))


@claim("exp-flat", f"{SECTION}; conclusion", "SPOF's accuracy is almost independent of epsilon", full=True)
def exp_flat(experiment: Experiment) -> Found:
    """largest less least of its mean accuracies over epsilon: at most one point, more than one, or undecided within
    chance; {trained}"""
    found = {e: experiment.accuracy("spof", e) for e in EPSILONS}
    ranked = sorted(found.values(), key=mean)
    spread = difference(ranked[-1], ranked[0])
    text = ", ".join(f"{mean(runs):.2f} at {e:g}" for e, runs in found.items())
    return Found(f"{text}; spread {spread}", verdict_on_signs([Difference(1 - spread.points, spread.error).sign]))


@claim("exp-robust", f"{SECTION}; conclusion", "SPOF keeps its accuracy under environmental noise", full=True)
def exp_robust(experiment: Experiment) -> Found:
    """mean accuracy at sigma = 5 less that at 0, at each epsilon: above -1 point, below it, or undecided within chance;
    {trained}"""
    found = noise_effects(experiment, "spof")
    return Found(
        f"points: {by_epsilon(found)}",
        verdict_on_signs(Difference(one.points + 1, one.error).sign for one in found.values()),
    )


@claim("exp-degrades", f"{SECTION}; conclusion", "DP-SGD degrades under environmental noise", full=True)
def exp_degrades(experiment: Experiment) -> Found:
    """mean accuracy at sigma = 5 less that at 0, below 0 at every epsilon; {trained}"""
    found = noise_effects(experiment, "dpsgd")
    return Found(f"points: {by_epsilon(found)}", verdict_on_signs(-change.sign for change in found.values()))


@claim("exp-diverges", "Section on loss stabilization", "training on the printed coefficients converges", full=True)
def exp_diverges(experiment: Experiment) -> Found:
    """20 runs without constant and with next to no noise (epsilon 10^9), plain SGD at a rate of 0.01, 10 epochs: runs
    that end in numbers"""
    cell = experiment.cell("fm", 1e9, optimiser="sgd", lr=1e-2)
    runs = len(cell["accuracy"])
    return Found(f"{cell['diverged']} of {runs} runs end without a number", verdict(cell["diverged"] == 0))


@claim("exp-time", "Abstract; Section on the DP-WBAN", "SPOF trains in {} % less time than DP-SGD", "57.2", full=True)
def exp_time(experiment: Experiment, printed: str) -> Found:
    """both trained in turn, five times, the same number of steps; the shortest of each, with and without environmental
    noise, in this one run of this project's training loop; 5 points of slack"""
    pairs = [(experiment.seconds("spof", s), experiment.seconds("dpsgd", s)) for s in (0.0, SIGMA)]
    saved = [100 * (1 - ours / theirs) for ours, theirs in pairs]
    text = f"its time over DP-SGD's: {-saved[0]:+.0f} % noiseless, {-saved[1]:+.0f} % at sigma = 5"
    return Found(text, verdict(abs(mean(saved) - float(printed)) <= TIMING_SLACK))
