"""A sensor whose packets are sketches: its C beside the firmware model, and what verify says when something is changed.

Whole exports and verifications are slow; the fast tests are of a package without what only documents it.
"""

import json
import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import naive_sketch
import pytest
from exported import BOARDS, run

from sensorsim._util.errors import FailedProofError
from sensorsim._util.files import fill
from sensorsim.codegen.golden import golden_json, golden_vectors, kernel_selftest, sensor_selftest
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import Package, open_package
from sensorsim.codegen.package_options import Options, choose
from sensorsim.codegen.package_tables import encoder_file, encoder_record, encoder_tables
from sensorsim.codegen.sensor_package import SensorCode, firmware_of
from sensorsim.codegen.write import write_folder
from sensorsim.commands.program import main
from sensorsim.device.entropy import SeededEntropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.sensor import Clock, Sensor
from sensorsim.device.sketch_file import sketch_text, write_sketch
from sensorsim.device.sketches import Sketch
from sensorsim.device.status import Status
from sensorsim.encoders import read_encoder
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.translation_units import c_sources
from sensorsim.machine.emulated_sensor import EmulatedSensor, link_sensor
from sensorsim.machine.targets import TARGETS
from sensorsim.noise.noise_table import certified, make_table, ready_table
from sensorsim.noise.table_file import table_bytes, write_table
from sensorsim.verification import binary
from sensorsim.verification.bits import Effort, Work, fixed_arguments
from sensorsim.verification.every_draw import draw_proof
from sensorsim.verification.package_checks import table_proofs
from sensorsim.verification.sensor_draws import record_for_sketch
from sensorsim.verification.verification import selftest_on_host, verify

ENCODER = Path(__file__).parents[2] / "tables" / "encoders" / "default.json"
CLANG_M0 = f"{sys.executable} -m ziglang cc -target thumb-freestanding-eabi -mcpu=cortex_m0plus -O2"
SMALL = Effort(40, 40, 64, 40)
ONE = 1 << 15


def some_sketch(n=14, root=1.7, bits=10, seed=3):
    chance = random.Random(seed)
    return Sketch.of([chance.uniform(0.05, 0.6) for _ in range(n)], root, bits)


def light_package(folder, firmware, prefix="ss_"):
    """A sensor's package with its self-test, without what only documents it: a full export takes half a minute."""
    code = SensorCode(firmware, prefix, "table.txt")
    vectors = golden_vectors(code.kernels)
    texts = code.sources("") | sensor_selftest(code, "")
    texts |= kernel_selftest(vectors, code.names)
    texts["test/golden.json"] = json.dumps({"vectors": golden_json(vectors, code.names)})
    texts["hospital/table.txt"] = table_bytes(code.table).decode("ascii")
    texts["hospital/sketch.json"] = sketch_text(firmware.sketch)
    fill(folder, texts | {"MANIFEST.json": "{}"})
    given = {"asked": [], "variant": "lean", "noise": "table.txt", "encoder": None, "sketch": "sketch.json"}
    given |= {"budget_epsilon": str(firmware.budget), "budget_days": None, "reserve": None, "packet_numbers": []}
    given |= {"prefix": prefix, "spdx": "MIT", "allow_uncertified": False}
    fields = [{"what": what, "first_bit": at, "bits": bits} for what, at, bits in firmware.layout.fields()]
    sensor = {"packet": {"bytes": firmware.layout.bytes, "fields": fields}}
    sensor["epsilon_of_a_release"] = str(firmware.epsilon)
    manifest = {"private": True, "parameters": given, "noise_table": code.noise.record, "sketch": {"file": "s"}}
    return Package(folder, manifest | {"sensor": sensor}, tuple(code.kernels))


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """With so many directions that the number of one is half of the word that picks it, and must not be found."""
    made = Firmware(ready_table(1.6, 1), budget_epsilon=8, sketch=some_sketch(bits=16))
    return light_package(tmp_path_factory.mktemp("package"), made)


def altered(package, folder, path, old, new):
    """The package with one thing changed."""
    for name in ("src", "include", "test", "hospital"):
        fill(folder, {p.relative_to(package.folder).as_posix(): p.read_text("utf-8")
                      for p in (package.folder / name).iterdir()})  # fmt: skip
    text = (folder / path).read_text("utf-8")
    assert len(re.findall(old, text)) == 1
    (folder / path).write_text(re.sub(old, new, text), "utf-8")
    return replace(package, folder=folder)


