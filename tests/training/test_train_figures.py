"""The b factor of noisy inputs against Monte Carlo, the encoder kernel against reals, every figure drawn."""

import json
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("torch")

from sensorsim.kernels import formats
from sensorsim.kernels.encoder import encoder

from sensorsim._util.errors import InputError
from sensorsim.commands import figures as figures_command
from sensorsim.commands.program import main
from sensorsim.datasets.dataset import CROWDS, PAPER_COLUMNS, crowd
from sensorsim.encoders import as_json, read_encoder
from sensorsim.language.numba_backend import compiled
from sensorsim.training import model_files, run_figures

DEFAULT = read_encoder(Path(__file__).parents[2] / "tables" / "encoders" / "default.json")


@pytest.mark.parametrize("printed", [True, False])
@pytest.mark.parametrize("h", [0.0, 0.1, 0.5])
def test_density_of_b_max_is_a_density(printed, h):
    places, density = run_figures.density_curve(h, 1.5, printed)
    assert np.trapezoid(density, places) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("h", [0.0, 0.1, 0.5])
def test_the_density_that_holds_is_the_one_that_is_drawn(h):
    sd = 0.8
    places, density = run_figures.density_curve(h, sd, printed=False)
    D = np.random.default_rng(0).normal(0, sd, (20_000, run_figures.DRAWS))
    drawn = np.log10(run_figures.L * (np.exp(D) / (1 + (np.exp(D) - 1) * h)).max(axis=1))
    cdf = np.concatenate([[0], np.cumsum(np.diff(places) * (density[1:] + density[:-1]) / 2)])
    for quantile in (0.1, 0.5, 0.9):
        assert np.interp(np.quantile(drawn, quantile), places, cdf) == pytest.approx(quantile, abs=0.02)


def test_the_printed_probability_claim_does_not_hold():
    for sigma in (0.1, 1, 5, 1e6):
        for printed in (True, False):
            assert run_figures.probability_below_one(run_figures.spread(sigma, printed)) < 1e-30 + 1e-33
            assert run_figures.probability_below_one(run_figures.spread(sigma, printed), draws=1) < 0.5
    for sigma in (1, 5):
        assert run_figures.share_below_one(sigma) < 0.02


def sums(x, weights, bias):
    """W x + b of the integers' own values, exactly, before any rounding of the kernel."""
    return weights / 2**11 @ (np.minimum(x, 2**15) / 2**15) + bias / 2**13


@pytest.mark.parametrize("n", [1, 2, 13, 14, 64])
def test_encoder_equals_the_plain_run_bit_for_bit_and_reals_closely(n):
    rng = np.random.default_rng(n)
    l, table = 3, np.array(formats.SIGMOID_TABLE, dtype=np.uint16)
    for scale in (1, 15, 2**15):
        x = rng.integers(0, 2**16, n, dtype=np.uint16)
        weights = rng.integers(-scale, scale, n * l).astype(np.int16)
        bias = rng.integers(-(2**13), 2**13, l).astype(np.int32)
        fast, plain = np.zeros(l + 1, np.uint16), [0] * l
        compiled(encoder)(x, weights, bias, table, fast, n, l, len(table))
        encoder(x.tolist(), weights.tolist(), bias.tolist(), table.tolist(), plain, n, l, len(table))
        assert fast[:l].tolist() == plain
        assert fast[l] == 0  # nothing is written past the end
        real = 1 / (1 + np.exp(-np.clip(sums(x.astype(float), weights.reshape(l, n).astype(float), bias), -8, 8)))
        # half a step of the table, a unit of rounding per term, and half a unit of the result
        assert np.abs(np.array(plain) / 2**15 - real).max() <= 0.25 * (1 / 32 + n / 2**13) + 2**-15


def test_the_ends_saturate():
    table = np.array(formats.SIGMOID_TABLE, dtype=np.uint16)
    hidden = np.zeros(2, np.uint16)
    x = np.full(64, 2**16 - 1, np.uint16)
    weights = np.repeat([-(2**15), 2**15 - 1], 64).astype(np.int16)
    compiled(encoder)(x, weights, np.zeros(2, np.int32), table, hidden, 64, 2, len(table))
    assert hidden.tolist() == [table[0], table[-1]]


def test_the_default_encoder_is_plain_data_with_provenance():
    shipped = DEFAULT
    assert (shipped.n, shipped.l) == (14, 7)
    assert "weights included" in shipped.provenance["covers"] and shipped.provenance["mechanism"] == "sketch"
    assert shipped.provenance["quantisation"] == {"weights_saturated": 0}
    assert shipped.ranges is not None  # a body has no column maximum to divide by
    rows = np.random.default_rng(0).random((5, 14))
    hidden = model_files.encode(rows, [list(row) for row in shipped.weights], list(shipped.bias))
    assert ((hidden > 0) & (hidden < 1)).all()


@pytest.mark.slow
def test_the_default_encoder_can_be_made_again(tmp_path):
    """Bit for bit with the torch that is pinned, on the kind of machine that made it; others may round differently."""
    path = tmp_path / "again.json"
    main(["train", "--mechanism", "sketch", "--epsilon", "1.6", "--m", "1", "--seed", "0", "--encoder", str(path)])
    made, shipped = read_encoder(path), DEFAULT
    assert made.columns == shipped.columns and made.provenance == shipped.provenance and made.ranges == shipped.ranges
    difference = np.abs(np.array(made.weights) - np.array(shipped.weights)).max()
    assert difference <= 2


