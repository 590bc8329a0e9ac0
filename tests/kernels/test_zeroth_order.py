"""DP-ZO on the body: against real numbers, at both ends of the clip, its noise, its cost."""

import numpy as np
import pytest
from sensorsim.kernels.formats import SIGMOID_TABLE
from sensorsim.kernels.zeroth_order import dpzo, sigmoid_smooth

from sensorsim.costing.kernel_report import kernel_report

TABLE = list(SIGMOID_TABLE)
UNIT, SUM_UNIT = 2.0**-15, 2.0**-13  # of features and noise; of sums, biases and changes
CLIP = 2**13  # C = 1
SIGMOID_ERROR = 2.0**-13


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def record(n, l, seed, spread=1.0, mu=64):
    """A record and a net with weights of about `spread`, along a direction of signs times mu/2048."""
    draw = np.random.default_rng(seed)
    scale = spread * 2**11
    signs = draw.choice([-mu, mu], 2 * n * l + n + l)
    return {
        "x": draw.integers(0, 2**15 + 100, n),
        "weights": np.rint(draw.normal(0, scale / np.sqrt(n), n * l)),
        "bias": np.rint(draw.normal(0, 4 * scale / np.sqrt(n), l)),
        "decoder": np.rint(draw.normal(0, scale / np.sqrt(l), n * l)),
        "decoder_bias": np.rint(draw.normal(0, 4 * scale / np.sqrt(l), n)),
        "direction": signs[: n * l + l],
        "decoder_direction": signs[n * l + l :],
    }


def run(values, n, l, clip=CLIP, noise=(0, 0), word=0):
    """The kernel in plain Python; what it returns, and its logits."""
    lists = [np.asarray(value).astype(int).tolist() for value in values.values()]
    above, below = [0] * n, [0] * n
    work = [0] * l, [0] * l, above, below
    found = dpzo(*lists, TABLE, clip, list(noise), [word], *work, n, l, len(noise) - 1, len(TABLE))
    return found, above, below


def real(values, n, l, sign):
    """Logits and loss at weights + sign·direction, in floating point, the loss by the two-pass formula."""
    x = np.minimum(values["x"], 2**15) * UNIT
    step, decoder_step = sign * values["direction"] / 2**11, sign * values["decoder_direction"] / 2**11
    weights = (values["weights"] / 2**11 + step[: n * l]).reshape(l, n)
    decoder = (values["decoder"] / 2**11 + decoder_step[: n * l]).reshape(n, l)
    hidden = sigmoid(weights @ x + values["bias"] * SUM_UNIT + step[n * l :])
    z = np.clip(decoder @ hidden + values["decoder_bias"] * SUM_UNIT + decoder_step[n * l :], -8, 8)
    return z, np.sum(np.log(2) + (0.5 - x) * z + z**2 / 8), decoder


def bounds(values, n, l):
    """How far logits and change may be from the real ones: each rounding at its worst, carried to the end."""
    (ahead, _, decoder), (behind, _, other) = real(values, n, l, 1), real(values, n, l, -1)
    hidden_error = n * SUM_UNIT / 4 + SIGMOID_ERROR  # a unit for each term; no sigmoid is steeper than 1/4
    row = np.maximum(np.abs(decoder).sum(1), np.abs(other).sum(1))
    logit_error = row * hidden_error + l * SUM_UNIT
    largest = np.maximum(np.abs(ahead), np.abs(behind)) + logit_error
    slope_error = 2 * 2.0**-12 * (np.abs(ahead - behind) + 2 * logit_error)  # two shifts to 12 fraction bits
    return logit_error, np.sum(2 * logit_error * (0.5 + largest / 4) + slope_error + SUM_UNIT)


@pytest.mark.parametrize(("n", "l"), [(1, 1), (2, 3), (14, 7), (33, 4)])
def test_the_change_is_that_of_two_forward_passes(n, l):
    for seed in range(20):
        values = record(n, l, seed, spread=(0.1, 1, 3)[seed % 3], mu=(4, 16, 127)[seed % 3])
        (z_ahead, loss_ahead, _), (z_behind, loss_behind, _) = real(values, n, l, 1), real(values, n, l, -1)
        found, above, below = run(values, n, l)
        logit_error, change_error = bounds(values, n, l)
        assert (np.abs(np.array(above) * SUM_UNIT - z_ahead) <= logit_error).all()
        assert (np.abs(np.array(below) * SUM_UNIT - z_behind) <= logit_error).all()
        expected = np.clip(loss_ahead - loss_behind, -1, 1)
        assert abs(found * UNIT - expected) <= change_error


def test_the_change_of_the_loss_follows_its_logits_closely():
    """The last step alone, given the kernel's own logits: nothing but three roundings for each feature."""
    n, l = 14, 7
    for seed in range(20):
        values = record(n, l, seed)
        found, above, below = run(values, n, l)
        x = np.minimum(values["x"], 2**15) * UNIT
        z, other = np.array(above) * SUM_UNIT, np.array(below) * SUM_UNIT
        expected = np.sum((0.5 - x) * (z - other) + (z**2 - other**2) / 8)
        error = np.sum(2 * 2.0**-12 * np.abs(z - other) + SUM_UNIT)
        assert abs(found * UNIT - np.clip(expected, -1, 1)) <= error


