"""Files around a model: what is refused in them and before them, and what they say of their own privacy."""

import io
import json
import zipfile
from dataclasses import replace
from functools import partial

import command
import numpy as np
import pytest

from sensorsim._util.errors import InputError
from sensorsim._util.files import strict_json
from sensorsim.accounting.composition import Covers
from sensorsim.codegen.package_tables import trained_line
from sensorsim.encoders import as_json, read_encoder
from sensorsim.hospital.learning import nothing_known
from sensorsim.training import model_files
from sensorsim.training.fitting import Statement
from sensorsim.training.model_files import SECRET, about_model, in_integers
from sensorsim.training.trained import Part, Trained, codes

N, L = 3, 2


@pytest.fixture
def run(capsys):
    return partial(command.run, capsys)


def made(size=1.0, **told):
    """A model of drawn weights, as if a release had taught it."""
    rng = np.random.default_rng(1)
    shapes = ((N, L), (L,), (L, N), (N,))
    users = tuple(Part(*(size * rng.standard_normal(shape) for shape in shapes)) for _ in range(2))
    trained = Trained("sigmoid", users)
    covers = Covers.RELEASE
    said = Statement(1.6, 1.5, 0.0, covers.sentence, covers.value, False, covers.value, "local", "given", "")
    given = {"kind": "rows", "columns": ("a", "b", "c"), "ranges": None, "normalise": None, "noise": SECRET}
    about = about_model(said, form="sigmoid", mechanism="sampled", sizes=(N, L, 2), records=9, identity=["ab"], **given)
    return model_files.Model(trained, *codes(trained, nothing_known(np.arange(N))), about | told)


def npz(about_text, tensors):
    buffer = io.BytesIO()
    np.savez(buffer, **{model_files.ABOUT: np.frombuffer(about_text.encode(), np.uint8)}, **tensors)
    return buffer.getvalue()


def refused(path, content):
    """The sentence with which a file is refused; it names the file."""
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        model_files.load(str(path))
    assert path.name in str(error.value) and len(str(error.value)) < 300
    return str(error.value)


@pytest.mark.parametrize(
    "change",
    [{"spent_epsilon": 0}, {"spent_epsilon": 2e6}, {"nominal_epsilon": 10**400}, {"spent_epsilon": 10**400},
     {"delta": 1.5}, {"delta": -1e-9}, {"delta": None}, {"delta": 10**400}, {"records": 10**400},
     {"nominal_epsilon": "1.6"}, {"noise": "perhaps"}, {"form": "cubic"}, {"n": 13}, {"n": 10**9}, {"m": -1},
     {"l": "2"}, {"columns": ["a"]}, {"columns": [1] * N}, {"ranges": [{}] * N}, {"ranges": 5}, {"schema_version": 2},
     {"schema_version": 99}, {"content": "other"}, {"spent_epsilon": -1}, {"spent_epsilon": True}, {"accuracy": 99.0},
     {"covers": "x" * 3000}, {"trust": None}, {"mechanism": "a\x1b[2J"}, {"identity": "x"}],
)  # fmt: skip
def test_a_statement_out_of_bounds_is_refused(tmp_path, change):
    model = made()
    tensors = model_files.tensors_of(model)
    refused(tmp_path / "m.npz", npz(json.dumps(model.about | change), tensors))
    (tmp_path / "m.npz").write_bytes(npz(json.dumps(model.about | {"delta": 1, "spent_epsilon": 10**6}), tensors))
    assert model_files.load(str(tmp_path / "m.npz")).about["spent_epsilon"] == 10**6


TENSORS = {
    "nan": {"encoder.0.weight": np.full((N, L), np.nan)},
    "shape": {"decoder.bias": np.zeros((3, 3))},
    "text": {"encoder.0.bias": np.array(["x"] * L)},
    "object": {"encoder.0.bias": np.array([{}] * L, object)},
    "more": {"extra": np.zeros(1)},
    "skewed": {"encoder.1.spread": np.array([[1.0, 0.5], [0.4, 1.0]])},
    "narrow": {"encoder.1.spread": np.array([[1.0, 0.0], [0.0, 1e-9]])},
    "no covariance": {"encoder.1.spread": np.array([[1.0, 2.0], [2.0, 1.0]])},
}


