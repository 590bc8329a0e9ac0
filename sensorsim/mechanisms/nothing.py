"""`none`: raw records, no noise: the baseline of privacy.

It learns the linear map of the records' own mean and covariance, which no linear map through l numbers can beat; with
`--map sigmoid`, or where settings of the loop are given, the paper's net, trained until it stands still.
"""

from typing import Any

from sensorsim.accounting.composition import Spent, Use, unbounded
from sensorsim.mechanisms.base import AUTHORS, LINEAR, LOOP, SIGMOID, Mechanism, Style
from sensorsim.mechanisms.central import RECORDS, rate_for
from sensorsim.mechanisms.dpsgd_weights import slope

# Chosen by hand in a few trials on the generator and variants of it, with the Fitbit file of March 2016 beside them:
# more steps, other rates, cross-entropy or larger batches gave less, or 0.01 points more. Tried with 14 features.
BATCH, STEPS, LR = 64, 3000, 0.1


class Nothing(Mechanism):
    """No noise."""

    name = "none"
    title = "no privacy"
    about = "the same model of raw records, no privacy"
    style = Style("-", "None", "black")
    private = False
    trust = "none"
    own_settings = "tuned"
    options = ("loss", "records", "features", "map")
    may_read = ("raw",)
    fresh_environment = True

    def spend(self, use: Use) -> Spent:
        return unbounded("no noise is added")

    def own(self, config: Any) -> dict[str, Any]:
        """Return settings with as many steps for few records as for many, and squared error, as accuracy measures."""
        steps = -(-(config.records or RECORDS) // (config.batch or BATCH))  # in an epoch
        return AUTHORS | {
            "lr": rate_for(LR, config.features),
            "batch": BATCH,
            "epochs": -(-STEPS // steps),
            "schedule": "linear",
            "loss": "squared",
        }

    def own_map(self, config: Any) -> str:
        """Return the map in closed form, unless settings of the loop are given."""
        return SIGMOID if any(getattr(config, name) is not None for name in (*LOOP, "loss")) else LINEAR

    def used(self, config: Any) -> tuple[str, ...]:
        return ("map",) if config.map == LINEAR else super().used(config)

    def learner(self, config: Any) -> str:
        return "release" if config.map == LINEAR else "loop"

    def step(self, step: Any) -> None:
        reads = step.seen
        h, z = step.forward(reads)
        step.backward(reads, h, slope(step.config, z, step.batch.x))


MECHANISM = Nothing()
