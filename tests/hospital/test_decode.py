"""The way back: codes of hidden units to records, against Bayes' rule summed up by hand and against true records."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from command import run
from sensorsim.kernels.encoder import encoder as encoder_kernel

from sensorsim.accounting.composition import Covers
from sensorsim.commands.program import main
from sensorsim.datasets.public_ranges import to_unit
from sensorsim.device.firmware import Firmware
from sensorsim.encoders import read_encoder
from sensorsim.hospital.decoding import Codes, each_record, mean_record, posterior_codes
from sensorsim.hospital.packets import Expected
from sensorsim.hospital.receiver import receive
from sensorsim.mechanisms.release import table_for
from sensorsim.noise.batch_release import release_records, sampled_records
from sensorsim.noise.table_file import write_table
from sensorsim.training.model_files import in_integers, load, save
from sensorsim.training.scores import records_for
from sensorsim.training.trained import on_the_lattice

L = 7


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """A model of many records, in a folder with its encoder and a table for its hidden units."""
    folder = tmp_path_factory.mktemp("ward")
    main(["data", "make", "--rows", "20000", "--persons", "1000", "--seed", "3", "--out", str(folder / "days.csv")])
    for name, form in (("linear", "linear"), ("sigmoid", "sigmoid")):
        words = ["--epsilon", "6.4", "--map", form, "--m", "1", "--seed", "1"]
        files = ["--out", str(folder / f"{name}.npz"), "--encoder", str(folder / f"{name}.json")]
        main(["train", "--data", str(folder / "days.csv"), *words, *files])
    write_table(folder / "table.txt", table_for("rows", 6.4, L, 1))
    return folder


def codes_of(model):
    return Codes(model.middle[0], model.spread[0], model.trained.form == "linear", lambda h: model.trained.decode(0, h))


def hidden(model, x):
    made = in_integers(model)[0]
    weights, bias = np.array(made.flat, np.int16), np.array(made.bias, np.int32)
    return encoder_kernel.batch(x=on_the_lattice(x), weights=weights, bias=bias)["hidden"]


def packed(model, table, h, seed):
    """Packets of these hidden units, bit by bit as `Layout` says."""
    layout = Firmware(table, in_integers(model)[0]).layout
    if table.sampled:
        chosen, y = sampled_records(h, table, seed)
    else:
        y = release_records(h, table, seed)
        chosen = np.broadcast_to(np.arange(h.shape[1]), y.shape)
    lowest = 0 if table.symbols is not None else Firmware(table).arguments["limit"]
    whole = np.full(len(y), layout.head, object if layout.bits > 64 else np.uint64)
    at = 20
    for numbers, bits in ((chosen, layout.which_bits), (y.astype(np.int64) + lowest, layout.value_bits)):
        for column in numbers.T if bits else ():
            whole |= np.array([int(value) << at for value in column], whole.dtype)
            at += bits
    return b"".join(int(value).to_bytes(layout.bytes, "little") for value in whole)


def r2(found, x):
    return 1 - ((found - x) ** 2).sum() / ((x - x.mean(axis=0)) ** 2).sum()


@pytest.mark.parametrize("kind", ["rows", pytest.param("stairs", marks=pytest.mark.slow)])
def test_one_packet_is_read_by_bayes_rule(ward, kind):
    """The linear map with independent draws of a on a fine grid: unit by unit, then the joint normal's regression."""
    model, table = load(str(ward / "linear.npz")), table_for(kind, 1.6, L, 1)
    codes, one = codes_of(model), on_the_lattice(np.full((1, L), 0.7))
    packets = packed(model, table, one, 5)
    (found, kept), _ = each_record([packets], Expected.of(table, in_integers(model)[0]), codes)
    assert kept.accepted == 1 and sum(kept.rejected.values()) == 0
    (unit,), (y,) = (part[0].tolist() for part in sampled_records(one, table, 5))
    middle, spread = codes.middle[unit], codes.covariance[unit, unit] ** 0.5
    total = weighted = 0.0
    for z in np.linspace(-7, 7, 1401):  # a sum in place of the integral
        a = middle + spread * z
        values, counts = table.distribution(round(2**15 / (1 + np.exp(-a))))
        chance = counts[values == y].sum() / counts.sum() * np.exp(-z * z / 2)
        total, weighted = total + chance, weighted + chance * a
    gap = weighted / total - middle
    a = codes.middle + codes.covariance[:, unit] / codes.covariance[unit, unit] * gap
    part = model.trained.users[0]
    reference = np.clip(a @ part.V + part.d, 0, 1)
    np.testing.assert_allclose(found[0], reference, atol=0.004 if kind == "stairs" else 1e-3)
    assert np.abs(found[0] - codes.decode(1 / (1 + np.exp(-codes.middle)))).max() > 0.01  # it says something


