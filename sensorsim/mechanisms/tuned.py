"""Settings of the training loop that a search found (bench/search_dpsgd.py), read from the table that it wrote.

What is best depends on how much noise a step carries against its signal, which goes by epsilon times the records of a
batch: with a hundred times the records, a hundredth of the epsilon asks for the same settings. So the table has one row
for each of a few such products, without and with noisy inputs, and the nearest counts. Batches are shares of a user's
records. Adam moves every weight by about the learning rate, and a hidden unit sums over all features, so its rate falls
as their number grows; plain descent moves all weights together by at most the rate times C.
"""

import csv
import math
from functools import lru_cache
from typing import Any

RECORDS, FEATURES = 185, 14  # of a user in a set of the paper's size; where nothing else is known
MOST_BATCH = 1 << 14  # so that a step fits into memory
SMALL = 0.25  # environmental noise below counts as none, above as much
NUMBERS = ("lr", "C")
WORDS = ("optimiser", "start", "schedule", "loss")


def tuned(mechanism: str, config: Any) -> dict[str, Any]:
    """The settings for this epsilon and this many records."""
    records = config.records or RECORDS
    wanted = math.log(config.epsilon * min(records, MOST_BATCH))
    near = [row for row in rows(mechanism) if (float(row["sigma"]) > 0) == (config.sigma > SMALL)]
    row = min(near, key=lambda row: abs(math.log(float(row["epsilon_records"])) - wanted))
    found: dict[str, Any] = {name: float(row[name]) for name in NUMBERS} | {name: row[name] for name in WORDS}
    found["epochs"] = int(row["epochs"])
    found["batch"] = max(1, min(MOST_BATCH, math.ceil(float(row["batch_share"]) * records)))
    if found["optimiser"] == "adam":
        found["lr"] = rate_for(found["lr"], config.features)
    return found


def rate_for(lr: float, features: int | None) -> float:
    """A learning rate that was found with 14 features, for more of them."""
    return lr * min(1.0, FEATURES / (features or FEATURES))


@lru_cache(maxsize=8)
def rows(mechanism: str) -> list[dict[str, str]]:
    """The table's rows for a mechanism."""
    from sensorsim.tables import folder

    with (folder() / "dpsgd_settings.csv").open() as file:
        every = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return [row for row in every if row["mechanism"] == mechanism]
