"""`sampled`: k features of a record, picked at random, each through a certified table with its share of the epsilon."""

from typing import TYPE_CHECKING, Any, ClassVar

from sensorsim.mechanisms.base import Style
from sensorsim.mechanisms.form import LEAN, Form, which
from sensorsim.mechanisms.release import SIZE, Release

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

ONE_MORE_EVERY = 8  # of epsilon: with less for each, the noise of what is released outweighs what is left out


class Sampled(Release):
    """A certified release of a few features, the whole epsilon on them."""

    name = "sampled"
    title = "sampled, few features"
    about = "the same on k of the n features, picked at random, with the whole epsilon on them (k = 1 below epsilon 12)"
    style = Style("-", "*", "#117733")
    aliases: ClassVar[tuple[str, ...]] = ("release_sampled",)
    forms: ClassVar[tuple[Form, ...]] = (
        Form(
            *("sampled", "1 feature, rows by thresholds", LEAN, "rows_search.sampled_rows_search_one"),
            lengths=SIZE,
            sends=lambda n: 3 + which(n),
        ),
        Form(
            *("sampled-lookup", "1 feature, rows by one load", LEAN, "rows_lookup.sampled_rows_lookup_one"),
            lengths={"knot_bits": 2},
            sends=lambda n: 3 + which(n),
        ),
        Form("sampled-bit", "1 feature, one bit", LEAN, "rows_bit.sampled_rows_bit_one", sends=lambda n: 1 + which(n)),
        Form("sampled-stairs", "1 feature, stairs", LEAN, "stairs.sampled_stairs_one", sends=lambda n: 24 + which(n)),
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

    def records(self, x: Any, table: "NoiseTable", seed: Any) -> tuple[Any, Any]:
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
