"""Claims on the experiment: the data, accuracies and their order, the constant, noise, training time.

Everything is trained as printed: columns divided by their own maximum, two users, seven hidden units, the authors'
loop. Noise is drawn from a seed, so that an answer can be repeated.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from statistics import mean, variance
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim._util.hints import need
from sensorsim.paper.recompute import DEPENDS, HOLDS, NOT, Found, agrees, claim, derived_verdict, verdict_over

if TYPE_CHECKING:
    from sensorsim.datasets.dataset import Dataset

SECTION = "Section on the DP-WBAN"
FIGURE = f"{SECTION}, figure of privacy and utility"
CONSTANTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
TIMING_SLACK = 5  # percentage points: no two timed runs agree better
RUNS, SEED, REPEATS = 20, 0, 5
EPSILONS = (0.1, 0.4, 1.6, 6.4)
SIGMA = 5.0  # environmental noise of the paper's experiment


class Experiment:
    """Records from a file, or the synthetic set, and cached results of training on them."""

    def __init__(
        self, data: str | None = None, full: bool = False, progress: Callable[[str], None] = lambda what: None
    ) -> None:
        self.data, self.full, self.progress = data, full, progress
        self._cells: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._seconds: dict[tuple[str, float], float] = {}

    def check(self) -> None:
        """Raise InputError before anything is computed if a package is missing or the records do not fit."""
        if self.full:
            need("torch", "scipy", why="--full", instead="leave out --full")
        if self.data is not None:
            try:
                assert self.scaled.n and self.dataset.n
            except InputError as error:  # its remedy may be an option of `train` alone
                what = str(error).partition(";")[0].rstrip(".")
                raise InputError(
                    f"{what}; give a file of Fitbit's daily activity with complete rows and columns that vary, or "
                    "leave --data out."
                ) from None

    @property
    def name(self) -> str:
        """Name of the records."""
        return "synthetic (seed 0)" if self.data is None else self.scaled.source

    @cached_property
    def dataset(self) -> "Dataset":
        """Records divided by column maxima, as in the paper."""
        from sensorsim.datasets.dataset import MAXIMA, load

        return load(self.data, normalise=MAXIMA)

    @cached_property
    def scaled(self) -> "Dataset":
        """Records scaled by public ranges, as this project's mechanisms take them."""
        from sensorsim.datasets.dataset import load

        return load(self.data)

    def cell(self, mechanism: str, epsilon: float | None, scaled: bool = False, **more: Any) -> dict[str, Any]:
        """Return all runs of a configuration as `sensorsim sweep` does."""
        key = (mechanism, epsilon, scaled, *sorted(more.items()))
        if key not in self._cells:
            from sensorsim.training.cells import run_cell
            from sensorsim.training.config import Config

            self.progress(" ".join(f"{word}" for word in (mechanism, epsilon, *(f"{k}={v}" for k, v in more.items()))))
            config = Config(mechanism, epsilon, **{"runs": RUNS, "seed": SEED, **more})
            self._cells[key] = run_cell(self.scaled if scaled else self.dataset, config)
        return self._cells[key]

    def accuracy(self, mechanism: str, epsilon: float | None, **more: Any) -> list[float]:
        """Return 1 - MSE in per cent of every run that did not diverge."""
        return [value for value in self.cell(mechanism, epsilon, **more)["accuracy"] if value is not None]

    def mean(self, mechanism: str, epsilon: float | None, **more: Any) -> float:
        """Return the mean accuracy; NaN if every run diverged."""
        found = self.accuracy(mechanism, epsilon, **more)
        return sum(found) / len(found) if found else float("nan")

    def trivial(self, scaled: bool = False) -> dict[str, float]:
        """Return the accuracies of predictors that need no training."""
        from sensorsim.training.cells import trivial_predictors
        from sensorsim.training.config import Config

        found = trivial_predictors(self.scaled if scaled else self.dataset, Config("none", seed=SEED))
        return {name: score["accuracy"] or 0.0 for name, score in found.items()}

    def seconds(self, mechanism: str, sigma: float) -> float:
        """Return the shortest time of training and scoring one configuration; both mechanisms are timed in turn."""
        if not self._seconds:
            from sensorsim.training.cells import ready, run_some
            from sensorsim.training.config import Config

            timed = [(name, s) for s in (0.0, SIGMA) for name in ("spof", "dpsgd")]
            self.progress("training time")
            for _ in range(REPEATS):
                for name, s in timed:
                    config, dataset = ready(Config(name, 1.6, sigma=s, runs=RUNS, seed=SEED), self.dataset)
                    took = run_some(dataset, config, range(RUNS))[0]["seconds"]
                    self._seconds[name, s] = min(took, self._seconds.get((name, s), took))
        return self._seconds[mechanism, sigma]


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


