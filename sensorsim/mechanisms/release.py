"""`release`: every feature of a record through a certified table, once; everything after it is post-processing."""

from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

from sensorsim._util.errors import InputError
from sensorsim.accounting.composition import Covers, Spent, Use, check, released
from sensorsim.language.kernel import Kernel
from sensorsim.mechanisms.base import LINEAR, Mechanism, Style, Tensor
from sensorsim.mechanisms.form import LEAN, Form
from sensorsim.mechanisms.laplace import on_lattice
from sensorsim.noise.kinds import kind_of
from sensorsim.noise.noise_table import NoiseTable, budget_of, certified, ready_table

# The forms are counted with the sizes of the ready tables at epsilon 1.6: one bit where every feature is released,
# 5 knots and 5 symbols where one is.
SIZE = {"cuts": 4, "knot_bits": 2}


class Release(Mechanism):
    """A certified release of all features, drawn once per record."""

    name = "release"
    title = "release, all features"
    about = "one certified release of every feature, drawn once per record; everything after it is post-processing"
    style = Style("-", "D", "#009e73")
    aliases: ClassVar[tuple[str, ...]] = ("exact",)
    forms = tuple(
        Form(name, f"release, {how}", LEAN, f"{module}.release_{module}", lengths=lengths, sends=sends)
        for name, how, module, lengths, sends in (
            ("release", "all features, one bit", "rows_bit", {}, lambda n: n),
            ("release-rows", "rows by thresholds", "rows_search", SIZE, lambda n: 3 * n),
            ("release-lookup", "rows by one load", "rows_lookup", {"knot_bits": 2}, lambda n: 3 * n),
            ("release-stairs", "stairs", "stairs", {}, lambda n: 24 * n),
        )
    )
    as_shipped = "release-rows"
    options: ClassVar[tuple[str, ...]] = ("epsilon", "estimator", "redraw", "forward", "kind", "map", "release_sees")
    releases = True
    audited = True
    reads = "released"
    own_settings = "tuned"  # on synthetic sets: see hospital/column_prior.py
    sketches: ClassVar[bool] = False  # whether some records release a square in place of features

    def spend(self, use: Use) -> Spent:
        """Count by the table that is given; by the worst one of an epsilon where no table is."""
        check(self.name, use, gaussian_noise=False, needs_budget=False)
        if use.scale is not None or (use.epsilon is None) == (use.table is None):
            raise InputError(f"{self.name} draws from a table; give the table, or its epsilon, and no scale.")
        covers = Covers.RELEASE if use.forward == "released" else Covers.COEFFICIENTS
        return released(use, covers, f"the forward pass reads {use.forward} values")

    def kernel(self, variant: str, table: NoiseTable | None = None) -> Kernel:
        """Return the kernel that draws from this table; without one, rows by thresholds."""
        return table.kernel(self.name) if table and table.for_releases else super().kernel(variant)

    def observed(self, sources: Any, table: NoiseTable, words: Any = None) -> Any:
        return sources.certified_source(table, self.name == "sampled", words)

    def features_per_record(self, config: Any, n: int) -> int:
        return n

    def table(self, config: Any, n: int) -> NoiseTable:
        """Return the table of a training configuration."""
        return table_for(config.kind, config.epsilon, n, self.features_per_record(config, n))

    def used(self, config: Any) -> tuple[str, ...]:
        """Return the options that have an effect: the estimator of moments has settings in place of the loop's."""
        if config.estimator == "moments":
            return tuple(name for name in self.options if name not in ("redraw", "forward"))
        return tuple(name for name in super().used(config) if name not in ("map", "release_sees", "share"))

    def adjusted(self, config: Any, n: int) -> dict[str, Any]:
        if config.estimator == "moments" and config.forward == "raw":
            raise InputError(
                "the estimator moments reads nothing but the release; use --estimator loss with --forward raw."
            )
        self.table(config, n).arguments()  # refuses a kind that no kernel draws from
        return {}

    def use_of(self, config: Any, n: int) -> Use:
        return replace(super().use_of(config, n), epsilon=None, table=self.table(config, n))

    def draw(self, x: Tensor, config: Any, source: Any) -> dict[str, Tensor]:
        """Release records x (…, n) by the firmware's own kernels: unbiased values of the features that were released.

        A feature that is not released has the value 0.5, which says nothing of x, and the weight 0; others n/k.
        """
        import numpy as np
        import torch

        n, used = x.shape[-1], self.table(config, x.shape[-1])
        integers = on_lattice(x).reshape(-1, n).numpy().astype(np.uint16)
        values, picked = self.records(integers, used, source.seed())
        estimate = np.where(picked, values, 0.5).astype(np.float32)
        drawn = {"released": torch.from_numpy(estimate).reshape(x.shape)}
        if used.sampled:
            weight = picked.astype(np.float32) * (n / used.release)
            drawn["weight"] = torch.from_numpy(weight).reshape(x.shape)
        return drawn

    def records(self, x: Any, table: NoiseTable, seed: Any) -> tuple[Any, Any]:
        """Return unbiased estimates, and which features they are of."""
        import numpy as np

        from sensorsim.noise.batch_release import release_records

        values = table.estimate(release_records(x, table, seed))
        return values, np.ones(values.shape, np.bool_)

    def step(self, step: Any) -> None:
        """Take alpha2 from the release, alpha3 = 1/8, public. What is released is weighed by n/k: unbiased."""
        reads = step.record
        h, z = step.forward(reads)
        drawn = step.batch.drawn
        dz = 0.5 - drawn["released"]
        if "weight" in drawn:
            dz = drawn["weight"] * dz
        step.backward(reads, h, dz + z / 4)

    def own_map(self, config: Any) -> str:
        return LINEAR

    def learner(self, config: Any) -> str:
        return "release" if config.estimator == "moments" else "loop"


@lru_cache(maxsize=64)
def table_for(kind: str, epsilon: float, n: int, k: int) -> NoiseTable:
    """Return the table of a record that releases k of n features: the one that ships, or one made for it.

    A table for one feature of a record is the same for any number of features.
    """
    if k == 1 or k == n == 14:
        try:
            return replace(ready_table(epsilon, "all" if k > 1 else 1, kind), features=n)
        except InputError:
            pass  # no table ships for this epsilon
    return certified(kind_of(kind).fitting(budget_of(epsilon), n, k))


MECHANISM = Release()
