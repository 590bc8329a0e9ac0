"""`sketch`: some records release one feature, the others one noisy square of a public random combination of features.

The first part teaches means, the second covariance. Every record is in one part, with its whole epsilon on one number
that goes through a certified table: what it spends is what `sampled` spends.
"""

from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.language.kernel import Kernel
from sensorsim.mechanisms.base import Style
from sensorsim.mechanisms.form import LEAN, Form
from sensorsim.mechanisms.release import SIZE
from sensorsim.mechanisms.sampled import Sampled
from sensorsim.noise.noise_table import NoiseTable

DIRECTION_BITS = 10  # of a wearable's 14 features


class Sketch(Sampled):
    """Features for the means, then sketches about them for the covariance."""

    name = "sketch"
    title = "sketch, means then covariance"
    about = "part of the records release one feature; the others one noisy square along a public direction (covariance)"
    style = Style("-", "h", "#332288")
    aliases = ()
    forms = (
        Form(
            *("sketch", "1 square along a direction", LEAN, "sketch.sketch_rows_search"),
            lengths={**SIZE, "direction_bits": DIRECTION_BITS},
            sends=lambda n: 3 + DIRECTION_BITS,
        ),
    )
    as_shipped = "sketch"
    sketches = True
    audited = False
    options = ("epsilon", "estimator", "kind", "map", "release_sees", "share")

    def kernel(self, variant: str, table: NoiseTable | None = None) -> Kernel:
        """Return the sketch with the draw of thresholds; a sensor package takes any certified table."""
        return self.forms[0].kernel

    def observed(self, sources: Any, table: NoiseTable, words: Any = None) -> Any:
        """Refuse: an observer sees one release of one number, as of a record of one feature."""
        raise InputError("a sketch is released as one feature is; audit sampled with the same table.")

    def features_per_record(self, config: Any, n: int) -> int:
        return 1

    def adjusted(self, config: Any, n: int) -> dict[str, Any]:
        if config.estimator != "moments":
            raise InputError("a sketch is a square, of which no loss is made; leave --estimator out.")
        if config.release_sees == "noisy" and config.sigma and config.share:
            raise InputError(
                "a square of what noise of the environment has moved teaches no covariance; leave --share out, or let "
                "--release-sees be clean."
            )
        return super().adjusted(config, n)


MECHANISM = Sketch()
