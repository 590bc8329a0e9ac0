"""Claims on cost: the operation lists of the paper, prices by width, core and chip, random words and the radio."""

import struct
from functools import cache
from importlib.util import find_spec
from math import isqrt
from pathlib import Path

from sensorsim._util.files import temporary_folder
from sensorsim.accounting import sensitivities as sensitivity
from sensorsim.costing.chips import load_chips
from sensorsim.costing.cost_report import X87, X87_WIDTH, CostReport, break_even, cost, price_by_width
from sensorsim.costing.prices import cpu_names, load_cpu
from sensorsim.costing.pricing import PAPER_PRICES
from sensorsim.paper.recompute import DEPENDS, C, Found, L, N, agrees, claim, derived_verdict, verdict_over

APPENDIX = "Appendix on perturbation complexities"
CORES = ("cortex-m0plus", "rv32imc")  # without a floating-point unit
TENTHS = range(-40, 41)  # arguments of expf, times ten
NEEDED = ("ziglang", "unicorn", "capstone")
NAME = "exponential"
SOURCE = f"float expf(float a);\nfloat {NAME}(float a);\nfloat {NAME}(float a)\n{{\n    return expf(a);\n}}\n"


@cache
def paper_cost() -> CostReport:
    """Return the defaults of `sensorsim cost`: AMD K7, unsigned 8-bit operands, the paper's accounting."""
    return cost(N, L)


@cache
def full_cost() -> CostReport:
    """Return the cost of the same kernels on the K7 with every executed operation priced."""
    return cost(N, L, accounting="full", variant="paper")


def operations(mechanism: str) -> dict[str, int]:
    """Count the operations of a mechanism over all steps."""
    return dict(paper_cost().mechanisms[mechanism].counted.operations)


def random_words(mechanism: str) -> int:
    """Count the random words of 32 bits that a record takes, one for each draw."""
    return paper_cost().mechanisms[mechanism].random_bits // 32


@claim("cost-spof", f"{APPENDIX}, C_SPOF", "C_SPOF = (19 + l)n: {} at n = 14, l = 7", "364")
def cost_spof(printed: str) -> Found:
    """sum of the printed operation list, priced by the K7 table, beside the executed kernel with every operation
    priced"""
    listed, executed = paper_cost().mechanisms["spof"].printed, paper_cost().mechanisms["spof"].counted.total
    assert listed
    full = full_cost().mechanisms["spof"].counted.total
    text = f"{listed.formula} = {listed.total} by the list; executed {executed}, with every operation priced {full}"
    return text, derived_verdict(agrees(listed.total, printed), agrees(full, printed))


@claim("cost-dpsgd", f"{APPENDIX}, C_DP-SGD", "C_DP-SGD = 80n + 283: {} at n = 14", "1403")
def cost_dpsgd(printed: str) -> Found:
    """sum of the printed operation list, priced by the K7 table, beside the executed kernel"""
    mechanism = paper_cost().mechanisms["dpsgd"]
    listed, executed, formula = mechanism.printed, mechanism.counted.total, mechanism.symbolic.formula
    assert listed
    text = f"{listed.formula} = {listed.total} by the list; executed {executed}, which is {formula}"
    return text, derived_verdict(agrees(listed.total, printed), agrees(executed, printed))


@claim("cost-saving", "Section on the DP-WBAN; (C_DP-SGD - C_SPOF) / C_DP-SGD", "SPOF is {} % cheaper to perturb", "74")
def cost_saving(printed: str) -> Found:
    """from both printed lists, and from both kernels as executed"""
    listed, executed = paper_cost().saving(), paper_cost().saving("traced")
    text = f"{listed:.2f} % by the lists, {executed:.2f} % as executed, both with 8-bit divisions"
    return text, derived_verdict(agrees(listed, printed), agrees(executed, printed))


@claim("cost-squares", f"{APPENDIX}, norm of the gradient", "n squarings are {}n multiplications", "2")
def cost_squares(printed: str) -> Found:
    """multiplications of the executed step that squares, for n = 14"""
    mechanism = paper_cost().mechanisms["dpsgd"]
    made = mechanism.counted.steps["squares"].operations["MUL"]
    text = f"{made} multiplications for {N} squares; C_DP-SGD is then {mechanism.symbolic.formula}"
    return text, agrees(made / N, printed)


