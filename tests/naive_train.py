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
        factors = []
        for r in range(l):
            shift = math.exp(sum(W[i][r] * (noisy[i] - x[i]) for i in range(n)))
            factors.append(shift / (1 + (shift - 1) * h[r]))
        b = sum(factors)
        t = [sum((b - factors[r]) * V[r][i] * h[r] for r in range(l)) for i in range(n)]
    scale = (1.5 * n * b + n * c_j * (c_j / 2 + 2)) / (math.sqrt(2) * epsilon)
    gradient = []
    for i in range(n):
        alpha2 = b * (0.5 - x[i]) + scale * noise2[i]
        alpha3 = b * (0.5 * x[i] - 0.25) + scale * noise3[i]
        gradient.append(alpha2 + 2 * alpha3 * (z[i] - t[i] / b + c_j))
    return gradient


def dpsgd_z_gradient(x, noise, C, epsilon, b=1.0):
    """Algorithm 2 at a = 0: clip, then Laplace noise of scale n/eps, or 2nC/eps where it clipped."""
    n = len(x)
    gradient = [0.5 - value for value in x]
    norm = math.sqrt(sum(value * value for value in gradient))
    sensitivity = b * n if norm < C else b * 2 * n * C
    return [b * g / max(1, norm / C) + sensitivity / epsilon * e for g, e in zip(gradient, noise, strict=True)]
