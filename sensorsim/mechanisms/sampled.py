"""`sampled`: k features of a record, picked at random, each through a certified table with its share of the epsilon."""

from typing import Any, ClassVar

from sensorsim.mechanisms.base import Style
from sensorsim.mechanisms.form import LEAN, Form, which
from sensorsim.mechanisms.release import SIZE, Release
from sensorsim.noise.noise_table import NoiseTable

ONE_MORE_EVERY = 8  # of epsilon: with less for each, the noise of what is released outweighs what is left out


class Sampled(Release):
    """A certified release of a few features, the whole epsilon on them."""

    name = "sampled"
    title = "sampled, few features"
    about = "the same on k of the n features, picked at random, with the whole epsilon on them (k = 1 below epsilon 12)"
    style = Style("-", "*", "#117733")
    aliases: ClassVar[tuple[str, ...]] = ("release_sampled",)
    forms = tuple(
        Form(name, f"1 feature, {how}", LEAN, f"{module}.sampled_{module}_one", lengths=lengths, sends=sends)
        for name, how, module, lengths, sends in (
            ("sampled", "rows by thresholds", "rows_search", SIZE, lambda n: 3 + which(n)),
            ("sampled-lookup", "rows by one load", "rows_lookup", {"knot_bits": 2}, lambda n: 3 + which(n)),
            ("sampled-bit", "one bit", "rows_bit", {}, lambda n: 1 + which(n)),
            ("sampled-stairs", "stairs", "stairs", {}, lambda n: 24 + which(n)),
        )
    )
    as_shipped = "sampled"
    options: ClassVar[tuple[str, ...]] = (
        "epsilon",
        "estimator",
        "k",
        "redraw",
        "forward",
        "kind",
        "map",
        "release_sees",
    )

    def features_per_record(self, config: Any, n: int) -> int:
        """Return one while the noise dominates, about one for every 8 of epsilon after that."""
        return int(config.k or min(n, max(1, round(config.epsilon / ONE_MORE_EVERY))))

    def records(self, x: Any, table: NoiseTable, seed: Any) -> tuple[Any, Any]:
        import numpy as np

        from sensorsim.noise.batch_release import sampled_records

        if not table.sampled:
            return super().records(x, table, seed)
        chosen, y = sampled_records(x, table, seed)
        values, picked = np.zeros(x.shape), np.zeros(x.shape, np.bool_)
        np.put_along_axis(values, chosen.astype(np.int64), table.estimate(y), 1)
        np.put_along_axis(picked, chosen.astype(np.int64), True, 1)
        return values, picked


MECHANISM = Sampled()
