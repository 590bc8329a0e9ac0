"""What leaves the house: models, encoders and packages hold releases alone; evaluate reads raw rows and says so."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from command import run

from sensorsim.accounting.composition import Covers
from sensorsim.codegen.package_tables import encoder_file
from sensorsim.commands.program import main
from sensorsim.datasets import synthetic
from sensorsim.encoders import read_encoder
from sensorsim.training import cells, model_files, scores, trained
from sensorsim.training.config import Config
from sensorsim.training.scores import records_for, score

COLUMNS = "TotalSteps,Calories,SedentaryMinutes,LightActiveDistance"
FORBIDDEN = (b"accuracy", b"column_mse", b'"seed"', b"seed 7", b".csv")


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    """Two files with as many persons and rows that share nothing else: names, values, who has how many rows."""
    folder = tmp_path_factory.mktemp("houses")
    for name, seed in (("north", 7), ("the-other-house", 8)):
        frame = synthetic.make(rows=300, persons=60, seed=seed)
        frame["Id"] = np.repeat(np.arange(60), 5) + 1000 * seed
        if seed == 8:
            frame["TotalSteps"] = 39000 - frame["TotalSteps"]
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def written(folder, data, mechanism, form, capsys, *more):
    """All that `train` and `export` write, by name."""
    folder.mkdir(parents=True)
    words = ["--mechanism", mechanism, "--map", form, "--columns", COLUMNS, "--l", "2", "--m", "2"]
    files = ["--out", folder / "m.npz", "--encoder", folder / "e.json"]
    code, out, said = run(capsys, "train", "--data", data, *words, *files, *more)
    assert code == 0, said
    assert run(capsys, "train", "--data", data, *words, "--out", folder / "m.safetensors", *more)[0] == 0
    (folder / "package.json").write_text(encoder_file(read_encoder(folder / "e.json")))
    (folder / "said.txt").write_text(out.replace(str(folder), ""))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("mechanism", "form"),
    [("sketch", "linear"), ("sketch", "sigmoid"),
     *(pytest.param(mechanism, form, marks=pytest.mark.slow)
       for mechanism in ("sampled", "release") for form in ("linear", "sigmoid"))],
)  # fmt: skip
def test_equal_releases_give_equal_files_whatever_the_records(houses, tmp_path, capsys, monkeypatch, mechanism, form):
    """Releases are forced to be equal; persons, values and file names differ. Every byte that is written is equal."""

    def features(x, table, seed):
        drawn = np.random.default_rng(len(x))
        return drawn.integers(50, 99, (x.shape[1], table.symbols or 2)).astype(float)

    def sketches(x, table, sketch, seed):
        drawn = np.random.default_rng(len(x))
        count = drawn.integers(5, 9, sketch.directions).astype(float)
        return count, count * drawn.random(sketch.directions)

    monkeypatch.setattr(trained, "feature_sums", features)
    monkeypatch.setattr(trained, "sketch_sums", sketches)
    more = ("--share", "0.5") if mechanism == "sketch" else ()
    both = [written(tmp_path / str(i), path, mechanism, form, capsys, *more)
            for i, path in enumerate(sorted(houses.glob("*.csv")))]  # fmt: skip
    assert set(both[0]) == {"m.npz", "m.safetensors", "e.json", "package.json", "said.txt"}
    assert both[0] == both[1]
    for name, content in both[0].items():
        assert not any(word in content for word in FORBIDDEN), name


def test_other_releases_give_other_files(houses, tmp_path, capsys):
    """So the test above can tell; and without a seed no two releases are the same."""
    first, second = (written(tmp_path / str(i), houses / "north.csv", "sampled", "linear", capsys) for i in range(2))
    assert first["m.npz"] != second["m.npz"] and first["e.json"] != second["e.json"]


@pytest.mark.parametrize("mechanism", ["none", "dpsgd-weights", "dp-zo", "spof", "dpsgd", "fm"])
def test_no_file_of_any_mechanism_holds_what_was_measured(houses, tmp_path, capsys, mechanism):
    words = ("--mechanism", mechanism, "--columns", COLUMNS, "--l", "2", "--epochs", "1", "--seed", "7", "--bias")
    code, _, said = run(capsys, "train", "--data", houses / "north.csv", *words, "--out", tmp_path / "m.safetensors",
                        "--encoder", tmp_path / "e.json")  # fmt: skip
    assert code == 0, said
    m = 1 if mechanism == "fm" else 2
    assert sorted(path.name for path in tmp_path.glob("e*")) == (["e.json"] if m == 1 else ["e-0.json", "e-1.json"])
    for path in tmp_path.iterdir():
        assert not any(word in path.read_bytes() for word in FORBIDDEN), path
    model = model_files.load(str(tmp_path / "m.safetensors"))
    noise = "none" if mechanism == "none" else "from a seed, so not private"
    assert model.about["noise"] == noise and model.about["m"] == m
    assert set(model.about) == set(model_files.checked_about(model.about))


def test_private_maxima_stay_at_home_and_take_the_epsilon_away(houses, tmp_path, capsys):
    words = ("--data", houses / "north.csv", "--columns", COLUMNS, "--l", "2", "--normalise", "max")
    code, out, _ = run(capsys, "train", *words, "--out", tmp_path / "m.npz", "--encoder", tmp_path / "e.json")
    about = model_files.load(str(tmp_path / "m.npz")).about
    assert code == 0 and about["ranges"] is None and about["spent_epsilon"] is None
    assert "private maxima" in about["covers"] and "no epsilon holds" in out
    assert read_encoder(tmp_path / "e.json").ranges is None
    code, out, _ = run(capsys, "evaluate", "--model", tmp_path / "m.npz", "--data", houses / "north.csv")
    assert code == 0 and "epsilon – per record" in out


@pytest.fixture(scope="module")
def models(houses):
    for form in ("linear", "sigmoid"):
        main(["train", "--data", str(houses / "north.csv"), "--epsilon", "6.4", "--map", form, "--seed", "3",
              "--out", str(houses / f"{form}.npz")])  # fmt: skip
    return houses


@pytest.mark.parametrize("form", ["linear", "sigmoid"])
def test_evaluate_against_row_by_row_arithmetic(models, capsys, form):
    path = models / f"{form}.npz"
    before = path.read_bytes()
    given = ("evaluate", "--model", path, "--data", models / "north.csv")
    said = json.loads(run(capsys, *given, "--format", "json")[1])
    assert said["private"] is False and "not private" in said["note"] and path.read_bytes() == before
    model = model_files.load(str(path))
    dataset = records_for(model, str(models / "north.csv"))
    errors = []
    for x, j in zip(dataset.x, dataset.user, strict=True):
        part = model.trained.users[j]
        a = [sum(x[i] * part.W[i, r] for i in range(14)) + part.b[r] for r in range(7)]
        h = [1 / (1 + np.exp(-value)) for value in a]
        code = a if form == "linear" else h
        z = [sum(code[r] * part.V[r, i] for r in range(7)) + part.d[i] for i in range(14)]
        errors.append([(min(max(v, 0), 1) if form == "linear" else 1 / (1 + np.exp(-v))) for v in z] - x)
    square = np.square(errors)
    scores = said["scores"][0]
    assert scores["accuracy"] == pytest.approx(100 * (1 - square.mean()), abs=1e-6)
    assert scores["accuracy_held_out"] == pytest.approx(100 * (1 - square[dataset.held_out].mean()), abs=1e-6)
    varies = np.square(dataset.x - dataset.x.mean(axis=0))
    assert scores["r2"] == pytest.approx(1 - square.sum() / varies.sum(), abs=1e-8)
    assert scores["column_mse"] == pytest.approx(square.mean(axis=0).tolist(), abs=1e-8)


def test_the_trivial_predictors_are_those_of_sweeps(models, capsys):
    """The same names and figures in both, and those of arithmetic by hand; first weights are drawn by others."""
    said = json.loads(run(capsys, "evaluate", "--model", models / "linear.npz", "--data", models / "north.csv",
                          "--format", "json")[1])  # fmt: skip
    dataset = records_for(model_files.load(str(models / "linear.npz")), str(models / "north.csv"))
    x, held = dataset.x, dataset.held_out
    mean = x[~held].mean(axis=0)
    axes = np.linalg.svd(x[~held] - mean)[2][:7]
    free = trained.data_free(dataset.columns, 7).users[0]
    answers = {
        "zeros": [np.zeros_like(x)],
        "half": [np.full_like(x, 0.5)],
        "column mean": [np.tile(mean, (len(x), 1))],
        "PCA-7": [np.clip(mean + (x - mean) @ axes.T @ axes, 0, 1)],
        "copy 7": [np.where(chosen, x, mean) for chosen in np.eye(14)[:, None, :] + np.roll(np.eye(14), 1, 1)[:, None]],
        "untrained net": [first_net(x, rng) for rng in map(np.random.default_rng, range(1, 41))],
        "data-free map": [np.clip((x @ free.W + free.b) @ free.V + free.d, 0, 1)],
    }
    theirs = cells.trivial_predictors(dataset, Config("none", m=2, l=7))
    ours = said["scores"][0]["trivial"]
    assert set(ours) == set(theirs) == set(answers)
    for name, found in answers.items():
        for part, rows in (("accuracy", slice(None)), ("accuracy_held_out", held)):
            each = [100 * (1 - np.square(one - x)[rows].mean()) for one in found]
            wanted, near = np.mean(each), 1e-4
            if name == "copy 7":  # each feature is copied in two of these 14 choices; of 7, in half of all
                wanted = 100 - (100 - wanted) * (1 / 2) / (12 / 14)
            if name == "untrained net":
                near = 5 * np.std(each) * (1 / scores.LEAST_NETS + 1 / len(each)) ** 0.5
            assert ours[name][part] == pytest.approx(wanted, abs=near), name
            assert theirs[name][part] == pytest.approx(wanted, abs=near), name
    spread = np.square(x - x.mean(axis=0)).mean()
    assert theirs["half"]["r2"] == pytest.approx(1 - np.square(0.5 - x).mean() / spread)
    assert theirs["half"]["accuracy_mae"] == pytest.approx(100 * (1 - abs(0.5 - x).mean()))


def first_net(x, rng):
    """What a net with torch's first weights answers, by the formulas."""
    W, V = (rng.uniform(-(shape[0] ** -0.5), shape[0] ** -0.5, shape) for shape in ((14, 7), (7, 14)))
    return 1 / (1 + np.exp(-(1 / (1 + np.exp(-x @ W))) @ V))


