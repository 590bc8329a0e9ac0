"""Releases with their constants bound, beside hand-written C: instructions. Run: pytest bench/bench_release_c.py -s

Goal: no more than by hand, for all forms, cores and compilers. Compilers that are not installed are left out. The
hand-written C is hand_release.c; both give the same bits, and no call's path depends on what is secret.
"""

import itertools
import shutil
from pathlib import Path

import pytest
from hand_c import CALLS, CORES, FEATURES, FORMS, build, by_kernel, clang, run, sources

GCC = {
    "cortex-m0plus": ("arm-none-eabi-gcc", "-mcpu=cortex-m0plus", "-mthumb"),
    "cortex-m4": ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb"),
    "rv32imc": ("riscv64-unknown-elf-gcc", "-march=rv32imc", "-mabi=ilp32"),
}


def commands(core: str) -> dict[str, list[str]]:
    """The compilers for a core that are here."""
    found = {"clang": clang(core)}
    return found | ({"gcc": list(GCC[core])} if shutil.which(GCC[core][0]) else {})


@pytest.mark.parametrize("core", CORES)
def test_instructions_beside_hand_written_c(core: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse = []
    for compiler, command in commands(core).items():
        machines = {name: build(command, source, core) for name, source in sources(tmp_path / compiler).items()}
        for form, call in itertools.product(FORMS, CALLS):
            found = {}
            for name, machine in machines.items():
                counts, released = run(machine, form, call, core)
                assert released == by_kernel(form, call) and len(set(counts)) == 1, (name, form, call)
                found[name] = counts[0] / (FEATURES if call == "all" else 1)
            export, hand = found["export"], found["hand"]
            what = "a feature of a record" if call == "all" else "one feature, picked"
            with capsys.disabled():
                print(
                    f"\n{core:14} {compiler:6} {form:7} {what:22} {export:5.1f} / {hand:5.1f} = {export / hand:.2f}",
                    end="",
                )
            worse += [(compiler, form, call)] if export > hand else []
    assert not worse
