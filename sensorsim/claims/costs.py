"""Costs: the operation lists of the paper, what is on them twice, and what is left out."""

from functools import cache

from sensorsim.claims.claim import Found, across, agrees, as_arithmetic, claim, whether
from sensorsim.cost.cost_report import CostReport, cost
from sensorsim.cost.prices import cpu_names, load_cpu
from sensorsim.cost.pricing import PAPER_PRICES
from sensorsim.privacy import sensitivity

APPENDIX = "Appendix on perturbation complexities"
N, L, C = 14, 7, 4.0  # of the paper's experiment, which the cost report has as its defaults too


@cache
def report() -> CostReport:
    """The cost of a record as `sensorsim cost` has it: AMD K7, unsigned 8-bit operands, the paper's accounting."""
    return cost(N, L)


@cache
def everything() -> CostReport:
    """The same kernels on the K7 with every executed operation priced."""
    return cost(N, L, accounting="full", variant="paper")


def counted(mechanism: str) -> dict[str, int]:
    """Operations of a mechanism, all steps together."""
    return dict(report().mechanisms[mechanism].counted.operations)


def draws(mechanism: str) -> int:
    """Random words of 32 bits that a record takes, one a draw."""
    return report().mechanisms[mechanism].random_bits // 32


@claim(
    "cost-spof",
    f"{APPENDIX}, C_SPOF",
    "C_SPOF = (19 + l)n: {} at n = 14, l = 7",
    "364",
    how="sum of the printed operation list, priced by the K7 table, beside the executed kernel with every "
    "operation priced",
)
def cost_spof(printed: str) -> Found:
    listed, executed = report().mechanisms["spof"].printed, report().mechanisms["spof"].counted.total
    assert listed
    full = everything().mechanisms["spof"].counted.total
    text = f"{listed.formula} = {listed.total} by the list; executed {executed}, with every operation priced {full}"
    return Found(text, as_arithmetic(agrees(listed.total, printed), agrees(full, printed)))


@claim(
    "cost-dpsgd",
    f"{APPENDIX}, C_DP-SGD",
    "C_DP-SGD = 80n + 283: {} at n = 14",
    "1403",
    how="sum of the printed operation list, priced by the K7 table, beside the executed kernel",
)
def cost_dpsgd(printed: str) -> Found:
    mechanism = report().mechanisms["dpsgd"]
    assert mechanism.printed
    executed = mechanism.counted.total
    text = f"{mechanism.printed.formula} = {mechanism.printed.total} by the list; executed {executed}, which is "
    text += f"{mechanism.symbolic.formula}"
    return Found(text, as_arithmetic(agrees(mechanism.printed.total, printed), agrees(executed, printed)))


@claim(
    "cost-saving",
    "Section on the DP-WBAN; (C_DP-SGD - C_SPOF) / C_DP-SGD",
    "SPOF is {} % cheaper to perturb",
    "74",
    how="from both printed lists, and from both kernels as executed",
)
def cost_saving(printed: str) -> Found:
    listed, executed = report().saving(), report().saving("traced")
    text = f"{listed:.2f} % by the lists, {executed:.2f} % as executed, both with 8-bit divisions"
    return Found(text, as_arithmetic(agrees(listed, printed), agrees(executed, printed)))


@claim(
    "cost-squares",
    f"{APPENDIX}, norm of the gradient",
    "n squarings are {}n multiplications",
    "2",
    how="multiplications of the executed step that squares, for n = 14",
)
def cost_squares(printed: str) -> Found:
    mechanism = report().mechanisms["dpsgd"]
    made = mechanism.counted.steps["squares"].operations["MUL"]
    return Found(
        f"{made} multiplications for {N} squares; C_DP-SGD is then {mechanism.symbolic.formula}",
        whether(agrees(made / N, printed)),
    )


@claim(
    "cost-gradient",
    f"{APPENDIX}, term A_j,i",
    "each A_j,i takes {} division",
    "1",
    how="divisions of the lean kernel, whose logistic value does not depend on i: at a = 0 it is a constant, at "
    "another a one division serves all i",
)
def cost_gradient(printed: str) -> Found:
    made = counted("dpsgd").get("DIV", 0), counted("dpsgd-lean").get("DIV", 0)
    text = f"{made[1]} divisions in a record that is not clipped ({made[0]} in the printed algorithm)"
    return Found(text, whether(agrees(made[1] / N, printed)))


@claim(
    "cost-clip",
    f"{APPENDIX}, Step 4 of Algorithm 2",
    "clipping takes a root and n + 1 = {} divisions",
    "15",
    how="roots and divisions that are needed at n = 14, C = 4: each |A_i| is below 1, so the squared norm is "
    "below n; whole numbers n and C² decide",
)
def cost_clip(printed: str) -> Found:
    never = C**2 >= N
    assert never == sensitivity.never_clips(N, C, anywhere=True)
    lean = counted("dpsgd-lean" if never else "dpsgd-lean-clipped").get("DIV", 0)
    text = f"squared norm below {N}, C² = {C**2:g}: " + ("no gradient is clipped" if never else "some are clipped")
    return Found(f"{text}; {lean} divisions where the squared norm is compared with C²", whether(agrees(lean, printed)))


@claim(
    "cost-norm",
    "Section on the DP-WBAN",
    "DP-SGD's complexity is mainly driven by the norm calculation",
    how="share of the steps that make the norm (squares, sum, root) in the printed list",
)
def cost_norm() -> Found:
    listed = report().mechanisms["dpsgd"].printed
    assert listed
    steps = {name: step.cost.typical for name, step in listed.steps.items()}
    norm = sum(steps[name] for name in ("squares", "sum", "root"))
    share = {"norm": norm} | {name: steps[name] for name in ("gradients", "clip", "perturbation")}
    text = ", ".join(f"{name} {100 * part / listed.total:.0f} %" for name, part in share.items())
    return Found(text, whether(norm == max(share.values())))


