"""Small data and settings that tests of training share. Without torch these tests are skipped."""

import pytest

from sensorsim.datasets import synthetic
from sensorsim.datasets.dataset import prepare
from sensorsim.mechanisms.base import AUTHORS
from sensorsim.training.config import Config

torch = pytest.importorskip("torch")

from sensorsim.training.step import Source  # noqa: E402

COLUMNS = ("TotalSteps", "Calories", "SedentaryMinutes", "LightActiveDistance")
LAYOUTS = [(1, True), (1, False), (4, False)]  # the batch, and whether units are innermost in memory


def small_days(columns=COLUMNS, **options):
    """Sixty days of eight people in four columns."""
    return prepare(synthetic.make(rows=60, persons=8), columns=columns, **options)


def printed(mechanism, epsilon=None, **given):
    """A configuration with the authors' settings of the loop, where none are given."""
    return Config(mechanism, epsilon, **AUTHORS | given)


class Silent(Source):
    """No noise where a mechanism asks for some."""

    def discrete(self, shape, t):
        return torch.zeros(tuple(shape), dtype=torch.int64)

    def normal(self, shape):
        return torch.zeros(tuple(shape))