@pytest.mark.parametrize("form", ["linear", "sigmoid"])
def test_one_private_code_says_little_and_more_with_more_epsilon(ward, form):
    """One of seven units of one record: more than the map itself keeps cannot come, nor much less than the mean has."""
    model = load(str(ward / f"{form}.npz"))
    x = records_for(model, str(ward / "days.csv")).x[:3000]
    reached = {}
    for epsilon in (1.6, 6.4):
        table = table_for("rows", epsilon, L, 1)
        expected = Expected.of(table, in_integers(model)[0])
        packets = packed(model, table, hidden(model, x), 1)
        codes = posterior_codes(receive(packets, table, expected.firmware.encoder), codes_of(model))
        found = np.concatenate([part for part, _ in each_record([packets], expected, codes)])
        assert found.shape == x.shape
        reached[epsilon] = r2(found, x)
    assert -0.05 < reached[1.6] < reached[6.4] < r2(model.trained.predict(0, x), x)
    assert reached[6.4] > 0.1


@pytest.mark.slow
def test_all_units_say_more_than_one(ward):
    """k = l: every unit comes, and together they are read by the joint law."""
    model = load(str(ward / "linear.npz"))
    x = records_for(model, str(ward / "days.csv")).x[:500]
    reached = []
    for epsilon, k in ((6.4, 1), (7 * 6.4, L)):
        table = table_for("stairs", epsilon, L, k)
        packets = packed(model, table, hidden(model, x), 2)
        expected = Expected.of(table, in_integers(model)[0])
        reached.append(r2(np.concatenate([part for part, _ in each_record([packets], expected, codes_of(model))]), x))
    assert reached[1] > reached[0] + 0.2


@pytest.mark.parametrize("kind", ["rows", "stairs"])
@pytest.mark.parametrize("form", ["linear", "sigmoid"])
def test_the_mean_of_many_is_that_of_the_reconstructions(ward, form, kind):
    """Days of people who walk much: their mean is far off the model's, and nine tenths of the way are found."""
    model, table = load(str(ward / f"{form}.npz")), table_for(kind, 6.4, L, 1)
    x = records_for(model, str(ward / "days.csv")).x
    x = x[x[:, 0] > np.quantile(x[:, 0], 0.7)]
    received = receive(packed(model, table, hidden(model, x), 3), table, in_integers(model)[0])
    found = mean_record(received, codes_of(model))
    truth = model.trained.predict(0, x).mean(axis=0)
    start = codes_of(model).decode(1 / (1 + np.exp(-model.middle[0])))
    assert np.linalg.norm(found.mean - truth) < 0.2 * np.linalg.norm(start - truth)
    assert (found.low <= found.mean + 1e-12).all() and (found.mean <= found.high + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "stairs"])
@pytest.mark.parametrize("epsilon", [1.6, 6.4])
def test_the_interval_holds_where_codes_are_normal(ward, kind, epsilon):
    """Codes drawn as they are assumed to be, about a mean of their own: 95 % of intervals hold the mean record."""
    model, table = load(str(ward / "linear.npz")), table_for(kind, epsilon, L, 1)
    codes, rng, held = codes_of(model), np.random.default_rng(1), []
    part = model.trained.users[0]
    for seed in range(12):
        mean = codes.middle + rng.choice([0.1, 0.3, 1.0]) * codes.spread * rng.standard_normal(L)
        a = rng.multivariate_normal(mean, 0.36 * codes.covariance, 2000)
        packets = packed(model, table, on_the_lattice(1 / (1 + np.exp(-a))), seed)
        found = mean_record(receive(packets, table, in_integers(model)[0]), codes)
        truth = np.clip(a @ part.V + part.d, 0, 1).mean(axis=0)
        held += (np.abs(found.mean - truth) <= 1.96 * found.deviation).tolist()
    assert np.mean(held) > 0.88  # 12 groups of 14 columns that move together: their mean has a deviation of about 0.03


