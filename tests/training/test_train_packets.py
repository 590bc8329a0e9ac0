"""A model from packets: what `receive` writes is what training reads, and nothing else goes into it."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import command
import numpy as np
import pytest

from sensorsim.device import Firmware, read_sketch
from sensorsim.device.sketches import sketch_records
from sensorsim.encoders import read_encoder
from sensorsim.noise.batch_release import release_records, sampled_records
from sensorsim.noise.noise_table import NoiseTable, certified, ready_table
from sensorsim.noise.table_file import write_table
from sensorsim.training.model_files import load

N = 3
LEVEL = 1 << 15
MEANS = (0.9, 0.1, 0.6)


def small_table(release: int = 1, kind: str = "rows", epsilon: str = "6.4") -> NoiseTable:
    one = ready_table(epsilon, 1, kind)
    return certified(replace(one, epsilon=one.epsilon * release, features=N, release=release))


def sent(table: NoiseTable, records: int, seed: int = 1) -> bytes:
    """Packets of records that are all the same, released and packed without a sensor, which takes its time."""
    x = np.tile(np.array([round(mean * LEVEL) for mean in MEANS], np.uint16), (records, 1))
    if table.sampled:
        return packed(Firmware(table), *sampled_records(x, table, seed))
    y = release_records(x, table, seed)
    return packed(Firmware(table), np.broadcast_to(np.arange(N), y.shape), y)


def packed(firmware: Firmware, chosen: Any, y: Any) -> bytes:
    """Which features (or directions) and what came of them, (packets, k), bit by bit as `Layout` says."""
    layout = firmware.layout
    lowest = 0 if firmware.table.symbols is not None else firmware.arguments["limit"]
    packets = []
    for which, values in zip(chosen.tolist(), y.tolist(), strict=True):
        whole, at = layout.head, 20
        for numbers, bits in ((which, layout.which_bits), ([value + lowest for value in values], layout.value_bits)):
            for number in numbers if bits else ():
                whole |= number << at
                at += bits
        packets.append(whole.to_bytes(layout.bytes, "little"))
    return b"".join(packets)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """A command by its words: exit code and all that it printed."""

    def call(*words: Any) -> tuple[int, str]:
        code, out, said = command.run(capsys, *words)
        return code, " ".join((out + said).split())  # lines are folded at the terminal's width

    return call


@pytest.fixture
def ward(tmp_path: Path) -> Path:
    write_table(tmp_path / "table.txt", small_table())
    (tmp_path / "packets.bin").write_bytes(sent(small_table(), 600))
    return tmp_path


def test_what_receive_writes_is_what_training_reads(ward: Path, run: Any) -> None:
    table = ("--table", str(ward / "table.txt"))
    assert run("receive", ward / "packets.bin", *table, "--out", ward / "sums.json")[0] == 0
    models = {}
    for given in ("packets.bin", "sums.json"):
        out = ward / f"{given}.npz"
        code, text = run("train", "--packets", ward / given, *table, "--l", 2, "--m", 1, "--out", out)
        assert code == 0, text
        models[given] = out.read_bytes()
    assert models["packets.bin"] == models["sums.json"]


@pytest.mark.parametrize("form", ["linear", "sigmoid"])
@pytest.mark.parametrize(
    ("release", "kind"), [(1, "rows"), pytest.param(N, "rows", marks=pytest.mark.slow), (1, "stairs"),
                          pytest.param(2, "stairs", marks=pytest.mark.slow)]
)  # fmt: skip
def test_the_model_has_learnt_the_means(release: int, kind: str, form: str, tmp_path: Path, run: Any) -> None:
    """Reconstructed from the true record, every feature is near its mean; ½, which knows nothing, is far off."""
    table = small_table(release, kind)
    write_table(tmp_path / "t.txt", table)
    (tmp_path / "p.bin").write_bytes(sent(table, 400))
    code, text = run("train", "--packets", tmp_path / "p.bin", "--table", tmp_path / "t.txt", "--l", 2, "--map", form,
                 "--m", 1, "--bias", "--out", tmp_path / "m.npz")  # fmt: skip
    assert code == 0, text
    model = load(str(tmp_path / "m.npz"))
    part, x = model.trained.users[0], np.array(MEANS)
    a = x @ part.W + part.b  # by the formulas, without `Trained`
    found = a @ part.V + part.d if form == "linear" else 1 / (1 + np.exp(-(1 / (1 + np.exp(-a)) @ part.V + part.d)))
    assert np.mean((found - x) ** 2) < 0.2 * np.mean((0.5 - x) ** 2)
    np.testing.assert_allclose(model.trained.predict(0, x), np.clip(found, 0, 1), atol=1e-6)
    assert model.about["records"] == 400 and model.about["form"] == form
    assert model.about["spent_epsilon"] == float(table.certify().epsilon_record)


def test_nothing_but_the_packets_is_in_the_files(ward: Path, run: Any) -> None:
    (ward / "ranges.csv").write_text("name,low,high,unit\na,0,10,km\nb,-5,5,°C\nc,30,40,1/min\n")
    code, text = run("train", "--packets", ward / "packets.bin", "--table", ward / "table.txt", "--l", 2, "--out",
                 ward / "m.safetensors", "--encoder", ward / "e.json", "--columns", "a,b,c",
                 "--ranges", ward / "ranges.csv")  # fmt: skip
    assert code == 0, text
    about, encoder = load(str(ward / "m.safetensors")).about, read_encoder(ward / "e.json")
    words = json.dumps([about, encoder.provenance])
    assert "accuracy" not in words and "seed" not in words and "mse" not in words
    assert about["columns"] == ["a", "b", "c"] and encoder.columns == ("a", "b", "c")
    assert about["noise"] == "the sensors' own" and about["trust"] == "local"
    assert encoder.ranges is not None and (encoder.ranges[1].low, encoder.ranges[1].unit) == (-5, "°C")
    assert "600 packets" in text and "one for all users" in text and "not private" in text


def test_two_phases_by_command(ward: Path, run: Any) -> None:
    """Features first, then sketches about their means: the sketch's packets change the model, and are counted in it."""
    table = ("--table", ward / "table.txt")
    assert run("receive", ward / "packets.bin", *table, "--write-sketch", ward / "sketch.json")[0] == 0
    sketch = read_sketch(ward / "sketch.json")
    swing = np.where(np.arange(8000) % 2, 0.4, -0.4)[:, None] * [1, 1, -1]  # the third goes against the first two
    number, y = sketch_records(np.round((0.5 + swing) * LEVEL).astype(np.uint16), small_table(), sketch, 2)
    firmware = Firmware(small_table(), sketch=sketch)
    (ward / "second.bin").write_bytes(packed(firmware, number.reshape(8000, 1), y.reshape(8000, 1)))
    given = ("train", "--packets", ward / "packets.bin", *table, "--l", 1, "--m", 1, "--out", ward / "m.npz")
    code, text = run(*given, "--sketch", ward / "sketch.json", "--sketch-packets", ward / "second.bin")
    assert code == 0 and "sketch from 8,600 packets" in text, text
    model = load(str(ward / "m.npz"))
    assert len(model.about["identity"]) == 2 and "spent per packet" in repr(model) and "records" not in repr(model)
    sum_of_both = "a record or person in both phases spends the sum"
    assert "spent per packet" in text and "per record" not in text
    assert sum_of_both in text.split("covers")[0] and f"per packet; {sum_of_both}" in model.about["covers"]
    V = model.trained.users[0].V[0]
    assert V[0] * V[1] > 0 > V[0] * V[2]
    before = (ward / "m.npz").read_bytes()
    code, text = run(*given)
    assert code == 0 and (ward / "m.npz").read_bytes() != before
    assert "spent per packet" in text and "both phases" not in text + load(str(ward / "m.npz")).about["covers"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--packets", "packets.bin"), "go together"),
        (("--packets", "packets.bin", "--table", "table.txt", "--epsilon", "3"), "--epsilon changes nothing"),
        (("--packets", "packets.bin", "--table", "table.txt", "--l", "2", "--columns", "a,b"), "names 2 columns"),
        (("--packets", "packets.bin", "--table", "table.txt", "--l", "9"), "l = 9"),
        (("--packets", "packets.bin", "--table", "table.txt", "--sketch", "s.json"), "go together"),
        (("--packets", "packets.bin", "--table", "table.txt", "--l", "2", "--ranges", "packets.bin"), "UTF-8"),
        (("--packets", "no.bin", "--table", "table.txt"), "cannot read no.bin"),
        (("--packets", "empty.bin", "--table", "table.txt", "--l", "2"), "no packet was accepted"),
        (
            ("--packets", "packets.bin", "--table", "table.txt", "--l", "2", "--out", "m.txt"),
            "ends in .safetensors or .npz",
        ),
        (
            ("--packets", "packets.bin", "--table", "table.txt", "--l", "2", "--columns", "a,b,c\td"),
            "cannot be the name",
        ),
    ],
)
def test_bad_input_gets_a_sentence(
    ward: Path, monkeypatch: pytest.MonkeyPatch, run: Any, words: Any, says: str
) -> None:
    monkeypatch.chdir(ward)
    (ward / "empty.bin").write_bytes(b"")
    before = sorted(ward.iterdir())
    code, text = run("train", *words)
    assert code == 2 and says in text and len(text) < 330, text
    assert sorted(ward.iterdir()) == before


def test_a_linear_model_of_packets_needs_no_torch(ward: Path) -> None:
    program = (
        "import sys\nfrom sensorsim.commands.program import main\n"
        "main(sys.argv[1:])\nassert 'torch' not in sys.modules\n"
    )
    words = ["train", "--packets", "packets.bin", "--table", "table.txt", "--l", "2", "--out", "m.npz"]
    words += ["--encoder", "e.json"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, cwd=ward)
    assert done.returncode == 0, done.stderr