@claim("cost-gradient", f"{APPENDIX}, term A_j,i", "each A_j,i takes {} division", "1")
def cost_gradient(printed: str) -> Found:
    """divisions of the lean kernel, whose logistic value does not depend on i: at a = 0 it is a constant, at another a
    one division serves all i"""
    made = operations("dpsgd").get("DIV", 0), operations("dpsgd-lean").get("DIV", 0)
    text = f"{made[1]} divisions in a record that is not clipped ({made[0]} in the printed algorithm)"
    return text, agrees(made[1] / N, printed)


@claim("cost-clip", f"{APPENDIX}, Step 4 of Algorithm 2", "clipping takes a root and n + 1 = {} divisions", "15")
def cost_clip(printed: str) -> Found:
    """roots and divisions that are needed at n = 14, C = 4: each |A_i| is below 1, so the squared norm is below n;
    whole numbers n and C² decide"""
    never = C**2 >= N
    assert never == sensitivity.never_clips(N, C, anywhere=True)
    lean = operations("dpsgd-lean" if never else "dpsgd-lean-clipped").get("DIV", 0)
    text = f"squared norm below {N}, C² = {C**2:g}: " + ("no gradient is clipped" if never else "some are clipped")
    return f"{text}; {lean} divisions where the squared norm is compared with C²", agrees(lean, printed)


@claim("cost-norm", "Section on the DP-WBAN", "DP-SGD's complexity is mainly driven by the norm calculation")
def cost_norm() -> Found:
    """share of the steps that make the norm (squares, sum, root) in the printed list"""
    listed = paper_cost().mechanisms["dpsgd"].printed
    assert listed
    steps = {name: step.cost.typical for name, step in listed.steps.items()}
    norm = sum(steps[name] for name in ("squares", "sum", "root"))
    share = {"norm": norm} | {name: steps[name] for name in ("gradients", "clip", "perturbation")}
    text = ", ".join(f"{name} {100 * part / listed.total:.0f} %" for name, part in share.items())
    return text, norm == max(share.values())


@claim("cost-draws", f"{APPENDIX}, perturbations of SPOF", "{} noise samples for each feature", "2")
def cost_draws(printed: str) -> Found:
    """draws of the lean kernel; alpha3 = -alpha2/2 for every one of the 2^15 + 1 values of x in Q15, so one noisy
    scalar gives both by post-processing"""
    one = 1 << 15
    follows = all(2 * (2 * x - one) == -(2 * (one - 2 * x)) for x in range(one + 1))  # 8·alpha3 and -8·alpha2/2
    needed = random_words("spof-lean") / N if follows else random_words("spof") / N
    text = f"{needed:g} a feature; L1 sensitivity {sensitivity.release(N):g} in place of {sensitivity.spof(N):g}"
    return text, agrees(needed, printed)


@claim("cost-constant", f"{APPENDIX}, Step 3 of Algorithm 1",
       "the constant takes nl = {} additions for every sample", "98")  # fmt: skip
def cost_constant(printed: str) -> Found:
    """additions of the step in the printed kernel and in the lean one, where the constant, which is the same for every
    sample, is added to the weights once"""

    def additions(name: str) -> int:
        steps = paper_cost().mechanisms[name].counted.steps
        return steps["stabilization"].operations.get("ADD", 0) if "stabilization" in steps else 0

    text = f"{additions('spof-lean')} a sample where it is added once; {additions('spof')} as printed"
    return text, agrees(additions("spof-lean"), printed)


@claim("cost-exp", f"{APPENDIX}, term A_j,i", "O_exp = {}, as a table is looked up", "0")
def cost_exp(printed: str) -> Found:
    """what a load costs in every processor table"""
    loads = {name: load_cpu(name).price("LOAD", 32, False, "native").typical for name in cpu_names()}
    text = ", ".join(f"{name} {price:g}" for name, price in loads.items())
    return f"a load costs: {text}", verdict_over(agrees(price, printed) for price in loads.values())


