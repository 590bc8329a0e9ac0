"""Claims of this project, checked in the same way."""

import ctypes
import math
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.files import temporary_folder
from sensorsim.paper.experiment_claims import Experiment
from sensorsim.paper.recompute import DEPENDS, Found, N, claim, verdict_over

if TYPE_CHECKING:
    from sensorsim.language import Kernel

PROJECT = "This project: "
WORDS: dict[str, Any] = {
    f"{sign}{bits}": getattr(ctypes, f"c_{sign.replace('i', '')}int{bits}") for sign in "ui" for bits in (8, 16, 32)
}
CALLS = 20  # of each kernel at each length


@claim("own-certificates", f"{PROJECT}noise tables", "every shipped table keeps its nominal epsilon with delta = 0")
def own_certificates() -> Found:
    """largest likelihood ratio over all inputs and outputs, from the counts in the files, in whole numbers"""
    from sensorsim.noise.noise_table import READY_EPSILONS, ready_table

    tables = [
        ready_table(epsilon, release, kind)
        for kind in ("rows", "stairs")
        for epsilon in READY_EPSILONS
        for release in ("all", 1)
    ]
    held = [table.certify().holds(table.epsilon) for table in tables]
    return f"{sum(held)} of {len(held)} tables proved", all(held)


def excess_deviation(epsilon: str) -> float:
    """Return by how many per cent the shipped rows exceed the deviation of a linear program solved now."""
    from sensorsim.noise.baseline import fine_sd
    from sensorsim.noise.noise_table import ready_table

    reached = ready_table(epsilon, 1).estimate_sd
    assert reached is not None
    return 100 * (reached / fine_sd(float(epsilon)) - 1)


@claim("own-sd", f"{PROJECT}noise tables", "up to epsilon 1.6 rows are within {} % of the best known deviation", "2")
def own_sd(printed: str) -> Found:
    """worst standard deviation of the shipped tables, over that of a fine linear program solved now, at epsilon 0.4 and
    1.6"""
    above = {epsilon: excess_deviation(epsilon) for epsilon in ("0.4", "1.6")}
    text = ", ".join(f"{more:.2f} % above at {epsilon}" for epsilon, more in above.items())
    return text, max(above.values()) <= float(printed)


@claim("own-sd-large", f"{PROJECT}noise tables",
       "at epsilon 3.2 rows are within {} % of the best known deviation", "4", full=True)  # fmt: skip
def own_sd_large(printed: str) -> Found:
    """as own-sd, at epsilon 3.2"""
    above = excess_deviation("3.2")
    return f"{above:.2f} % above", above <= float(printed)


@claim("own-sampled", f"{PROJECT}noise tables",
       "one feature a record, with the whole budget, gives better means than all")  # fmt: skip
def own_sampled() -> Found:
    """standard error of a column mean from the same records: all 14 features at epsilon/14 each, over one in 14 at
    epsilon, worst deviations of the shipped tables"""
    from sensorsim.noise.noise_table import READY_EPSILONS, ready_table

    gain = {}
    for epsilon in READY_EPSILONS:
        every, one = (ready_table(epsilon, release).estimate_sd for release in ("all", 1))
        assert every is not None and one is not None
        gain[epsilon] = every / (one * math.sqrt(N))
    text = ", ".join(f"{times:.2f} at {epsilon}" for epsilon, times in gain.items())
    return f"the error is smaller by a factor of {text}", min(gain.values()) > 1


@claim("own-release", f"{PROJECT}the release", "a release spends its epsilon once, and the weights are covered")
def own_release() -> Found:
    """by the accounting, from the certificate of the shipped table at epsilon 1.6, proved now; noise is drawn once a
    record"""
    from sensorsim.accounting.composition import Covers
    from sensorsim.mechanisms import spent
    from sensorsim.noise.noise_table import ready_table

    found = spent("sampled", table=ready_table("1.6", 1))
    text = f"{found.epsilon:.4f}, delta {found.delta:g}, covers {found.covers.value}"
    return text, found.epsilon <= 1.6 and found.delta == 0 and found.covers is Covers.RELEASE


@claim("own-time", f"{PROJECT}kernels", "no branch, loop or slow operation of a release depends on a secret")
def own_time() -> Found:
    """the secrecy reader over every kernel that releases, and the generator, now; addresses of table reads are declared
    where a cache would show them"""
    from sensorsim.language.load import shipped

    names = [name for name in shipped() if is_release(name) or name == "chacha20.chacha20"]
    read = [shipped()[name].secrecy() for name in names]
    proved = [one.proved and one.same_path for one in read]
    return f"proved for {sum(proved)} of {len(proved)} kernels", bool(proved) and all(proved)


@claim("own-ranges", f"{PROJECT}kernels", "nothing wraps and no index leaves its array, for any input")
def own_ranges() -> Found:
    """the range reader over every shipped kernel, now"""
    from sensorsim.language.load import shipped
    from sensorsim.language.ranges import RangeError

    held = 0
    for kernel in shipped().values():
        try:
            kernel.prove()
            held += 1
        except RangeError:
            continue
    return f"proved for {held} of {len(shipped())} kernels", held == len(shipped())