def lives(firmware, target, folder, releases, prefix="ss_"):
    """Packets of the model and of the compiled C, with the same entropy, clock and records."""
    fill(folder, SensorCode(firmware, prefix).sources(""))
    sources, include = sorted((folder / "src").glob("*.c")), [folder / "include", folder / "src"]
    program = link_sensor(TARGETS[target], sources, include, prefix, folder)
    chance, clocks = random.Random(1), (Clock(100), Clock(100))
    model = Sensor(firmware, entropy=SeededEntropy(1), epoch=clocks[0])
    core = EmulatedSensor(TARGETS[target], program, firmware, prefix, entropy=SeededEntropy(1), epoch=clocks[1])
    assert model.open() == core.open() == Status.OK
    made = []
    for _ in range(releases):
        x = [chance.choice((0, 32767, 32768, 65535, chance.randrange(ONE))) for _ in range(firmware.n)]
        made.append((model.release(x), core.release(x)))
        for clock in clocks:
            clock.epoch += 1
    return made


def firmware(name):
    """One sensor of every kind of draw, with few and many features and directions."""
    if name == "search":
        return Firmware(ready_table(1.6, 1), sketch=some_sketch())
    if name == "one bit":
        return Firmware(ready_table(0.4, 1), numbers=("epoch", "sequence"), sketch=some_sketch(1, 0.5, 1))
    if name == "lookup":
        return Firmware(certified(make_table("rows", 2, 3, 1, count_bits=8)), sketch=some_sketch(3, 4096, 16))
    return Firmware(ready_table(1.6, 1, "stairs"), numbers=("sequence",), sketch=some_sketch(40, 3, 7))


@pytest.mark.parametrize("name", ["search", "one bit", "stairs", pytest.param("lookup", marks=pytest.mark.slow)])
def test_the_c_sends_the_models_packets(tmp_path, name):
    made = firmware(name)
    found = lives(made, "cortex-m0plus", tmp_path, 60)
    assert all(ours == theirs and ours[0] == Status.OK for ours, theirs in found)
    layout = made.layout
    numbers = {int.from_bytes(one[0][1], "little") >> layout.chosen_at & (1 << layout.which_bits) - 1 for one in found}
    assert len(numbers) > min(40, made.features - 1) and max(numbers) < made.features


@pytest.mark.slow
@pytest.mark.parametrize("target", [name for name in TARGETS if name != "cortex-m0plus"])
def test_every_core_sends_the_models_packets(tmp_path, target):
    made = Firmware(ready_table(1.6, 1), sketch=some_sketch(300, 9.5, 16))
    assert all(ours == theirs for ours, theirs in lives(made, target, tmp_path, 200, "my_"))


def test_records_are_aimed_at_a_sketch():
    """One step of what is squared is up to 4 units of u. Where a direction is almost empty u may be out of reach."""
    sketch, chance, reached = some_sketch(), random.Random(5), 0
    for u in (0, 1, 100, 4096, 16384, 30000, 32767, 32768):
        for number in range(40, 60):
            x = record_for_sketch(sketch, number, u, chance)
            ref, comp = (
                naive_sketch.sketch(x, sketch.centre, number, sketch.factor, sketch.halvings),
                int(sketch.value([x], [number])[0]),
            )
            assert ref == comp and comp <= u + 4 and all(0 <= value <= ONE for value in x)
            reached += abs(comp - u) <= 4
    assert reached > 100  # of 160


def test_the_header_says_what_a_packet_protects(package):
    text = re.sub(r"\s*\n \*\s*", " ", (package.folder / "include/ss_sensor.h").read_text())
    assert "the square of the record along it" in text and "public centre" in text and "one of 65536 public" in text
    assert "uint16_t u" not in text  # the square is never in memory
    assert "hidden" not in text


def test_the_table_of_a_sketch_is_for_one_number(package):
    """Whatever number of features it was made to pick from: the package is the same."""
    sketch, table = some_sketch(), ready_table(1.6, 1)
    made = [SensorCode(Firmware(replace(table, features=n), sketch=sketch)).sources("") for n in (1, 14)]
    assert made[0] == made[1]
    lengths, values = fixed_arguments(package, next(one for one in package.kernels if one.name == "sketch"))
    assert lengths == {"n": 14, "halvings": sketch.halvings}
    assert values == {"factor": sketch.factor, "centre": list(sketch.centre)}
    drawn, _ = fixed_arguments(package, next(one for one in package.kernels if one.name.startswith("release")))
    assert drawn["n"] == 1


