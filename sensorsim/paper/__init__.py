"""Every checkable statement of the paper, and of this project, recomputed from this project's code.

claim.py                 the register of claims, and how a verdict follows
recompute.py             `claims(…)` and its result
cost_claims.py           operation lists; prices by width, core and chip; random words and the radio
loss_claims.py           derivatives, coefficients, noisy inputs; the error of the Taylor polynomial
sensitivity_claims.py    sensitivities; printed_sensitivities.py has those of the paper beside what holds
release_claims.py        the privacy loss of a release, and what it covers
noise_claims.py          the factor b of environmental noise; tables of noise
experiment_claims.py     accuracies and training time; experiment.py has the records and the training behind them
project_claims.py        statements of this project
"""