@claim("own-energy", f"{PROJECT}the whole record", "one feature a record takes less energy than SPOF and than DP-SGD")
def own_energy() -> Found:
    """a whole record, with random words, journal and BLE packet, on every chip with a table"""
    from sensorsim.costing.chips import load_chips
    from sensorsim.costing.cost_report import cost
    from sensorsim.costing.record_energy import SENSOR

    parts = {}
    for chip in (chip.chip for chip in load_chips() if chip.cpu):
        costs = cost(chip=chip, variant="paper").record.costs
        sensor, *others = (costs[name].microjoule for name in (SENSOR, "spof", "dpsgd"))
        if sensor is not None:
            parts[chip] = sensor / min(other for other in others if other is not None)
    text = ", ".join(f"{name} {100 * (part - 1):+.0f} %" for name, part in parts.items())
    return f"over the cheaper of the two: {text}", max(parts.values()) < 1


@claim("own-rtl", f"{PROJECT}processor tables", "cycles are within {} % of simulations of the cores themselves", "5")
def own_rtl(printed: str) -> Found:
    """what each table records of its last comparison, the largest error of a kernel; the simulators are not run here,
    so nothing is repeated"""
    from sensorsim.costing.prices import cpu_names, load_cpu

    checked = {name: load_cpu(name).checked for name in cpu_names()}
    told = [f"{name}: {one.kernels} kernels, largest error {one.largest} %" for name, one in checked.items() if one]
    never = ", ".join(name for name, one in checked.items() if one is None)
    text = f"recorded, not repeated now: {'; '.join(told) or 'nothing'}; never compared: {never or 'none'}"
    return text, verdict_over(one is not None and float(one.largest) <= float(printed) for one in checked.values())


def find_compiler() -> str | None:
    """Return the path of a C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compare_with_c(kernels: Sequence["Kernel"], command: str) -> tuple[int, int]:
    """Compile kernels with `command` and call them with random arguments, in C and in Python.

    Return the number of calls with the same bits in every array, and the number of calls.
    """
    from sensorsim.language.arguments import arguments, lengths_to_check
    from sensorsim.language.c.translation_units import c_sources

    rng, same, calls = random.Random(0), 0, 0
    with temporary_folder() as folder:
        for name, text in c_sources(list(kernels), "ss_", (), "").items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        sources, built = sorted(str(path) for path in Path(folder).rglob("*.c")), str(Path(folder, "kernels.so"))
        flags = ["-std=c99", "-O2", f"-I{folder}/include", "-shared", "-fPIC"]
        subprocess.run([command, *flags, "-o", built, *sources], check=True, capture_output=True)
        library = ctypes.CDLL(built)
        for kernel in kernels:
            for lengths in lengths_to_check(kernel):
                for _ in range(CALLS):
                    given = arguments(kernel, lengths, lambda name, lo, hi: rng.randint(lo, hi))
                    passed: dict[str, Any] = {}
                    for name, value in given.items():
                        kind: Any = kernel.parameters[name]
                        word = WORDS[getattr(getattr(kind, "element", kind), "storage", "u32")]
                        passed[name] = (word * len(value))(*value) if name in kernel.arrays else word(value)
                    getattr(library, f"ss_{kernel.name}")(*passed.values())
                    kernel(*given.values())
                    same += all(list(passed[name]) == given[name] for name in kernel.arrays)
                    calls += 1
    return same, calls


@claim("own-c", f"{PROJECT}the C", "the emitted C gives the same bits as the kernels", full=True)
def own_c() -> Found:
    """every kernel that releases, and SPOF as it ships, compiled now by the C compiler at hand: random arguments at all
    lengths that the checks take, beside the same kernel in Python"""
    from sensorsim.language.load import shipped

    command = find_compiler()
    if command is None:
        return "not compared: there is no C compiler here", DEPENDS
    kernels = [kernel for name, kernel in shipped().items() if is_release(name) or name == "spof_lean.spof_lean"]
    same, calls = compare_with_c(kernels, command)
    return f"{same} of {calls} calls of {len(kernels)} kernels the same", calls > 0 and same == calls


def is_release(name: str) -> bool:
    """Check whether a kernel, named module.kernel, releases values of a record."""
    return name.partition(".")[2].startswith(("release_", "sampled_"))


@claim("own-accuracy", f"{PROJECT}training",
       "at epsilon {} a record our release learns a map that beats the column mean", "1.6", full=True)  # fmt: skip
def own_accuracy(experiment: Experiment, epsilon: str) -> Found:
    """accuracy of `sampled`, 20 runs, beside the column mean of the same records, which nobody may release"""
    cell = experiment.cell("sampled", float(epsilon), scaled=True)
    reached, mean = (
        experiment.mean("sampled", float(epsilon), scaled=True),
        experiment.trivial(scaled=True)["column mean"],
    )
    text = f"{reached:.2f} at a spent epsilon of {cell['spent_epsilon']:.4f}; column mean {mean:.2f}"
    return text, reached > mean and cell["spent_epsilon"] <= float(epsilon)
