"""The steps of a verification. Each can run in a process of its own: picklable in, picklable out."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sensorsim._util.errors import FailedProofError
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import Package, open_package
from sensorsim.codegen.package_options import Load, Options
from sensorsim.language.secrecy import unproved
from sensorsim.machine.targets import CORES, HOST, TARGETS, check_with_gcc, compile_host
from sensorsim.verification.bits import Effort, Work

SELFTEST_SECONDS = 60
RUN = "import ctypes, sys; print(getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])())"


@dataclass(frozen=True)
class Setup:
    """The settings that all steps of one verification share."""

    folder: Path
    build: Path
    targets: tuple[str, ...]
    effort: Effort
    seed: int
    trust: bool
    made: Mapping[str, str] | None = None  # the files as export makes them, where they are known already


@dataclass(frozen=True)
class Step:
    """One step: `what` names a method of `Steps`; a kernel is given by its index in the package."""

    what: str
    about: str  # for the progress bar and for messages
    target: str = ""
    kernel: int = 0

    @property
    def on_host(self) -> bool:
        """Return whether C of the package runs on this machine, or is loaded, which can run it as well."""
        return self.target == HOST


@dataclass(frozen=True)
class Contents:
    """A summary of a package, for a process that loads nothing of it."""

    kernels: tuple[str, ...]
    table: bool
    unproved: tuple[str, ...] = ()  # of their secrecy


class Steps:
    """Does steps one after the other, in a folder of its own; what was built or made once serves the later ones."""

    def __init__(self, setup: Setup, name: str) -> None:
        self.setup = setup
        self.build = setup.build / name
        self.build.mkdir()
        self.package = open_package(setup.folder, setup.trust)
        self.work = Work(self.package, self.build, setup.effort, setup.seed)

    def do(self, step: Step) -> Any:
        return getattr(self, step.what)(step)

    def contents(self, step: Step) -> Any:
        from sensorsim.verification.reproduce import check_tools

        check_tools(self.package)
        kernels = self.package.kernels
        verdicts = {kernel.name: kernel.secrecy().verdict for kernel in kernels}
        names = tuple(kernel.name for kernel in kernels)
        return Contents(names, self.package.table_file is not None, tuple(unproved(verdicts)))

    def anew(self, step: Step) -> Any:
        """Return the files as export makes them, or a list that says why it makes none."""
        from sensorsim.verification.reproduce import differences

        if self.setup.made is not None:
            return dict(self.setup.made)
        made: dict[str, str] = {}

        def make(options: Options, load: Load, as_data: bool) -> Mapping[str, str]:
            made.update(make_package(options, load, as_data))
            return made

        refused = differences(self.package, make, self.build)
        return made or refused

    def table(self, step: Step) -> Any:
        from sensorsim.verification.table_in_code import table_proofs

        others = [name for name in self.setup.targets if name in TARGETS or (name == HOST and step.on_host)]
        return table_proofs(self.package, others or [next(iter(TARGETS))], self.build)

    def draw(self, step: Step) -> Any:
        from sensorsim.verification.every_draw import draw_proof

        return draw_proof(self.package, self.build, self.setup.seed)

    def gcc(self, step: Step) -> Any:
        checked = [*self.package.sources, *self.package.kernel_sources(self.build), *self.package.selftest]
        return check_with_gcc(list(dict.fromkeys(checked)), self.package.include)

    def selftest(self, step: Step) -> Any:
        if step.target == HOST:
            self.work.check_selftest(HOST, selftest_on_host(self.package, self.build))
        else:
            self.work.selftest_on(CORES[step.target])

    def bits(self, step: Step) -> Any:
        kernel = self.package.kernels[step.kernel]
        if step.target == HOST:
            return self.work.on_host(kernel)
        (self.build / f"selftest-{step.target}.elf").touch()  # it has run already, maybe in another process
        return self.work.on_core(CORES[step.target], kernel)

    def ubsan(self, step: Step) -> Any:
        one = Work(only(self.package, step.kernel), self.build, self.setup.effort, self.setup.seed)
        one.known = self.work.known
        return one.without_undefined_behaviour()


def groups(contents: Contents, setup: Setup) -> list[list[Step]]:
    """Return the steps in groups; one process does a group in order, as far as its steps can begin.

    Those on the host come late in their group: they wait until the files are known to be as export writes them.
    """
    cores = [target for target in setup.targets if target != HOST]
    host = [HOST] if HOST in setup.targets else []
    tests = [[Step("selftest", f"self-test on {target}", target) for target in some] for some in (cores, host)]
    table = Step("table", "the table in the code", HOST if host else "")
    head = [[Step("anew", "the files, written anew")], tests[0], [Step("gcc", "warnings of gcc")], tests[1], [table]]
    if host and contents.table:
        head.append([Step("draw", "every draw", HOST)])
    for place, kernel in enumerate(contents.kernels):
        steps = [Step("bits", f"{kernel} on {target}", target, place) for target in (*cores, *host)]
        head.append([*steps, Step("ubsan", f"undefined behaviour in {kernel}", "", place)])
        head[-1].sort(key=lambda step: step.on_host)
    return [group for group in head if group]


def only(package: Package, place: int) -> Package:
    """Return the package with one of its kernels, which keeps its name."""
    one = replace(package, kernels=(package.kernels[place],))
    one.__dict__["names"] = package.names
    return one


def selftest_on_host(package: Package, build: Path) -> int:
    """Run the self-test on this machine in a process that can be ended; return its answer."""
    name = f"{package.prefix}selftest"
    library = compile_host([*package.sources, *package.selftest], package.include, build / "selftest-host.so")
    try:
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(library), name], capture_output=True, text=True, timeout=SELFTEST_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise FailedProofError(f"the self-test gives no answer on {HOST} in {SELFTEST_SECONDS} s.") from None
    if done.returncode or not done.stdout.strip().lstrip("-").isdigit():
        raise FailedProofError(f"the self-test ends the process on {HOST} (exit {done.returncode}).")
    return int(done.stdout) & 0xFFFFFFFF
