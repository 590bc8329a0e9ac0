"""`spof`: Algorithm 1 as printed. Laplace noise on both coefficients of the loss, a constant on the decoder weights.

`alpha2 = 0.5 - x` and `alpha3` are the coefficients of z and z² in the loss expanded at a = 0: the paper prints
alpha3 = 0.5x - 0.25; what holds is 1/8 for every x, and `release` uses that.
"""

from typing import Any, ClassVar

from sensorsim.accounting import sensitivities as sensitivity
from sensorsim.accounting.composition import Part, Use, laplace
from sensorsim.kernels.formats import FRAC
from sensorsim.mechanisms.base import Sensitivity, Style, Tensor
from sensorsim.mechanisms.form import LEAN, PAPER, Form
from sensorsim.mechanisms.laplace import FINE, LaplaceMechanism, lattice_scale, on_lattice
from sensorsim.noise.noise_table import NoiseTable

AUDITED_VARIANTS = ("lean", "prefetch", "shared")  # that an audit can watch beside the printed mechanism


class Spof(LaplaceMechanism):
    """Two noisy coefficients for every feature."""

    name = "spof"
    title = "spof as printed"
    about = "Algorithm 1 as printed: Laplace noise on both coefficients, a stabilization constant c"
    style = Style("--", "s", "#d55e00")
    forms: ClassVar[tuple[Form, ...]] = (
        Form("spof", "SPOF (Algorithm 1)", PAPER, "spof.spof", random="stride", sends=lambda n: 64 * n),
        Form("spof-lean", "SPOF, one draw per feature", LEAN, "spof_lean.spof_lean", sends=lambda n: 32 * n),
    )
    as_printed = "spof"
    as_shipped = "spof-lean"
    options: ClassVar[tuple[str, ...]] = ("epsilon", "c", "decode_c", "redraw", "forward")
    on_noisy_inputs = True
    audited = True

    def sensitivity(self, use: Use) -> Sensitivity:
        return Sensitivity(sensitivity.spof(use.features), sensitivity.spof(use.features))

    def nominal_scale(self, use: Use) -> float:
        """Return Δ/(sqrt(2)·eps) as printed; with a constant c, Δ has the public bound c·l for the private c·h."""
        assert use.epsilon is not None
        bound = sensitivity.stabilized(use.c, use.hidden, use.features)
        return bound / (sensitivity.JOINT_RELEASE_FACTOR * use.epsilon)

    def no_bound(self, use: Use) -> str:
        if use.forward == "raw" and use.c and not use.scale:
            return "the printed scale with c > 0 depends on private data"
        if use.forward == "raw" and use.sigma:
            return "for noisy inputs the printed factor b_j depends on private data"
        return ""

    def parts(self, use: Use, scale: float) -> list[Part]:
        return [(1 / scale, laplace, use.features), (0.5 / scale, laplace, use.features)]

    def observed(self, sources: Any, table: NoiseTable, words: Any = None) -> Any:
        return sources.spof(table, words)

    def draw(self, x: Tensor, config: Any, source: Any) -> dict[str, Tensor]:
        """Draw the noisy coefficients where their scale is public, else unit noise: only a step knows the scale."""
        if config.c and config.reads == "raw":
            return {name: source.laplace(x.shape, FINE) for name in ("noise2", "noise3")}
        scale = self.nominal_scale(self.use_of(config, x.shape[-1]))
        x_q, half = on_lattice(x), 1 << (FRAC - 1)
        # alpha3 = (x - 1/2)/2 stands on a lattice of half the step, where another x moves it as far as alpha2 here.
        noise2 = source.discrete(x.shape, lattice_scale(scale))
        noise3 = source.discrete(x.shape, lattice_scale(scale, FRAC + 1))
        alpha2 = (half - x_q + noise2).double() / (1 << FRAC)
        alpha3 = (x_q - half + noise3).double() / (1 << (FRAC + 1))
        drawn = {"alpha2": alpha2.float(), "alpha3": alpha3.float()}
        if config.reads == "released":
            drawn["released"] = (0.5 - drawn["alpha2"]).clamp(0, 1)
        return drawn

    def prepare(self, setting: Any) -> dict[str, Tensor]:
        """Freeze a private scale at the first weights: the same noise under two scales gives the record away."""
        config = setting.config
        if not config.c or config.reads != "raw" or config.redraw:
            return {}
        return {"scale": setting.for_every_record(lambda h, b: printed_scale(config, setting.n, h, b))}

    def step(self, step: Any) -> None:
        """Run Algorithm 1, steps 3 to 6. For noisy inputs z - t/b is ẑ/b, and both coefficients carry b_j."""
        config, reads = step.config, step.record
        h, z = step.forward(reads)
        b, z_noisy = step.noise_factor(h)
        c_j = config.c * h.sum(2, keepdim=True) if config.c else 0.0
        alpha2, alpha3 = coefficients(config, step.batch, h, b)
        dz = alpha2 + 2 * alpha3 * (z + c_j) if b is None else b * (alpha2 + 2 * alpha3 * (z_noisy / b + c_j))
        step.backward(reads, h, dz, config.c)

    def decoder_constant(self, config: Any) -> float:
        return float(config.c) if config.decode_c else 0.0


def coefficients(config: Any, batch: Any, h: Tensor, b: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return alpha2 and alpha3 with their noise: as drawn, or with the printed scale that depends on private data."""
    drawn = batch.drawn
    if "alpha2" in drawn:
        return drawn["alpha2"], drawn["alpha3"]
    scale = drawn.get("scale")
    if scale is None:
        scale = printed_scale(config, batch.x.shape[2], h, b)
    return 0.5 - batch.x + scale * drawn["noise2"], 0.5 * batch.x - 0.25 + scale * drawn["noise3"]


def printed_scale(config: Any, n: int, h: Tensor, b: Tensor | None) -> Tensor:
    """Return the printed scale, (Δ̄·b_j + n·c_j(c_j/2 + 2)) / (sqrt(2)·eps) with Δ̄ = 3n/2, in units of b_j."""
    c_j = config.c * h.sum(2, keepdim=True)
    bound = sensitivity.spof(n)
    extra = sensitivity.stabilized_printed(c_j, n) - bound
    return (bound + extra / (1.0 if b is None else b)) / (sensitivity.JOINT_RELEASE_FACTOR * config.epsilon)


MECHANISM = Spof()
