"""The prices, against figures taken by hand from the makers' manuals and the instruction tables."""

import pytest

from sensorsim._util.errors import InputError
from sensorsim.costing.chips import chip_names, load_chip, load_chips
from sensorsim.costing.csv_schema import Span, number, span
from sensorsim.costing.prices import INTEGER_CLASSES, cpu_names, load_cpu, read_cpu

# K7: macro-operations, then latency, at 8, 16, 32 bit; the same for both signs where there is one line.
K7_ANY = dict.fromkeys(INTEGER_CLASSES, ((1, 1, 1), (1, 1, 1))) | {
    "LOAD": ((1, 1, 1), (4, 4, 3)),
    "STORE": ((1, 1, 1), (2, 2, 2)),
    "MUL": ((3, 3, 3), (3, 3, 4)),
}
K7_DIV = {False: ((32, 47, 79), (24, 24, 40)), True: ((41, 56, 88), (17, 25, 41))}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("position, width", [(0, 8), (1, 16), (2, 32)])
@pytest.mark.parametrize("cls", INTEGER_CLASSES)
def test_k7_integer_prices(cls, position, width, signed):
    native, latency = K7_DIV[signed] if cls == "DIV" else K7_ANY[cls]
    k7 = load_cpu("k7")
    price = k7.price(cls, width, signed, "native")
    assert (price.min, price.typical, price.max, price.unit) == (native[position],) * 3 + ("macro-ops",)
    assert isinstance(price.typical, int)
    delay = k7.price(cls, width, signed, "latency")
    slow = 4 if (cls, width) == ("MUL", 16) else latency[position]  # DX comes one cycle after AX
    assert (delay.min, delay.typical, delay.max, delay.unit) == (latency[position], latency[position], slow, "cycles")


@pytest.mark.parametrize(
    "cls, width, latency",
    [
        ("FADD", 80, (4, 4, 4)),
        ("FSUB", 80, (4, 4, 4)),
        ("FMUL", 80, (4, 4, 4)),
        ("FDIV", 80, (11, 20, 25)),
        ("FSQRT", 80, (35, 35, 35)),
        ("FADD", "f32", (4, 4, 4)),
        ("FSUB", "f32", (4, 4, 4)),
        ("FMUL", "f32", (4, 4, 4)),
        ("FDIV", "f32", (11, 16, 16)),
        ("FSQRT", "f32", (19, 19, 19)),
    ],
)
def test_k7_float_prices(cls, width, latency):
    k7 = load_cpu("k7")
    price = k7.price(cls, width, True, "latency")
    assert (price.min, price.typical, price.max) == latency
    native = k7.price(cls, width, True, "native")
    assert (native.min, native.typical, native.max) == (1, 1, 1)