@pytest.mark.slow
def test_the_package_is_proved_on_host_and_core(package, tmp_path):
    """The steps of `sensorsim verify` but for the files: self-test with packets, table, every draw, bits of kernels."""
    assert selftest_on_host(package, tmp_path) == 0
    proofs = [*table_proofs(package, ["host", "cortex-m0plus"], tmp_path), *draw_proof(package, tmp_path)]
    assert [one.name for one in proofs] == ["table", "certificate", "every draw"]
    assert all(one.passed for one in proofs), proofs
    assert "ss_sketch_centre with 14" in proofs[0].detail and "as certified" in proofs[2].detail
    work = Work(package, tmp_path, SMALL, 0)
    for kernel in package.kernels:
        if kernel.name in ("sketch", "direction", "pack_direction"):
            result = work.on_core(TARGETS["cortex-m0plus"], kernel)
            assert result.passed and result.vectors > 40 and not result.leaks
            assert kernel.name == "pack_direction" or result.proved_same_path


CHANGES = {
    "centre": ("src/ss_tables.c", r"(ss_sketch_centre\[\w+\] = \{\s*)\d+U", r"\g<1>9U", "ss_sketch_centre[0]"),
    "bound": ("src/ss_tables.h", r"SS_SKETCH_FACTOR \d+", "SS_SKETCH_FACTOR 32768", "SS_SKETCH_FACTOR is 32768"),
    "directions": ("src/ss_tables.h", r"(DIRECTION_BITS) \d+", r"\1 3", "SS_SKETCH_DIRECTION_BITS is 3"),
    "table": ("src/ss_tables.c", r"(ss_noise_table\[\w+\] = \{\s*)\d+U", r"\g<1>9U", "ss_noise_table[0]"),
    "features": ("src/ss_tables.h", r"SS_NOISE_N 1", "SS_NOISE_N 2", "SS_NOISE_N is 2"),
    "file": ("hospital/sketch.json", r'"halvings": \d+', '"halvings": 5', "SS_SKETCH_HALVINGS is 1"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_changed_in_the_tables_is_named(package, tmp_path, what):
    path, old, new, said = CHANGES[what]
    other = altered(package, tmp_path / "p", path, old, new)
    found = table_proofs(other, ["cortex-m0plus"], tmp_path)[0]
    assert not found.passed and said in found.detail


@pytest.mark.parametrize(
    ("old", "new"),
    [(r"ss_mulu\(state, SS_MULTIPLIER\)", "ss_mulu(state, 1664527U)"),
     pytest.param(r"word >> \(32U - direction_bits\)", "(word >> (32U - direction_bits)) ^ 1U", marks=pytest.mark.slow),
     pytest.param(r"SS_ROUNDING, 30U", "SS_ROUNDING, 29U", marks=pytest.mark.slow)],
)  # fmt: skip
def test_another_direction_code_is_found(package, tmp_path, old, new):
    """In machine code by the bits of the kernel, on the device by the self-test's packets."""
    other = altered(package, tmp_path / "p", "src/ss_sketch.h", old, new)
    assert selftest_on_host(other, tmp_path) != 0
    kernel = next(one for one in other.kernels if one.name == ("direction" if "word" in old else "sketch"))
    with pytest.raises(FailedProofError, match="self-test"):
        Work(other, tmp_path, SMALL, 0).on_core(TARGETS["cortex-m0plus"], kernel)


@pytest.fixture
def opened(package, monkeypatch):
    monkeypatch.setattr(binary, "open_package", lambda folder, trust=False: package)
    monkeypatch.setattr(binary, "differences", lambda package: [])
    monkeypatch.setattr(binary, "PACKETS", 60)
    monkeypatch.setattr(binary, "RELEASES", 40)
    monkeypatch.setattr(binary, "TRIALS", 12)
    return package


def application(package, out, command=CLANG_M0):
    """An image as its makers link it."""
    words = command.split()
    folders = [f"-I{folder}" for folder in package.include[:2]]
    linked = ["-nostdlib", "-Wl,--gc-sections", "-Wl,--entry=main_loop", "-T", BOARDS / "application.ld"]
    pieces = ["-ffunction-sections", "-fdata-sections"]
    run(*words, *pieces, *linked, *folders, *package.sources, BOARDS / "application.c", "-o", out)
    return out


def proof(report, name):
    (found,) = [one for one in report.proofs if one.name == name]
    return found


@pytest.mark.slow
def test_an_image_is_proved_and_what_it_leaves_is_found(opened, tmp_path):
    """The life, the draws at the edges of the table, path, addresses, wiped memory; then u that is kept."""
    report = binary.verify_elf(application(opened, tmp_path / "app.elf"), opened.folder)
    assert report.passed, [one for one in report.proofs if not one.passed]
    assert "as near to it as can be" in proof(report, "draws").detail
    kept = "((volatile uint16_t *)(chosen + 4))[0] = (uint16_t)ss_sketch(x, centre, number, factor, n, halvings);"
    stored = "chosen[0U] = number;"
    other = altered(opened, tmp_path / "p", "src/ss_sketch.h", re.escape(stored), f"{stored} {kept}")
    report = binary.verify_elf(application(other, tmp_path / "left.elf"), opened.folder)
    assert not report.passed and "the sketch of the record" in proof(report, "wiped").detail


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "old", "new", "name"),
    [("src/ss_sensor.c", "SS_SKETCH_FACTOR", "32768U", "bits"), ("src/ss_sketch.h", r"word\[1U\]", "word[0U]", "bits"),
     (*CHANGES["centre"][:3], "table"), (*CHANGES["table"][:3], "table")],
)  # fmt: skip
def test_an_image_with_other_numbers_fails(opened, tmp_path, path, old, new, name):
    other = altered(opened, tmp_path / "p", path, old, new)
    report = binary.verify_elf(application(other, tmp_path / "app.elf"), opened.folder)
    assert not report.passed and not proof(report, name).passed


