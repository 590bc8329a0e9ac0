"""The settings with which DP-SGD is at its best, found on synthetic data and written to tables/dpsgd_settings.csv.

    python bench/search_dpsgd.py            seven minutes of one core (--jobs 4: of four)
    python bench/search_dpsgd.py --quick    less than a minute: prints what it finds, and writes nothing

No real record is read. The sets differ in kind: the shipped generator by public ranges, the same divided by its maxima,
the first mirrored in every column, the second in every other one. They are trained at once, as users of one set, and a
setting's score is its accuracy over all of them. For each epsilon:

1. Random settings, the rows of the table as it stands, the finalists of the smaller epsilon, and to stay at the
   data-free start, in one pool. Successive halving: all with one run, the better ones with more.
2. From the best, every number up and down by a factor and every choice the other way, as long as that helps and the
   work lasts. No number has an edge that it could stop at, but for the epochs, of which there are at most a thousand
   (in two runs three thousand gave dp-zo 0.03 points more, for three times the time).
3. When every epsilon has a winner, the winners of its neighbours are tried for it too, so that results rise with it.

Work is counted in epochs of runs, not in seconds, so that the search ends alike on every machine.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import random
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dpsgd_space import FACTORS, STAY, Setting, by_chance, neighbours

from sensorsim.datasets.dataset import Dataset, load
from sensorsim.training import cells
from sensorsim.training.config import Config, records_of

TABLE = Path(__file__).parent.parent / "tables" / "dpsgd_settings.csv"
EPSILONS = (0.1, 0.4, 1.6, 6.4, 25.6, 409.6)  # the last two stand for many more records at a smaller epsilon
EPSILONS_OF = {"dpsgd-weights": EPSILONS, "dp-zo": EPSILONS[:4]}
SIGMAS = (0.0, 5.0)  # of the environment's noise on the inputs
SAME = 0.005  # points of accuracy; among settings that differ by less the one with the fewest epochs counts
ROUNDING = 1e-4  # points of accuracy


class Rung(NamedTuple):
    """Of successive halving: so many runs of every setting, and so many that go on."""

    runs: int
    kept: int


@dataclass(frozen=True)
class Effort:
    drawn: int  # settings by chance
    first: tuple[Rung, ...]  # for all
    near: tuple[Rung, ...]  # for the neighbourhood of the best
    last: tuple[Rung, ...]  # between winners
    work: int  # epochs of runs, after which no other neighbourhood is tried


FULL = Effort(64, (Rung(1, 12), Rung(3, 4), Rung(8, 2)), (Rung(1, 4), Rung(4, 2), Rung(8, 1)), (Rung(16, 1),), 22_000)
QUICK = Effort(12, (Rung(1, 4), Rung(2, 2)), (Rung(1, 2), Rung(2, 1)), (Rung(2, 1),), 1_500)


def every_set() -> Dataset:
    """Synthetic data that differ in kind, each in the size of the paper's set, as pairs of users of one set."""
    days, printed = load(None, m=2, normalise="ranges"), load(None, m=2, normalise="max")
    every_second = np.arange(days.n) % 2 == 0
    kinds = [days.x, printed.x, 1 - days.x, np.where(every_second, 1 - printed.x, printed.x)]
    persons, places = int(days.person.max()) + 1, range(len(kinds))
    return replace(
        days,
        x=np.concatenate(kinds),
        person=np.concatenate([days.person + place * persons for place in places]),
        user=np.concatenate([days.user + place * days.m for place in places]),
        held_out=np.tile(days.held_out, len(kinds)),
        source="four kinds",
    )