def test_without_packets_the_mean_stays_where_it_was_and_many_leave_less_doubt(ward):
    model, table = load(str(ward / "linear.npz")), table_for("rows", 1.6, L, 1)
    x, encoder = records_for(model, str(ward / "days.csv")).x, in_integers(model)[0]
    none = mean_record(receive(b"", table, encoder), codes_of(model))
    many = mean_record(receive(packed(model, table, hidden(model, x), 4), table, encoder), codes_of(model))
    start = codes_of(model).decode(1 / (1 + np.exp(-model.middle[0])))
    assert np.abs(none.mean - start).max() < 0.03 and many.deviation.max() < none.deviation.max() / 2


@pytest.mark.slow
def test_a_sensor_with_the_encoders_file_is_understood(ward, tmp_path, capsys):
    """A simulated sensor, step by step; the command below takes packets that were packed by hand."""
    from sensorsim.device import Clock, SeededEntropy, Sensor

    clock, table = Clock(1), table_for("rows", 6.4, L, 1)
    sensor = Sensor(Firmware(table, read_encoder(ward / "linear.json")), entropy=SeededEntropy(1), epoch=clock)
    sensor.open()
    packets = b""
    for _ in range(20):
        clock.epoch += 1
        packets += sensor.release([1 << 14] * 14)[1]
    (tmp_path / "p.bin").write_bytes(packets)
    given = ("decode", "--model", ward / "linear.npz", "--table", ward / "table.txt", "--packets", tmp_path / "p.bin")
    said = json.loads(run(capsys, *given, "--format", "json")[1])
    assert (said["accepted"], said["refused"]) == (20, 0)


def test_the_command_from_packets_to_readings(ward, tmp_path, capsys, monkeypatch):
    """Packets of the encoder in its file decode in the units of the ranges, others do not."""
    encoder, table = read_encoder(ward / "linear.json"), table_for("rows", 6.4, L, 1)
    model = load(str(ward / "linear.npz"))
    assert encoder == replace(in_integers(model)[0], name=encoder.name)
    readings = {"TotalSteps": 12000, "TotalDistance": 8, "TrackerDistance": 8, "LightlyActiveMinutes": 250,
                "SedentaryMinutes": 900, "Calories": 2600}  # fmt: skip
    shipped = read_encoder(ward / "linear.json")
    x = on_the_lattice(to_unit([readings.get(name, 0) for name in shipped.columns], shipped.ranges))
    (tmp_path / "p.bin").write_bytes(packed(model, table, hidden(model, np.tile(x / 2**15, (300, 1))), 8))
    given = ("decode", "--model", ward / "linear.npz", "--table", ward / "table.txt", "--packets", tmp_path / "p.bin")
    code, out, _ = run(capsys, *given, "--format", "json")
    said = json.loads(out)
    assert code == 0 and said["accepted"] == 300 and said["refused"] == 0
    rows = {row["column"]: row for row in said["mean_record"]}
    back = model.trained.predict(0, x / 2**15)
    assert rows["TotalSteps"]["unit"] == "steps"
    assert abs(rows["TotalSteps"]["mean"] - 40000 * back[0]) < 4 * rows["TotalSteps"]["deviation"] < 12000
    assert rows["TotalSteps"]["low"] < rows["TotalSteps"]["mean"] < rows["TotalSteps"]["high"]
    code, out, said_on_the_side = run(capsys, *given, "--each", "--format", "csv")
    lines = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and len(lines) == 300 and "says little" in said_on_the_side
    assert {"Calories", "Calories.1"} < set(lines[0]) and 0 <= float(lines[0]["TotalSteps"]) <= 40000
    code, out, _ = run(capsys, *given, "--each", "--format", "json")
    assert json.loads(out)["accepted"] == len(json.loads(out)["records"]) == 300
    assert len(run(capsys, *given, "--each")[1].splitlines()) == 302
    assert "300 packets accepted" in run(capsys, *given)[1]
    monkeypatch.setenv("COLUMNS", "80")
    for more in ((), ("--each",)):
        _, out, said = run(capsys, *given, *more)
        assert max(map(len, (out + said).splitlines())) <= 80 and ("Not shown for want of room: " in said) is bool(more)
    with monkeypatch.context() as latin:
        latin.setattr("sensorsim.commands.outputs.is_utf8", lambda _: False)
        assert run(capsys, *given, "--each", "--format", "json")[1].isascii()
    other = ("decode", "--model", ward / "sigmoid.npz", *given[3:])  # another encoder, so another identity
    for more in ((), ("--each",), ("--format", "json"), ("--each", "--format", "json"), ("--each", "--format", "csv")):
        code, out, said = run(capsys, *other, *more)
        assert code == 1 and out == "" and said.count("\n") == 1, said
        assert "no packet was accepted and 300 were refused" in said