# (cpu, class, width, signed): min, typical, max in cycles, from the manuals and measurements.
CYCLES = [
    ("cortex-m0plus", "ADD", 32, False, (1, 1, 1)),
    ("cortex-m0plus", "MUL", 32, False, (1, 1, 1)),
    ("cortex-m0plus", "LOAD", 32, False, (1, 2, 2)),
    ("cortex-m0plus", "BRANCH", 32, False, (1, 2, 2)),
    ("cortex-m0plus", "DIV", 16, False, (12, 69, 112)),
    ("cortex-m0plus", "DIV", 32, False, (12, 125, 230)),
    ("cortex-m0plus", "DIV", 32, True, (82, 139, 199)),
    ("cortex-m0plus", "FADD", "f32", True, (66, 96, 129)),
    ("cortex-m0plus", "FSUB", "f32", True, (71, 103, 136)),
    ("cortex-m0plus", "FMUL", "f32", True, (143, 144, 145)),
    ("cortex-m0plus", "FDIV", "f32", True, (440, 451, 467)),
    ("cortex-m0plus", "FSQRT", "f32", True, (381, 400, 417)),
    ("cortex-m3", "DIV", 32, True, (2, 12, 12)),
    ("cortex-m3", "MUL", 32, True, (1, 1, 1)),
    ("cortex-m3", "STORE", 32, True, (1, 2, 2)),
    ("cortex-m4", "DIV", 32, False, (2, 12, 12)),
    ("cortex-m4", "DIV", 8, False, (2, 12, 12)),
    ("cortex-m4", "BRANCH", 32, False, (1, 4, 4)),
    ("cortex-m4f", "DIV", 32, False, (2, 12, 12)),  # from the table that it extends
    ("cortex-m4f", "FDIV", "f32", False, (14, 14, 14)),
    ("cortex-m4f", "FSQRT", "f32", False, (14, 14, 14)),
    ("cortex-m4f", "FADD", "f32", False, (1, 1, 1)),
    ("ibex", "DIV", 32, False, (37, 37, 37)),
    ("ibex", "DIV", 32, True, (37, 37, 37)),
    ("ibex", "MUL", 32, False, (3, 3, 3)),
    ("ibex", "LOAD", 32, False, (2, 2, 2)),
    ("ibex", "BRANCH", 32, False, (1, 3, 4)),
    ("cv32e40p", "DIV", 32, False, (3, 20, 35)),
    ("cv32e40p", "MUL", 32, False, (1, 1, 1)),
    ("cv32e40p", "BRANCH", 32, False, (1, 3, 4)),
    ("sifive-e31", "DIV", 32, False, (2, 33, 33)),
    ("sifive-e31", "MUL", 32, False, (5, 5, 5)),
    ("sifive-e31", "LOAD", 8, False, (3, 3, 3)),
    ("sifive-e31", "LOAD", 32, False, (2, 2, 2)),
    ("sifive-e31", "BRANCH", 32, False, (1, 1, 4)),
    ("avr", "ADD", 8, False, (1, 1, 1)),
    ("avr", "ADD", 32, False, (4, 4, 4)),
    ("avr", "INDEX", 8, False, (2, 2, 2)),
    ("avr", "MUL", 8, False, (4, 4, 4)),
    ("avr", "MUL", 16, False, (10, 10, 10)),
    ("avr", "MUL", 32, False, (73, 73, 73)),
    ("avr", "DIV", 8, False, (80, 80, 80)),
    ("avr", "DIV", 16, False, (197, 201, 201)),
    ("avr", "DIV", 16, True, (215, 242, 242)),
    ("avr", "DIV", 32, False, (582, 618, 618)),
    ("avr", "FADD", "f32", True, (88, 154, 154)),
    ("avr", "FMUL", "f32", True, (124, 142, 142)),
    ("avr", "FDIV", "f32", True, (451, 493, 493)),
    ("avr", "FSQRT", "f32", True, (465, 503, 503)),
]


@pytest.mark.parametrize("cpu, cls, width, signed, cycles", CYCLES)
def test_microcontroller_cycles(cpu, cls, width, signed, cycles):
    price = load_cpu(cpu).price(cls, width, signed, "native")
    assert (price.min, price.typical, price.max) == cycles
    assert price.unit == "cycles"


@pytest.mark.parametrize("name", cpu_names())
def test_every_processor_prices_every_integer_class_at_every_width(name):
    cpu = load_cpu(name)
    for cls in INTEGER_CLASSES:
        for width in (8, 16, 32):
            for signed in (False, True):
                price = cpu.price(cls, width, signed, "native")
                assert 0 < price.typical <= price.max
                assert price.unit == cpu.unit


def test_a_dispute_about_latency_does_not_mark_macro_ops():
    k7 = load_cpu("k7")
    row = k7.price("DIV", 8, False, "latency").row
    assert (row.flag("latency"), row.flag("native")) == ("disputed", "")
    assert k7.price("DIV", 16, False, "latency").row.flag("latency") == ""
    assert k7.price("FSQRT", 80, True, "native").row.flag("native") == ""
    assert k7.price("FSQRT", 80, True, "native").row.flag("throughput") == "disputed"
    assert k7.price("BRANCH", 8, False, "latency").row.flag("latency") == "estimate"
    assert k7.price("BRANCH", 8, False, "native").row.flag("native") == ""
    assert k7.price("SELECT", 8, False, "native").row.flag("native") == "estimate"
    assert k7.price("SELECT", 32, False, "native").row.flag("native") == ""


@pytest.mark.parametrize("width, cls", [(64, "DIV"), ("f32", "AND"), (16, "FADD"), (32, "EXP")])
def test_an_operation_without_a_price_is_an_error(cls, width):
    with pytest.raises(InputError, match=rf"k7\.csv has no price for {cls}, width {width}"):
        load_cpu("k7").price(cls, width, True, "native")


def test_a_latency_that_is_not_known_is_an_error():
    with pytest.raises(InputError, match=r"cortex-m4\.csv has no latency for ADD at width 32 .*cycles"):
        load_cpu("cortex-m4").price("ADD", 32, False, "latency")


@pytest.mark.parametrize("name, hint", [("k8", "did you mean k7"), ("cortex-m0+", "cortex-m0plus"), ("zzzz", "k7")])
def test_an_unknown_processor_is_an_error_that_lists_the_known(name, hint):
    with pytest.raises(InputError, match=hint) as error:
        load_cpu(name)
    assert all(known in str(error.value) for known in cpu_names())