def compare(experiment: Experiment, first: str, second: str, sigma: float = 0.0, than: float = 0.0) -> Differences:
    """Return the accuracy of `first` at this environmental noise less that of `second` at `than`, by epsilon."""
    at, other = ({"sigma": value} if value else {} for value in (sigma, than))
    accuracy = experiment.accuracy
    return {e: difference(accuracy(first, e, **at), accuracy(second, e, **other)) for e in EPSILONS}


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
    return text, derived_verdict(rows == int(rows), here >= int(printed))


@claim("exp-columns", SECTION, "distance, steps, calories and eleven other parameters: n = {}", "14")
def exp_columns(printed: str) -> Found:
    """columns of Fitbit's daily activity that hold numbers, identity and date left out"""
    from sensorsim.datasets.dataset import NUMERIC_COLUMNS, PAPER_COLUMNS

    text = f"{len(NUMERIC_COLUMNS)} columns; {len(PAPER_COLUMNS)} where Calories stands twice"
    return text, derived_verdict(agrees(len(PAPER_COLUMNS), printed), agrees(len(NUMERIC_COLUMNS), printed))


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
    return text, derived_verdict(0 <= low <= high <= 1, said.spent_epsilon is not None)


@claim("exp-unaffected", SECTION, "DP-SGD's utility is unaffected by the stabilization constant")
def exp_unaffected(experiment: Experiment) -> Found:
    """configurations of DP-SGD with c = 0 and c = 2.5, as they run"""
    from sensorsim.training.config import Config, checked

    n = experiment.dataset.n
    same = len({checked(Config("dpsgd", 1.0, c=c), n).key for c in (0.0, 2.5)}) == 1
    return "the same run: no step of Algorithm 2 reads c" if same else "two runs", same


@claim("exp-gain", FIGURE, "SPOF is {} % more accurate than DP-SGD on average, noiseless inputs", "2.90", full=True)
def exp_gain(experiment: Experiment, printed: str) -> Found:
    """mean accuracy, 1 - MSE in per cent, of {trained}; SPOF decodes without c"""
    found = mean_difference(compare(experiment, "spof", "dpsgd"))
    kept = mean(experiment.mean("spof", e, decode_c=True) for e in EPSILONS)
    text = f"{found} points; decoding with c, SPOF's mean accuracy is {kept:.1f}"
    return text, abs(found.points - float(printed)) <= 2 * found.error


@claim("exp-gain-noise", FIGURE, "SPOF is {} % more accurate than DP-SGD on average, sigma = 5", "3.52", full=True)
def exp_gain_noise(experiment: Experiment, printed: str) -> Found:
    """as exp-gain, with environmental noise of sigma = 5; {trained}"""
    found = mean_difference(compare(experiment, "spof", "dpsgd", SIGMA, SIGMA))
    return f"{found} points", abs(found.points - float(printed)) <= 2 * found.error


@claim("exp-order", FIGURE, "SPOF is more accurate than DP-SGD", full=True)
def exp_order(experiment: Experiment) -> Found:
    """difference of mean accuracies at each epsilon, with and without environmental noise; {trained}"""
    clean, noisy = (compare(experiment, "spof", "dpsgd", sigma, sigma) for sigma in (0.0, SIGMA))
    text = f"points, noiseless: {by_epsilon(clean)}; sigma = 5: {by_epsilon(noisy)}"
    return text, verdict_on_signs(gain.sign for gain in (*clean.values(), *noisy.values()))


@claim("exp-trivial", FIGURE, "SPOF and DP-SGD keep a high reconstruction accuracy", full=True)
def exp_trivial(experiment: Experiment) -> Found:
    """their best mean accuracy beside predictors of the same records that read none of x; {trained}"""
    best = {name: max(experiment.mean(name, e) for e in EPSILONS) for name in ("spof", "dpsgd")}
    trivial = experiment.trivial()
    text = ", ".join(f"{name} {value:.1f}" for name, value in best.items()) + " at best; "
    text += ", ".join(f"{name} {trivial[name]:.1f}" for name in ("zeros", "untrained net", "column mean"))
    return text, verdict_over(value > trivial["column mean"] for value in best.values())


