"""Prove that a compiled function computes its kernel for every input, writes nothing else, restores what it must, and
lets no secret decide a branch, an address or the time of an operation."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from bitwuzla import Kind

from sensorsim.language.types import Array, Length
from sensorsim.proof import bitvectors as bv
from sensorsim.proof.bitvectors import Bits, Solver, known, manager
from sensorsim.proof.kernel_meaning import Meaning, Table, Value, input_values
from sensorsim.proof.memory_model import Cells, FindingError, Leak, Region, State, UndecidedError
from sensorsim.proof.paths import run_paths
from sensorsim.proof.pcode_machine import MANY, PcodeMachine

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel
    from sensorsim.machine.elf import Program
    from sensorsim.machine.targets import Target

ARGUMENTS = 0x6000_0000
EXIT = 0xFFFF_F000  # where a function returns to
STACK_TOP = 0x7F00_0000
STACK_BYTES = 1 << 14
GAP = 64  # bytes between arguments
PROVED, REFUTED, UNDECIDED = "proved", "refuted", "not decided"


@dataclass(frozen=True)
class Convention:
    """The calling convention of an instruction set, and its name in the processor descriptions."""

    language: str
    arguments: tuple[str, ...]  # registers; further words are on the stack
    result: str
    stack: str
    link: str  # register of the return address; empty where it is on the stack
    saved: tuple[str, ...]  # registers that a function restores
    thumb: bool = False


def convention_of(target: Target) -> Convention | None:
    """Return the calling convention of a target; None where its code is not lifted."""
    if target.family == "thumb":
        saved = tuple(f"r{i}" for i in range(4, 12))
        return Convention("ARM:LE:32:Cortex", ("r0", "r1", "r2", "r3"), "r0", "sp", "lr", saved, thumb=True)
    if target.family == "riscv32":
        passed, kept = (6, 2) if "+e" in target.mcpu else (8, 12)
        names = tuple(f"a{i}" for i in range(passed)), "a0", "sp", "ra"
        return Convention("RISCV:LE:32:RV32IMC", *names, ("gp", "tp", *(f"s{i}" for i in range(kept))))
    if target.family == "x86":
        return Convention("x86:LE:32:default", (), "EAX", "ESP", "", ("EBX", "ESI", "EDI", "EBP"))
    return None


@dataclass
class Verdict:
    """The outcome for one function of one build."""

    function: str
    outcome: str
    reason: str = ""
    leaks: tuple[Leak, ...] = ()
    paths: int = 0
    instructions: int = 0  # on the longest path
    stack_bytes: int = 0
    seconds: float = 0.0
    counterexample: dict[str, Any] = field(default_factory=dict)
    address: int = 0  # of the instruction that a refusal is about


def prove_function(
    kernel: Kernel, program: Program, target: Target, function: str, lengths: dict[str, int], seconds: float = 60.0
) -> Verdict:
    """Prove one function at these lengths; what fails or is not decided is said in the verdict."""
    began = time.monotonic()
    try:
        made = _Proof(kernel, program, target, function, lengths, Solver(seconds)).run()
    except FindingError as found:
        made = Verdict(function, REFUTED, found.what, address=found.address)
    except UndecidedError as limit:
        made = Verdict(function, UNDECIDED, str(limit))
    made.seconds = time.monotonic() - began
    return made


class _Proof:
    def __init__(
        self, kernel: Kernel, program: Program, target: Target, function: str, lengths: dict[str, int], solver: Solver
    ) -> None:
        convention = convention_of(target)
        if convention is None:
            raise UndecidedError(f"code of {target.name} is not lifted")
        self.kernel, self.program, self.function, self.lengths = kernel, program, function, lengths
        self.convention: Convention = convention
        self.solver = solver
        self.values, self.promised = input_values(kernel, lengths)
        self.regions: dict[str, Region] = {}
        self.inputs: dict[str, Value] = {
            name: list(value) if isinstance(value, list) else value for name, value in self.values.items()
        }

    def run(self) -> Verdict:
        machine, state = self.start()
        self.add_hints(machine)
        ended = run_paths(machine, state, EXIT)
        verdict = Verdict(self.function, PROVED, paths=len(ended))
        for end in ended:
            self.compare(machine, end, verdict)
            verdict.instructions = max(verdict.instructions, sum(end.executed.values()))
            if verdict.outcome != PROVED:
                return verdict
        leaks = {leak for end in ended for leak in end.leaks}
        allowed = _allowed(self.kernel)
        bad = sorted(leak for leak in leaks if leak.kind not in allowed)
        verdict.leaks = tuple(sorted(leaks))
        if bad:
            verdict.outcome, verdict.address = REFUTED, bad[0].address
            verdict.reason = f"{bad[0].kind} depends on {self.named(bad[0].secrets)}"
        return verdict

    def add_hints(self, machine: PcodeMachine) -> None:
        """Let the machine know the values that the kernel computes on any of its paths."""
        waiting: list[list[bool]] = [[]]
        while waiting:
            meaning = Meaning(self.solver, list(self.promised), waiting.pop())
            meaning.call(self.kernel, self.kernel_values(machine))
            waiting += meaning.open
            machine.recognition.expect(meaning.seen.values())

    def named(self, secrets: int) -> str:
        """Return the parameters that a set of secrets stands for."""
        return ", ".join(name for i, name in enumerate(self.kernel.parameters) if secrets >> i & 1)

    def start(self) -> tuple[PcodeMachine, State]:
        """Place the arguments in memory and registers, as a caller would."""
        place, words = ARGUMENTS, []
        for name, kind in self.kernel.parameters.items():
            value = self.values[name]
            if isinstance(kind, Array):
                element = int(kind.storage[1:]) >> 3
                assert isinstance(value, list)
                region = Region(name, place, element * len(value), name in self.kernel.written, element)
                self.regions[name] = region
                words.append(known(place, 32))
                place = (region.end + GAP + 15) & ~15
            elif isinstance(kind, Length):
                assert isinstance(value, int)
                words.append(known(value, 32))
            else:
                assert isinstance(value, Bits)
                words.append(value)
        stack = Region("the stack", STACK_TOP - STACK_BYTES, STACK_BYTES, True)
        flash = [
            Region(section.name, section.address, len(section.data), section.writable)
            for section in self.program.sections
            if section.data
        ]
        code = {section.address: section.data for section in self.program.sections}
        machine = PcodeMachine(
            self.convention.language,
            code,
            [*self.regions.values(), stack, *flash],
            self.solver,
            self.convention.thumb,
            stack=self.convention.stack,
        )
        machine.branches_on_secrets = "branch" in _allowed(self.kernel)
        state = State(Cells(), Cells(), self.program.symbols[self.function][0] & ~1, list(self.promised))
        for name, region in self.regions.items():
            cells = self.values[name]
            assert isinstance(cells, list)
            for i, cell in enumerate(cells):
                at = region.start + i * region.element
                state.memory.write(at, cell)
                for byte in range(region.element):
                    machine.first[at + byte] = bv.extract(cell, 8 * byte + 7, 8 * byte)
        convention, thumb = self.convention, int(self.convention.thumb)
        rest = words[len(convention.arguments) :]
        sp = (STACK_TOP - 256 - 4 * len(rest)) & ~15
        for i, word in enumerate(rest):
            state.memory.write(sp + 4 * i, word)
        if not convention.link:
            sp -= 4
            state.memory.write(sp, known(EXIT, 32))
        else:
            machine.put(state, machine.register(convention.link), known(EXIT | thumb, 32))
        for name, word in zip(convention.arguments, words, strict=False):
            machine.put(state, machine.register(name), word)
        machine.put(state, machine.register(convention.stack), known(sp, 32))
        self.sp = sp if convention.link else sp + 4
        self.before = {name: bv.unknown(f"saved_{name}", 32) for name in convention.saved}
        for name, value in self.before.items():
            machine.put(state, machine.register(name), value)
        return machine, state

    def compare(self, machine: PcodeMachine, end: State, verdict: Verdict) -> None:
        """Compare the end of one path with the kernel along that path."""
        waiting: list[list[bool]] = [[]]
        while waiting:
            meaning = Meaning(self.solver, list(end.path), waiting.pop())
            values = self.kernel_values(machine)
            result = meaning.call(self.kernel, values)
            waiting += meaning.open
            for term, what in self.differences(
                machine, end, values, result
            ):  # one by one: what is proved of one output helps with none of the others
                possible, model = self.solver.check([term], path=meaning.path)
                if possible is None:
                    verdict.outcome = UNDECIDED
                    verdict.reason = f"whether {what} differs: no answer of the solver in {self.solver.seconds:g} s"
                    return
                if possible:
                    verdict.outcome, verdict.reason = REFUTED, f"{what} differs"
                    verdict.counterexample = self.example(model)
                    return

    def kernel_values(self, machine: PcodeMachine) -> dict[str, Value]:
        """Return the inputs as the kernel takes them; large constant tables as the machine reads them."""
        made: dict[str, Value] = {}
        for name, value in self.inputs.items():
            made[name] = list(value) if isinstance(value, list) else value
            if isinstance(value, list) and len(value) > MANY and name not in self.kernel.written:
                made[name] = Table(value, partial(machine.table_read, name, width=value[0].width))
        return made

    def differences(
        self, machine: PcodeMachine, end: State, values: dict[str, Value], result: Bits | None
    ) -> list[tuple[Any, str]]:
        """Return, for each thing that must be equal, the condition that it is not."""
        found: list[tuple[Any, str]] = []

        def must_be(got: Bits, want: Bits, what: str) -> None:
            if got is want or (got.number is not None and got.number == want.number):
                return
            found.append((manager.mk_term(Kind.DISTINCT, [got.term, want.term]), what))

        for name, region in self.regions.items():
            want = values[name] if name in self.kernel.written else self.inputs[name]
            assert isinstance(want, list)
            for i, cell in enumerate(want):
                got = end.memory.read(region.start + i * region.element, region.element, machine.byte)
                must_be(got, cell, f"{name}[{i}]")
        if result is not None:
            assert self.kernel.result is not None
            width = int(self.kernel.result.storage[1:])
            got = machine.get(end, machine.register(self.convention.result))
            must_be(bv.extract(got, width - 1, 0), bv.extract(result, width - 1, 0), "the result")
        for name, value in self.before.items():
            must_be(machine.get(end, machine.register(name)), value, f"the saved register {name}")
        must_be(machine.get(end, machine.register(self.convention.stack)), known(self.sp, 32), "the stack pointer")
        return found

    def example(self, model: Any) -> dict[str, Any]:
        """Return the inputs of a counterexample as numbers."""

        def number(value: Any) -> Any:
            if isinstance(value, list):
                return [number(cell) for cell in value]
            return bv.value_in(model, value) if isinstance(value, Bits) else value

        return {name: number(value) for name, value in self.inputs.items()}


def _allowed(kernel: Kernel) -> set[str]:
    """Return the kinds of leaks that the kernel and those it calls declare."""
    from sensorsim.language.kernel import reachable

    declared = {kind for one in reachable([kernel]) for kind in one.exposes}
    return {{"operation": "division"}.get(kind, kind) for kind in declared}
