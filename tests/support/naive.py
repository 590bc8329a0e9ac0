"""Obvious reference forms of the kernels: plain loops, whole numbers, fractions; nothing of the project's own."""

import math
from fractions import Fraction

ONE = 32768  # 1.0 with 15 fraction bits


def feature(x):
    return ONE if x > ONE else x


def alpha2(x):
    """0.5 - x"""
    return ONE // 2 - feature(x)


def alpha3(x):
    """0.5 x - 0.25, rounded down"""
    return math.floor(Fraction(feature(x), 2) - Fraction(ONE, 4))


def root(v):
    return math.isqrt(v)


def advance(cursor, stride, size):
    return (cursor + stride) % size


def spof(x, weights, constant, noise, stride, cursor):
    """The stabilized weights, both perturbed coefficients, and the two cursors after the record."""
    first, second = cursor
    noisy2, noisy3 = [], []
    for i, value in enumerate(x):
        first = (first + stride[2 * i]) % len(noise)
        second = (second + stride[2 * i + 1]) % len(noise)
        noisy2.append(alpha2(value) + noise[first])
        noisy3.append(alpha3(value) + noise[second])
    return [weight + constant for weight in weights], noisy2, noisy3, [first, second]


def spof_lean(x, noise, word):
    noisy = [alpha2(value) + noise[w % len(noise)] for value, w in zip(x, word, strict=True)]
    return noisy, [-math.floor(Fraction(u, 2)) for u in noisy]


def logistic(power):
    """e/(1+e) with 15 fraction bits, rounded down; the power has 11."""
    return math.floor(Fraction(power, 2048) / (1 + Fraction(power, 2048)) * ONE)


def clipped_by_division(gradient, clip):
    """A_i / max(1, norm/C) as the printed algorithm says, each quotient rounded as an integer divider does."""
    squares = [math.floor(Fraction(a, ONE) ** 2 * 2**20) for a in gradient]
    norm = math.isqrt(sum(squares))
    ratio = max(Fraction(1), Fraction(math.floor(Fraction(norm, clip) * ONE), ONE))
    return [math.trunc(Fraction(a) / ratio) for a in gradient]


def dpsgd(x, power, clip, noise, stride, cursor):
    gradient = [logistic(power) - feature(value) for value in x]
    noisy = []
    for a, s in zip(clipped_by_division(gradient, clip), stride, strict=True):
        cursor = (cursor + s) % len(noise)
        noisy.append(a + noise[cursor])
    return noisy, cursor


def dpsgd_lean(x, sigma, clip, noise, word):
    gradient = [sigma - feature(value) for value in x]
    squares = [math.floor(Fraction(a, ONE) ** 2 * 2**20) for a in gradient]
    factor = Fraction(1)
    if sum(squares) > clip * clip:
        factor = Fraction(min(ONE, math.floor(Fraction(clip, math.isqrt(sum(squares)) + 1) * ONE)), ONE)
    return [math.floor(a * factor) + noise[w % len(noise)] for a, w in zip(gradient, word, strict=True)]