@pytest.mark.parametrize("change", TENSORS.values(), ids=TENSORS)
def test_wrong_tensors_are_neither_read_nor_written(tmp_path, change):
    model = made()
    refused(tmp_path / "m.npz", npz(json.dumps(model.about), model_files.tensors_of(model) | change))
    spread = change.get("encoder.1.spread")
    if spread is not None:
        with pytest.raises(InputError, match="no file of a model may hold"):
            model_files.save(str(tmp_path / "n.npz"), replace(model, spread=(model.spread[0], spread)))
        assert not (tmp_path / "n.npz").exists()


def test_a_damaged_file_is_refused(tmp_path):
    for name in ("m.npz", "m.safetensors"):
        path = tmp_path / name
        model_files.save(str(path), made())
        content = path.read_bytes()
        huge = (1 << 62).to_bytes(8, "little") + content[8:]
        bomb = io.BytesIO()
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.npy", bytes(1 << 25))
        for data in (b"", b"PK", b"\xff" * 64, content[:-9], content[:100], huge, bomb.getvalue()):
            refused(path, data)
    for name in ("absent.npz", "model.pt"):
        with pytest.raises(InputError):
            model_files.load(name)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4])
def test_every_model_that_is_made_survives_its_file(tmp_path, size, suffix):
    """Also where all units go the same way, and where rounding is larger than the least variance."""
    model, path = made(size), str(tmp_path / f"m{suffix}")
    same = Trained("sigmoid", tuple(replace(part, W=part.W[:, :1] @ np.ones((1, L))) for part in model.trained.users))
    for trained in (model.trained, same):
        middle, spread = codes(trained, nothing_known(np.arange(N)))
        model = replace(model, trained=trained, middle=middle, spread=spread)
        model_files.save(path, model)
        again = model_files.load(path)
        assert again.about == model.about
        for name, value in model_files.tensors_of(model).items():
            assert np.array_equal(model_files.tensors_of(again)[name], value)


def test_no_key_and_no_member_stands_twice(tmp_path):
    model = made()
    text, tensors = json.dumps(model.about), model_files.tensors_of(model)
    refused(tmp_path / "m.npz", npz(text[:-1] + ', "spent_epsilon": 0.1}', tensors))
    content = io.BytesIO(npz(text, tensors))
    with zipfile.ZipFile(content, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("decoder.bias.npy", archive.read("decoder.bias.npy"))
    refused(tmp_path / "m.npz", content.getvalue())
    model_files.save(str(tmp_path / "m.safetensors"), model)
    data = (tmp_path / "m.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + size].rstrip()[:-1] + b', "__metadata__": {"sensorsim": "{}"}}'
    refused(tmp_path / "m.safetensors", len(header).to_bytes(8, "little") + header + data[8 + size :])


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '[{"b": {"a": 1, "a": 2}}]', '{"a": NaN}', "[-Infinity]", "{"])
def test_strict_json_refuses(text):
    with pytest.raises(ValueError):
        strict_json(text)
    assert strict_json('[{"a": 1, "b": {"a": 2}}, 1.5, null]') == [{"a": 1, "b": {"a": 2}}, 1.5, None]


@pytest.fixture
def encoder(tmp_path):
    (tmp_path / "e.json").write_text(as_json(in_integers(made())[0]))
    return tmp_path / "e.json"


@pytest.mark.parametrize("more", ['"bias": [1, 2]', '"ranges": [{"name": "a", "low": 1, "high": 0, "unit": ""}]'])
def test_an_encoder_with_a_key_twice_is_refused(encoder, more):
    encoder.write_text(encoder.read_text().rstrip()[:-1] + f", {more}\n}}")
    with pytest.raises(InputError, match=r"e\.json"):
        read_encoder(encoder)


