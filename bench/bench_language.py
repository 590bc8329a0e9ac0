"""How long the readers take. Run: pytest bench/bench_language.py

Goals: all shipped kernels parsed and proved within 2 s, a proof of one within 0.3 s. The peer is Python itself, as it
compiles the same files.
"""

import time
from collections.abc import Callable
from typing import Any

import pytest

from sensorsim.language import Kernel
from sensorsim.language.load import shipped
from sensorsim.language.parse import parse
from sensorsim.language.ranges import prove
from sensorsim.language.secrecy import secrecy

KERNELS = tuple(shipped().values())
TEXTS = {path: path.read_text("utf-8") for path in {kernel.path for kernel in KERNELS}}


def each(reader: Callable[[Kernel], Any]) -> Callable[[], None]:
    def run() -> None:
        for kernel in KERNELS:
            reader(kernel)

    return run


READERS: dict[str, Callable[[], Any]] = {
    "Python compiles the files": lambda: [compile(text, str(path), "exec") for path, text in TEXTS.items()],
    "parse": each(lambda kernel: parse(kernel.function)),
    "prove": each(prove),
    "secrecy": each(secrecy),
    "formula": each(lambda kernel: kernel.formula()),
    "count, typical lengths": each(lambda kernel: kernel.count()),
}


@pytest.mark.benchmark(group="all shipped kernels")
@pytest.mark.parametrize("name", READERS)
def test_readers(benchmark: Any, name: str) -> None:
    benchmark.pedantic(READERS[name], rounds=5, warmup_rounds=1)


def test_slowest_proof(capsys: pytest.CaptureFixture[str]) -> None:
    seconds: dict[str, float] = {}
    for kernel in KERNELS:
        begin = time.perf_counter()
        prove(kernel)
        seconds[kernel.qualified] = time.perf_counter() - begin
    slowest = max(seconds, key=lambda name: seconds[name])
    with capsys.disabled():
        print(f"\n{len(KERNELS)} kernels of {len(TEXTS)} files proved in {sum(seconds.values()):.2f} s, ", end="")
        print(f"the slowest, {slowest}, in {seconds[slowest]:.3f} s")
    assert len(seconds) == len(KERNELS)