def test_the_sigmoid_between_the_entries():
    near = np.arange(-(8 << 13) + 2**8, (8 << 13) - 2**8, 7)
    found = np.array([sigmoid_smooth(a, TABLE, len(TABLE)) for a in near.tolist()]) * UNIT
    assert np.abs(found - sigmoid(near * SUM_UNIT)).max() <= SIGMOID_ERROR
    assert (np.diff(found) >= 0).all()
    ends = -(2**29) - 2**28, -(8 << 13), 8 << 13, 2**29 + 2**28
    assert [sigmoid_smooth(a, TABLE, len(TABLE)) for a in ends[:2]] == [TABLE[0]] * 2
    assert all(TABLE[-1] - 1 <= sigmoid_smooth(a, TABLE, len(TABLE)) <= TABLE[-1] for a in ends[2:])


def steep(sign):
    """One feature, x = 0, whose logit is 2 + 1/32 ahead and 2 - 1/32 behind, or the other way round."""
    return {
        **{"x": np.array([0]), "weights": np.array([0]), "bias": np.array([0]), "decoder": np.array([0])},
        **{"decoder_bias": np.array([2 << 13]), "direction": np.array([0, 0])},
        "decoder_direction": np.array([0, sign * 64]),  # on the bias alone
    }


@pytest.mark.parametrize("sign", [1, -1])
def test_both_ends_of_the_clip(sign):
    """The change is 1/16 · (1/2 + 4/8) = 1/16 exactly, 512 units of 2^-13; the noise has four times finer ones."""
    for clip, kept in ((1, 1), (511, 511), (512, 512), (513, 512), (CLIP, 512)):
        assert run(steep(sign), 1, 1, clip)[0] == sign * kept * 4


def test_no_record_moves_the_clipped_change_past_twice_the_clip():
    found = [run(record(5, 3, seed, spread=8, mu=127), 5, 3, clip=300)[0] for seed in range(200)]
    assert (min(found), max(found)) == (-1200, 1200)


def test_the_noise_is_the_entry_that_the_word_picks():
    noise = [7, -(2**30), 2**30, 12_345]
    still = run(steep(1), 1, 1)[0]
    for word in (0, 1, 2, 3, 4, 2**32 - 1, 0xDEADBEEF):
        assert run(steep(1), 1, 1, noise=noise, word=word)[0] == still + noise[word % 4]


def test_numba_and_plain_python_agree():
    for n, l in ((1, 1), (14, 7), (5, 9)):
        values = record(n, l, n, spread=2)
        noise = [-5_000, 3, 17, 2**20]
        expected, above, below = run(values, n, l, clip=700, noise=noise, word=6)
        given = {name: value.astype(int).tolist() for name, value in values.items()}
        fast = dpzo.run(**given, clip=700, noise=noise, word=[6])
        assert fast["returns"] == expected
        assert (fast["above"].tolist(), fast["below"].tolist()) == (above, below)


def test_many_records_at_once_are_each_on_its_own():
    values = {name: value.astype(int) for name, value in record(14, 7, 5).items()}
    x = np.random.default_rng(1).integers(0, 2**15, (40, 14))
    noise = [-900, 0, 25, 2_000]
    words = np.arange(40).reshape(40, 1)
    many = dpzo.batch(**{**values, "x": x}, clip=400, noise=noise, word=words)
    one = [run({**values, "x": row}, 14, 7, 400, noise, int(word[0]))[0] for row, word in zip(x, words, strict=True)]
    assert many["returns"].tolist() == one
    assert len(set(one)) > 10  # they do differ


def by_hand(n, l):
    """Arithmetic of kernels/zeroth_order.py, counted line by line with a pencil; all that the paper prices."""
    pair = n * l  # encoder weights, and as many of the decoder
    units = 2 * l  # sigmoids
    return {
        "ADD": 2 * pair * 3 + l + n + units * 3 + n * 2 + n + 1,  # w + v and two sums; biases; sigmoids; loss; noise
        "SUB": 2 * pair + l + n + units * 2 + n * 2 + 1,  # w - v; biases; sigmoids; 1/2 - x and z+ - z-; -C
        "MUL": 2 * pair * 2 + units + n,
        "AND": units + 1,
    }


@pytest.mark.parametrize(("n", "l"), [(1, 1), (14, 7), (9, 4)])
def test_the_cost_by_hand(n, l):
    formula, counted = dpzo.formula(), {}
    found = {key: times.at(n=n, l=l) for key, times in formula.items()}
    assert dpzo.count(n=n, l=l) == {key: count for key, count in found.items() if count}
    for (_, operation), count in found.items():
        counted[operation] = counted.get(operation, 0) + count
    expected = by_hand(n, l)
    assert {operation: counted[operation] for operation in expected} == expected
    assert not counted.keys() & {"DIV", "OR", "NOT"}
    paper = kernel_report(dpzo, {"n": n, "l": l}, ("k7",), "paper").prices["k7"]
    assert paper.total.typical == sum(expected.values()) + 2 * expected["MUL"]  # a multiplication is three macro-ops
    assert paper.total.typical == (20 * l + 10) * n + 20 * l + 3
