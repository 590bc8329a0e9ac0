"""Verify a package: its files unaltered, its C the same bits as Numba on every target, and what it executes."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sensorsim.export.manifest import open_package
from sensorsim.machine.targets import (
    HOST,
    SHOWN_FLAGS,
    TARGETS,
    check_with_gcc,
    compiler_version,
    targets_named,
)
from sensorsim.verify.bits import Effort, KernelResult, Work

Progress = Callable[[str, int, int], None]  # what is done, step, of how many


@dataclass(frozen=True)
class Verification:
    """The whole report."""

    folder: str
    compiler: str
    flags: str
    gcc: str | None
    ubsan_vectors: int
    results: tuple[KernelResult, ...]

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.results)


def verify(
    folder: Path,
    targets: Sequence[str],
    effort: Effort | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    trust: bool = False,
) -> Verification:
    """Verify the package on the targets; InputError when it was altered, FailedProofError when its self-test fails."""
    names = targets_named(targets)
    package = open_package(folder, trust)
    with tempfile.TemporaryDirectory() as build:
        work = Work(package, Path(build), effort or Effort(), seed)
        steps = [(name, kernel) for name in names for kernel in package.kernels]
        results = []
        for place, (name, kernel) in enumerate(steps):
            if progress:
                progress(f"{kernel.name} on {name}", place, len(steps) + 1)
            results.append(work.on_host(kernel) if name == HOST else work.on_core(TARGETS[name], kernel))
        if progress:
            progress("undefined behaviour", len(steps), len(steps) + 1)
        checked = [*package.sources, *package.kernel_sources(Path(build)), *package.selftest]
        gcc = check_with_gcc(list(dict.fromkeys(checked)), package.include)
        return Verification(
            str(folder), compiler_version(), SHOWN_FLAGS, gcc, work.without_undefined_behaviour(), tuple(results)
        )