@claim("cost-uncounted", f"{APPENDIX}, operation lists", "loads, stores, compares, branches, indices count {}", "0")
def cost_uncounted(printed: str) -> Found:
    """operations of the executed SPOF kernel that the list does not price, and their share of the cost"""
    executed = operations("spof")
    left_out = sum(times for name, times in executed.items() if name not in PAPER_PRICES)
    listed, whole = paper_cost().mechanisms["spof"].counted.total, full_cost().mechanisms["spof"].counted.total
    share = f"{100 * (1 - listed / whole):.0f} % of the macro-operations"
    text = f"{left_out} of {sum(executed.values())} executed operations, {share}"
    return text, agrees(left_out, printed)


@claim("cost-read", f"{APPENDIX}, C_N", "reading a noise sample costs C_N = {}", "6")
def cost_read(printed: str) -> Found:
    """the noise pointer's operations of one draw in the executed kernel, as the list prices them, beside every
    operation priced; each draw takes a secret random stride too, which is not counted"""

    def one(of: CostReport) -> float:
        # Each draw's share of the step, without the addition of the noise to its coefficient.
        return of.mechanisms["spof"].counted.steps["perturbation"].cost.typical / random_words("spof") - 1

    text = f"{one(paper_cost()):g} by the list; {one(full_cost()):.4g} with its loads and index arithmetic"
    return text, derived_verdict(agrees(one(paper_cost()), printed), agrees(one(full_cost()), printed))


@claim("cost-root", f"{APPENDIX}, Newton-Raphson", "a square root takes about {} iterations on average", "7")
def cost_root(printed: str) -> Found:
    """integer Newton steps to the exact root of squared norms with 20 fraction bits, from two starts: the kernel's
    power of two above the root, and half of the number"""
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
    return text, verdict_over(mean <= int(printed) for mean in (near, far))


@claim("cost-coefficients", "Appendix on sensitivities, a = 0", "a = 0 saves {} % of the coefficients to perturb", "33")
def cost_coefficients(printed: str) -> Found:
    """of three coefficients those that depend on x at a = 0.9 and at a = 0"""

    def depend(a: float) -> int:
        # Slopes in x of softplus(a) - a·x, sigma(a) - x and the printed (2x - 1)·sigma'(a).
        s = sensitivity.sigmoid(a)
        return sum(slope != 0 for slope in (-a, -1.0, 2 * s * (1 - s)))

    saved = 100 * (1 - depend(0.0) / depend(0.9))
    return f"{depend(0.9)} and {depend(0.0)}: {saved:.0f} %", agrees(saved, printed)


def expf_cycles(core: str) -> tuple[float, float]:
    """Compile expf for a core, run it in the emulator, and return the mean and the largest cost of a call."""
    from sensorsim.machine.counting import BlockCounter, Tally
    from sensorsim.machine.elf import read_elf
    from sensorsim.machine.emulator import Machine
    from sensorsim.machine.instructions import Decoder
    from sensorsim.machine.targets import TARGETS, compile_elf

    target = TARGETS[core]
    with temporary_folder() as folder:
        source = Path(folder, f"{NAME}.c")
        source.write_text(SOURCE, "utf-8")
        program = read_elf(compile_elf(target, [source], [], NAME, Path(folder, f"{NAME}.elf")).read_bytes())
    machine, tally = Machine(target, program), Tally()
    counter = BlockCounter(machine, Decoder(target, load_cpu(target.cpu)))
    for tenths in TENTHS:
        machine.call(NAME, struct.unpack("<I", struct.pack("<f", tenths / 10)))  # a float in an integer register
        counter.take(tally)
    assert tally.price is not None  # these tables price every instruction that runs here
    return tally.price.mean, tally.price.max


@claim("cost-expf", f"{APPENDIX}, term A_j,i", "O_exp = {}, were it computed in place of looked up", "0", full=True)
def cost_expf(printed: str) -> Found:
    """expf of the compiler's library, compiled now for two cores without a floating-point unit, run in their emulator
    at a = -4 to 4 in steps of 0.1 and priced by their tables"""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        return f"not computed: {' and '.join(missing)} are not installed here", DEPENDS
    found = {core: expf_cycles(core) for core in CORES}
    text = ", ".join(f"{core} {mean:.0f} cycles, {most:.0f} at most" for core, (mean, most) in found.items())
    return text, verdict_over(agrees(mean, printed) for mean, _ in found.values())


