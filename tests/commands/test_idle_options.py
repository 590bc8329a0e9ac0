"""Every option changes something for the mechanism or the form that is chosen, or is refused in a sentence."""

from dataclasses import fields, replace

import numpy as np
import pytest
from command import run

import sensorsim
from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import Choice
from sensorsim.mechanisms import every, find
from sensorsim.mechanisms.base import LINEAR
from sensorsim.training.config import Config, idle_settings

NUMBERS = {
    "lr": (1e-3, 0.05), "batch": (2, 7), "epochs": (1, 3), "C": (0.05, 0.5), "c": (0.5, 2.0), "k": (1, 2),
    "share": (0.2, 0.7), "delta": (1e-6, 1e-2), "epsilon": (0.5, 4.0), "sigma": (0.0, 1.0), "m": (1, 2), "l": (1, 2),
    "bias": (False, True), "redraw": (False, True), "decode_c": (False, True), "kind": ("rows", "stairs"),
}  # fmt: skip
CHOICES = {
    field.name: tuple(field.metadata["option"].kind.values)
    for field in fields(Config)
    if field.metadata and isinstance(field.metadata["option"].kind, Choice)
}
SETTINGS = {**NUMBERS, **CHOICES}
# What a setting is tried beside, where it has no effect beside the defaults.
BESIDE = {
    "release_sees": {"sigma": 1.0}, "bias": {"map": "sigmoid"}, "delta": {"noise": "gaussian"}, "decode_c": {"c": 1.0},
    "redraw": {"epochs": 3}, "schedule": {"epochs": 3, "lr": 0.05}, "point": {"C": 50.0}, "sampling": {"batch": 5},
    "epochs": {"lr": 0.05}, "noise": {"lr": 0.05},  # dp-zo's own rate is next to nothing for so few records
}  # fmt: skip
QUICK = {("spof", "c"), ("none", "lr"), ("sampled", "kind"), ("dpsgd", "C")}


def base(mechanism, **more):
    return Config(mechanism, epsilon=None if mechanism == "none" else 2.0, seed=1, runs=1, m=1, l=2, **more)


def cases():
    for mechanism in every():
        for name in SETTINGS:
            quick = (mechanism.name, name) in QUICK
            yield pytest.param(mechanism.name, name, marks=[] if quick else [pytest.mark.slow])


@pytest.mark.parametrize(("mechanism", "name"), list(cases()))
def test_two_values_give_two_models_or_a_sentence(mechanism, name, monkeypatch):
    from sensorsim.datasets.dataset import Dataset
    from sensorsim.training.cells import ready
    from sensorsim.training.fitting import fit

    monkeypatch.setattr(Config, "generator_seed", lambda self, block: 7)  # else every setting would change the noise
    rng = np.random.default_rng(3)
    found, refused = [], 0
    for value in SETTINGS[name]:
        beside = {field: other for field, other in BESIDE.get(name, {}).items() if _reads(mechanism, field)}
        asked = replace(base(mechanism, **beside), **{name: value})
        user = np.arange(40) % asked.m
        dataset = Dataset(
            rng.random((40, 3)), ("a", "b", "c"), np.arange(40), user, np.arange(40) < 4, "made", "ranges"
        )
        rng = np.random.default_rng(3)
        if name in idle_settings([mechanism], asked):
            refused += 1
            continue
        try:
            model = fit(*reversed(ready(asked, dataset)))
        except InputError as error:
            assert str(error).endswith(".") and len(str(error)) < 300
            refused += 1
            continue
        parts = [value for part in model.trained.users for value in (part.W, part.b, part.V, part.d)]
        found.append((model.trained.c, [part.tolist() for part in parts], model.about["spent_epsilon"]))
    assert refused or found[0] != found[1], f"{mechanism} claims to read {name}"


def _reads(mechanism, field):
    return field == "sigma" or field in find(mechanism).used(base(mechanism, map="sigmoid"))


@pytest.mark.parametrize(
    ("mechanism", "given", "name", "why"),
    [
        ("sketch", {"lr": 1e3}, "lr", "but none or spof"),
        ("none", {"epsilon": 2.0}, "epsilon", "none would not read it"),
        ("fm", {"m": 3}, "m", "it has one user"),
        ("sampled", {"release_sees": "noisy"}, "release_sees", "sigma is 0"),
        ("dp-zo", {"noise": "laplace", "delta": 1e-5}, "delta", "Laplace noise has none"),
        ("sampled", {"map": LINEAR, "bias": True}, "bias", ""),
    ],
)
def test_the_reason(mechanism, given, name, why):
    assert why in idle_settings([mechanism], Config(mechanism, **given))[name]


def test_one_reader_is_enough():
    assert "c" not in idle_settings(["sketch", "spof"], Config("none", c=1.0))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lr": 1e3}, "lr changes nothing"),
        ({"mechanism": "spof", "C": 2.0}, "C changes nothing"),
        ({"packets": "p.bin", "table": "t.txt", "lr": 0.1}, "lr changes nothing"),
        (
            {"packets": "p.bin", "table": "t.txt", "epsilon": 2.0},
            "epsilon changes nothing",
        ),
    ],
)
def test_python_is_refused_as_the_command_line_is(given, words):
    with pytest.raises(InputError) as refusal:
        sensorsim.train(**given)
    assert words in str(refusal.value)


@pytest.mark.parametrize("words", [["--lr", "0.1"], ["--mechanism", "none", "--epsilon", "1.6"]])
def test_an_option_typed_with_its_default_is_refused_too(words, capsys):
    code, _, said = run(capsys, "train", *words)
    assert code == 2 and f"{words[-2]} changes nothing" in said


@pytest.mark.parametrize(
    "words",
    [
        "cost --sweep n=3:6 --l 2 --n 14",
        "cost --sweep l=3:6 --l 7",
        "cost --sweep n=3:6 --l 2 --m 2",
        "plan --for covariance --expect 0.2",
        "plan --for model --expect 0.2",
        "plan --for covariance --columns Calories,TotalSteps --ranges ranges.csv",
        "verify absent --cc gcc --jobs 2",
        "receive absent --table absent --root 2",
    ],
)
def test_other_commands_refuse_what_they_would_not_read(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ranges.csv").write_text("name,low,high,unit\nCalories,0,9000,kcal\nTotalSteps,0,50000,steps\n")
    code, out, said = run(capsys, *words.split())
    assert (code, out) == (2, "") and words.split()[-2] in said and "leave" in said


def test_columns_of_a_covariance_need_no_ranges():
    """They would change nothing, so they are not asked for either."""
    assert sensorsim.plan(goal="covariance", columns=["a", "b"]).asked.ranges is None
