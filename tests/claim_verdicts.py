"""Every claim's verdict as it stands; who changes one says why."""

EXPECTED = """
cost-spof            holds as arithmetic
cost-dpsgd           holds as arithmetic
cost-saving          holds as arithmetic
cost-squares         does not hold
cost-gradient        does not hold
cost-clip            does not hold
cost-norm            does not hold
cost-draws           does not hold
cost-constant        does not hold
cost-exp             does not hold
cost-uncounted       does not hold
cost-read            holds as arithmetic
cost-root            depends
cost-coefficients    holds
cost-division        depends
cost-width           depends
cost-order           depends
cost-x87             depends
cost-cores           depends
cost-random          depends
cost-radio           does not hold
loss-first           holds
loss-second          does not hold
loss-half            does not hold
loss-alpha1          holds
loss-alpha2          holds
loss-alpha3          holds as arithmetic
loss-bounded         does not hold
loss-constant        does not hold
inputs-h             holds
inputs-z             holds
inputs-revert        does not hold
inputs-square        does not hold
inputs-difference    holds as arithmetic
inputs-gradient      holds
taylor-premise       does not hold
taylor-bound         does not hold
taylor-limit         holds
sens-spof            holds
sens-zero            holds as arithmetic
sens-minimum         holds as arithmetic
sens-gap             holds as arithmetic
sens-near            holds
sens-sgd-term        depends
sens-sgd-n           holds
sens-sgd-clipped     does not hold
sens-sgd-clips       does not hold
sens-lower           does not hold
sens-constant        holds as arithmetic
sens-noise           does not hold
sens-one             does not hold
sens-figure          holds as arithmetic
sens-utility         does not hold
dp-sum               holds
dp-both              does not hold
dp-split             does not hold
dp-variance          does not hold
dp-constant          does not hold
dp-epochs            does not hold
dp-weights           does not hold
dp-users             holds
dp-level             depends
dp-sgd               depends
dp-inputs            does not hold
dp-fm                holds
noise-variance       does not hold
noise-inverse        does not hold
noise-derivative     holds as arithmetic
noise-max            does not hold
noise-one            does not hold
noise-sum            does not hold
noise-h              does not hold
noise-table          does not hold
noise-order          does not hold
exp-samples          holds as arithmetic
exp-columns          holds as arithmetic
exp-maximum          holds as arithmetic
exp-unaffected       holds
own-certificates     holds
own-sd               holds
own-sampled          holds
own-release          holds
own-time             holds
own-ranges           holds
own-energy           holds
own-rtl              depends
"""
TRAINED = {
    **dict.fromkeys(("exp-gain", "exp-gain-noise", "exp-order", "exp-trivial", "exp-plateau"), "does not hold"),
    **dict.fromkeys(("exp-fm", "exp-fm-noise", "exp-degrades", "exp-flat", "exp-robust"), "depends"),
    **dict.fromkeys(("own-sd-large", "own-c", "own-accuracy"), "holds"),
    **dict.fromkeys(("exp-diverges", "cost-expf"), "does not hold"),
}
VERDICT = {line.split()[0]: line.split(maxsplit=1)[1] for line in EXPECTED.strip().splitlines()}
