"""`fm`: the functional mechanism, which is Algorithm 1 with one user and no constant."""

from typing import Any

from sensorsim.mechanisms.base import Style
from sensorsim.mechanisms.form import LEAN, Form
from sensorsim.mechanisms.spof import Spof


class FunctionalMechanism(Spof):
    """Noise on the coefficients, nothing else."""

    name = "fm"
    title = "fm (m = 1, c = 0)"
    about = "the functional mechanism: Algorithm 1 with one user and no constant"
    style = Style(":", "^", "#cc79a7")
    forms = (Form("fm", "functional mechanism, no constant", LEAN, "spof.fm", random="stride", sends=lambda n: 64 * n),)
    as_printed = as_shipped = "fm"
    options = ("epsilon", "redraw", "forward")

    def idle(self, config: Any) -> dict[str, str]:
        return super().idle(config) | {"m": "it has one user"}

    def adjusted(self, config: Any, n: int) -> dict[str, Any]:
        return {"m": 1}


MECHANISM = FunctionalMechanism()
