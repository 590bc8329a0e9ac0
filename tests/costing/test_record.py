"""A whole record: energies by hand from the cells of the tables, the forms of output, bad input, faults of tables."""

import csv
import json
import math
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from command import run as in_process

from sensorsim.commands.program import group
from sensorsim.costing.chips import load_parts, load_radio
from sensorsim.costing.cost_report import cost
from sensorsim.costing.pricing import sensor_operations
from sensorsim.costing.record_energy import Choices, block_operations, price_whole_record

TABLES = Path(__file__).parents[2] / "tables"
SLOT, ENTRY = 24, 8  # bytes of a slot of the journal, and what a log adds to them


def rows(path):
    lines = [line for line in (TABLES / path).read_text("utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def chip_row(name):
    return next(row for row in rows("energy.csv") if row["chip"] == name)


def radio_row(radio, chip):
    every = [row for path in (TABLES / "radio").glob("*.csv") for row in rows(path)]
    found = {row["chip"]: row for row in every if row["radio"] == radio}
    return found.get(chip) or found["any"]


def price_list(*files):
    """Class: typical cycles of unsigned 32-bit operands."""
    prices = {}
    for row in (row for name in files for row in rows(f"cpu/{name}.csv")):
        for kind in filter(None, row["class"].split("/")):
            fits = "32" in row["width"].split("/") or row["width"] == "any" or kind == "INDEX"
            if fits and row["signedness"] != "signed":
                above, _, below = row["typical"].partition("/")
                prices[kind] = float(above) / float(below or 1)
    return prices


def cycles_of(counts, prices):
    return sum(prices[kind] * times for kind, times in counts.items())


def chacha(double_rounds):
    """One block by the RFC: eight quarter rounds to a double one, each of four additions, exclusive ors, rotations."""
    quarters = 8 * double_rounds
    rounds = 16 + double_rounds + 16  # of the three loops: copy, double rounds, the final addition
    return {
        "ADD": 4 * quarters + 16,
        "XOR": 4 * quarters,
        "ROTATE": 4 * quarters,
        "LOAD": 5 * quarters + 16 + 32,  # five words of the block a quarter round; state; block and state
        "STORE": 4 * quarters + 16 + 16,
        "INDEX": rounds,
        "COMPARE": rounds + 3,
        "BRANCH": rounds + 3,
    }


def air(radio, chip, size):
    row = radio_row(radio, chip)
    time = {name: float(row[name]) for name in ("us_per_byte", "overhead_us", "receive_us", "start_us")}
    tx, rx, start, volt = (float(row[name]) for name in ("tx_mA", "rx_mA", "start_mA", "supply_V"))
    packets = 1
    while packets * int(row["max_payload_bytes"]) < size:
        packets += 1
    sending = size * time["us_per_byte"] + packets * time["overhead_us"]
    return volt * (tx * sending + packets * (rx * time["receive_us"] + start * time["start_us"]))


def stored(chip):
    row = chip_row(chip)
    volt, word = float(row["supply_V"]), float(row["store_us_per_word"]) * float(row["store_mA"])
    page = int(row["page_bytes"])
    if page == 0:
        return volt * word * SLOT / 4
    erase = volt * float(row["erase_us"]) * float(row["erase_mA"])
    return volt * word * (SLOT + ENTRY) / 4 + erase / (page / (SLOT + ENTRY))


CORES = {
    "nrf52832": ("cortex-m4", "cortex-m4f"),
    "cc2340r2": ("cortex-m0plus",),
    "stm32l476": ("cortex-m4", "cortex-m4f"),
    "atmega328p": ("avr",),
}


@pytest.mark.parametrize("chip", CORES)
@pytest.mark.parametrize("radio", ["ble-1m", "802154", "lora-sf9"])
@pytest.mark.parametrize("source", ["chacha20", "chacha12", "free"])
def test_every_part_by_hand(chip, radio, source):
    report = cost(14, 7, chip=chip, radio=radio, random=source, variant="paper")
    prices, per_cycle = price_list(*CORES[chip]), float(chip_row(chip)["pJ_per_cycle"]) / 1000
    journal = cycles_of(sensor_operations(14)["journal"], prices)
    for name, bits in (("spof", 896), ("dpsgd", 448)):  # a word for each draw: two for a feature, one
        counts = Counter()
        for step in report.mechanisms[name].traced.steps.values():
            counts.update(step.operations)
        block = {"chacha20": chacha(10), "chacha12": chacha(6), "free": {}}[source]
        words = math.ceil(bits / 512) * cycles_of(block, prices)
        made = report.record.costs[name]
        expected = {
            "arithmetic": cycles_of(counts, prices) * per_cycle,
            "random words": words * per_cycle,
            "journal": journal * per_cycle + stored(chip),
            "on air": air(radio, chip, bits // 8),
        }
        assert {part: value.nJ for part, value in made.parts.items()} == pytest.approx(expected, rel=1e-5)
        assert made.microjoule == pytest.approx(sum(expected.values()) / 1000, rel=1e-5)
        assert made.cycles == pytest.approx(cycles_of(counts, prices) + words + journal)
        assert (made.random_bits, made.bytes_sent) == (bits, bits // 8)
        assert sum(made.share(part) for part in made.parts) == pytest.approx(100)


def test_the_sensor_by_hand():
    """A block of its generator: the cipher, its constants, the key in and out, what is left overwritten, words out."""
    prices, parts = price_list("cortex-m4", "cortex-m4f"), sensor_operations(14)
    around = Counter({"STORE": 4 + 8 + 4 + 3 * 8 + 16, "LOAD": 8 + 8 + 8})
    whole = Counter(chacha(10)) + around
    for kind in ("ADD", "XOR", "ROTATE", "STORE", "LOAD"):
        assert parts["random words"][kind] == whole[kind]
    made = cost(14, 7).record.costs["sensor"]
    assert parts["wiping"]["LOAD"] == 8 + 2  # the key; epoch and count for the generator
    assert parts["wiping"]["STORE"] == 8 + 16 + 16 + 8  # the key; zeros over state, block and words
    code = sum(cycles_of(parts[name], prices) for name in ("release", "packet", "wiping"))
    assert made.parts["arithmetic"].cycles == pytest.approx(code)
    assert made.parts["random words"].cycles == pytest.approx(cycles_of(parts["random words"], prices))
    assert made.bytes_sent == 4  # 20 bits of head, 4 name the feature, 3 are its symbol
    fewer = cost(14, 7, random="chacha12").record.costs["sensor"].parts["random words"].cycles
    rounds = cycles_of(chacha(10), prices) - cycles_of(chacha(6), prices)
    assert fewer == pytest.approx(made.parts["random words"].cycles - rounds)


def test_reading_and_running_the_generator_agree():
    from sensorsim.kernels.chacha20 import chacha20
    from sensorsim.kernels.generator import fresh_words

    for kernel, lengths, read in (
        (fresh_words, {"blocks": 1}, sensor_operations(14)["random words"]),
        (chacha20, {}, block_operations("chacha20")),
    ):
        ran = Counter()
        for (_, kind), times in kernel.count(**lengths).items():
            ran[kind] += times
        assert ran == Counter(read)
    assert dict(block_operations("chacha12")) == chacha(6)
    assert dict(block_operations("chacha20")) == chacha(10)


def test_true_random_words():
    row = chip_row("nrf52832")
    start, word, current, volt = (float(row[n]) for n in ("trng_start_us", "trng_us_per_word", "trng_mA", "supply_V"))
    made = cost(14, 7, chip="nrf52832", random="trng").record.costs
    prices = price_list("cortex-m4", "cortex-m4f")
    read, per_cycle = prices["LOAD"] + prices["STORE"], float(row["pJ_per_cycle"]) / 1000
    for name, words in (("spof", 28), ("sensor", 2)):
        generator = (start + words * word) * current * volt
        found = made[name].parts["random words"]
        assert found == pytest.approx((words * read, words * read * per_cycle + generator))


@pytest.mark.parametrize("chip", ["stm32l476", "stm32l476-smps"])
def test_a_word_too_quick_to_sleep_has_the_waiting_core_in_it(chip):
    row = chip_row(chip)
    assert float(row["trng_mA"]) == pytest.approx(float(row["uA_per_MHz"]) * 80 / 1000 + 0.154)


def test_a_battery_pays_for_whole_records():
    data = json.loads(run("cost", "--chip", "stm32l476", "--battery-mah", "230", "--format", "json").output)["record"]
    for made in data["mechanisms"].values():
        assert made["records_per_charge"] == pytest.approx(230 * 3.6 * 3.3 / (made["uJ"] * 1e-6))
    plain = json.loads(run("cost", "--format", "json").output)["record"]
    assert "records_per_charge" not in plain["mechanisms"]["spof"]
    assert cost(chip="apollo3").record.costs["spof"].records_per_charge(1.0) is None


def test_days_that_no_radio_can_send_are_not_priced():
    words = ("--n", "1024", "--radio", "lora-sf12", "--chip", "atmega328p", "--records-per-day", "10000")
    made = json.loads(run("cost", *words, "--format", "json").output)["record"]
    assert made["mechanisms"]["spof"]["uJ_per_day"] is None and "sensor" in made["over_duty"]
    row, size = radio_row("lora-sf12", "any"), made["mechanisms"]["sensor"]["bytes_sent"]
    sent = size * float(row["us_per_byte"]) + float(row["overhead_us"])
    assert made["mechanisms"]["sensor"]["duty_percent"] == pytest.approx(100 * 10000 * sent / 86400e6)
    text = run("cost", *words, "--battery-mah", "1000").output
    assert "too many" in text and "EU868 allows 1 %" in text and "lora-sf12 (of an SX1261)" in text
    assert "EU868" not in run("cost", "--radio", "lora-sf12").output


def test_more_features_never_cost_less():
    before = {}
    for n in (1, 2, 7, 8, 14, 33, 64, 200):
        costs = cost(n, 1).record.costs
        for name, made in costs.items():
            assert made.microjoule >= before.get(name, 0)
            assert made.cycles >= 0.999 * before.get((name, "cycles"), 0)
            before[name], before[name, "cycles"] = made.microjoule, made.cycles
    assert before["spof"] > 2 * costs["sensor"].microjoule


def test_what_becomes_of_the_papers_saving():
    """On a core without a divider most of it, with one nothing; and a packet twice as long costs more than both."""
    without, divider = cost(14, 7, cpu="cortex-m0plus"), cost(14, 7, chip="nrf52832")
    assert without.record.chip.chip == "cc2340r2"
    for report, arithmetic in ((without, (70, 75)), (divider, (-6, -5))):
        found = report.record.savings()
        spof, dpsgd = (report.record.costs[name] for name in ("spof", "dpsgd"))
        low, high = arithmetic
        assert low < found["arithmetic"] < high
        assert found["arithmetic"] == pytest.approx(
            100 - 100 * spof.parts["arithmetic"].cycles / dpsgd.parts["arithmetic"].cycles
        )
        assert found["on air"] == pytest.approx(100 - 100 * spof.microjoule / dpsgd.microjoule)
        assert found["arithmetic"] > found["random words"] and found["on air"] < 0
        assert spof.parts["on air"].nJ > 10 * spof.microjoule_upto("random words") * 1000 / 2
    assert 0 < without.record.savings()["random words"] < 25
    assert "saving_percent" in cost(14, 7, variant="lean").record.to_dict()
    assert cost(14, 7, variant="lean").record.savings() == {}


def test_memory_that_needs_no_erase_and_one_that_does():
    _, fram = load_parts("msp430fr5994")
    assert fram.nanojoule(SLOT) == pytest.approx(6 * 0.25 * 1.888 * 3) == pytest.approx(fram.nanojoule_erasing(SLOT))
    _, flash = load_parts("nrf52840")
    row = chip_row("nrf52840")
    page = float(row["erase_us"]) * float(row["erase_mA"]) * float(row["supply_V"])
    assert flash.nanojoule_erasing(SLOT) == pytest.approx(page + 6 * flash.nJ_per_word)
    assert flash.nanojoule_erasing(SLOT) > 50 * flash.nanojoule(SLOT)


def test_no_figure_is_no_total_and_not_zero():
    record = cost(14, 7, chip="apollo3").record
    made = record.costs["spof"]
    assert made.parts["journal"].nJ is None and made.microjoule is None and made.share("on air") is None
    assert record.savings()["random words"] is not None and record.savings()["on air"] is None
    data = json.loads(run("cost", "--chip", "apollo3", "--format", "json").output)["record"]
    assert data["mechanisms"]["spof"]["uJ"] is None and data["mechanisms"]["spof"]["uJ_per_day"] is None
    text = run("cost", "--chip", "apollo3").output
    assert "no total: the table of Apollo3 Blue has no figure for its memory" in text


def test_compiled_cycles_take_the_place_of_the_kernels():
    report = cost(14, 7, chip="cc2340r2")
    own = {"spof": 1000.0, "chacha20": 500.0, "sensor": 4000.0}
    kernel, made = report.record, price_whole_record(report, cycles=own)
    assert made.level == "machine"
    assert made.costs["spof"].parts["arithmetic"] == pytest.approx((1000, 159.0))
    assert made.costs["spof"].parts["random words"] == pytest.approx((1000, 159.0))
    assert made.costs["dpsgd"].parts["arithmetic"] == kernel.costs["dpsgd"].parts["arithmetic"]
    assert made.costs["sensor"].cycles == pytest.approx(4000)
    before, after = (record.costs["sensor"] for record in (kernel, made))
    assert made.costs["spof"].parts["journal"] == after.parts["journal"]  # one level in one panel
    assert after.parts["journal"].cycles / 4000 == pytest.approx(before.parts["journal"].cycles / before.cycles)


# ---------------------------------------------------------------------------------------------------- air time


def test_air_times_of_the_standards():
    """Bluetooth: an empty packet takes 80 µs at 1 Mbit/s, 44 at 2; coded 720 and 462. 802.15.4: 250 kbit/s."""
    empty = {"ble-1m": 80, "ble-2m": 44, "ble-coded-s8": 720, "ble-coded-s2": 462}
    beside = 4 + 4 + 3  # L2CAP, MIC, ATT
    for name, time in empty.items():
        radio = load_radio(name)
        assert radio.overhead_us == time + beside * radio.us_per_byte
        assert radio.receive_us == time + 100
    assert load_radio("802154").us_per_byte == 8 / 0.25


@pytest.mark.parametrize("factor", range(7, 13))
@pytest.mark.parametrize("size", [1, 20, 51])
def test_lora_air_time_by_the_makers_formula(factor, size):
    symbol, low_rate = 2**factor / 0.125, factor > 10
    length = size + 13
    filled = math.ceil((8 * length - 4 * factor + 28 + 16) / (4 * (factor - 2 * low_rate)))
    exact = (8 + 4.25 + 8 + 5 * filled) * symbol
    radio = load_radio(f"lora-sf{factor}")
    linear = radio.overhead_us + size * radio.us_per_byte
    assert exact - 5 * symbol <= linear + 1 and linear - 1 <= exact  # the formula rounds up to five symbols


# ---------------------------------------------------------------------------------------------------- output


def run(*words, width=120):
    return CliRunner().invoke(group, list(words), catch_exceptions=False, env={"COLUMNS": str(width)})


def test_the_panel_says_what_the_json_says():
    data = json.loads(run("cost", "--records-per-day", "24", "--format", "json").output)["record"]
    head = [data[key] for key in ("random", "radio", "chip", "records_per_day")]
    assert head == ["chacha20", "ble-1m", "nrf52840", 24]
    assert data["chip_given"] is False and data["level"] == "kernel"
    text = run("cost", "--records-per-day", "24").output
    line = next(line for line in text.splitlines() if line.startswith(" the sensor, 1 feature"))
    sensor = data["mechanisms"]["sensor"]
    assert line.split()[-2:] == [f"{sensor['uJ']:.3g}", f"{sensor['uJ_per_day']:.0f}"]
    assert sensor["uJ_per_day"] == pytest.approx(24 * sensor["uJ"])
    assert "24 a day" in text and "choose with --chip" in text
    assert any(said.startswith("ble-1m, event: estimate") for said in data["unsettled"])


def test_the_rows_add_up():
    record = cost(14, 7, chip="cc2340r2").record
    total = sum(row["uJ"] for row in record.rows() if row["mechanism"] == "spof")
    assert total == pytest.approx(record.costs["spof"].microjoule)


def test_the_radio_of_a_chip_or_that_of_any():
    assert load_radio("ble-1m", "nrf52840").chip == "nrf52840"
    assert load_radio("802154", "nrf52832").chip == "any"
    assert cost(14, 7, chip="nrf52832", radio="BLE-2M").record.radio.radio == "ble-2m"
    assert price_whole_record(cost(14, 7), Choices(chip="nrf52832")).chip.name == "nRF52832"
    cores = {"cortex-m4": "nrf52840", "cortex-m0plus": "cc2340r2", "avr": "atmega328p", "ibex": "nrf52840"}
    assert {cpu: cost(14, 7, cpu=cpu).record.chip.chip for cpu in cores} == cores


BAD = {
    ("--radio", "ble-1"): "radio 'ble-1' is not known (did you mean ble-1m?); there are ble-1m,",
    ("--random", "dice"): "give one of chacha20",
    ("--records-per-day", "0"): "0 records a day are not possible",
    ("--records-per-day", "1e308"): "1e+308 records a day are not possible: the shortest keeps ble-1m busy for",
    ("--battery-mah", "0"): "a battery of 0 mAh is not possible; give a number above 0",
    ("--level", "machine", "--battery-mah", "9"): "needs --chip",
    ("--records-per-day", "nan"): "--records-per-day is not a number",
    ("--chip", "atmega328p", "--random", "trng"): "ATmega328P has no generator of true random words; give --random",
    ("--chip", "apollo3", "--random", "trng"): "Apollo3 Blue has no figure for a generator of true random words",
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_input_is_one_sentence(words, capsys):
    code, out, err = in_process(capsys, "cost", *words)
    assert (code, out) == (2, "") and BAD[words] in err and "Traceback" not in err


@pytest.mark.slow
def test_the_same_panel_from_machine_code():
    pytest.importorskip("ziglang")
    words = ("cost", "--level", "machine", "--chip", "cc2340r2", "--random", "chacha12")
    data = json.loads(run(*words, "--format", "json").output)
    made, cases = data["record"], {case["mechanism"]: case["machine"]["total"] for case in data["cases"]}
    assert (made["level"], made["random"]) == ("machine", "chacha12")
    for name in ("spof", "dpsgd", "sampled"):
        assert made["mechanisms"][name]["parts"]["arithmetic"]["cycles"] == cases[name]
    words_of = {name: made["mechanisms"][name]["parts"]["random words"]["cycles"] for name in ("spof", "dpsgd")}
    assert words_of["spof"] == pytest.approx(2 * words_of["dpsgd"])
    assert words_of["dpsgd"] < cases["chacha20"]
    (release,) = [call["cost"] for call in data["sensor"][0]["calls"] if call["call"] == "release"]
    assert made["mechanisms"]["sensor"]["cycles"] < release  # four double rounds less
    assert "compiled code, in µJ" in run(*words, "--variant", "paper").output
