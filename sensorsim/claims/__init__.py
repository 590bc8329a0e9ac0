"""Every checkable statement of the paper, and our own, recomputed from this project's code.

claim.py                         what a claim is, the register, how a verdict follows
costs.py, prices.py              operation lists; widths, cores, random words, the radio
exponential.py                   what expf costs on a core, compiled and run now
loss.py, taylor.py               derivatives, coefficients, noisy inputs; the error of the polynomial
privacy.py, release.py           sensitivities; what a release spends, and what that covers
noise.py                         the factor b of environmental noise, tables of noise
experiment.py, setting.py        accuracies, times, and the training behind them
own.py, compiled.py              what this project says of itself
run.py, result.py                the answer as one value
"""

from sensorsim.claims.claim import Claim
from sensorsim.claims.result import Claims
from sensorsim.claims.run import claims
from sensorsim.doors import open_door

__all__ = ["Claim", "Claims", "claims"]
open_door(__name__)