def test_an_encoder_survives_its_file(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(as_json(DEFAULT))
    assert asdict(read_encoder(path)) == asdict(DEFAULT) | {"name": path.name}
    with pytest.raises(InputError, match="cannot read"):
        read_encoder(tmp_path / "absent.json")


def test_an_encoder_of_the_first_version_is_read_without_what_it_measured(tmp_path):
    """It had a scale where there are ranges now, a decoder and accuracies."""
    found = json.loads(as_json(DEFAULT))
    del found["ranges"]
    old = {"schema_version": 1, "scale": [5.0] * 14, "decoder": [[0.0] * 14] * 7, "decoder_bias": [0.0] * 14}
    lost = {"accuracy_lost_points": 0.1, "weights_saturated": 0}
    told = found["provenance"] | {"accuracy": 99.0, "quantisation": lost}
    path = tmp_path / "old.json"
    path.write_text(json.dumps(found | old | {"provenance": told}))
    read = read_encoder(path)
    assert read.ranges is not None and (read.ranges[3].low, read.ranges[3].high) == (0, 5)
    assert "accuracy" not in as_json(read) and read.weights == DEFAULT.weights


def test_train_writes_an_encoder_for_every_user(tmp_path):
    """Users differ where each trains a net of their own; a release makes one for all."""
    path = tmp_path / "mine.json"
    main(["train", "--mechanism", "dpsgd", "--epochs", "1", "--encoder", str(path)])
    made = [read_encoder(tmp_path / f"mine-{j}.json") for j in range(2)]
    assert not path.exists() and made[0].weights != made[1].weights
    assert [one.provenance["user"] for one in made] == [0, 1]
    main(["train", "--mechanism", "sampled", "--encoder", str(path)])
    assert read_encoder(path).provenance["user"] == "all"


@pytest.mark.slow
def test_every_figure_is_drawn(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(figures_command, "C_RANGE", "0:2.5:2.5")
    days = tmp_path / "days.csv"
    main(["data", "make", "--rows", "50", "--persons", "6", "--seed", "1", "--out", str(days)])
    columns = ",".join(PAPER_COLUMNS[:3] + PAPER_COLUMNS[8:])
    grid = ["--epsilon", "0.8", "--sigma", "0,5", "--runs", "2", "--jobs", "1", "--columns", columns]
    grid += ["--mechanism", "none,spof,dpsgd,sampled", "--records", "40", "--records-runs", "2"]
    capsys.readouterr()
    main(["figures", "--data", str(days), "--out", str(tmp_path / "new"), *grid])
    paths = [Path(line) for line in capsys.readouterr().out.split()]
    kinds = ("svg", "png")
    assert [path.name for path in paths] == [f"{name}.{kind}" for name in figures_command.FIGURES for kind in kinds]
    for path in paths:
        if path.suffix == ".png":
            assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
    _runs_nothing_again(monkeypatch)
    some = ["--only", "accuracy_records,accuracy_epsilon,accuracy_c"]
    main(["figures", "--data", str(days), "--out", str(tmp_path / "new"), *grid, *some])
    assert len(capsys.readouterr().out.split()) == 6


def _runs_nothing_again(monkeypatch):
    """Finished cells are kept in files beside the figures; to train another would be an error."""

    def refuse(*_):
        raise AssertionError("a finished cell was trained again")

    monkeypatch.setattr("sensorsim.training.cells.train_and_score", refuse)


def test_a_figure_that_needs_no_training_loads_no_data(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(figures_command.DrawFigures, "load", lambda *_, **__: pytest.fail("it read data"))
    main(["figures", "--out", str(tmp_path), "--only", "bmax_density"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bmax_density.png", "bmax_density.svg"]


@pytest.mark.parametrize(
    "given, said",
    [
        (["--only", "accuracy_moon"], "no figure 'accuracy_moon' (did you mean accuracy_person?); choose from"),
        (["--only", ","], "names no figure"),
        (["--mechanism", "moon"], "no mechanism 'moon'"),
        (["--records", "10.5"], "whole numbers"),
        (["--records", "3", "--only", "accuracy_records"], "too few"),
        (["--runs", "3", "--only", "sensitivity"], "--runs changes nothing here: sensitivity would not read it"),
        (["--records-runs", "3", "--only", "accuracy_c"], "--records-runs changes nothing here"),
        (["--records-epsilon", "-inf", "--only", "accuracy_records"], "epsilon"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_anything_runs(tmp_path, capsys, given, said):
    with pytest.raises(SystemExit):
        main(["figures", "--out", str(tmp_path), *given])
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_crowd_has_its_size_and_the_flipped_one_is_its_mirror():
    plain, flipped = (crowd(name, 300) for name in CROWDS)
    assert plain.x.shape == flipped.x.shape == (300, 14)
    assert len(np.unique(plain.person)) == 23  # 35 of 457 rows
    for column in range(14):
        of_thirteen = min(column, 12)  # the last two are both Calories: the same reading, turned alike
        mirrored = 1 - plain.x[:, column] if of_thirteen % 2 else plain.x[:, column]
        assert np.array_equal(flipped.x[:, column], mirrored)
    assert np.array_equal(flipped.x[:, 12], flipped.x[:, 13])
    assert plain.digest != flipped.digest != crowd("flipped", 301).digest
