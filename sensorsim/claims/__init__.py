"""Every checkable statement of the paper, and of this project, recomputed from this project's code.

claim.py                 the register of claims, and how a verdict follows
recompute.py             `claims(…)` and its result
cost_claims.py           operation lists; prices by width, core and chip; random words and the radio
loss_claims.py           derivatives, coefficients, noisy inputs; the error of the Taylor polynomial
sensitivity_claims.py    sensitivities
release_claims.py        the privacy loss of a release, and what it covers
noise_claims.py          the factor b of environmental noise; tables of noise
experiment_claims.py     accuracies and training time
experiment.py            the records and the training behind them
project_claims.py        statements of this project
"""

from sensorsim.claims.claim import Claim
from sensorsim.claims.recompute import Claims, claims
from sensorsim.doors import open_door

__all__ = ["Claim", "Claims", "claims"]
open_door(__name__)