@claim("exp-fm", FIGURE, "FM has a worse trade-off than SPOF and DP-SGD", full=True)
def exp_fm(experiment: Experiment) -> Found:
    """mean accuracy of SPOF and of DP-SGD less that of FM, which has one user and no constant; {trained}"""
    found = {name: compare(experiment, name, "fm") for name in ("spof", "dpsgd")}
    text = f"points above FM, SPOF: {by_epsilon(found['spof'])}; DP-SGD: {by_epsilon(found['dpsgd'])}"
    return text, verdict_on_signs(one.sign for each in found.values() for one in each.values())


@claim("exp-fm-noise", FIGURE, "FM improves in the presence of environmental noise", full=True)
def exp_fm_noise(experiment: Experiment) -> Found:
    """mean accuracy of FM at sigma = 5 less that at 0; {trained}"""
    found = compare(experiment, "fm", "fm", SIGMA)
    return f"points: {by_epsilon(found)}", verdict_on_signs(gain.sign for gain in found.values())


@claim("exp-plateau", f"{SECTION}, figure of the constant",
       "accuracy rises with c and plateaus near c = {}", "2.5", full=True)  # fmt: skip
def exp_plateau(experiment: Experiment, printed: str) -> Found:
    """mean accuracy of 20 runs at epsilon 1.6, c = 0 to 2.5 in steps of 0.5: a rise beyond two standard errors, and a
    last step within them"""
    found = {c: experiment.accuracy("spof", 1.6, c=c) for c in CONSTANTS}
    rise = difference(found[float(printed)], found[0.0])
    last = difference(found[float(printed)], found[CONSTANTS[-2]])
    text = ", ".join(f"{mean(runs):.2f} at c = {c:g}" for c, runs in found.items())
    return f"{text}; from c = 0 to {printed} {rise} points", rise.sign == 1 and last.sign == 0


@claim("exp-flat", f"{SECTION}; conclusion", "SPOF's accuracy is almost independent of epsilon", full=True)
def exp_flat(experiment: Experiment) -> Found:
    """largest less least of its mean accuracies over epsilon: at most one point, more than one, or undecided within
    chance; {trained}"""
    found = {e: experiment.accuracy("spof", e) for e in EPSILONS}
    ranked = sorted(found.values(), key=mean)
    spread = difference(ranked[-1], ranked[0])
    text = ", ".join(f"{mean(runs):.2f} at {e:g}" for e, runs in found.items())
    return f"{text}; spread {spread}", verdict_on_signs([Difference(1 - spread.points, spread.error).sign])


@claim("exp-robust", f"{SECTION}; conclusion", "SPOF keeps its accuracy under environmental noise", full=True)
def exp_robust(experiment: Experiment) -> Found:
    """mean accuracy at sigma = 5 less that at 0, at each epsilon: above -1 point, below it, or undecided within chance;
    {trained}"""
    found = compare(experiment, "spof", "spof", SIGMA)
    signs = (Difference(one.points + 1, one.error).sign for one in found.values())
    return f"points: {by_epsilon(found)}", verdict_on_signs(signs)


@claim("exp-degrades", f"{SECTION}; conclusion", "DP-SGD degrades under environmental noise", full=True)
def exp_degrades(experiment: Experiment) -> Found:
    """mean accuracy at sigma = 5 less that at 0, below 0 at every epsilon; {trained}"""
    found = compare(experiment, "dpsgd", "dpsgd", SIGMA)
    return f"points: {by_epsilon(found)}", verdict_on_signs(-change.sign for change in found.values())


@claim("exp-diverges", "Section on loss stabilization", "training on the printed coefficients converges", full=True)
def exp_diverges(experiment: Experiment) -> Found:
    """20 runs without constant and with next to no noise (epsilon 10^9), plain SGD at a rate of 0.01, 10 epochs: runs
    that end in numbers"""
    cell = experiment.cell("fm", 1e9, optimiser="sgd", lr=1e-2)
    runs = len(cell["accuracy"])
    return f"{cell['diverged']} of {runs} runs end without a number", cell["diverged"] == 0


@claim("exp-time", "Abstract; Section on the DP-WBAN", "SPOF trains in {} % less time than DP-SGD", "57.2", full=True)
def exp_time(experiment: Experiment, printed: str) -> Found:
    """both trained in turn, five times, the same number of steps; the shortest of each, with and without environmental
    noise, in this one run of this project's training loop; 5 points of slack"""
    pairs = [(experiment.seconds("spof", s), experiment.seconds("dpsgd", s)) for s in (0.0, SIGMA)]
    saved = [100 * (1 - ours / theirs) for ours, theirs in pairs]
    text = f"its time over DP-SGD's: {-saved[0]:+.0f} % noiseless, {-saved[1]:+.0f} % at sigma = 5"
    return text, abs(mean(saved) - float(printed)) <= TIMING_SLACK