def test_noise_of_the_environment_has_the_size_it_says(models):
    """A predictor that answers what it is given has an error of sigma² a number."""
    dataset = records_for(model_files.load(str(models / "linear.npz")), str(models / "north.csv"))

    def accuracy(sigma, run=0):
        return score(dataset, lambda j, x: x, sigma, run)["accuracy"]

    found = accuracy(2.0)
    count = dataset.x.size
    assert 1 - found / 100 == pytest.approx(4.0, abs=5 * 4 * (2 / count) ** 0.5)
    assert accuracy(0.0) == 100 and accuracy(2.0, run=1) != found


@pytest.mark.parametrize("form", ["linear", "sigmoid"])
def test_integers_cost_next_to_nothing(models, capsys, form):
    found = []
    for more in ((), ("--integers",)):
        given = ("evaluate", "--model", models / f"{form}.npz", "--data", models / "north.csv", "--format", "json")
        found.append(json.loads(run(capsys, *given, *more)[1])["scores"][0]["accuracy"])
    assert found[0] != found[1] and abs(found[0] - found[1]) < 0.05


def test_what_a_person_spends(models, capsys):
    """Five records a person, all trained on: five times the epsilon, or less by composition at delta 1e-6."""
    model, covers = model_files.load(str(models / "linear.npz")), Covers.RELEASE
    secret = {"covers": covers.sentence, "covers_short": covers.value, "noise": "secret"}
    model_files.save(str(models / "secret.npz"), replace(model, about=model.about | secret))
    said = json.loads(run(capsys, "evaluate", "--model", models / "secret.npz", "--data", models / "north.csv",
                          "--format", "json")[1])["persons"]  # fmt: skip
    assert said["spent_epsilon"] == model.about["spent_epsilon"]
    assert said["records_median"] == said["records_most"] == 5 and said["persons"] == 48
    assert said["epsilon_most_added"] == pytest.approx(5 * said["spent_epsilon"])
    assert said["spent_epsilon"] < said["epsilon_most"] <= said["epsilon_most_added"]


