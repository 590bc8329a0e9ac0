"""Share what mechanisms need that add noise where the weights are: the hospital reads raw records, step by step.

Settings of the training loop come from a search (bench/search_dpsgd.py). What is best depends on how much noise a step
carries against its signal, which goes by epsilon times the records of a batch: with a hundred times the records, a
hundredth of the epsilon asks for the same settings. So the table has one row for each of a few such products, without
and with noisy inputs, and the nearest counts. Batches are shares of a user's records. Adam moves every weight by about
the learning rate, and a hidden unit sums over all features, so its rate falls as their number grows; plain descent
moves all weights together by at most the rate times C.
"""

import csv
import math
from functools import lru_cache
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.mechanisms.base import AUTHORS, Mechanism
from sensorsim.tables import folder

RECORDS, FEATURES = 185, 14  # of a user in a set of the paper's size; where nothing else is known
MOST_BATCH = 1 << 14  # so that a step fits into memory
SMALL = 0.25  # environmental noise below counts as none, above as much


class Central(Mechanism):
    """Noise on sums over a batch, fresh in every step; settings from a search."""

    may_read = ("raw",)
    fresh_environment = True
    trust = "central"
    own_settings = "tuned"
    gaussian = True
    draws_each_epoch = True

    def own(self, config: Any) -> dict[str, Any]:
        """Return the tuned settings for this epsilon and this many records."""
        records = config.records or RECORDS
        wanted = math.log(config.epsilon * min(records, MOST_BATCH))
        near = [row for row in _rows(self.name) if (float(row["sigma"]) > 0) == (config.sigma > SMALL)]
        row = min(near, key=lambda row: abs(math.log(float(row["epsilon_records"])) - wanted))
        lr = float(row["lr"])
        return AUTHORS | {
            **{name: row[name] for name in ("optimiser", "start", "schedule", "loss")},
            "lr": rate_for(lr, config.features) if row["optimiser"] == "adam" else lr,
            "C": float(row["C"]),
            "epochs": int(row["epochs"]),
            "batch": max(1, min(MOST_BATCH, math.ceil(float(row["batch_share"]) * records))),
        }

    def adjusted(self, config: Any, n: int) -> dict[str, Any]:
        """Check that Poisson sampling knows the number of records, and has Gaussian noise, which is counted."""
        if config.sampling == "poisson" and config.noise != "gaussian":
            raise InputError("Poisson sampling is counted with Gaussian noise alone; use --noise gaussian with it.")
        if config.sampling == "poisson" and config.records is None:
            raise InputError("Poisson sampling needs to know of how many records; give checked() their number.")
        return {}


def rate_for(lr: float, features: int | None) -> float:
    """Return a learning rate that was found with 14 features, for more of them."""
    return lr * min(1.0, FEATURES / (features or FEATURES))


@lru_cache(maxsize=8)
def _rows(mechanism: str) -> list[dict[str, str]]:
    with (folder() / "dpsgd_settings.csv").open() as file:
        every = csv.DictReader(line for line in file if not line.startswith("#"))
        return [row for row in every if row["mechanism"] == mechanism]
