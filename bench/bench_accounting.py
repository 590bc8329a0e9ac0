"""Speed of certificates and of composition, dp-accounting beside it. Run: pytest bench/bench_accounting.py"""

from typing import Any

import pytest

from sensorsim.accounting import composition as pld
from sensorsim.noise.certificate import certify
from sensorsim.noise.noise_table import make_table


@pytest.mark.parametrize("kind", ["stairs", "quantile", "naive"])
def test_certificate_of_65536_entries(benchmark: Any, kind: str) -> None:
    """Goal: under 1 s. For naive and quantile this is the 28-coefficient PLD too (goal: under 5 s)."""
    table = make_table(kind, 1, entries=2**16)
    benchmark.pedantic(certify, (table,), rounds=3, warmup_rounds=1)


@pytest.mark.benchmark(group="28 Laplace coefficients, grid step 1e-5")
def test_composition(benchmark: Any) -> None:
    def ours() -> float:
        parts = [(pld.laplace(1 / 21, 1e-5), 14), (pld.laplace(0.5 / 21, 1e-5), 14)]
        return pld.compose(parts).delta(0.5)

    benchmark.pedantic(ours, rounds=3, warmup_rounds=1)


@pytest.mark.benchmark(group="28 Laplace coefficients, grid step 1e-5")
def test_composition_by_dp_accounting(benchmark: Any) -> None:
    from dp_accounting.pld import privacy_loss_distribution as peer

    def theirs() -> float:
        one, half = (peer.from_laplace_mechanism(b, value_discretization_interval=1e-5) for b in (21.0, 42.0))
        return float(one.self_compose(14).compose(half.self_compose(14)).get_delta_for_epsilon(0.5))

    benchmark.pedantic(theirs, rounds=3, warmup_rounds=1)
