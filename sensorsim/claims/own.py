"""What this project says of itself, under the same rule."""

import math

from sensorsim.claims.claim import DEPENDS, FULL, OURS, Found, across, claim, whether
from sensorsim.claims.setting import Setting


@claim(
    "own-certificates",
    f"{OURS}noise tables",
    "every shipped table keeps its nominal epsilon with delta = 0",
    how="largest likelihood ratio over all inputs and outputs, from the counts in the files, in whole numbers",
)
def own_certificates() -> Found:
    from sensorsim.privacy.tables import READY_EPSILONS, ready_table

    tables = [
        ready_table(epsilon, release, kind)
        for kind in ("rows", "stairs")
        for epsilon in READY_EPSILONS
        for release in ("all", 1)
    ]
    held = [table.certify().holds(table.epsilon) for table in tables]
    return Found(f"{sum(held)} of {len(held)} tables proved", whether(all(held)))


def _above(epsilon: str) -> float:
    """By how many per cent the shipped rows are above a linear program that is solved now."""
    from sensorsim.privacy.tables import ready_table
    from sensorsim.privacy.yardstick import fine_sd

    reached = ready_table(epsilon, 1).estimate_sd
    assert reached is not None
    return 100 * (reached / fine_sd(float(epsilon)) - 1)


@claim(
    "own-sd",
    f"{OURS}noise tables",
    "up to epsilon 1.6 rows are within {} % of the best known deviation",
    "2",
    how="worst standard deviation of the shipped tables, over that of a fine linear program solved now, at "
    "epsilon 0.4 and 1.6",
)
def own_sd(printed: str) -> Found:
    above = {epsilon: _above(epsilon) for epsilon in ("0.4", "1.6")}
    text = ", ".join(f"{more:.2f} % above at {epsilon}" for epsilon, more in above.items())
    return Found(text, whether(max(above.values()) <= float(printed)))


@claim(
    "own-sd-large",
    f"{OURS}noise tables",
    "at epsilon 3.2 rows are within {} % of the best known deviation",
    "4",
    how="as own-sd, at epsilon 3.2",
    needs=FULL,
)
def own_sd_large(_setting: Setting, printed: str) -> Found:
    above = _above("3.2")
    return Found(f"{above:.2f} % above", whether(above <= float(printed)))


@claim(
    "own-sampled",
    f"{OURS}noise tables",
    "one feature a record, with the whole budget, gives better means than all",
    how="standard error of a column mean from the same records: all 14 features at epsilon/14 each, over one "
    "in 14 at epsilon, worst deviations of the shipped tables",
)
def own_sampled() -> Found:
    from sensorsim.privacy.tables import READY_EPSILONS, ready_table

    gain = {}
    for epsilon in READY_EPSILONS:
        every, one = (ready_table(epsilon, release).estimate_sd for release in ("all", 1))
        assert every is not None and one is not None
        gain[epsilon] = every / (one * math.sqrt(14))
    text = ", ".join(f"{times:.2f} at {epsilon}" for epsilon, times in gain.items())
    return Found(f"the error is smaller by a factor of {text}", whether(min(gain.values()) > 1))


@claim(
    "own-release",
    f"{OURS}the release",
    "a release spends its epsilon once, and the weights are covered",
    how="by the accounting, from the certificate of the shipped table at epsilon 1.6, proved now; noise is drawn "
    "once a record",
)
def own_release() -> Found:
    from sensorsim.privacy.accounting import spent
    from sensorsim.privacy.spending import Covers
    from sensorsim.privacy.tables import ready_table

    found = spent("sampled", table=ready_table("1.6", 1))
    text = f"{found.epsilon:.4f}, delta {found.delta:g}, covers {found.covers.value}"
    return Found(text, whether(found.epsilon <= 1.6 and found.delta == 0 and found.covers is Covers.RELEASE))


@claim(
    "own-time",
    f"{OURS}kernels",
    "no branch, loop or slow operation of a release depends on a secret",
    how="the secrecy reader over every kernel that releases, and the generator, now; addresses of table reads"
    " are declared where a cache would show them",
)
def own_time() -> Found:
    from sensorsim.language.load import shipped

    names = [name for name in shipped() if _releases(name) or name == "chacha20.chacha20"]
    read = [shipped()[name].secrecy() for name in names]
    proved = [one.proved and one.same_path for one in read]
    return Found(f"proved for {sum(proved)} of {len(proved)} kernels", whether(bool(proved) and all(proved)))


