"""The machine level of `sensorsim cost`: three levels that speak of the same record."""

import json

import pytest

from sensorsim._util.errors import InputError
from sensorsim._util.files import fill
from sensorsim.codegen.package_options import choose
from sensorsim.commands.program import main
from sensorsim.costing.cost_report import cost
from sensorsim.costing.prices import load_cpu
from sensorsim.language.load import shipped
from sensorsim.machine.counting import BlockCounter, Tally, worst_case
from sensorsim.machine.elf import read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.harness import CoreRun
from sensorsim.machine.instructions import Decoder
from sensorsim.machine.machine_cost import count_kernel, find_target, machine_cost, run_record
from sensorsim.machine.taint import find_data_branch
from sensorsim.machine.targets import TARGETS, compile_elf
from sensorsim.machine.vectors import of_one_call, random_vectors


@pytest.fixture(scope="module")
def report():
    return machine_cost(14, 7, ["cortex-m4"], variant="paper")


def test_levels_agree_with_where_they_come_from(report):
    spof, dpsgd = report.cases
    assert spof.paper == cost(cpu="cortex-m4").mechanisms["spof"].printed.total
    full = cost(cpu="cortex-m4", accounting="full", width=32).mechanisms["dpsgd"].traced
    assert dpsgd.kernel.total == pytest.approx(sum(dpsgd.kernel.costs.values())) == full.total
    for case in report.cases:
        assert case.instructions == sum(case.machine.counts.values())
        assert case.machine.total == pytest.approx(sum(case.machine.costs.values()))
    assert dpsgd.kernel.counts["divide"] == dpsgd.machine.counts["divide"] == 14 + 7 + 1 + 14
    assert spof.machine.counts["store"] >= 14 * 7 + 2 * 14


def test_energy():
    report = machine_cost(14, 7, [], "lean", chip="nrf52832")
    case = report.cases[0]
    assert case.cpu == "cortex-m4f"
    assert case.nanojoule == pytest.approx(case.machine.total * 174.0 / 1000)  # 58 uA/MHz at 3.0 V is 174 pJ a cycle


@pytest.mark.parametrize(
    "words", ["--cpu sifive-e31", "--cpu z80", "--battery-mah 100", "--chip nrf52832 --battery-mah -1",
              "--sweep n=1:3", "--l 20"],
)  # fmt: skip
def test_bad_input(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["cost", "--level", "machine", *words.split()])
    assert caught.value.code == 2 and capsys.readouterr().err.count("Error: ") == 1


def test_another_core_of_a_table_is_that_core():
    """RV32E has half the registers: the same table, other code."""
    small, usual = (machine_cost(14, 7, [name], "paper").cases[0] for name in ("rv32emc", "rv32imc"))
    assert (small.cpu, usual.cpu) == ("rv32emc", "ibex")
    assert small.instructions > usual.instructions


def test_targets_by_either_name():
    assert find_target("ibex").name == find_target("rv32imc").name == "rv32imc"
    assert find_target("cortex-m4f").name == "cortex-m4"
    assert find_target("avr").name == "avr" and find_target("msp430").name == "msp430"
    with pytest.raises(InputError, match="no machine code"):
        find_target("sifive-e31")


def test_an_avr_at_machine_level():
    """Its own emulator; near the cycles that a simulator measured of avr-gcc's code at an earlier version: 1744."""
    (case,) = (case for case in machine_cost(14, 7, ["avr"], "lean").cases if case.mechanism == "spof-lean")
    assert case.unit == "cycles" and 1200 < case.machine.total < 2600
    assert case.worst_case.cost is None and case.worst_case.why.startswith("no bound")


def test_table_json_and_figure(tmp_path, capsys):
    choices = ["cost", "--level", "machine", "--cpu", "cortex-m3", "--variant", "paper"]
    main([*choices, "--plot", str(tmp_path / "levels.svg")])
    capsys.readouterr()
    assert (tmp_path / "levels.svg").stat().st_size > 5000
    main([*choices, "--format", "json"])
    data = json.loads(capsys.readouterr().out)
    assert data["schema_version"] == 1
    spof, dpsgd = (case["worst_case"] for case in data["cases"])
    assert spof["cost"] >= data["cases"][0]["machine"]["total"] and dpsgd["cost"] is None
    assert "branches on data" in dpsgd["why"]


def test_the_worst_case_is_the_one_path_at_its_largest_prices(report):
    spof = report.cases[0]
    assert spof.worst_case.cost >= spof.machine.total
    assert spof.worst_case.unit == "cycles"
    assert "cortex-m4.csv" in spof.worst_case.core and "estimated" not in spof.worst_case.why
    # every division at 12 cycles, and nothing takes less than its one cycle
    (case,) = (case for case in machine_cost(14, 7, ["cortex-m4"], "lean").cases if case.mechanism == "dinar")
    divisions = case.machine.counts.get("divide", 0)
    assert case.worst_case.cost >= 12 * divisions + case.instructions - divisions


