"""Kernels that are declared for other kernels: packs of parameters, declared flags, names, records with more fields."""

import random
from typing import Any

import checking
import numpy as np
import pytest

from sensorsim.language import LanguageError, Q, struct
from sensorsim.language.numba_backend.compile import compiled

HEAD = """
from sensorsim.language import Below, Length, Q, addu, kernel, minu, out, rest, struct, u32
U = Q("u", "u16", 0, 0, 1000, "a number")
N = Length("n", 1, 9, "numbers")
M = Length("m", 1, 5, "entries")
ON, OFF, ONE = True, False, 1

@kernel(step="look")
def look(x: U, step: U, table: U["m"], m: M) -> U:
    return minu(addu(x, table[m - 1]), step)
"""
EACH = """
def each(draw, COUNTED=True):
    @kernel(name=f"each_{draw.name}")
    def made(x: U["n"], y: out(U["n"]), n: N, *bound: rest(draw, "x")) -> U:
        for i in range(n):
            y[i] = draw(x[i], *bound)
        if not COUNTED:
            return u32(0)
        else:
            return u32(n)
    return made
"""


def made(text: str, **scope: Any) -> Any:
    return checking.load(HEAD + text, **scope)


def test_a_pack_is_the_other_parameters_and_every_reader_sees_them() -> None:
    kernel = made(EACH + "each_look = each(look)\n")["each_look"]
    assert kernel.name == "each_look" and list(kernel.parameters) == ["x", "y", "n", "step", "table", "m"]
    assert kernel.prove().result == (1, 9) and kernel.secrecy().proved
    by_hand = made(
        """
@kernel()
def plain(x: U["n"], y: out(U["n"]), n: N, step: U, table: U["m"], m: M) -> U:
    for i in range(n):
        y[i] = look(x[i], step, table, m)
    return u32(n)
"""
    )["plain"]
    assert kernel.count(n=5) == by_hand.count(n=5) and kernel.formula() == by_hand.formula()
    ours, theirs = (one.c()["src/ss_notebook.c"].partition("\n")[2] for one in (kernel, by_hand))
    assert ours.replace("ss_each_look", "ss_plain") == theirs
    draws = random.Random(1)
    for n, m in ((1, 1), (9, 5)):
        x, table, step = ([draws.randrange(1001) for _ in range(size)] for size in (n, m, 1))
        wanted = [min(value + table[-1], step[0]) for value in x]
        plain, fast = [0] * n, np.zeros(n, np.uint16)
        assert kernel(x, plain, n, step[0], table, m) == n and plain == wanted
        given = np.array(x, np.uint16), fast, n, step[0], np.array(table, np.uint16), m
        assert compiled(kernel)(*given) == n and fast.tolist() == wanted


def test_only_the_branch_of_a_declared_flag_exists() -> None:
    known = made(EACH + "one, two = each(look), each(look, COUNTED=False)\n")
    assert known["one"].prove().result == (1, 9) and known["two"].prove().result == (0, 0)
    skipped = made("@kernel()\ndef f(a: U) -> U:\n    if OFF:\n        return nothing(a)\n    return a\n")["f"]
    assert skipped(5) == 5 and len(skipped.body) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(a: U, *bound) -> U:\n    return a\n", r"declare \*bound: rest\("),
        ("def f(a: U, *bound: U) -> U:\n    return a\n", r"declare \*bound: rest\("),
        (
            "def f(x: U, *bound: rest(look, 'z')) -> U:\n    return x\n",
            "leaves out z, which look has not; name some of x",
        ),
        (
            "def f(step: U, *bound: rest(look, 'x')) -> U:\n    return step\n",
            r"the parameter step, and one before; leave",
        ),
        (
            "def f(x: U, *bound: rest(look, 'x')) -> U:\n    return step\n",
            r"names step, a part of \*bound; declare it be",
        ),
        ("def f(x: U, *bound: rest(look, 'x')) -> U:\n    return table[0]\n", r"names table, a part of \*bound"),
        (
            "def f(x: U, *bound: rest(look, 'x')) -> U:\n    return look(x, step, *bound)\n",
            "names step|with 5 arguments",
        ),
        ("def f(x: U, *bound: rest(look, 'x')) -> U:\n    return minu(x, bound)\n", "uses the pack bound as a value"),
        (
            "def f(x: U, *bound: rest(look, 'x')) -> U:\n    return look(x, *x)\n",
            "spread the pack of its own parameters",
        ),
        (
            "def f(x: U, *bound: rest(look, 'x')) -> U:\n    return look(*bound)\n",
            "calls look with 3 arguments; give it 4",
        ),
        ("def f(a: U) -> U:\n    if ONE:\n        return a\n    return a\n", "asks whether ONE; compare with"),
        ("def f(a: U) -> None:\n    if OFF:\n        look(a)\n", "has no statement"),
        ("def f(a: U) -> U:\n    if ON:\n        return a\n    return a\n", "is never reached"),
    ],
)
def test_what_is_refused_names_line_and_remedy(text: str, said: str) -> None:
    with pytest.raises(LanguageError, match=rf"^<generated \d+>:\d+: kernel f .*({said})"):
        made(f"@kernel()\n{text}")


def test_a_record_with_more_fields_is_passed_on() -> None:
    text = """
SMALL = struct("box", a=(U, "first"))
LARGE = SMALL.with_fields(b=(U["3"], "second"))
OTHER = struct("box", b=(U["3"], "second"), a=(U, "first"))

@kernel()
def first(box: SMALL) -> U:
    box.a = 7
    return box.a

@kernel()
def both(box: LARGE) -> U:
    box.b[2] = 5
    return first(box)
"""
    kernel = made(text)["both"]
    assert kernel.prove().result == (0, 1000) and kernel.written == {"box.a", "box.b"}
    header = kernel.c()["include/ss_box.h"]
    assert header.index("uint16_t a;") < header.index("uint16_t b[3];") and header.count("typedef") == 1
    for wrong in ("SMALL", "OTHER"):
        passes = f"@kernel()\ndef f(box: {wrong}) -> U:\n    t = both(box)\n    return t\n"
        with pytest.raises(LanguageError, match="as the record box of both; pass a box"):
            made(text + passes)


def test_extending_keeps_the_first_fields() -> None:
    number = Q("number", "u32", 0, 0, 9, "a number")
    small = struct("box", a=(number, "first"))
    large = small.with_fields(b=(number["2"], "second"))
    assert large.extends(small) and small.extends(small) and not small.extends(large)
    assert list(large.fields) == ["a", "b"] and large.about == {"a": "first", "b": "second"}
