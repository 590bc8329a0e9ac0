"""Records that claims are checked on, and the training behind those that need it.

Everything is trained as printed: columns divided by their own maximum, two users, seven hidden units, the authors'
loop. Noise is drawn from a seed, so that an answer can be repeated.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.hints import need

if TYPE_CHECKING:
    from sensorsim.datasets.dataset import Dataset

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
