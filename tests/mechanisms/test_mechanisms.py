"""Mechanisms as objects: names, styles, kernels, what they spend and say."""

import itertools
import math

import pytest

pytest.importorskip("torch")

from sensorsim import mechanisms
from sensorsim._util.errors import InputError
from sensorsim.accounting.composition import Covers
from sensorsim.codegen.package_options import choose
from sensorsim.mechanisms import every, find, resolve
from sensorsim.training.config import Config, checked
from sensorsim.training.fitting import statement

EVERY = every()
mechanism_of = pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: mechanism.name)


def test_every_word_means_one_mechanism():
    words = [word for mechanism in EVERY for word in (mechanism.name, *mechanism.aliases)]
    assert len(set(words)) == len(words)
    assert len({mechanism.title for mechanism in EVERY}) == len(EVERY)
    known = {"none", "spof", "fm", "dpsgd", "dpsgd-weights", "dp-zo", "release", "sampled", "sketch"}
    assert {mechanism.name for mechanism in EVERY} == known


@mechanism_of
def test_an_older_name_is_understood_with_a_hint(mechanism):
    assert resolve(mechanism.name) == (mechanism, "") and find(mechanism.name) is mechanism
    for alias in mechanism.aliases:
        found, hint = resolve(alias)
        assert found is mechanism and alias in hint and mechanism.name in hint
        with pytest.warns(FutureWarning, match=mechanism.name):
            assert checked(Config(alias, 1.0, kind="stairs"), 14).mechanism == mechanism.name
    assert resolve("exact")[0].name == "release"
    with pytest.warns(FutureWarning, match="exact is now called release"):
        assert find("exact").name == "release"
    with pytest.raises(InputError, match=f"no mechanism 'magic'; choose from .*{mechanism.name}"):
        resolve("magic")


def test_markers_and_colours_tell_mechanisms_apart():
    styles = [mechanism.style for mechanism in EVERY]
    for part in (lambda s: s, lambda s: s.marker, lambda s: s.colour):
        assert len(set(map(part, styles))) == len(styles)
    from matplotlib.colors import is_color_like
    from matplotlib.lines import Line2D

    for style in styles:
        Line2D([], [], linestyle=style.line, marker=style.marker)
        assert is_color_like(style.colour)


@mechanism_of
def test_kernels_load_and_belong_together(mechanism):
    names = [form.name for form in mechanism.forms]
    assert all(name.startswith(mechanism.name) for name in names) and len(set(names)) == len(names)
    for form in mechanism.forms:
        assert form.kernel.name == form.source.rpartition(".")[2]
        assert set(form.random.split()) <= form.kernel.parameters.keys()
        assert set(form.lengths) <= set(form.kernel.lengths)
        assert form.random_bits(14, 7) > 0 and form.bits_sent(14) > 0
    if not mechanism.forms:
        assert mechanism.cost_form() is None
        with pytest.raises(InputError, match="no kernel of its own"):
            mechanism.kernel("lean")
        return
    assert {mechanism.as_shipped, mechanism.as_printed} - {""} <= set(names)
    assert mechanism.cost_form() in mechanism.forms
    for variant in ("paper", "lean"):
        assert choose([mechanism.name], variant) == [mechanism.kernel(variant)]
        assert [choose([alias], variant) for alias in mechanism.aliases] == [[mechanism.kernel(variant)]] * len(
            mechanism.aliases
        )


@mechanism_of
def test_every_option_is_a_field_of_a_configuration(mechanism):
    fields = Config.__dataclass_fields__
    assert set(mechanism.options) <= fields.keys() and mechanism.about and mechanism.reads in mechanism.may_read
    assert ("epsilon" in mechanism.options) == mechanism.private


def expected_covers(config, n):
    """What the epsilon of a configuration is about, written out by hand."""
    raw = config.reads == "raw"
    match config.mechanism:
        case "none":
            return Covers.NOTHING
        case "spof" | "fm":
            return Covers.RELEASE if not raw else Covers.NOTHING if config.c or config.sigma else Covers.COEFFICIENTS
        case "dpsgd":
            longest = math.sqrt(n) * (1 if config.point == "prediction" else 0.5)
            if longest > config.C or (raw and (config.sigma or config.point == "prediction")):
                return Covers.NOTHING
            return Covers.GRADIENTS if raw else Covers.RELEASE
        case "dpsgd-weights":
            return Covers.REAL_STEPS
        case "dp-zo":
            return Covers.STEPS if config.noise == "laplace" else Covers.REAL_STEPS
        case "release" | "sampled" | "sketch":
            return Covers.COEFFICIENTS if raw else Covers.RELEASE
    raise AssertionError(config.mechanism)


def configurations(mechanism):
    axes = {
        "forward": (None, "raw", "released"),
        "redraw": (False, True),
        "c": (0.0, 2.5),
        "sigma": (0.0, 5.0),
        "C": (1.0, 2.5, 4.0),
        "point": ("zero", "prediction"),
        "noise": ("gaussian", "laplace"),
        "estimator": ("moments", "loss"),
    }
    found = {}
    for values in itertools.product(*axes.values()):
        given = dict(zip(axes, values, strict=True))
        try:
            config = checked(Config(mechanism.name, 1.6, epochs=3, kind="stairs", **given), 14)
        except InputError:
            released = given["forward"] == "released" and mechanism.may_read == ("raw",)
            no_loop = mechanism.releases and given["forward"] == "raw" and given["estimator"] == "moments"
            no_loss = mechanism.name == "sketch" and given["estimator"] == "loss"
            assert released or no_loop or no_loss
            continue
        found[config] = None
    return list(found)


@mechanism_of
def test_training_and_accounting_say_the_same(mechanism):
    """The same use, once from a configuration and once in the words of `spent`: the same epsilon, about the same."""
    found = configurations(mechanism)
    assert found
    for config in found:
        said = statement(config, 14)
        spent = by_hand(mechanism, config)
        bounded = math.isfinite(spent.epsilon)
        assert spent.covers is expected_covers(config, 14) and bounded == (spent.covers is not Covers.NOTHING)
        assert said.spent_epsilon == (spent.epsilon if bounded else None) and said.delta == spent.delta
        assert said.covers_short == spent.covers.value and said.covers.startswith(spent.covers.sentence)
        assert spent.covers.sentence and spent.why and spent.basic >= spent.epsilon
        if not bounded and mechanism.private:
            assert spent.why in said.covers  # no statement without its reason
        if bounded and not config.redraw and mechanism.name != "spof" and mechanism.name != "fm":
            assert spent.epsilon <= 1.6 * (1 + 1e-9)  # as it is nominal


def by_hand(mechanism, config):
    fresh = config.redraw or mechanism.name in ("dpsgd-weights", "dp-zo")
    use = {name: getattr(config, name) for name in ("C", "c", "sigma", "point", "noise", "delta", "batch")}
    epsilon = config.epsilon
    if mechanism.name in ("release", "sampled", "sketch"):
        epsilon, use["table"] = None, mechanism.table(config, 14)
    draws = config.epochs if fresh else 1
    return mechanisms.spent(mechanism.name, epsilon, draws=draws, features=14, hidden=7, forward=config.reads, **use)