def test_who_is_covered_by_nothing_spends_no_epsilon(models, capsys):
    """The noise of this model came from a seed: an epsilon of a person would be a claim that nothing holds."""
    given = ("evaluate", "--model", models / "linear.npz", "--data", models / "north.csv")
    said = json.loads(run(capsys, *given, "--format", "json")[1])["persons"]
    assert said["covers_short"] == "nothing" and "from a seed" in said["covers"]
    assert all(said[name] is None for name in said if "epsilon" in name)
    text = " ".join(run(capsys, *given)[1].split())  # wherever lines end
    assert text.count("epsilon") == 1 and "– per record, – per person" in text and "from a seed" in text


def test_the_forms_of_the_output(models, capsys):
    files = ("--model", models / "linear.npz", "--data", models / "north.csv")
    given = ("evaluate", *files, "--sigma", "0,1", "--runs", 2)
    out = run(capsys, *given)[1]
    assert "not private" in out.splitlines()[0] and "worst column" in out and "R² over mean" in out
    rows = list(csv.DictReader(io.StringIO(run(capsys, *given, "--format", "csv")[1])))
    assert len(rows) == 2 * 8 and {row["private"] for row in rows} == {"False"}


def test_columns_may_have_other_names_and_must_be_there(models, tmp_path, capsys):
    text = (models / "north.csv").read_text().replace("TotalSteps", "Schritte", 1)
    (tmp_path / "other.csv").write_text(text)
    given = ("evaluate", "--model", models / "linear.npz", "--data", tmp_path / "other.csv")
    code, _, said = run(capsys, *given)
    assert code == 2 and "TotalSteps" in said
    names = ",".join(["Schritte", *model_files.load(str(models / "linear.npz")).about["columns"][1:]])
    same = run(capsys, "evaluate", "--model", models / "linear.npz", "--data", models / "north.csv", "--format", "csv")
    assert run(capsys, *given, "--columns", names, "--format", "csv")[:2] == same[:2]
    code, _, said = run(capsys, *given, "--columns", "Schritte")
    assert code == 2 and "takes 14 columns" in said


