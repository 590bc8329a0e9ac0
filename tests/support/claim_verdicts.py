"""Expected verdict of every claim; whoever changes one says why."""

QUICK = {
    "holds": """
        cost-coefficients loss-first loss-alpha1 loss-alpha2 inputs-h inputs-z inputs-gradient taylor-limit
        sens-spof sens-near sens-sgd-n dp-sum dp-users dp-fm exp-unaffected own-certificates own-sd own-sampled
        own-release own-time own-ranges own-energy""",
    "holds as arithmetic": """
        cost-spof cost-dpsgd cost-saving cost-read loss-alpha3 inputs-difference sens-zero sens-minimum sens-gap
        sens-constant sens-figure noise-derivative exp-samples exp-columns exp-maximum""",
    "does not hold": """
        cost-squares cost-gradient cost-clip cost-norm cost-draws cost-constant cost-exp cost-uncounted cost-radio
        loss-second loss-half loss-bounded loss-constant inputs-revert inputs-square taylor-premise taylor-bound
        sens-sgd-clipped sens-sgd-clips sens-lower sens-noise sens-one sens-utility dp-both dp-split dp-variance
        dp-constant dp-epochs dp-weights dp-inputs noise-variance noise-inverse noise-max noise-one noise-sum
        noise-h noise-table noise-order""",
    "depends": """
        cost-root cost-division cost-width cost-order cost-x87 cost-cores cost-random sens-sgd-term dp-level dp-sgd
        own-rtl""",
}
FULL = {
    "holds": """
        own-sd-large own-c own-accuracy""",
    "does not hold": """
        exp-gain exp-gain-noise exp-order exp-trivial exp-plateau exp-diverges cost-expf""",
    "depends": """
        exp-fm exp-fm-noise exp-degrades exp-flat exp-robust""",
}


def by_id(groups):
    return {id: verdict for verdict, ids in groups.items() for id in ids.split()}


VERDICT, TRAINED = by_id(QUICK), by_id(FULL)
