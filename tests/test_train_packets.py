"""A model from packets: what `receive` writes is what training reads, and nothing else goes into it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sensorsim.cli import main
from sensorsim.device import Clock, Firmware, SeededEntropy, Sensor
from sensorsim.encoders import load as load_encoder
from sensorsim.hospital import receive
from sensorsim.privacy.tablefile import write_table
from sensorsim.privacy.tables import NoiseTable, certified, ready_table
from sensorsim.train.save import load

N = 3
LEVEL = 1 << 15
MEANS = (0.9, 0.1, 0.6)


def small_table(release: int = 1, kind: str = "rows", epsilon: str = "6.4") -> NoiseTable:
    one = ready_table(epsilon, 1, kind)
    return certified(replace(one, epsilon=one.epsilon * release, features=N, release=release))


def sent(table: NoiseTable, records: int, seed: int = 1) -> bytes:
    """Packets of a sensor whose records are all the same, a period for each."""
    clock = Clock(1)
    sensor = Sensor(Firmware(table), entropy=SeededEntropy(seed), epoch=clock)
    sensor.open()
    packets = []
    for _ in range(records):
        clock.epoch += 1
        packets.append(sensor.release([round(mean * LEVEL) for mean in MEANS])[1])
    return b"".join(packets)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """A command by its words: exit code and all that it printed."""

    def call(*words: Any) -> tuple[int, str]:
        try:
            main([str(word) for word in words])
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, "".join(capsys.readouterr())

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
        code, text = run("train", "--packets", ward / given, *table, "--l", 2, "--m", 1, "--seed", 5, "--out", out)
        assert code == 0, text
        models[given] = out.read_bytes()
    assert models["packets.bin"] == models["sums.json"]


@pytest.mark.parametrize(("release", "kind"), [(1, "rows"), (N, "rows"), (1, "stairs"), (2, "stairs")])
def test_the_model_has_learnt_the_means(release: int, kind: str, tmp_path: Path, run: Any) -> None:
    """Reconstructed from the true record, every feature is near its mean; ½, which knows nothing, is far off."""
    table = small_table(release, kind)
    write_table(tmp_path / "t.txt", table)
    (tmp_path / "p.bin").write_bytes(sent(table, 400))
    code, text = run("train", "--packets", tmp_path / "p.bin", "--table", tmp_path / "t.txt", "--l", 2,
                 "--m", 1, "--seed", 1, "--bias", "--out", tmp_path / "m.npz")  # fmt: skip
    assert code == 0, text
    tensors, about = load(str(tmp_path / "m.npz"))
    h = 1 / (1 + np.exp(-(np.array(MEANS) @ tensors["encoder.0.weight"] + tensors["encoder.0.bias"])))
    found = 1 / (1 + np.exp(-(h @ tensors["decoder.weight"] + tensors["decoder.bias"][0])))
    assert np.mean((found - MEANS) ** 2) < 0.2 * np.mean((0.5 - np.array(MEANS)) ** 2)
    assert about["packets"] == 400
    assert about["spent_epsilon"] == float(table.certify().epsilon_record)


def test_nothing_but_the_packets_is_in_the_files(ward: Path, run: Any) -> None:
    code, text = run("train", "--packets", ward / "packets.bin", "--table", ward / "table.txt", "--l", 2, "--seed", 3,
                 "--out", ward / "m.safetensors", "--encoder", ward / "e.json", "--columns", "a,b,c")  # fmt: skip
    assert code == 0, text
    _, about = load(str(ward / "m.safetensors"))
    encoder = load_encoder(str(ward / "e.json"))
    words = json.dumps([about, encoder.provenance])
    assert "accuracy" not in words and "seed" not in words and "mse" not in words
    assert about["columns"] == ["a", "b", "c"] and encoder.columns == ("a", "b", "c")
    assert encoder.scale is None and "no accuracy is known" in text


def test_a_column_that_stands_twice_is_learnt_once(tmp_path: Path) -> None:
    """Two features of one name share their sums: the posterior of each is that of both together."""
    import torch

    from sensorsim.train.estimator import FROZEN, by_column, column_of_names, posterior_of

    received = receive(sent(small_table(), 200), small_table())
    totals, counts = received.total_and_count()
    columns = column_of_names(("a", "b", "a"))
    both = (
        by_column(torch.tensor(totals)[None], columns),
        by_column(torch.tensor(counts, dtype=torch.float64)[None], columns),
    )
    assert both[0].tolist() == [[totals[0] + totals[2], totals[1]]]
    assert both[1].tolist() == [[counts[0] + counts[2], counts[1]]]
    sd = small_table().estimate_sd
    assert sd is not None
    found = posterior_of(*both, sd, FROZEN)[0, 0].numpy()
    grid = (np.arange(len(found)) + 0.5) / len(found)  # by the formula, cell by cell
    from scipy.stats import beta

    weight = []
    for place, mean in enumerate(grid):
        variance = sd**2 + mean * (1 - mean) / (FROZEN.concentration + 1)
        prior = beta.cdf((place + 1) / len(found), FROZEN.prior_a, FROZEN.prior_b)
        prior -= beta.cdf(place / len(found), FROZEN.prior_a, FROZEN.prior_b)
        gap = totals[0] + totals[2] - (counts[0] + counts[2]) * mean
        weight.append(prior * np.exp(-(gap**2) / (2 * variance * (counts[0] + counts[2]))) / variance**0.5)
    assert np.allclose(found, np.array(weight) / sum(weight), atol=1e-6)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--packets", "packets.bin"), "go together"),
        (("--table", "table.txt"), "go together"),
        (("--packets", "packets.bin", "--table", "table.txt", "--epsilon", "3"), "--epsilon is settled"),
        (("--packets", "packets.bin", "--table", "table.txt", "--data", "x.csv"), "--data is settled"),
        (("--packets", "packets.bin", "--table", "table.txt", "--l", "2", "--columns", "a,b"), "names 2 columns"),
        (("--packets", "packets.bin", "--table", "table.txt", "--l", "9"), "l = 9"),
        (("--packets", "no.bin", "--table", "table.txt"), "cannot read no.bin"),
        (("--packets", "empty.bin", "--table", "table.txt", "--l", "2"), "no packet was accepted"),
        (("--packets", "packets.bin", "--table", "table.txt", "--l", "2", "--out", "m.txt"), "saved as .safetensors"),
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
