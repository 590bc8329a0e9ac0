"""How sure the prices are that our kernels really use: rows of each table by status.

Used is a row that prices an operation of a kernel, or an instruction that its machine code executed on a core that the
table is for.
"""

from functools import cache

import pytest
from rtl.comparing import drawn

from sensorsim._util.files import fill
from sensorsim.costing.prices import CLASSES, Cpu, load_cpu
from sensorsim.costing.pricing import KERNEL_WIDTH
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.count import count
from sensorsim.language.load import shipped
from sensorsim.machine.counting import BlockCounter, Tally
from sensorsim.machine.elf import read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.harness import run_on_core
from sensorsim.machine.instructions import Decoder
from sensorsim.machine.targets import TARGETS, compile_elf
from sensorsim.machine.vectors import as_arrays, by_plain_python, of_one_call


def code_for(core):
    """The first core whose code is the same."""
    return next(name for name, other in TARGETS.items() if other.clang == core.clang)


CODE = {table: code_for(core) for core in TARGETS.values() for table in (core.cpu, *core.same_code)}
CODE["sifive-e31"] = "rv32imc"
del CODE["cortex-m33"]  # which has no published cycles
QUICK = ("cortex-m0plus", "rv32imc")  # programs to compile


class Watched(Cpu):
    """A table that remembers which of its rows were asked for."""

    def __init__(self, cpu):
        super().__init__(cpu.name, cpu.title, cpu.unit, cpu.rows, cpu.path)
        object.__setattr__(self, "used", set())

    def instruction(self, mnemonic, operands, width):
        row = super().instruction(mnemonic, operands, width)
        self.used.add(row)
        return row


def records():
    """One call of every kernel that is not a part of another."""
    parts = {part for kernel in shipped().values() for part in kernel.called}
    kernels = [kernel for kernel in shipped().values() if kernel not in parts and not kernel.records]
    return [(kernel, drawn(kernel, kernel.lengths_at())) for kernel in kernels]


@cache
def operations():
    """The classes of all operations that the kernels execute."""
    made = set()
    for kernel, record in records():
        made |= {operation for _, operation in count(kernel, record)}
    return made & set(CLASSES)


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """All kernels in one program, for each target that is asked for."""
    folder, kernels = tmp_path_factory.mktemp("all"), [kernel for kernel, _ in records()]
    fill(folder, c_sources(kernels, "ss_", known_tables(kernels, "ss_"), ""))
    sources, include = sorted((folder / "src").glob("*.c")), [folder / "include", folder / "src"]

    @cache
    def machine(name):
        out = folder / f"{name}.elf"
        compile_elf(TARGETS[name], sources, include, "ss_spof", out, ["-Wl,--no-gc-sections"])
        return Machine(TARGETS[name], read_elf(out.read_bytes()))

    return machine


def rows_of_machine_code(machine, cpu):
    watched, names = Watched(cpu), Names([kernel for kernel, _ in records()], "ss_").functions
    counter = BlockCounter(machine, Decoder(machine.target, watched))
    for kernel, record in records():
        want = as_arrays(kernel, by_plain_python(kernel, record))
        machine.forget()
        assert run_on_core(machine, of_one_call(kernel, record), want, names[kernel], counter, Tally()) == 0
    return watched.used


def used_rows(cpu, machines):
    used = {cpu.price(cls, KERNEL_WIDTH, False, "native").row for cls in operations()}
    return used | (rows_of_machine_code(machines(CODE[cpu.name]), cpu) if cpu.name in CODE else set())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if CODE[name] in QUICK else [pytest.mark.slow]) for name in CODE]
)
def test_less_than_a_third_of_the_rows_in_use_are_estimates(name, machines):
    used = used_rows(load_cpu(name), machines)
    estimates = sorted(row.operation for row in used if row.flag("native") == "estimate")
    assert len(used) > 20
    assert len(estimates) / len(used) < 1 / 3, estimates
