"""A mechanism as another package would add it: Laplace noise on every feature, with a kernel of its own."""
# ruff: noqa: F821 - sizes of arrays are written as text

from typing import ClassVar

from sensorsim.kernels.formats import CACHED, MASK, NOISE, NOISY, RANDOM, N, X
from sensorsim.kernels.spof import feature, perturb
from sensorsim.kernels.spof_lean import pick

from sensorsim.accounting.composition import laplace
from sensorsim.language import kernel, out
from sensorsim.mechanisms import Form, Sensitivity, Style
from sensorsim.mechanisms.form import LEAN
from sensorsim.mechanisms.laplace import FRAC, LaplaceMechanism, lattice_scale, on_lattice


@kernel(exposes={"address": CACHED})
def noisy_record(x: X["n"], noise: NOISE["mask + 1"], word: RANDOM["n"], y: out(NOISY["n"]), n: N, mask: MASK) -> None:
    """Every feature with one draw of a table.

    Scaling and overflow: a feature is Q15 and at most 1; the noise leaves room for it.
    """
    for i in range(n):
        y[i] = perturb(feature(x[i]), noise[pick(word[i], mask)])


class Outside(LaplaceMechanism):
    """Every feature with Laplace noise, once."""

    name = "outside"
    title = "from outside"
    about = "Laplace noise on every feature"
    style = Style(":", "X", "#882255")
    aliases = ("formerly-outside",)
    forms: ClassVar[tuple[Form, ...]] = (
        Form(
            *("outside", "a record with noise", LEAN, "outside_mechanism.noisy_record"),
            random="word",
            sends=lambda n: 32 * n,
        ),
    )
    as_shipped = "outside"
    options: ClassVar[tuple[str, ...]] = ("epsilon", "redraw", "forward")
    reads = "released"

    def sensitivity(self, use):
        return Sensitivity(None, float(use.features))

    def nominal_scale(self, use):
        return use.features / use.epsilon

    def parts(self, use, scale):
        return [(1 / scale, laplace, use.features)]

    def draw(self, x, config, source):
        scale = lattice_scale(self.nominal_scale(self.use_of(config, x.shape[-1])))
        noisy = on_lattice(x) + source.discrete(x.shape, scale)
        return {"released": (noisy.double() / (1 << FRAC)).float()}

    def step(self, step):
        h, z = step.forward(step.record)
        step.backward(step.record, h, 0.5 - step.batch.drawn["released"] + z / 4)


MECHANISM = Outside()