@claim("cost-division", f"{APPENDIX}, price list of the K7", "O_DIV = {} on an AMD K7", "32")
def cost_division(printed: str) -> Found:
    """the division's macro-operations in the K7 table, by width and signedness"""
    k7 = load_cpu("k7")
    forms = {
        f"{'i' if signed else 'u'}{width}": k7.price("DIV", width, signed, "native").typical
        for signed in (False, True)
        for width in (8, 16, 32)
    }
    text = "macro-operations: " + ", ".join(f"{name} {price}" for name, price in forms.items())
    return text, verdict_over(agrees(price, printed) for price in forms.values())


@claim("cost-width", f"{APPENDIX}, C_DP-SGD", "C_DP-SGD = {}, whatever the operands", "1403")
def cost_width(printed: str) -> Found:
    """the printed list priced at each operand width of the K7 table, and on its x87"""
    widths = price_by_width(paper_cost())
    text = ", ".join(f"{name} {totals['dpsgd']}" for name, totals in widths.items())
    return text, verdict_over(agrees(totals["dpsgd"], printed) for totals in widths.values())


@claim("cost-order", "Section on the DP-WBAN; abstract", "SPOF has the lower perturbation complexity")
def cost_order() -> Found:
    """both printed lists at every operand width and in x87 macro-operations and latency; SPOF against DP-SGD"""
    widths = {name: (totals["spof"], totals["dpsgd"]) for name, totals in price_by_width(paper_cost()).items()}
    latency = price_by_width(cost(N, L, metric="latency", variant="paper"))["x87"]
    widths["x87 latency"] = latency["spof"], latency["dpsgd"]
    text = ", ".join(f"{name} {spof:g} against {dpsgd:g}" for name, (spof, dpsgd) in widths.items())
    text += f"; DP-SGD is cheaper where a division costs less than {break_even(paper_cost()):.2f}"
    return text, verdict_over(spof < dpsgd for spof, dpsgd in widths.values())


@claim("cost-x87", f"{APPENDIX}, price list of the K7", "O_ADD = {}, O_MUL = {}, O_DIV = {}", "1", "3", "32")
def cost_x87(*printed: str) -> Found:
    """the same operations in the table's x87 rows, for values that are not integers"""
    k7 = load_cpu("k7")
    names = ("ADD", "MUL", "DIV")
    prices = [k7.price(X87[name], X87_WIDTH, True, "native").typical for name in names]
    text = ", ".join(f"{X87[name]} {price}" for name, price in zip(names, prices, strict=True))
    cases = (agrees(price, one) for price, one in zip(prices, printed, strict=True))
    return f"macro-operations: {text}", verdict_over(cases)


@claim("cost-cores", "Section on the DP-WBAN", "SPOF perturbs at a lower cost, as a sensor's processor would run it")
def cost_cores() -> Found:
    """both kernels executed, every operation priced at 32 bits, on each core that has a table"""
    found = {}
    for name in cpu_names():
        mechanisms = cost(N, L, cpu=name, width=32, accounting="full", variant="paper").mechanisms
        found[name] = mechanisms["spof"].counted.total, mechanisms["dpsgd"].counted.total
    text = ", ".join(f"{name} {spof:.0f} against {dpsgd:.0f}" for name, (spof, dpsgd) in found.items())
    return text, verdict_over(spof < dpsgd for spof, dpsgd in found.values())


def _compare_energy(part: str) -> Found:
    """Compare the energy of SPOF and DP-SGD up to a part of the record, on every chip whose core has a table."""
    found = {}
    for chip in load_chips():
        if chip.cpu:
            saved = cost(N, L, chip=chip.chip, variant="paper").record.savings()[part]
            if saved is not None:
                found[chip.chip] = -saved
    text = ", ".join(f"{name} {more:+.0f} %" for name, more in found.items())
    return f"SPOF over DP-SGD: {text}", verdict_over(more < 0 for more in found.values())


@claim("cost-random", "Section on the DP-WBAN; abstract", "SPOF is the more efficient one on a body sensor")
def cost_random() -> Found:
    """energy of arithmetic and fresh random words (ChaCha20) of a record, 32 bits a draw, on every chip with a table"""
    return _compare_energy("random words")


@claim("cost-radio", "Section on the DP-WBAN", "SPOF suits WBANs better, which are power constrained")
def cost_radio() -> Found:
    """energy of a whole record, with its journal and its packet by BLE, on every chip with a table; SPOF sends two
    coefficients a feature, DP-SGD one gradient"""
    return _compare_energy("on air")
