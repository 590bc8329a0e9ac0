"""Machine code: how fast it is counted, how long verify takes, and our C beside hand-written C.

Run with: pytest bench/bench_machine.py -s
"""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from sensorsim._util.files import fill
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.package_options import Options
from sensorsim.codegen.write import write_folder
from sensorsim.costing.prices import load_cpu
from sensorsim.language.load import find
from sensorsim.machine.counting import BlockCounter, Tally
from sensorsim.machine.elf import read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.harness import CoreRun, run_on_core
from sensorsim.machine.instructions import Decoder
from sensorsim.machine.targets import TARGETS, compile_elf
from sensorsim.machine.vectors import expected, random_vectors
from sensorsim.verification.verification import verify

# What an engineer would write for one record of SPOF with one draw per feature: the same results, not the same code.
HAND = {
    "spof_lean": """
#include <stdint.h>
void ss_spof_lean(const uint16_t *x, const int32_t *noise, const uint32_t *word, int32_t *alpha2, int32_t *alpha3,
                  uint32_t n, uint32_t mask);
void ss_spof_lean(const uint16_t *x, const int32_t *noise, const uint32_t *word, int32_t *alpha2, int32_t *alpha3,
                  uint32_t n, uint32_t mask)
{
    for (const uint16_t *end = x + n; x != end; x++) {
        int32_t v = *x;
        if (v > 32768) {
            v = 32768;
        }
        const int32_t u = 16384 - v + noise[*word++ & mask];
        *alpha2++ = u;
        *alpha3++ = -(u >> 1);
    }
}
""",
    # The perturbation alone: one pre-fetched sample on each value, the pointer moved around the table.
    "perturb_gradient": """
#include <stdint.h>
void ss_perturb_gradient(const int32_t *clipped, const int32_t *noise, const uint32_t *stride, uint32_t *cursor,
                         int32_t *noisy, uint32_t n, uint32_t size);
void ss_perturb_gradient(const int32_t *clipped, const int32_t *noise, const uint32_t *stride, uint32_t *cursor,
                         int32_t *noisy, uint32_t n, uint32_t size)
{
    uint32_t place = *cursor;
    for (const int32_t *end = clipped + n; clipped != end; clipped++) {
        place += *stride++;
        if (place >= size) {
            place -= size;
        }
        *noisy++ = *clipped + noise[place];
    }
    *cursor = place;
}
""",
}
GOALS = {"k7": 14.3, "cortex-m0plus": 19.4, "cortex-m4": 13.1, "rv32imc": 15.1}
ARM_GCC = {"cortex-m0plus": "cortex-m0plus", "cortex-m3": "cortex-m3", "cortex-m4": "cortex-m4"}
DROP = "/DISCARD/ : { *(.ARM.*) *(.comment) *(.note*) *(.eh_frame*) }"
LINK = f"SECTIONS {{ . = 0x10000; .text : {{ *(.text*) *(.rodata*) }} {DROP} }}"


def per_feature(elf: bytes, target, kernel, n=14, calls=50):
    """Instructions for each feature, the call's own included; the bits are checked."""
    machine = Machine(target, read_elf(elf))
    counter, tally = BlockCounter(machine, Decoder(target, load_cpu(target.cpu))), Tally()
    (found,) = find(kernel)
    vectors = random_vectors(found, found.lengths_at({"n": n}), calls, 0)
    assert run_on_core(machine, vectors, expected(vectors), f"ss_{kernel}", counter, tally) == 0
    return tally.spread.mean / n