def test_a_package_says_what_the_training_covers(encoder):
    line = trained_line(read_encoder(encoder))
    assert "As its file states: epsilon 1.5 per record" in line and Covers.RELEASE.sentence in line
    content = json.loads(encoder.read_text())
    content["provenance"] |= {"covers": "nothing: a seed", "covers_short": "nothing"}
    encoder.write_text(json.dumps(content))
    assert "As its file states: epsilon none per record; it covers nothing: a seed." in trained_line(
        read_encoder(encoder)
    )
    content["provenance"] = {"covers": "nothing\n# A heading " + "x" * 9999, "spent_epsilon": None}
    encoder.write_text(json.dumps(content))
    line = trained_line(read_encoder(encoder)).lstrip("\n")
    assert "epsilon none" in line and "covers nothing # A" in line and "\n" not in line and len(line) < 600
    encoder.write_text(json.dumps(content | {"provenance": {}}))
    assert "does not say" in trained_line(read_encoder(encoder))


@pytest.fixture
def places(tmp_path):
    (tmp_path / "e-1.json").mkdir()
    (tmp_path / "link.npz").symlink_to(tmp_path / "e.json")
    (tmp_path / "d.csv").write_text("p,q\n" + "0.1,0.9\n0.3,0.5\n0.2,0.4\n0.7,0.1\n" * 5)
    (tmp_path / "r.csv").write_text("name,low,high,unit\np,0,1,\nq,0,1,\n")
    return tmp_path


TRAIN = ("train", "--data", "d.csv", "--columns", "p,q", "--ranges", "r.csv", "--l", "1")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--encoder", "e.json", "--out", "link.npz"), "are one file"),
        (("--mechanism", "none", "--epochs", "1", "--encoder", "e.json", "--out", "m.npz"), "e-1.json: it is a folder"),
        (("--m", "65537", "--out", "m.npz"), "--m is 65537"),
    ],
)
def test_train_refuses_in_a_sentence_and_writes_nothing(places, monkeypatch, run, words, says):
    if "none" in words:
        pytest.importorskip("torch")
    monkeypatch.chdir(places)
    before = sorted(places.rglob("*"))
    code, out, said = run(*TRAIN, *words)
    assert code == 2 and out == "" and says in said, said
    assert said.splitlines()[-1].startswith("Error") and "Traceback" not in said and len(said) < 500
    assert sorted(places.rglob("*")) == before


def test_what_is_read_is_not_written_over(places, monkeypatch, run):
    monkeypatch.chdir(places)
    (places / "sums.json").write_text("{}")
    code, _, said = run("train", "--packets", "sums.json", "--table", "t.txt", "--encoder", "./sums.json")
    assert code == 2 and "written over" in said and (places / "sums.json").read_text() == "{}"


@pytest.mark.parametrize("name", ["a\x07b", "r" * 101])
def test_names_that_no_model_may_hold_are_refused_before_training(places, monkeypatch, run, name):
    pytest.importorskip("torch")

    def never(*_):
        raise AssertionError("it was trained")

    monkeypatch.chdir(places)
    monkeypatch.setattr("sensorsim.training.step.Source", never)
    (places / "d.csv").write_text((places / "d.csv").read_text().replace("q", name, 1))
    words = ("train", "--data", "d.csv", "--columns", f"p,{name}", "--l", "1", "--normalise", "max")
    code, out, said = run(*words, "--out", "m.npz")
    assert code == 2 and out == "" and "cannot be the name" in said.splitlines()[-1] and len(said) < 400


def test_training_tells_no_count_of_readings(places, monkeypatch, run):
    """An exact count of clipped readings or dropped rows speaks of single records; evaluate, not private, tells it."""
    pytest.importorskip("torch")
    monkeypatch.chdir(places)
    (places / "d.csv").write_text("p,q\n" + "0.1,7.9\n" * 13 + "0.3,0.5\n" * 20 + ",0.5\n" * 11)
    code, _, said = run(*TRAIN, "--drop-missing", "--out", "m.npz")
    notes = [line for line in said.splitlines() if "clipped" in line or "left out" in line]
    assert code == 0 and len(notes) == 1 and not any(letter.isdigit() for letter in "".join(notes))
    assert "11" not in said and "13" not in said
    told = run("evaluate", "--model", "m.npz", "--data", "d.csv", "--drop-missing")[2]
    assert "13 of 66 readings" in told and "11 of 44 rows" in told
