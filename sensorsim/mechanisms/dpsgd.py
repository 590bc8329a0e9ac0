"""`dpsgd`: Algorithm 2 as printed. Laplace noise on the clipped gradient with respect to z."""

from typing import Any

from sensorsim.accounting import sensitivities as sensitivity
from sensorsim.accounting.composition import Covers, Part, Use, laplace, pure
from sensorsim.kernels.formats import CLIP, FRAC, HALF
from sensorsim.mechanisms.base import Sensitivity, Style, Tensor
from sensorsim.mechanisms.form import LEAN, PAPER, Form
from sensorsim.mechanisms.laplace import FINE, LaplaceMechanism, lattice_scale, on_lattice

PAPER_C = {"clip": 4 << CLIP.frac_bits}  # the clipping threshold of the paper's experiment
NEVER_CLIPS = {"clip": CLIP.hi, "sigma": HALF}
ALWAYS_CLIPS = {"clip": CLIP.lo, "sigma": HALF}


def _sends(n: int) -> int:
    return 32 * n


class Dpsgd(LaplaceMechanism):
    """One noisy gradient for every feature."""

    name = "dpsgd"
    title = "dpsgd as printed"
    about = "Algorithm 2 as printed: Laplace noise on the clipped z-gradient"
    style = Style("-.", "o", "#0072b2")
    forms = (
        Form("dpsgd", "DP-SGD (Algorithm 2)", PAPER, "dpsgd.dpsgd", PAPER_C, random="stride", sends=_sends),
        Form("dpsgd-lean", "DP-SGD, not clipped", LEAN, "dpsgd_lean.dpsgd_lean", NEVER_CLIPS, sends=_sends),
        Form("dpsgd-lean-clipped", "DP-SGD, clipped", LEAN, "dpsgd_lean.dpsgd_lean", ALWAYS_CLIPS, True, sends=_sends),
    )
    as_printed = "dpsgd"
    as_shipped = "dpsgd-lean"
    options = ("epsilon", "C", "point", "redraw", "forward")
    on_noisy_inputs = True

    def sensitivity(self, use: Use) -> Sensitivity:
        clips = not never_clips(use)
        printed = sensitivity.dpsgd_clipped_printed(use.C, use.features) if clips else float(use.features)
        return Sensitivity(printed, sensitivity.dpsgd(use.C, use.features))

    def nominal_scale(self, use: Use) -> float:
        """Return n/eps where nothing is clipped, 2nC/eps where something is: as printed."""
        assert use.epsilon is not None
        printed = self.sensitivity(use).printed
        assert printed is not None
        return printed / use.epsilon

    def no_bound(self, use: Use) -> str:
        if not never_clips(use) and not use.scale:
            return "the printed scale is n or 2nC by whether the private gradient clipped"
        if use.forward == "raw" and use.point == "prediction":
            return (
                "at the prediction the gradient reads the raw record through z, and no printed sensitivity bounds that"
            )
        if use.forward == "raw" and use.sigma:
            return "for noisy inputs the printed factor b_j depends on private data"
        return ""

    def parts(self, use: Use, scale: float) -> list[Part]:
        bound = sensitivity.dpsgd(use.C, use.features)
        if bound < use.features:
            # Where clipping keeps the L1 norm below n, a gradient moves in no fixed direction: the bound is all.
            return [(bound / scale, pure, 1)]
        return [(1 / scale, laplace, use.features)]

    def covers(self, use: Use) -> Covers:
        """Return RELEASE for released values: the gradient is sigma(z) less the release, so all is post-processing."""
        return Covers.RELEASE if use.forward == "released" else Covers.GRADIENTS

    def draw(self, x: Tensor, config: Any, source: Any) -> dict[str, Tensor]:
        """Draw noise - x where the scale is public; unit noise where it depends on whether the gradient clipped."""
        use = self.use_of(config, x.shape[-1])
        if not never_clips(use):
            noise = source.laplace(x.shape, FINE)
            drawn = {"noise2": noise}
            seen = x - noise * x.shape[-1] / config.epsilon
        else:
            noise = source.discrete(x.shape, lattice_scale(self.nominal_scale(use)))
            drawn = {"less_x": ((noise - on_lattice(x)).double() / (1 << FRAC)).float()}
            seen = -drawn["less_x"]
        return drawn | ({"released": seen.clamp(0, 1)} if config.reads == "released" else {})

    def step(self, step: Any) -> None:
        """Run Algorithm 2, steps 3 to 6: clip the z-gradient, then Lap(Δ/eps) with Δ = n, or 2nC where it clipped."""
        reads = step.record
        h, z = step.forward(reads)
        b, _ = step.noise_factor(h)
        dz = gradient(step.config, step.batch, z)
        step.backward(reads, h, dz if b is None else b * dz)


def gradient(config: Any, batch: Any, z: Tensor) -> Tensor:
    """Return the noisy gradient with respect to z."""
    import torch

    slope = torch.sigmoid(z) if config.point == "prediction" else 0.5
    if "less_x" in batch.drawn:
        return slope + batch.drawn["less_x"]
    n = z.shape[2]
    exact = slope - batch.x
    norm = exact.norm(dim=2, keepdim=True)
    moved = torch.where(norm >= config.C, 2.0 * n * config.C, float(n))
    return exact / (norm / config.C).clamp(min=1.0) + batch.drawn["noise2"] * moved / config.epsilon


def never_clips(use: Use) -> bool:
    """Return whether no gradient is ever longer than C, at the point where it is taken."""
    return sensitivity.never_clips(use.features, use.C, anywhere=use.point == "prediction")


MECHANISM = Dpsgd()
