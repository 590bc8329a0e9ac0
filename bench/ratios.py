"""How sensorsim compares with its peers, each pair in turns in the same run. See bench/README.md.

    python bench/ratios.py [--out FILE.json] [--check [FILE.json]]

A ratio is the peer's best time over ours, so more is better for us; that of C written by hand is in instructions, and
the same on every machine. --check compares with a stored file and ends with 1 where a ratio got worse: instructions by
anything at all, times by more than half, for two programs do not slow down alike on a busy machine.
"""

import argparse
import importlib.util
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
STORED = HERE / "ratios.json"
SCHEMA_VERSION = 1
SLACK = {"time": 0.5, "instructions": 1.0}  # of a stored ratio, what is left at least
ROUNDS = 12


@dataclass(frozen=True)
class Ratio:
    """A peer's cost over ours."""

    peer: str
    what: str
    of: str  # time or instructions
    ours: float  # nanoseconds each, or instructions
    peers: float
    ratio: float


def in_turns(peer: str, what: str, ours: tuple[Callable[[], Any], int], theirs: tuple[Callable[[], Any], int]) -> Ratio:
    """Both as (call, how many values it makes), round by round."""
    from bench_kernels import best_in_turn

    best = best_in_turn({"ours": ours[0], "peer": theirs[0]}, ROUNDS)
    mine, other = 1e9 * best["ours"] / ours[1], 1e9 * best["peer"] / theirs[1]
    return Ratio(peer, what, "time", round(mine, 2), round(other, 2), round(other / mine, 2))


def numpy() -> list[Ratio]:
    from bench_kernels import RECORDS, SPOF, N

    count = 2 * RECORDS * N
    ours = SPOF["sensorsim, 1 thread"], count
    return [in_turns("numpy", "a perturbed coefficient of SPOF, one thread", ours, (SPOF["numpy"], count))]


def opendp() -> list[Ratio]:
    from bench_release import ours, sampled, theirs

    forms = {"every feature": ours, "one feature of a record": sampled}
    return [
        in_turns("opendp", f"a released value, {name}, rows, ChaCha20", form("rows", "chacha20"), theirs())
        for name, form in forms.items()
    ]


def cmsisdsp() -> list[Ratio]:
    from bench_kernels import roots

    runs, words = roots()
    pair = ((runs[name], len(words)) for name in ("sensorsim", "cmsisdsp"))
    return [in_turns("cmsisdsp", "a square root from Python (ours is exact)", *pair)]


def apytypes() -> list[Ratio]:
    """Both coefficients in fixed point; ours draws their noise as well."""
    from apytypes import APyFixedArray, fx
    from bench_kernels import FAST, NOISE, OUT, RECORDS, N, X
    from sensorsim.kernels.spof_lean import spof_lean

    x = APyFixedArray(X[: RECORDS // 10].ravel().tolist(), int_bits=2, frac_bits=15)
    half, quarter, count = fx(0.5, int_bits=2, frac_bits=15), fx(0.25, int_bits=2, frac_bits=15), RECORDS * N
    both = {"alpha2": OUT[0], "alpha3": OUT[1]}
    ours = (lambda: spof_lean.batch(x=X, noise=NOISE, out=both, **FAST)), 2 * count
    return [
        in_turns("apytypes", "a fixed-point coefficient", ours, (lambda: (half - x, half * x - quarter), count // 5))
    ]


def opacus() -> list[Ratio]:
    import torch
    from bench_train import PRINTED, RUNS, opacus_stepper, sources, steps_of

    from sensorsim.datasets import synthetic
    from sensorsim.datasets.dataset import prepare
    from sensorsim.training import cells
    from sensorsim.training.config import Config
    from sensorsim.training.loop import train_block

    torch.set_num_threads(1)
    days = prepare(synthetic.make())
    config, dataset = cells.ready(Config("dpsgd-weights", 1.6, runs=RUNS, epochs=1, **PRINTED), days)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = opacus_stepper(days)
        ours = (lambda: train_block(dataset, config, RUNS, sources(RUNS))), steps_of(dataset, config) * RUNS
        return [
            in_turns(
                "opacus", "a DP-SGD step, ours 100 runs at once", ours, (lambda: [step() for _ in range(100)], 100)
            )
        ]


def hand_c() -> list[Ratio]:
    """Instructions of the exported C and of C written by hand for the same constants, clang -O2, Cortex-M0+."""
    from hand_c import FORMS, build, clang, run, sources

    core = "cortex-m0plus"
    with tempfile.TemporaryDirectory() as folder:
        machines = {name: build(clang(core), source, core) for name, source in sources(Path(folder)).items()}
        counts = {
            form: {name: run(machine, form, "one", core)[0][0] for name, machine in machines.items()} for form in FORMS
        }
    return [
        Ratio("C by hand", f"one feature released, {form}, Cortex-M0+", "instructions", found["export"], found["hand"],
              round(found["hand"] / found["export"], 4))
        for form, found in counts.items()
    ]  # fmt: skip


PEERS = {
    "numpy": numpy,
    "opendp": opendp,
    "cmsisdsp": cmsisdsp,
    "apytypes": apytypes,
    "opacus": opacus,
    "ziglang": hand_c,
}


def table(found: list[Ratio]) -> str:
    lines = [f"{'peer':<11}{'what':<58}{'ours':>7}{'peer':>11}{'ratio':>10}"]
    for one in found:
        unit = "ns" if one.of == "time" else "instr."
        ours, peers, ratio = (f"{n:,.0f}" if n >= 1000 else f"{n:.4g}" for n in (one.ours, one.peers, one.ratio))
        lines.append(f"{one.peer:<11}{one.what:<58}{ours:>7}{peers:>11}{ratio:>8} ×  {unit}")
    return "\n".join(lines)


def worse(found: list[Ratio], stored: dict[str, Any]) -> list[str]:
    """A sentence for each ratio that fell below what its stored one allows, or is not measured any more."""
    now = {(one.peer, one.what): one.ratio for one in found}
    said = []
    for one in stored["ratios"]:
        least, ratio = one["ratio"] * SLACK[one["of"]], now.get((one["peer"], one["what"]))
        if ratio is None:
            said.append(f"{one['peer']}, {one['what']}: stored and not measured")
        elif ratio < least:
            said.append(f"{one['peer']}, {one['what']}: {ratio:g} ×, below {least:g} ({one['ratio']:g} stored)")
    return said


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--check", type=Path, nargs="?", const=STORED, help="compare with a stored file")
    asked = parser.parse_args(words)
    sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "support")]
    found = []
    for package, measure in PEERS.items():
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed: left out", file=sys.stderr)
            continue
        found += measure()
    print(table(found))
    if asked.out:
        content = {"schema_version": SCHEMA_VERSION, "ratios": [asdict(one) for one in found]}
        asked.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
    said = worse(found, json.loads(asked.check.read_text("utf-8"))) if asked.check else []
    for line in said:
        print(f"WORSE: {line}")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
