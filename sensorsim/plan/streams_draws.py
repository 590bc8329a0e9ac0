"""What plan/streams.py compares strategies by: the people, their releases through the kernels, and the closed forms."""

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

ONE = 1 << 15  # x of 1


@dataclass(frozen=True)
class Setting:
    """What is compared. `a` and `b` are the people of the simulation: x of (device, feature), in Q15."""

    features: int
    records: int
    devices: int
    levels: int
    seed: int
    a: Any
    b: Any

    @property
    def simulated(self) -> int:
        return len(self.a)

    @property
    def later(self) -> float:
        """The share of the records after the change."""
        return (self.records - self.records // 2) / self.records


# ── through the kernels ──


def due(setting: Setting, period: int) -> Any:
    """The record of a period that each device releases."""
    import numpy as np

    from sensorsim.kernels import schedule
    from sensorsim.language.numba_backend import outer

    run, records = outer(schedule.due), range(setting.records)
    found = [
        next(s for s in records if run(serial, period, s, setting.records, 1)) for serial in range(setting.simulated)
    ]
    return np.array(found)


def released(x: Any, table: "NoiseTable", seed: Any) -> tuple[Any, Any]:
    """One feature of each row: which, and its unbiased value."""
    import numpy as np

    from sensorsim.privacy.releases import release_records, sampled_records

    if x.shape[1] == 1:
        return np.zeros(len(x), int), table.estimate(release_records(x, table, seed)[:, 0])
    picked, y = sampled_records(x, table, seed)
    return picked[:, 0].astype(int), table.estimate(y[:, 0])


def symbols(x: Any, table: "NoiseTable", setting: Setting, call: int) -> Any:
    """One release of each x, of one feature."""
    import numpy as np

    from sensorsim.privacy.releases import release_records

    return release_records(x.astype(np.uint16)[:, None], table, [setting.seed, call])[:, 0]


@lru_cache(maxsize=16)
def table_of(epsilon: Decimal, features: int) -> "NoiseTable":
    """One feature of a record: one that ships where there is one, as its counts are the same for every n."""
    from sensorsim.privacy.tables import READY_EPSILONS, certified, make_table, ready_table

    if str(epsilon.normalize()) in READY_EPSILONS:
        return certified(replace(ready_table(str(epsilon.normalize()), 1), features=features))
    return make_table("rows", epsilon, features, 1)


# ── closed forms ──


def log_ratio(table: "NoiseTable") -> Any:
    """Of every symbol: the logarithm of how much likelier it is at x = 1 than at x = 0."""
    import numpy as np

    least, most = (table.distribution(x)[1].astype(float) for x in (0, ONE))
    return np.log(most / least)


def noise_at(table: "NoiseTable", x: Any) -> Any:
    """The variance of the unbiased value at x; its second moment is linear between the knots of a rows table."""
    import numpy as np

    from sensorsim.hospital.law import law_of

    law = law_of(table)
    share = np.asarray(x, float) / ONE
    return np.interp(share, law.x, law.chance @ law.values**2) - share**2


def means(setting: Setting) -> Any:
    """Of each device and feature, over the period."""
    return ((1 - setting.later) * setting.a + setting.later * setting.b) / ONE


def spreads(setting: Setting, table: "NoiseTable") -> tuple[float, float, float]:
    """Variance of the noise, of x over devices and records, and of the devices' means; means over features."""
    own, m = means(setting), means(setting).mean(axis=0)
    parts = ((1 - setting.later, setting.a), (setting.later, setting.b))
    noise = sum(weight * noise_at(table, x).mean() for weight, x in parts)
    spread = sum(weight * ((x / ONE - m) ** 2).mean() for weight, x in parts)
    return float(noise), float(spread), float(((own - m) ** 2).mean())


def only(setting: Setting, picked: Any, values: Any) -> Any:
    """What each device adds to the estimate of each feature: n·(value - m) to the one it released."""
    import numpy as np

    added = np.zeros((setting.simulated, setting.features))
    added[np.arange(setting.simulated), picked] = setting.features * (values - means(setting).mean(axis=0)[picked])
    return added


def less_own(setting: Setting, added: Any) -> Any:
    return added - (means(setting) - means(setting).mean(axis=0))
