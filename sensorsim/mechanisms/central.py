"""What mechanisms share that add noise where the weights are: the hospital reads raw records, step by step."""

from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.mechanisms.base import AUTHORS, Mechanism
from sensorsim.mechanisms.tuned import tuned


class Central(Mechanism):
    """Noise on sums over a batch, fresh in every step; settings from a search."""

    may_read = ("raw",)
    fresh_environment = True
    trust = "central"
    own_settings = "tuned"
    gaussian = True
    draws_each_epoch = True

    def own(self, config: Any) -> dict[str, Any]:
        return AUTHORS | tuned(self.name, config)

    def adjusted(self, config: Any, n: int) -> dict[str, Any]:
        check_sampling(config)
        return {}


def check_sampling(config: Any) -> None:
    """Poisson sampling has to know of how many records, and its accounting is for Gaussian noise."""
    if config.sampling == "poisson" and config.noise != "gaussian":
        raise InputError("Poisson sampling is counted with Gaussian noise alone; use --noise gaussian with it.")
    if config.sampling == "poisson" and config.records is None:
        raise InputError("Poisson sampling needs to know of how many records; give checked() their number.")