def build(folder: Path, texts, compiler: str, target, kernel: str) -> bytes:
    fill(folder, texts)
    sources = sorted(folder.rglob("*.c"))
    out = folder / "out.elf"
    if compiler == "clang":
        compile_elf(target, sources, [folder / "include", folder / "src"], f"ss_{kernel}", out, ["-Wno-error"])
    else:
        fill(folder, {"gcc.ld": LINK})
        arm = compiler.startswith("arm")
        flags = [f"-mcpu={ARM_GCC[target.name]}", "-mthumb"] if arm else ["-m32", "-march=athlon"]
        flags += [
            "-std=c99",
            "-O2",
            "-fomit-frame-pointer",
            "-ffreestanding",
            "-nostdlib",
            "-static",
            "-fno-pic",
            "-no-pie",
        ]
        include = [
            f"-I{folder / 'include'}",
            f"-I{folder / 'src'}",
            f"-Wl,--entry=ss_{kernel}",
            f"-Wl,-T,{folder}/gcc.ld",
        ]
        subprocess.run(
            [compiler, *flags, *include, *map(str, sources), "-o", str(out)], check=True, capture_output=True
        )
    return out.read_bytes()


@pytest.mark.parametrize("name", list(TARGETS))
@pytest.mark.parametrize("kernel", list(HAND))
def test_instructions_per_feature_beside_hand_written_c(kernel, name):
    """The emitted code takes no branch on data; the hand-written may."""
    target = TARGETS[name]
    ours = find(kernel)[0].c()
    compilers = ["clang", *(["gcc"] if name == "k7" else ["arm-none-eabi-gcc"] if name in ARM_GCC else [])]
    for compiler in compilers:
        if compiler != "clang" and shutil.which(compiler) is None:
            continue
        with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
            emitted = build(Path(a), ours, compiler, target, kernel)
            hand = build(Path(b), {"src/hand.c": HAND[kernel]}, compiler, target, kernel)
        for n in (14, 256):
            pair = [per_feature(elf, target, kernel, n) for elf in (emitted, hand)]
            goal = f" (goal {GOALS[name]})" if name in GOALS else ""
            print(
                f"\n{kernel} on {name}, {compiler}, n = {n}: {pair[0]:.2f} emitted, {pair[1]:.2f} by hand{goal}", end=""
            )


@pytest.mark.parametrize(("kernel", "name"), [("dpsgd", "cortex-m0plus"), ("spof", "cortex-m4"), ("chacha20", "k7")])
def test_counted_instructions_per_second(kernel, name, benchmark):
    """Block hooks in machine code, against a Python hook on every instruction in the same run."""
    from unicorn import UC_HOOK_CODE

    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as build_folder:
        folder = Path(build_folder)
        fill(folder, find(kernel)[0].c())
        sources, include = sorted(folder.rglob("*.c")), [folder / "include", folder / "src"]
        program = read_elf(compile_elf(target, sources, include, f"ss_{kernel}", folder / "k.elf").read_bytes())
    (found,) = find(kernel)
    vectors = random_vectors(found, found.lengths_at(), 200, 0)
    machine, tally = Machine(target, program), Tally()
    counter = BlockCounter(machine, Decoder(target, load_cpu(target.cpu)))

    def run():
        for _ in CoreRun(machine, vectors, f"ss_{kernel}").calls():
            counter.take(tally)

    benchmark.pedantic(run, rounds=3, warmup_rounds=1)
    ours = sum(tally.instructions[-200:]) / benchmark.stats["min"]
    seen = [0]

    def each(*_):
        seen[0] += 1

    peer = Machine(target, program)
    peer.uc.hook_add(UC_HOOK_CODE, each)
    started = time.perf_counter()
    for _ in CoreRun(peer, vectors, f"ss_{kernel}").calls():
        pass
    theirs = seen[0] / (time.perf_counter() - started)
    print(f"\n{kernel} on {name}: {ours / 1e6:.1f} M counted instructions/s, a hook for each {theirs / 1e6:.2f} M/s")


def test_verify_over_six_targets(tmp_path):
    write_folder(tmp_path / "package", make_package(Options(("spof", "dpsgd", "release", "sampled"))))
    started = time.perf_counter()
    report = verify(tmp_path / "package", ["host", *TARGETS])
    print(f"\nverify, {len(report.results)} kernels and targets: {time.perf_counter() - started:.0f} s (goal 180)")
    assert report.passed
