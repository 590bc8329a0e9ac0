"""Costs: what an operation is taken to cost, by width, unit, core and chip, with random words and the radio."""

from sensorsim.claims.claim import Found, across, agrees, claim
from sensorsim.claims.costs import APPENDIX, L, N, report
from sensorsim.cost.chips import load_chips
from sensorsim.cost.comparisons import X87, X87_WIDTH, break_even, price_by_width
from sensorsim.cost.cost_report import cost
from sensorsim.cost.prices import cpu_names, load_cpu


@claim(
    "cost-division",
    f"{APPENDIX}, price list of the K7",
    "O_DIV = {} on an AMD K7",
    "32",
    how="the division's macro-operations in the K7 table, by width and signedness",
)
def cost_division(printed: str) -> Found:
    k7 = load_cpu("k7")
    forms = {
        f"{'i' if signed else 'u'}{width}": k7.price("DIV", width, signed, "native").typical
        for signed in (False, True)
        for width in (8, 16, 32)
    }
    text = "macro-operations: " + ", ".join(f"{name} {price}" for name, price in forms.items())
    return Found(text, across(agrees(price, printed) for price in forms.values()))


@claim(
    "cost-width",
    f"{APPENDIX}, C_DP-SGD",
    "C_DP-SGD = {}, whatever the operands",
    "1403",
    how="the printed list priced at each operand width of the K7 table, and on its x87",
)
def cost_width(printed: str) -> Found:
    widths = price_by_width(report())
    text = ", ".join(f"{name} {totals['dpsgd']}" for name, totals in widths.items())
    return Found(text, across(agrees(totals["dpsgd"], printed) for totals in widths.values()))


@claim(
    "cost-order",
    "Section on the DP-WBAN; abstract",
    "SPOF has the lower perturbation complexity",
    how="both printed lists at every operand width and in x87 macro-operations and latency; SPOF against DP-SGD",
)
def cost_order() -> Found:
    widths = {name: (totals["spof"], totals["dpsgd"]) for name, totals in price_by_width(report()).items()}
    latency = price_by_width(cost(N, L, metric="latency", variant="paper"))["x87"]
    widths["x87 latency"] = latency["spof"], latency["dpsgd"]
    text = ", ".join(f"{name} {spof:g} against {dpsgd:g}" for name, (spof, dpsgd) in widths.items())
    text += f"; DP-SGD is cheaper where a division costs less than {break_even(report()):.2f}"
    return Found(text, across(spof < dpsgd for spof, dpsgd in widths.values()))


@claim(
    "cost-x87",
    f"{APPENDIX}, price list of the K7",
    "O_ADD = {}, O_MUL = {}, O_DIV = {}",
    "1",
    "3",
    "32",
    how="the same operations in the table's x87 rows, for values that are not integers",
)
def cost_x87(*printed: str) -> Found:
    k7 = load_cpu("k7")
    names = ("ADD", "MUL", "DIV")
    prices = [k7.price(X87[name], X87_WIDTH, True, "native").typical for name in names]
    text = ", ".join(f"{X87[name]} {price}" for name, price in zip(names, prices, strict=True))
    ours = f"macro-operations: {text}"
    return Found(ours, across(agrees(price, one) for price, one in zip(prices, printed, strict=True)))


@claim(
    "cost-cores",
    "Section on the DP-WBAN",
    "SPOF perturbs at a lower cost, as a sensor's processor would run it",
    how="both kernels executed, every operation priced at 32 bits, on each core that has a table",
)
def cost_cores() -> Found:
    found = {}
    for name in cpu_names():
        mechanisms = cost(N, L, cpu=name, width=32, accounting="full", variant="paper").mechanisms
        found[name] = mechanisms["spof"].counted.total, mechanisms["dpsgd"].counted.total
    text = ", ".join(f"{name} {spof:.0f} against {dpsgd:.0f}" for name, (spof, dpsgd) in found.items())
    return Found(text, across(spof < dpsgd for spof, dpsgd in found.values()))


def _energy(part: str) -> Found:
    """SPOF's energy over DP-SGD's up to a part of the record, on every chip whose core has a table."""
    found = {}
    for chip in load_chips():
        if chip.cpu:
            saved = cost(N, L, chip=chip.chip, variant="paper").record.savings()[part]
            if saved is not None:
                found[chip.chip] = -saved
    text = ", ".join(f"{name} {more:+.0f} %" for name, more in found.items())
    return Found(f"SPOF over DP-SGD: {text}", across(more < 0 for more in found.values()))


@claim(
    "cost-random",
    "Section on the DP-WBAN; abstract",
    "SPOF is the more efficient one on a body sensor",
    how="energy of arithmetic and fresh random words (ChaCha20) of a record, 32 bits a draw, on every chip "
    "with a table",
)
def cost_random() -> Found:
    return _energy("random words")


@claim(
    "cost-radio",
    "Section on the DP-WBAN",
    "SPOF suits WBANs better, which are power constrained",
    how="energy of a whole record, with its journal and its packet by BLE, on every chip with a table; SPOF "
    "sends two coefficients a feature, DP-SGD one gradient",
)
def cost_radio() -> Found:
    return _energy("on air")
