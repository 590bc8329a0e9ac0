"""Obvious loops for the training mechanisms; shares no code with the package. Plain lists of floats throughout."""

import math


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def encode(x, W):
    """h_r = sigmoid(sum_i W[i][r] x[i])."""
    return [sigmoid(sum(W[i][r] * x[i] for i in range(len(x)))) for r in range(len(W[0]))]


def decode(h, V):
    return [sum(V[r][i] * h[r] for r in range(len(h))) for i in range(len(V[0]))]


def spof_z_gradient(x, noise2, noise3, W, V, c, epsilon, noisy=None):
    """d L̃/d z of Algorithm 1, with b_j and t_ji written out as in the paper when the input is noisy."""
    n, l = len(x), len(V)
    h = encode(x, W)
    z = decode(h, V)
    c_j = sum(c * value for value in h)
    b, t = 1.0, [0.0] * n
    if noisy is not None:
        factors = noise_factors(x, noisy, W)
        b = sum(factors)
        t = [sum((b - factors[r]) * V[r][i] * h[r] for r in range(l)) for i in range(n)]
    scale = (1.5 * n * b + n * c_j * (c_j / 2 + 2)) / (math.sqrt(2) * epsilon)
    gradient = []
    for i in range(n):
        alpha2 = b * (0.5 - x[i]) + scale * noise2[i]
        alpha3 = b * (0.5 * x[i] - 0.25) + scale * noise3[i]
        gradient.append(alpha2 + 2 * alpha3 * (z[i] - t[i] / b + c_j))
    return gradient


def noise_factors(x, noisy, W):
    """b_{j,r} of every hidden unit r, by the paper's formula; b_j is their sum."""
    factors = []
    for r, h in enumerate(encode(x, W)):
        shift = math.exp(sum(W[i][r] * (noisy[i] - x[i]) for i in range(len(x))))
        factors.append(shift / (1 + (shift - 1) * h))
    return factors


def dpsgd_z_gradient(x, noise, C, epsilon, b=1.0, z=None):
    """Algorithm 2 at a = 0, or at a = z: clip, then Laplace noise of scale n/eps, or 2nC/eps where it clipped."""
    n = len(x)
    gradient = [(0.5 if z is None else sigmoid(z[i])) - x[i] for i in range(n)]
    norm = math.sqrt(sum(value * value for value in gradient))
    sensitivity = b * n if norm < C else b * 2 * n * C
    return [b * g / max(1, norm / C) + sensitivity / epsilon * e for g, e in zip(gradient, noise, strict=True)]


def polynomial_loss(x, W, V, bias=None, decoder_bias=None):
    """Sum over features of ln 2 + (1/2 - x) z + z²/8, the cross-entropy up to second order around z = 0."""
    l, n = len(V), len(x)
    h = [sigmoid(sum(W[i][r] * x[i] for i in range(n)) + (bias[r] if bias else 0)) for r in range(l)]
    z = [sum(V[r][i] * h[r] for r in range(l)) + (decoder_bias[i] if decoder_bias else 0) for i in range(n)]
    return sum(math.log(2) + (0.5 - x[i]) * z[i] + z[i] ** 2 / 8 for i in range(n))


def zeroth_order_slope(x, weights, signs, mu=1 / 128):
    """Return the slope of the loss of one record along a direction; `weights` and `signs` are matrices and vectors."""
    ahead, behind = (
        [_moved(part, way, mu * side) for part, way in zip(weights, signs, strict=True)] for side in (1, -1)
    )
    return (polynomial_loss(x, *ahead) - polynomial_loss(x, *behind)) / (2 * mu)


def zeroth_order_step(records, weights, signs, C, batch):
    """The number that multiplies the direction: slopes clipped to ±C, summed, over the nominal size of the batch."""
    return sum(min(max(zeroth_order_slope(x, weights, signs), -C), C) for x in records) / batch


def _moved(part, way, far):
    if isinstance(part, list):
        return [_moved(one, other, far) for one, other in zip(part, way, strict=True)]
    return part + far * way
