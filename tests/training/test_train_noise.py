"""The noise of training: exact on its lattice, within its epsilon, secret unless there is a seed."""

import itertools
import json
import math

import pytest
from training_setup import COLUMNS, printed, torch

from sensorsim.commands.program import main
from sensorsim.mechanisms import every, find
from sensorsim.training import cells, loop, model, model_files
from sensorsim.training.config import Config, checked
from sensorsim.training.fitting import REPRODUCIBLE, statement
from sensorsim.training.step import Batch, Source, Step

SMALL = {"l": 2, "runs": 2, "epochs": 1, "kind": "stairs"}
PRINTED = [
    printed("spof", 0.9, c=0.0),
    printed("spof", 0.9, c=2.5, forward="released"),
    printed("fm", 0.9, c=0.0),
    printed("dpsgd", 0.9),
    printed("dpsgd", 0.9, forward="released"),
]
NAMES = [f"{config.mechanism} {config.c} {config.reads}" for config in PRINTED]
LATTICE = {"alpha2": 2**15, "alpha3": 2**16, "less_x": 2**15}


class Every(Source):
    """Noise of every size once, in order: what is possible, not what is likely."""

    def discrete(self, shape, t):
        size = math.prod(shape)
        return torch.arange(-(size // 2), size - size // 2).reshape(tuple(shape))


def noisy_numbers(config, x, source):
    drawn = config.object.draw(x, config, source)
    return {name: drawn[name].double() * LATTICE[name] for name in drawn.keys() & LATTICE.keys()}


@pytest.mark.parametrize("config", PRINTED, ids=NAMES)
def test_what_one_record_can_give_another_can_too(config):
    """Every output is a whole number of lattice steps, and none is left out, for records off the lattice too.

    Noise that is drawn and added in floats fails here: most of its sums cannot come from another record.
    """
    far = 1 << 16  # x moves a sum by half of that at most
    for one, other in ((0.0, 1.0), (0.1, math.e / 3)):
        possible = []
        for value in (one, other):
            found = noisy_numbers(config, torch.full((2 * far, 1), value), Every(0))
            assert found and all((steps == steps.round()).all() for steps in found.values())
            possible.append({name: set(steps.flatten().tolist()) for name, steps in found.items()})
        for name in possible[0]:
            reached = set(range(-far // 2, far // 2))
            assert possible[0][name] & reached == possible[1][name] & reached == reached


@pytest.mark.parametrize("config", PRINTED, ids=NAMES)
def test_real_draws_stand_on_the_lattice(config):
    x = torch.rand(3000, 4, generator=torch.Generator().manual_seed(0))
    for steps in noisy_numbers(config, x, Source(1)).values():
        assert (steps == steps.round()).all() and len(steps.unique()) > 9000
    in_floats = (0.5 - x + torch.distributions.Laplace(0.0, 5.0).sample(x.shape)).double() * 2**15
    assert (in_floats != in_floats.round()).any()  # the check can tell


@pytest.mark.parametrize("config", PRINTED, ids=NAMES)
def test_likelihoods_of_draws_are_within_the_epsilon(config):
    """Two records of two features each. Every cell of outputs within epsilon; the outermost cell reaches it."""
    draws, n = 200_000, 2
    spent = statement(config, n).spent_epsilon
    counts = []
    for value in (0.0, 1.0):
        found = noisy_numbers(config, torch.full((draws, n), value), Source(int(value)))
        cell_of = torch.zeros(draws, dtype=torch.int64)
        for name, steps in sorted(found.items()):
            half = LATTICE[name] / 2 if name == "alpha2" else LATTICE[name] / 4
            edges = (-half, half) if name != "less_x" else (-LATTICE[name], 0)
            for feature in range(n):
                third = (steps[:, feature] > edges[0]).long() + (steps[:, feature] > edges[1]).long()
                cell_of = 3 * cell_of + third
        counts.append(torch.bincount(cell_of, minlength=3 ** (n * len(found))).tolist())
    outermost = 0.0
    for a, b in zip(*counts, strict=True):
        if min(a, b) >= 200:
            loss, doubt = abs(math.log(a / b)), 5 * math.sqrt(1 / a + 1 / b)
            assert loss <= spent + doubt
            outermost = max(outermost, loss + doubt)
    assert outermost >= spent


def test_likelihoods_of_a_slope_are_within_the_epsilon():
    """Of dp-zo with Laplace noise: slopes at both ends of the clip, one epoch, so one draw spends it all."""
    config, draws = printed("dp-zo", 1.2, C=0.3, noise="laplace", epochs=1), 400_000
    outputs = []
    for end in (-0.3, 0.3):
        step = Step(config, Batch(torch.zeros(draws, 1, 1)), None, None, Source(int(end > 0)))
        outputs.append(config.object.perturbed(torch.full((draws, 1, 1), end), step).double())
    assert all((2**15 * y == (2**15 * y).round()).all() for y in outputs)
    below, above = ([int((y < -0.3).sum()), int((y > 0.3).sum())] for y in outputs)
    for a, b in zip(below, above, strict=True):
        assert abs(math.log(a / b)) == pytest.approx(1.2, abs=5 * math.sqrt(1 / a + 1 / b))


PRIVATE = [mechanism.name for mechanism in every() if mechanism.private]


@pytest.mark.parametrize("mechanism", PRIVATE)
def test_without_a_seed_nothing_comes_twice(small, mechanism):
    config = checked(Config(mechanism, 1.0, **SMALL), small.n)
    first, second = (cells.train_and_score(single(small, config), config, range(2))[0] for _ in range(2))
    assert numbers(first) != numbers(second)
    said = statement(config, small.n)
    assert not said.reproducible and "reproducible" not in said.covers
    result = cells.run_cell(small, Config(mechanism, 1.0, **SMALL))
    assert result["reproducible"] is False and result["config"]["seed"] is None


@pytest.mark.parametrize("mechanism", PRIVATE)
def test_with_a_seed_every_bit_comes_again_and_nothing_is_private(small, mechanism):
    config = checked(Config(mechanism, 1.0, seed=5, **SMALL), small.n)
    first, second = (cells.train_and_score(single(small, config), config, range(2))[0] for _ in range(2))
    assert numbers(first) == numbers(second)
    other = checked(Config(mechanism, 1.0, seed=6, **SMALL), small.n)
    assert numbers(first) != numbers(cells.train_and_score(single(small, other), other, range(2))[0])
    said = statement(config, small.n)
    assert said.reproducible and (said.covers.startswith(REPRODUCIBLE) or said.spent_epsilon is None)
    assert said.covers.startswith("nothing")


def numbers(models):
    """All weights of nets of the loop, or of models made of a release."""
    if not isinstance(models, list):
        return models.flat.flatten().tolist()
    parts = [part for trained in models for part in trained.users]
    return [value for part in parts for array in (part.W, part.b, part.V, part.d) for value in array.flatten().tolist()]


def single(dataset, config):
    return cells.single_user(dataset) if config.m == 1 else dataset


def test_the_mechanisms_noise_is_secret_even_where_the_rest_is_known(small):
    """The generator of first weights and of the order may be known: the noise has a key of its own."""
    x = torch.rand(50, 4)
    for name in ("spof", "dpsgd"):
        found = []
        for _ in range(2):
            source = Source()
            source.generator.manual_seed(0)
            found.append(find(name).draw(x, printed(name, 1.0, c=0.0), source))
        assert all(not torch.equal(*pair) for pair in zip(*(drawn.values() for drawn in found), strict=True))
    assert torch.equal(Source(3).discrete((50,), 99), Source(3).discrete((50,), 99))
    assert not torch.equal(Source().discrete((50,), 99), Source().discrete((50,), 99))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("mechanism", ["dpsgd-weights", "dp-zo"])
def test_secret_noise_never_comes_from_torch(small, mechanism, noise, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("noise from torch")

    config = checked(Config(mechanism, 1.0, noise=noise, **SMALL), small.n)
    for name in ("randn", "normal", "randn_like"):
        monkeypatch.setattr(torch, name, refuse)
    for name in ("normal_", "exponential_", "uniform_"):
        monkeypatch.setattr(torch.Tensor, name, refuse)
    source = Source()
    asked = []
    take = source.words.take
    monkeypatch.setattr(source.words, "take", lambda count: asked.append(count) or take(count))
    loop.train_block(small, config, 2, source)
    assert sum(asked) > 0
    if noise == "gaussian":  # and with a seed it does, so the refusal is heard
        with pytest.raises(AssertionError, match="noise from torch"):
            loop.train_block(small, config, 2, Source(0))


def test_gaussian_noise_from_words_is_standard():
    values = Source().normal((200_000,)).double()
    assert abs(values.mean()) < 5 / math.sqrt(200_000)
    assert values.var().item() == pytest.approx(1, abs=5 * math.sqrt(2 / 200_000))
    inside = (values.abs() < 1).double().mean().item()
    assert inside == pytest.approx(math.erf(1 / math.sqrt(2)), abs=5 * 0.47 / math.sqrt(200_000))


def keys_of(value):
    """Every key of nested JSON."""
    if isinstance(value, dict):
        return set(value) | set(itertools.chain.from_iterable(map(keys_of, value.values())))
    return set(itertools.chain.from_iterable(map(keys_of, value))) if isinstance(value, list) else set()


def train(folder, capsys, *more):
    """`sensorsim train`: what it says, the tensors, all that is written beside them."""
    folder.mkdir()
    files = folder / "model.npz", folder / "encoder.json"
    words = ["--columns", ",".join(COLUMNS), "--l", "2", "--epochs", "1", "--mechanism", "dpsgd", "--epsilon", "1.6"]
    main(["train", *words, *more, "--out", str(files[0]), "--encoder", str(files[1]), "--format", "json"])
    said = json.loads(capsys.readouterr().out)
    model = model_files.load(str(files[0]))
    encoders = [path for path in folder.iterdir() if path.suffix == ".json"]
    written = [model.about, *(json.loads(path.read_text()) for path in encoders)]
    return said, model_files.tensors_of(model), written, [path.read_bytes() for path in folder.iterdir()]


def test_train_with_a_seed_says_so_and_keeps_it_to_itself(tmp_path, capsys):
    seeded = [train(tmp_path / name, capsys, "--seed", "987654321") for name in ("a", "b")]
    secret = [train(tmp_path / name, capsys) for name in ("c", "d")]
    for said, _, written, raw in seeded:
        assert said["noise"] == "from a seed, so not private" and "reproducible, so not private" in said["covers"]
        for about in (*written, said):
            assert "seed" not in keys_of(about)
        assert all(b"987654321" not in text for text in raw)
        assert all("reproducible, so not private" in json.dumps(about) for about in written)
    for said, _, written, _ in secret:
        assert said["noise"] == "secret" and "reproducible, so" not in said["covers"]
        assert all("seed" not in keys_of(about) for about in written)
    for pair, same in ((seeded, True), (secret, False)):
        (_, first, *_), (_, second, *_) = pair
        weights = [name for name in first if name.endswith("weight")]
        assert all((first[name] == second[name]).all() == same for name in weights)


def test_a_step_leaves_nothing_of_an_earlier_one(small):
    """Every mechanism fills the whole gradient: nothing of an earlier step is left in it."""
    for mechanism in every():
        if mechanism.name == "sketch":  # which never steps
            continue
        config = checked(Config(mechanism.name, 1.0, estimator="loss", seed=0, **SMALL), small.n)
        x = torch.rand(4, 1, small.n, generator=torch.Generator().manual_seed(0))
        found = []
        for left in (0.0, 7.0):
            weights, gradient = (model.allocate(4, small.n, 2, False, True) for _ in range(2))
            model.initialise(weights, torch.Generator().manual_seed(1))
            gradient.flat.fill_(left)
            source = Source(2)
            drawn = mechanism.draw(x, config, source)
            mechanism.step(Step(config, Batch(x, drawn=drawn), weights, gradient, source))
            found.append(gradient.flat.clone())
        assert torch.equal(*found)