@pytest.mark.slow
def test_evaluate_needs_no_torch(models):
    program = (
        "import sys\nfrom sensorsim.commands.program import main\n"
        "main(sys.argv[1:])\nassert 'torch' not in sys.modules\n"
    )
    words = ["evaluate", "--model", str(models / "linear.npz"), "--data", str(models / "north.csv"), "--sigma", "1"]
    done = subprocess.run([sys.executable, "-c", program, *words, "--integers"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_model_says_what_noise_it_is_for(houses, tmp_path, capsys):
    """Without --sigma it is judged at its own; at another the table says so."""
    words = ["--mechanism", "sampled", "--columns", COLUMNS, "--l", "2", "--sigma", "5", "--out", tmp_path / "m.npz"]
    assert run(capsys, "train", "--data", houses / "north.csv", *words)[0] == 0
    asked = ["evaluate", "--model", tmp_path / "m.npz", "--data", houses / "north.csv"]
    _, own, _ = run(capsys, *asked, "--runs", "2")
    assert "sigma 5, 2 runs" in own and "was made for" not in own
    _, other, _ = run(capsys, *asked, "--sigma", "0")
    assert "made for inputs with sigma 5, not 0" in other
    code, out, said = run(capsys, *asked, "--sigma", "0", "--runs", "2")
    assert code == 2 and not out and "--runs changes nothing where sigma is 0" in said