REFUSED = {
    "with an encoder": (["--sketch", "s.json", "--encoder", str(ENCODER)], "leave out --encoder or --sketch"),
    "with single kernels": (["--sketch", "s.json", "--kernels", "sampled"], "--sketch is for the sensor"),
    "all features": (["--sketch", "s.json", "--noise", "all.txt"], "use --release 1"),
    "no file": (["--sketch", "absent.json"], "cannot read absent.json"),
    "no sketch": (["--sketch", str(ENCODER)], "is no sketch of sensorsim"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_no_sensor_can_be_made_of_is_refused(tmp_path, monkeypatch, capsys, why):
    arguments, said = REFUSED[why]
    monkeypatch.chdir(tmp_path)
    write_sketch(some_sketch(), "s.json")
    write_table(Path("all.txt"), ready_table(1.6, "all"))
    with pytest.raises(SystemExit) as stop:
        main(["export", "--out", "p", *arguments])
    told = capsys.readouterr().err.strip()
    assert stop.value.code == 2 and said in told and told.count("\n") == 0 and not Path("p").exists()


ORDERS = [
    ("encoder", "sampled"),
    ("sampled", "encoder"),
    ("sampled", "encoder", "spof"),
    ("spof", "encoder", "sampled"),
]


@pytest.mark.parametrize("names", ORDERS)
def test_kernels_are_exported_in_any_order(names):
    """The same functions in the same files, whichever is named first; only the public header lists them in order."""
    encoder = read_encoder(ENCODER)

    def sources(order):
        kernels = choose(order, "lean", None)
        assert {kernel.name.split("_")[0] for kernel in kernels} == set(order)
        return c_sources(kernels, "ss_", known_tables(kernels, "ss_") + encoder_tables(encoder, "ss_"), "")

    given, usual = sources(names), sources(sorted(names))
    assert given.keys() == usual.keys()
    differing = {path for path in given if sorted(given[path].split("\n")) != sorted(usual[path].split("\n"))}
    assert differing <= {"include/ss_kernels.h", "src/ss_tables.c"}


def test_a_package_tells_nothing_that_was_measured_on_records():
    told = {"mechanism": "sampled", "accuracy": 98.7, "seed": 4711, "data": "march.csv (seed 4711)", "delta": 0.0}
    told |= {"covers": {"accuracy": 98.7}, "config": {"seed": 4711}, "scale": [31415], "column_mse": [0.98765]}
    encoder = replace(read_encoder(ENCODER), provenance=told)
    text = encoder_file(encoder) + json.dumps(encoder_record(encoder))
    for measured in ("98.7", "4711", "31415", "0.98765", "march"):
        assert measured not in text
    assert encoder_record(encoder)["provenance"] == {"mechanism": "sampled", "delta": "0.0"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A whole package with all the options that a sensor has."""
    folder = tmp_path_factory.mktemp("exported")
    write_sketch(some_sketch(14, 2.2, 12), folder / "s.json")
    options = Options(sketch=folder / "s.json", budget_epsilon="16", budget_days=7, reserve=2,
                      packet_numbers=("epoch",), prefix="my_")  # fmt: skip
    write_folder(folder / "p", make_package(options))
    return folder / "p"


@pytest.mark.slow
def test_a_whole_package_is_written_anew_and_proved(exported):
    report = verify(exported, ["host", "cortex-m0plus", "rv32imc"], SMALL)
    assert report.passed, [one for one in report.proofs if not one.passed]
    opened = open_package(exported)
    assert opened.sketch_file == exported / "hospital/sketch.json"
    assert json.loads((exported / "MANIFEST.json").read_text())["sketch"]["directions"] == 4096
    assert firmware_of(Options(sketch=opened.sketch_file, noise=opened.table_file)).features == 4096