def test_estimated_prices_are_told():
    """Of the M33 Arm publishes no cycles: every row of its table is an estimate."""
    (case, *_) = machine_cost(14, 7, ["cortex-m33"], "paper").cases
    assert case.worst_case.cost > 0 and case.worst_case.why.endswith(", by estimated prices")


RARE = """from sensorsim.language import *
W = Q("w", "u32", 0, 0, 2**32 - 1, "any word")
@kernel()
def rare(a: W, b: W) -> W:
    v = xor(a, u32(0x12345678))
    flag = shru(and_(wrapping_subu(v, u32(1)), not_(v)), 31)
    p = wrapping_mulu(b, u32(2654435761))
    q = wrapping_mulu(xor(p, shru(p, 7)), wrapping_addu(p, u32(99)))
    return wrapping_mulu(flag, q)
"""


def _run(kernel, record, target, folder):
    return run_record(kernel, record, load_cpu(target), find_target(target), folder)


def test_a_branch_that_hardly_ever_goes_the_other_way(tmp_path):
    """The compiler makes a branch of a flag that is 1 for one word of 2^32; no tried input finds that word."""
    (tmp_path / "rare.py").write_text(RARE, "utf-8")
    (kernel,) = choose([str(tmp_path / "rare.py")], "paper")
    usual, seldom = (_run(kernel, {"a": a, "b": 12345}, "cortex-m0plus", tmp_path) for a in (0, 0x12345678))
    assert seldom.sums.price > usual.sums.price
    assert usual.worst_case.cost is None
    assert "the compiled code branches on data, `b" in usual.worst_case.why
    # Where the compiler makes none, every word takes the one path.
    usual, seldom = (_run(kernel, {"a": a, "b": 12345}, "ibex", tmp_path) for a in (0, 0x12345678))
    assert usual.sums.price == seldom.sums.price <= usual.worst_case.cost == seldom.worst_case.cost


def _followed(target, lines, tmp_path, arguments):
    """What is said of code written by hand, that is called as a kernel with one value and one length."""
    (tmp_path / "f.py").write_text(
        "from sensorsim.language import Length, Q, kernel\n"
        'W = Q("w", "u32", 0, 0, 2**32 - 1, "any word")\nN = Length("n", 1, 64, "things", typical=14)\n'
        "@kernel()\ndef f(a: W, n: N) -> W:\n    return a\n",
        "utf-8",
    )
    (kernel,) = choose([str(tmp_path / "f.py")], "paper")
    code = "".join(f'"{line}\\n"' for line in lines)
    head = "__attribute__((naked)) void ss_f(void)"
    (tmp_path / "f.c").write_text(f"{head};\n{head} {{ __asm__({code}); }}\n", "utf-8")
    options = ("-Wno-language-extension-token", "-Wno-pedantic")
    elf = compile_elf(TARGETS[target], [tmp_path / "f.c"], [], "ss_f", tmp_path / "f.elf", options)
    machine = Machine(TARGETS[target], read_elf(elf.read_bytes()))
    decoder = Decoder(TARGETS[target], load_cpu(TARGETS[target].cpu))
    return find_data_branch(machine, decoder, CoreRun(machine, of_one_call(kernel, arguments), "ss_f"))