class Search:
    """One mechanism at one epsilon. What was run is kept: more runs of a setting are added to those it has."""

    def __init__(self, given: Config, dataset: Dataset, effort: Effort) -> None:
        self.given, self.dataset, self.effort = given, dataset, effort
        self.found: dict[Setting, list[float]] = {}
        self.work = 0

    def best(self, known: list[Setting]) -> list[Setting]:
        """The finalists, the best one first."""
        chance = random.Random(f"{self.given.mechanism} {self.given.epsilon} {self.given.sigma}")
        drawn = [by_chance(chance, self.given.mechanism) for _ in range(self.effort.drawn)]
        finalists = self.halved([*known, STAY, *drawn], self.effort.first)
        for factor in FACTORS:
            while self.work < self.effort.work:
                around = neighbours(finalists[0], factor, self.given.mechanism)
                winner = self.halved([finalists[0], *around], self.effort.near)[0]
                if not self.better(winner, finalists[0]):
                    break
                finalists = [winner, *(one for one in finalists if one != winner)]
        return finalists

    def better(self, new: Setting, old: Setting) -> bool:
        """By more than rounding, or as good with fewer epochs: staying at the start is the same at any small rate."""
        return new.epochs < old.epochs or self.accuracy(new) > self.accuracy(old) + ROUNDING

    def halved(self, pool: list[Setting], rungs: tuple[Rung, ...]) -> list[Setting]:
        """Those of the pool that stay to the end."""
        pool = list(dict.fromkeys(pool))
        for rung in rungs:
            for setting in pool:
                self.run(setting, rung.runs)
            pool = sorted(pool, key=self.accuracy, reverse=True)[: rung.kept]
        near = [setting for setting in pool if self.accuracy(setting) > self.accuracy(pool[0]) - SAME]
        first = min(near, key=lambda setting: setting.epochs)
        return [first, *(setting for setting in pool if setting != first)]

    def accuracy(self, setting: Setting) -> float:
        """The mean over sets and runs."""
        return float(np.mean(self.found[setting]))

    def run(self, setting: Setting, runs: int) -> None:
        """As many runs as asked for; 0 for one that diverged."""
        done = self.found.setdefault(setting, [])
        more = range(len(done), runs)
        if not more:
            return
        loop = setting._asdict()
        batch = math.ceil(loop.pop("batch_share") * records_of(self.dataset, self.dataset.m))
        config, dataset = cells.ready(replace(self.given, m=self.dataset.m, batch=batch, **loop), self.dataset)
        results = cells.run_some(dataset, config, more)
        done += [0.0 if result["accuracy"] is None else result["accuracy"] for result in results]
        self.work += len(more) * setting.epochs


def rows_of_the_table(mechanism: str, sigma: float) -> list[Setting]:
    """The settings found before, whatever their epsilon."""
    if not TABLE.exists():
        return []
    kinds = {"batch_share": float, "lr": float, "C": float, "epochs": int}
    with TABLE.open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    mine = [row for row in rows if row["mechanism"] == mechanism and float(row["sigma"]) == sigma]
    return [Setting(**{name: kinds.get(name, str)(row[name]) for name in Setting._fields}) for row in mine]


def winners(mechanism: str, sigma: float, epsilons: tuple[float, ...], effort: Effort) -> list[tuple[Setting, float]]:
    """For each epsilon the best setting, and its accuracy."""
    dataset, known, began = every_set(), rows_of_the_table(mechanism, sigma), time.process_time()
    searches, found, before = [], [], list[Setting]()
    for epsilon in epsilons:
        search = Search(Config(mechanism, epsilon, sigma, runs=1, seed=1), dataset, effort)
        before = search.best([*known, *before])
        searches.append(search)
        found.append(before[0])
        said = f"{mechanism}, sigma {sigma:g}, eps {epsilon:<6g} {search.accuracy(before[0]):.3f}"
        print(f"{time.process_time() - began:4.0f} s  {said}  {search.work} epochs of runs", flush=True)
    for _ in range(2):  # so that a good setting gets to every epsilon that it suits
        for place, search in enumerate(searches):
            found[place] = search.halved(found[max(place - 1, 0) : place + 2], effort.last)[0]
    print(f"{time.process_time() - began:4.0f} s  {mechanism}, sigma {sigma:g}: all", flush=True)
    return [(setting, search.accuracy(setting)) for setting, search in zip(found, searches, strict=True)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="fewer settings, runs and epsilons; writes no table")
    options.add_argument("--jobs", type=int, default=1, help="processes, at most four; the table is the same")
    given = options.parse_args()
    effort, lines = QUICK if given.quick else FULL, []
    records = records_of(every_set(), every_set().m)
    pairs = list(itertools.product(EPSILONS_OF, SIGMAS))
    some = [EPSILONS[1:3] if given.quick else EPSILONS_OF[mechanism] for mechanism, _ in pairs]
    with ProcessPoolExecutor(given.jobs) as pool:
        every = pool.map(winners, *zip(*pairs, strict=True), some, [effort] * len(pairs))
        for (mechanism, sigma), epsilons, found in zip(pairs, some, every, strict=True):
            for epsilon, (setting, accuracy) in zip(epsilons, found, strict=True):
                lines.append(",".join(map(str, (mechanism, sigma, f"{epsilon * records:g}", *setting))))
                print(f"        {lines[-1]}   {accuracy:.3f}", flush=True)
    if not given.quick:
        TABLE.write_text("\n".join([*HEADER, *lines]) + "\n")


HEADER = (
    "# python bench/search_dpsgd.py: settings of DP-SGD found on synthetic data; no real record was read",
    "# epsilon_records: nominal epsilon times the records of a batch; batch_share: of a user's records",
    ",".join(("mechanism", "sigma", "epsilon_records", *Setting._fields)),
)

if __name__ == "__main__":
    main()