@pytest.mark.parametrize("name", ["../cpu/k7", "", "k7/"])
def test_a_processor_is_a_name_and_not_a_path(name):
    with pytest.raises(InputError, match="is not known"):
        load_cpu(name)


@pytest.mark.parametrize(
    "mnemonic, operands, width, cost",
    [
        ("mov", "r,m", 32, 1),
        ("JNE", "rel", 32, 1),
        ("CMOVGE", "r,r", 32, 1),
        ("SETNBE", "r", 8, 1),
        ("IMUL", "r,r,i", 32, 2),
        ("IMUL", "r", 32, 3),
        ("IDIV", "m", 32, 89),
        ("PUSH", "r", 32, 1),
        ("POP", "r", 32, 2),
        ("RET", "", 32, 2),
        ("CALL", "rel", 32, 3),
        ("LEA", "r,m", 16, 2),
        ("LEA", "r,m", 32, 1),
        ("SHLD", "r,r,CL", 32, 7),
        ("XCHG", "r,r", 32, 3),
        ("FSTP", "m", 80, 10),
        ("FYL2X", "", 80, 49),
    ],
)
def test_k7_instructions(mnemonic, operands, width, cost):
    assert load_cpu("k7").instruction(mnemonic, operands, width).cost() == Span(cost, cost, cost)


def test_an_exact_mnemonic_goes_before_a_condition():
    m0 = load_cpu("cortex-m0plus")
    assert m0.instruction("BL", "rel", 32).cost() == Span(3, 3, 3)  # B with condition L would be 1 to 2
    assert m0.instruction("BLS", "rel", 32).operation == "Bcc"
    assert m0.instruction("BCC", "rel", 32).operation == "Bcc"
    with pytest.raises(InputError, match="no row for the instruction BXX"):
        m0.instruction("BXX", "rel", 32)


def test_register_lists():
    m0, m4 = load_cpu("cortex-m0plus"), load_cpu("cortex-m4")
    assert m0.instruction("PUSH", "regs", 32).cost(registers=3) == Span(4, 4, 4)
    assert m0.instruction("POP", "regs+pc", 32).cost(registers=3) == Span(6, 6, 6)
    assert m4.instruction("POP", "regs+pc", 32).cost(registers=3) == Span(5, 7, 7)


@pytest.mark.parametrize("form", [("CPUID", "", 32), ("MOV", "m,m", 32), ("CMOVNE", "r,r", 64), ("JXX", "rel", 32)])
def test_an_instruction_without_a_row_is_an_error(form):
    with pytest.raises(InputError, match=rf"k7\.csv has no row for the instruction {form[0]}"):
        load_cpu("k7").instruction(*form)


def test_chips():
    nrf = load_chip("nRF52832")
    assert (nrf.chip, nrf.cpu, nrf.uA_per_MHz, nrf.pJ_per_cycle) == ("nrf52832", "cortex-m4f", 58, 174)
    assert chip_names() == [chip.chip for chip in load_chips()]


def test_an_unknown_chip_is_an_error_that_lists_the_known():
    with pytest.raises(InputError, match=r"did you mean nrf52832.*atmega328p"):
        load_chip("nrf5283")


def test_numbers():
    for text, value in {"3": 3, "2.5": 2.5, "1/3": 1 / 3, "0.4": 0.4, "10": 10}.items():
        assert number(text) == value
        assert isinstance(number(text), int) == text.isdecimal()
    for text in ("", "x", "-1", "1/0", "1e3", "nan", "1/", "/2", "1.5/2", "1/2.5", "1+N", ".", "²"):
        with pytest.raises(ValueError):
            number(text)


def test_spans():
    assert span("4") == Span(4, 4, 4)
    assert span("11..25") == Span(11, 25, 25)
    assert span("11..20..25") == Span(11, 20, 25)
    with pytest.raises(ValueError):
        span("1..2..3..4")


def test_a_broken_table_is_one_sentence(tmp_path):
    broken = tmp_path / "mine.csv"
    broken.write_text("# title: Mine\nwidth,cost\n32,1\n")
    with pytest.raises(InputError, match=r"mine\.csv cannot be read .*missing column operation"):
        read_cpu(broken)
    text = load_cpu("k7").path.read_text().replace("macro-ops,32,32,32", "macro-ops,many,32,32")
    broken.write_text(text)
    with pytest.raises(InputError, match="'many' is not a number"):
        read_cpu(broken)