@claim(
    "cost-draws",
    f"{APPENDIX}, perturbations of SPOF",
    "{} noise samples for each feature",
    "2",
    how="draws of the lean kernel; alpha3 = -alpha2/2 for every one of the 2^15 + 1 values of x in Q15, so "
    "one noisy scalar gives both by post-processing",
)
def cost_draws(printed: str) -> Found:
    one = 1 << 15
    follows = all(2 * (2 * x - one) == -(2 * (one - 2 * x)) for x in range(one + 1))  # 8·alpha3 and -8·alpha2/2
    needed = draws("spof-lean") / N if follows else draws("spof") / N
    text = f"{needed:g} a feature; L1 sensitivity {sensitivity.release(N):g} in place of {sensitivity.spof(N):g}"
    return Found(text, whether(agrees(needed, printed)))


@claim(
    "cost-constant",
    f"{APPENDIX}, Step 3 of Algorithm 1",
    "the constant takes nl = {} additions for every sample",
    "98",
    how="additions of the step in the printed kernel and in the lean one, where the constant, which is the "
    "same for every sample, is added to the weights once",
)
def cost_constant(printed: str) -> Found:
    def additions(name: str) -> int:
        steps = report().mechanisms[name].counted.steps
        return steps["stabilization"].operations.get("ADD", 0) if "stabilization" in steps else 0

    text = f"{additions('spof-lean')} a sample where it is added once; {additions('spof')} as printed"
    return Found(text, whether(agrees(additions("spof-lean"), printed)))


@claim(
    "cost-exp",
    f"{APPENDIX}, term A_j,i",
    "O_exp = {}, as a table is looked up",
    "0",
    how="what a load costs in every processor table",
)
def cost_exp(printed: str) -> Found:
    loads = {name: load_cpu(name).price("LOAD", 32, False, "native").typical for name in cpu_names()}
    text = ", ".join(f"{name} {price:g}" for name, price in loads.items())
    return Found(f"a load costs: {text}", across(agrees(price, printed) for price in loads.values()))


@claim(
    "cost-uncounted",
    f"{APPENDIX}, operation lists",
    "loads, stores, compares, branches, indices count {}",
    "0",
    how="operations of the executed SPOF kernel that the list does not price, and their share of the cost",
)
def cost_uncounted(printed: str) -> Found:
    operations = counted("spof")
    left_out = sum(times for name, times in operations.items() if name not in PAPER_PRICES)
    listed, whole = report().mechanisms["spof"].counted.total, everything().mechanisms["spof"].counted.total
    text = f"{left_out} of {sum(operations.values())} executed operations, "
    return Found(
        text + f"{100 * (1 - listed / whole):.0f} % of the macro-operations", whether(agrees(left_out, printed))
    )


@claim(
    "cost-read",
    f"{APPENDIX}, C_N",
    "reading a noise sample costs C_N = {}",
    "6",
    how="the noise pointer's operations of one draw in the executed kernel, as the list prices them, beside "
    "every operation priced; each draw takes a secret random stride too, which is not counted",
)
def cost_read(printed: str) -> Found:
    def one(of: CostReport) -> float:
        """The step less the one addition of noise to its coefficient, for each draw."""
        return of.mechanisms["spof"].counted.steps["perturbation"].cost.typical / draws("spof") - 1

    text = f"{one(report()):g} by the list; {one(everything()):.4g} with its loads and index arithmetic"
    return Found(
        text,
        as_arithmetic(agrees(one(report()), printed), agrees(one(everything()), printed)),
    )


@claim(
    "cost-root",
    f"{APPENDIX}, Newton-Raphson",
    "a square root takes about {} iterations on average",
    "7",
    how="integer Newton steps to the exact root of squared norms with 20 fraction bits, from two starts: the "
    "kernel's power of two above the root, and half of the number",
)
def cost_root(printed: str) -> Found:
    from math import isqrt

    from sensorsim.kernels.root import start

    def steps(v: int, x: int) -> int:
        made = 0
        while x != isqrt(v):
            x, made = (x + v // x) // 2, made + 1
        return made

    norms = range(1 << 10, N << 20, 4999)
    near = sum(steps(v, start(v)) for v in norms) / len(norms)
    far = sum(steps(v, v // 2) for v in norms) / len(norms)
    text = f"{near:.1f} on average from the power of two, {far:.1f} from half of the number"
    return Found(text, across(mean <= int(printed) for mean in (near, far)))


@claim(
    "cost-coefficients",
    "Appendix on sensitivities, a = 0",
    "a = 0 saves {} % of the coefficients to perturb",
    "33",
    how="of three coefficients those that depend on x at a = 0.9 and at a = 0",
)
def cost_coefficients(printed: str) -> Found:
    def depend(a: float) -> int:
        """softplus(a) - a·x, sigma(a) - x and the printed (2x - 1)·sigma'(a): which of them move with x."""
        s = sensitivity.sigmoid(a)
        return sum(slope != 0 for slope in (-a, -1.0, 2 * s * (1 - s)))

    saved = 100 * (1 - depend(0.0) / depend(0.9))
    return Found(f"{depend(0.9)} and {depend(0.0)}: {saved:.0f} %", whether(agrees(saved, printed)))