@pytest.mark.parametrize("covers", [None, *Covers])
def test_the_output_is_covered_as_the_model_is(ward, tmp_path, capsys, covers):
    """Codes are covered by their own epsilon; what a model makes of them, no better than the model. None: a seed."""
    model, table = load(str(ward / "linear.npz")), table_for("rows", 6.4, L, 1)
    if covers is not None:
        told = {"covers": covers.sentence, "covers_short": covers.value, "noise": "secret", "spent_epsilon": 2.25}
        told |= {"spent_epsilon": None} if covers == Covers.NOTHING else {}
        model = replace(model, about=model.about | told)
    save(str(tmp_path / "m.npz"), model)
    x = records_for(model, str(ward / "days.csv")).x[:20]
    (tmp_path / "p.bin").write_bytes(packed(model, table, hidden(model, x), 1))
    given = ("decode", "--model", tmp_path / "m.npz", "--table", ward / "table.txt", "--packets", tmp_path / "p.bin")
    covered = covers is not None and "weights" in covers.value
    outputs = [json.loads(run(capsys, *given, *more, "--format", "json")[1])["privacy"] for more in ((), ("--each",))]
    texts = run(capsys, *given)[1], run(capsys, *given, "--each", "--format", "csv")[2]
    outputs += [" ".join(text.split()) for text in texts]  # wherever lines end
    for text in outputs:
        assert model.about["covers"] in text
        assert ("not covered:" in text) is not covered
        assert ("epsilon 2.25 at delta 0 per record" in text and "spends the sum" in text) is covered


def test_sums_give_means_and_no_single_records(ward, tmp_path, capsys):
    model, table = load(str(ward / "linear.npz")), table_for("rows", 6.4, L, 1)
    x = records_for(model, str(ward / "days.csv")).x[:50]
    (tmp_path / "p.hex").write_text(
        "\n".join(packed(model, table, hidden(model, x[i : i + 1]), i).hex() for i in range(50))
    )
    words = ("--table", ward / "table.txt", "--encoder", ward / "linear.json", "--out", tmp_path / "sums.json")
    assert run(capsys, "receive", tmp_path / "p.hex", *words)[0] == 0
    given = ("decode", "--model", ward / "linear.npz", "--table", ward / "table.txt")
    from_packets = run(capsys, *given, "--packets", tmp_path / "p.hex")[1]
    assert run(capsys, *given, "--packets", tmp_path / "sums.json") == (0, from_packets, "")
    code, _, said = run(capsys, *given, "--packets", tmp_path / "sums.json", "--each")
    assert code == 2 and "no single packet" in said


def test_neither_decode_nor_evaluate_loads_torch(ward, tmp_path):
    model, table = load(str(ward / "linear.npz")), table_for("rows", 6.4, L, 1)
    x = records_for(model, str(ward / "days.csv")).x[:50]
    (tmp_path / "p.bin").write_bytes(packed(model, table, hidden(model, x), 1))
    program = "import sys\nfrom sensorsim.commands.program import main\nfor one in {}:\n    main(one)\n"
    program += "    assert 'torch' not in sys.modules\n"
    given = ["--model", ward / "linear.npz", "--table", ward / "table.txt", "--packets", tmp_path / "p.bin"]
    evaluate = ["evaluate", "--model", ward / "linear.npz", "--data", ward / "days.csv", "--integers"]
    every = [[str(word) for word in words] for words in (["decode", *given], ["decode", *given, "--each"], evaluate)]
    done = subprocess.run([sys.executable, "-c", program.format(every)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_of_columns_are_cut_only_where_they_do_not_fit(monkeypatch):
    from sensorsim.commands.decode import DecodedRecords, _table

    monkeypatch.setenv("COLUMNS", "80")
    few = _table(DecodedRecords(("heart rate at rest", "spo2"), ("1/min", "%"), "", lambda counts: iter(())))
    assert few.head.split("\n")[0] == f"heart rate at rest {'spo2':>12}" and few.left_out == 0
    assert few.row([61.0, 97.0]) == f"{'61':>18} {'97':>12}\n"
    many = _table(DecodedRecords(("heart rate at rest",) * 7, ("",) * 7, "", lambda counts: iter(())))
    assert many.head.split("\n")[0] == " ".join(["heart rate a"] * 6) and many.left_out == 1