@claim(
    "own-ranges",
    f"{OURS}kernels",
    "nothing wraps and no index leaves its array, for any input",
    how="the range reader over every shipped kernel, now",
)
def own_ranges() -> Found:
    from sensorsim.language.load import shipped
    from sensorsim.language.ranges import RangeError

    held = 0
    for kernel in shipped().values():
        try:
            kernel.prove()
            held += 1
        except RangeError:
            continue
    return Found(f"proved for {held} of {len(shipped())} kernels", whether(held == len(shipped())))


@claim(
    "own-energy",
    f"{OURS}the whole record",
    "one feature a record takes less energy than SPOF and than DP-SGD",
    how="a whole record, with random words, journal and BLE packet, on every chip with a table",
)
def own_energy() -> Found:
    from sensorsim.cost.chips import load_chips
    from sensorsim.cost.cost_report import cost
    from sensorsim.cost.record_energy import SENSOR

    parts = {}
    for chip in (chip.chip for chip in load_chips() if chip.cpu):
        costs = cost(chip=chip, variant="paper").record.costs
        sensor, *others = (costs[name].microjoule for name in (SENSOR, "spof", "dpsgd"))
        if sensor is not None:
            parts[chip] = sensor / min(other for other in others if other is not None)
    text = ", ".join(f"{name} {100 * (part - 1):+.0f} %" for name, part in parts.items())
    return Found(f"over the cheaper of the two: {text}", whether(max(parts.values()) < 1))


@claim(
    "own-rtl",
    f"{OURS}processor tables",
    "cycles are within {} % of simulations of the cores themselves",
    "5",
    how="what each table records of its last comparison, the largest error of a kernel; the simulators are not run "
    "here, so nothing is repeated",
)
def own_rtl(printed: str) -> Found:
    from sensorsim.cost.prices import cpu_names, load_cpu

    checked = {name: load_cpu(name).checked for name in cpu_names()}
    told = [f"{name}: {one.kernels} kernels, largest error {one.largest} %" for name, one in checked.items() if one]
    never = ", ".join(name for name, one in checked.items() if one is None)
    text = f"recorded, not repeated now: {'; '.join(told) or 'nothing'}; never compared: {never or 'none'}"
    return Found(text, across(one is not None and float(one.largest) <= float(printed) for one in checked.values()))


@claim(
    "own-c",
    f"{OURS}the C",
    "the emitted C gives the same bits as the kernels",
    how="every kernel that releases, and SPOF as it ships, compiled now by the C compiler at hand: random arguments "
    "at all lengths that the checks take, beside the same kernel in Python",
    needs=FULL,
)
def own_c(_setting: Setting) -> Found:
    from sensorsim.claims.compiled import calls_that_agree, compiler
    from sensorsim.language.load import shipped

    command = compiler()
    if command is None:
        return Found("not compared: there is no C compiler here", DEPENDS)
    kernels = [kernel for name, kernel in shipped().items() if _releases(name) or name == "spof_lean.spof_lean"]
    same, made = calls_that_agree(kernels, command)
    return Found(f"{same} of {made} calls of {len(kernels)} kernels the same", whether(made > 0 and same == made))


def _releases(name: str) -> bool:
    """Whether a kernel, by its module's name and its own, releases values of a record."""
    return name.partition(".")[2].startswith(("release_", "sampled_"))


@claim(
    "own-accuracy",
    f"{OURS}training",
    "at epsilon {} a record our release learns a map that beats the column mean",
    "1.6",
    how="accuracy of `sampled`, 20 runs, beside the column mean of the same records, which nobody may release",
    needs=FULL,
)
def own_accuracy(setting: Setting, epsilon: str) -> Found:
    cell = setting.cell("sampled", float(epsilon), scaled=True)
    reached, mean = setting.mean("sampled", float(epsilon), scaled=True), setting.trivial(scaled=True)["column mean"]
    text = f"{reached:.2f} at a spent epsilon of {cell['spent_epsilon']:.4f}; column mean {mean:.2f}"
    return Found(text, whether(reached > mean and cell["spent_epsilon"] <= float(epsilon)))