@pytest.mark.parametrize(
    ("target", "lines", "found"),
    [
        ("cortex-m4", ["cmp r1, #0", "beq 1f", "adds r0, #1", "1: bx lr"], ""),  # the length
        ("cortex-m4", ["cmp r0, #0", "beq 1f", "adds r0, #1", "1: bx lr"], "`beq"),
        ("cortex-m4", ["cmp r0, #9", "it hi", "movhi r1, #1", "cmp r1, #1", "beq 1f", "1: bx lr"], "`beq"),  # left out
        ("cortex-m4", ["cmp r0, #9", "it hi", "movhi r1, #1", "movs r1, #1", "cmp r1, #1", "beq 1f", "1: bx lr"], ""),
        ("cortex-m4", ["cmp r0, #9", "it hi", "bxhi lr", "bx lr"], "`bxhi"),  # a return that this call does not take
        ("cortex-m4", ["cmp r0, #9", "it ls", "bxls lr", "bx lr"], "`bxls"),  # and one that it takes
        ("cortex-m4", ["cmp r0, #0", "ands r1, r1, #1", "bhs 1f", "1: bx lr"], "`bhs"),  # ANDS leaves the carry
        ("cortex-m4", ["cmp r0, #0", "ands r1, r1, #1", "bne 1f", "1: bx lr"], ""),
        ("cortex-m4", ["push {r0, r1}", "pop {r2, r3}", "cbz r3, 1f", "nop", "1: bx lr"], ""),
        ("cortex-m4", ["push {r0, r1}", "pop {r2, r3}", "cbz r2, 1f", "nop", "1: bx lr"], "`cbz"),
        ("cortex-m0plus", ["push {r4, lr}", "movs r4, r0", "pop {r4, pc}"], ""),
        ("rv32imc", ["beqz a1, 1f", "addi a0, a0, 1", "1: ret"], ""),
        ("rv32imc", ["addi sp, sp, -16", "sw a0, 4(sp)", "lw a2, 4(sp)", "addi sp, sp, 16", "bnez a2, 1f", "1: ret"],
         "`c.bnez"),
        ("rv32imc", ["j 1f", "addi a0, a0, 1", "1: ret"], ""),
        ("k7", ["movl 8(%esp), %ecx", "1: decl %ecx", "jne 1b", "ret"], ""),
        ("k7", ["movl 4(%esp), %ecx", "testl %ecx, %ecx", "jne 1f", "1: ret"], "`jne"),
        ("k7", ["movl 4(%esp), %eax", "movb %al, %cl", "testb %cl, %cl", "jne 1f", "1: ret"], "`jne"),
    ],
)  # fmt: skip
def test_what_a_jump_depends_on(target, lines, found, tmp_path):
    said = _followed(target, lines, tmp_path, {"a": 3, "n": 5})
    assert (found in said and "branches on data" in said) if found else said == ""


@pytest.mark.slow
def test_no_bound_where_something_branches_on_data(tmp_path):
    soft, branching = machine_cost(14, 7, ["cortex-m0plus"], "paper").cases[1], machine_cost(14, 7, ["ibex"], "lean")
    assert soft.mechanism == "dpsgd"
    assert soft.worst_case.cost is None
    assert "no bound: the steps of __aeabi_uidiv" in soft.worst_case.why
    lean = {case.mechanism: case.worst_case for case in branching.cases}["dpsgd-lean"]
    assert lean.cost is None
    assert "branches on data, `if geu(" in lean.why
    assert count_kernel(shipped()["choice.choose"], {}, "cortex-m4")["machine_worst_case"] > 0


@pytest.mark.parametrize("target", ["cv32e40p", "rv32imc", "cortex-m3"])
def test_no_call_costs_more_than_the_bound(target, tmp_path):
    kernel, cpu = shipped()["rows.release_rows"], load_cpu(TARGETS[target].cpu)
    fill(tmp_path, kernel.c())
    sources, include = sorted(tmp_path.rglob("*.c")), [tmp_path / "include", tmp_path / "src"]
    elf = compile_elf(TARGETS[target], sources, include, "ss_release_rows", tmp_path / "k.elf")
    machine, tally = Machine(TARGETS[target], read_elf(elf.read_bytes())), Tally()
    counter = BlockCounter(machine, Decoder(TARGETS[target], cpu))
    for call in CoreRun(machine, random_vectors(kernel, {}, 200, 3), "ss_release_rows").calls():
        counter.take(tally)
        if call == 0:
            bound = worst_case(kernel, counter, tally, cpu, "ss_").cost
    assert max(tally.prices) <= bound


def test_a_worst_case_counted_by_hand(tmp_path):
    """On the CV32E40P a jump is typically shorter than at most: a loop of n rounds, then a return."""
    source = tmp_path / "f.c"
    source.write_text(
        "__attribute__((naked)) void ss_f(void);\n__attribute__((naked)) void ss_f(void) { __asm__("
        '"li a1, 0\\n1: add a1, a1, a0\\naddi a0, a0, -1\\nbnez a0, 1b\\nmv a0, a1\\nret\\n"); }\n',
        "utf-8",
    )
    target, cpu = TARGETS["cv32e40p"], load_cpu("cv32e40p")
    options = ("-Wno-language-extension-token", "-Wno-pedantic")
    elf = compile_elf(target, [source], [], "ss_f", tmp_path / "f.elf", options)
    machine, tally = Machine(target, read_elf(elf.read_bytes())), Tally()
    counter = BlockCounter(machine, Decoder(target, cpu))
    for n in (1, 5):
        assert machine.call("ss_f", [n]) == n * (n + 1) // 2
        counter.take(tally)
    branch, back = cpu.instruction("BNEZ", "r,rel", 32), cpu.instruction("RET", "", 32)
    assert branch.typical < branch.max
    slow = back.max + (back.max - back.typical)  # it may land badly, and so may what called it
    worst = [part.worst for part in tally.parts.values()]
    assert worst == [2 + 2 * n + branch.max * (n - 1) + branch.min + slow for n in (1, 5)]
