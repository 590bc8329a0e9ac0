"""Numba's reading of kernels: one call, many calls, anyone's kernels and primitives, and what is refused."""
# ruff: noqa: F821 - sizes of arrays are written as text

import random

import numpy as np
import pytest
from sensorsim.kernels.root import root
from sensorsim.kernels.rows_bit import release_rows_bit
from sensorsim.kernels.spof import spof
from sensorsim.kernels.spof_lean import spof_lean
from sensorsim.kernels.stairs import release_stairs, sampled_stairs

from sensorsim._util.errors import InputError
from sensorsim.language import (
    Below,
    Length,
    Q,
    add,
    addu,
    and_,
    ge,
    i32,
    kernel,
    max_,
    minu,
    out,
    primitive,
    selectu,
    sub,
    u32,
)
from sensorsim.language import arguments as made_up
from sensorsim.language.numba_backend import compiled, run
from sensorsim.language.numba_backend.batch import BLOCK, batch_of
from sensorsim.language.numba_backend.batch_loops import Roles, draw_of

V = Q("v", "i32", 0, -1000, 1000, "a value")
S = Q("s", "u8", 0, 0, 200, "a small value")
T = Q("t", "i16", 0, -300, 300, "a table entry")
W = Q("w", "u32", 0, 0, 2**32 - 1, "a drawn word", drawn=True)
WIDE = Q("wide", "i32", 0, -(2**31), 2**31 - 1, "any signed word")
N = Length("n", 1, 100, "values", typical=5)
M = Length("m", 1, 64, "entries", typical=8)
FOUR = Length("m", 4, 64, "entries", typical=8)


@primitive("ADD", operands="u32 u32", result="i32", c="{0} - {1}")
def distance(a, b):
    """|a - b|, written with a difference that is negative in plain Python."""
    return a - b if a - b >= 0 else b - a


@primitive("ADD", operands="u32", result="u32", c="{0}")
def texts(a):
    """No arithmetic on words at all."""
    return len(str(a).split("0")[0])


@kernel()
def first_below(x: V["n"], n: N) -> V:
    """Returns from inside a loop, and changes a parameter's copy on the way."""
    for i in range(n):
        if ge(-1, x[i]):
            return x[i]
    return 0


@kernel()
def elementwise(x: S["n"], pairs: S["2 * n"], shift: V, y: out(V["n"]), n: N) -> None:
    """What the others almost are."""
    twice = add(shift, shift)
    for i in range(n):
        y[i] = add(add(i32(x[i]), twice), sub(i32(pairs[2 * i]), i32(pairs[2 * i + 1])))


@kernel()
def drawing(table: T["m"], place: Below("m", drawn=True)["n"], word: W, y: out(V["n"]), n: N, m: M) -> None:
    """Draws below a length, and one word for the record."""
    low = i32(and_(word, 7))
    for i in range(n):
        y[i] = add(table[place[i]], low)


@kernel()
def walking(x: S["n"], at: Below("m")["1"], table: T["m"], y: out(V["n"]), n: N, m: M) -> None:
    """A pointer that is kept: read from state, carried through the loop, left there again."""
    here = at[0]
    for i in range(n):
        before = here
        here = selectu(ge(i32(addu(here, 1)), m), 0, addu(here, 1))
        y[i] = add(add(table[before], table[here]), i32(x[i]))
    at[0] = here


@kernel()
def wrapping(a: WIDE, b: WIDE) -> WIDE:
    """Leaves its type, which the range check would refuse; here and there it wraps alike."""
    return sub(add(a, b), 1)


@kernel()
def apart(a: W, b: W) -> V:
    """A stranger's primitive."""
    return distance(and_(a, 511), and_(b, 511))


@kernel()
def above(x: S, word: W, table: T["m"], low: V, m: FOUR) -> WIDE:
    """Draw: a pick from a table, and arithmetic on it."""
    entry = table[minu(and_(word, 7), 3)]
    return max_(add(i32(x), entry), low)


@kernel()
def draws(x: S["n"], word: W["n"], y: out(WIDE["n"]), low: V, table: T["m"], n: N, m: FOUR) -> None:
    """A loop of draws alone, which is run over whole blocks."""
    for i in range(n):
        y[i] = above(x[i], word[i], table, low, m)


@kernel()
def draws_backwards(x: S["n"], word: W["n"], y: out(WIDE["n"]), low: V, table: T["m"], n: N, m: FOUR) -> None:
    """Almost a loop of draws: from the far end."""
    for i in range(n):
        y[i] = above(x[n - 1 - i], word[i], table, low, m)


@kernel()
def draws_fewer(x: S["n + 1"], word: W["n"], y: out(WIDE["n"]), low: V, table: T["m"], n: N, m: FOUR) -> None:
    """Almost a loop of draws: of rows that are one longer."""
    for i in range(n):
        y[i] = above(x[i], word[i], table, low, m)


@kernel()
def draws_renamed(x: S["n"], word: W["n"], y: out(WIDE["n"]), entry: V, table: T["m"], n: N, m: FOUR) -> None:
    """Almost a loop of draws: its parameter is called as a local of the draw."""
    for i in range(n):
        y[i] = above(x[i], word[i], table, entry, m)


@kernel()
def signed_above(x: V, word: W, table: T["m"], m: FOUR) -> WIDE:
    """Draw: of a signed value, with a flag that is picked."""
    high = ge(table[minu(and_(word, 7), 3)], 0)
    return add(sub(x, 900), i32(selectu(high, 1, 2)))


@kernel()
def draws_signed(x: S["n"], word: W["n"], y: out(WIDE["n"]), table: T["m"], n: N, m: FOUR) -> None:
    """Almost a loop of draws: a flag is picked, which no scratch array holds."""
    for i in range(n):
        y[i] = signed_above(x[i], word[i], table, m)


@kernel()
def lowered(x: V, word: W) -> WIDE:
    """Draw: of a signed value, without a table."""
    return sub(sub(x, 900), i32(and_(word, 7)))


@kernel()
def draws_lowered(x: S["n"], word: W["n"], y: out(WIDE["n"]), n: N) -> None:
    """A loop of draws: their features are unsigned bytes, which the draw reads as signed."""
    for i in range(n):
        y[i] = lowered(x[i], word[i])


DRAWS = [draws_backwards, draws_fewer, draws_renamed, draws_signed]
OWN = [first_below, elementwise, drawing, walking, apart, draws, draws_lowered, *DRAWS]


def in_python(one, values):
    """What the plain function writes and returns."""
    mine = {name: list(value) if isinstance(value, list) else value for name, value in values.items()}
    result = one(*mine.values())
    made = {name: mine[name] for name in one.arrays if name in one.written}
    return made | ({} if one.result is None else {"returns": result})


def random_values(one, lengths, seed):
    """One call with values of the declared formats, often their ends."""
    chance = random.Random(seed)
    return made_up.arguments(one, lengths, lambda name, lo, hi: chance.choice([lo, hi, chance.randint(lo, hi)]))


def as_lists(made):
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in made.items()}


def check_batch(one, lengths, rows, by_row=lambda name: True):
    """`rows` calls at once against one after the other; `by_row(name)` says which inputs differ from row to row."""
    calls = [random_values(one, lengths, seed) for seed in range(rows)]
    given = dict(lengths)
    for name in one.parameters:
        if name in lengths or (name in one.arrays and (one.arrays[name].contents or one.arrays[name].written)):
            continue
        differs = by_row(name) or (name in one.arrays and name in one.written)
        given[name] = np.array([call[name] for call in calls]) if differs else calls[0][name]
        for call in calls:
            call[name] = call[name] if differs else calls[0][name]
    made = as_lists(one.batch(rows, **given))
    for row, call in enumerate(calls):
        assert {name: value[row] for name, value in made.items()} == in_python(one, call), (one, row)


def test_every_kernel_that_ships_in_one_call_and_in_many(compiled_kernel):
    kernel = compiled_kernel
    for lengths in [*made_up.lengths_to_check(kernel)[:2], kernel.lengths_at()]:
        for seed in range(3):
            values = random_values(kernel, lengths, seed)
            made = run(kernel, values)
            assert as_lists(made if isinstance(made, dict) else {"returns": made}) == in_python(kernel, values)
        check_batch(kernel, lengths, 5)
        check_batch(kernel, lengths, BLOCK + 3, lambda name: name == next(iter(kernel.parameters)))


@pytest.mark.parametrize("one", OWN, ids=lambda one: one.name)
def test_strange_kernels(one):
    for lengths in [*made_up.lengths_to_check(one)[:2], one.lengths_at()]:
        values = random_values(one, lengths, 4)
        made = run(one, values)
        assert as_lists(made if isinstance(made, dict) else {"returns": made}) == in_python(one, values)
        check_batch(one, lengths, 3)
        check_batch(one, lengths, 2 * BLOCK + 1, lambda name: name in ("x", "v"))


def test_loops_of_draws_alone_run_over_blocks():
    def joined(one, rows):
        return draw_of(one, Roles(frozenset(rows), frozenset(one.parameters) - {*rows}, (), (), ())) is not None

    for one in (draws, draws_lowered, release_stairs, release_rows_bit):
        assert joined(one, ("x", "word", "y"))
        assert not joined(one, ("x", "y"))  # the words are shared
    assert not joined(draws, ("x", "word", "y", "low"))  # another limit for each record
    for one in (*DRAWS, elementwise, walking, root, sampled_stairs, spof):
        assert not joined(one, tuple(one.arrays))


def test_state_is_kept_within_a_block_and_starts_anew_with_the_next():
    x = np.random.default_rng(1).integers(0, 200, (2 * BLOCK + 9, 3))
    table = list(range(0, 70, 10))
    made = walking.batch(x=x, at=[5], table=table)["y"]
    at: list[int] = []
    for row in range(len(x)):
        at = [5] if row % BLOCK == 0 else at
        y = [0] * 3
        walking(x[row].tolist(), at, table, y, 3, 7)
        assert made[row].tolist() == y
    for threads in (2, 3):
        assert np.array_equal(made, walking.batch(x=x, at=[5], table=table, threads=threads)["y"])


@pytest.mark.parametrize("generator", ["chacha20", "fast"])
def test_draws_depend_on_the_seed_and_the_record_alone(generator):
    given = {"table": list(range(-3, 4)), "n": 5, "generator": generator}
    long, short = (drawing.batch(count, seed=7, **given)["y"] for count in (3 * BLOCK, BLOCK + 1))
    assert np.array_equal(long[: BLOCK + 1], short)
    assert np.array_equal(long, drawing.batch(3 * BLOCK, seed=7, threads=2, **given)["y"])
    assert not np.array_equal(long, drawing.batch(3 * BLOCK, seed=8, **given)["y"])
    assert not np.array_equal(*(drawing.batch(3 * BLOCK, **given)["y"] for _ in range(2)))
    assert set(long.ravel().tolist()) <= set(range(-3, 11))
    zero = drawing.batch(2000, word=0, seed=1, **given)["y"]
    assert set(zero.ravel().tolist()) == set(range(-3, 4))


def test_both_wrap_alike():
    for a, b in ((2**31 - 1, 1), (-(2**31), -1), (-(2**31), 0), (5, 6)):
        assert wrapping(a, b) == run(wrapping, {"a": a, "b": b}) == wrapping.run(a=a, b=b)


def test_a_stranger_s_primitive_is_plain_python_s():
    chance = random.Random(3)
    for _ in range(50):
        a, b = chance.randrange(2**32), chance.randrange(2**32)
        assert compiled(distance)(np.uint32(a), np.uint32(b)) == i32(distance(a, b))
        assert compiled(u32)(np.int32(a - 2**31)) == u32(a - 2**31)


def test_a_primitive_that_numba_cannot_compile():
    @kernel()
    def odd(a: W) -> W:
        """Uses it."""
        return texts(a)

    assert odd(305) == 1
    with pytest.raises(InputError, match=r"test_run\.py:\d+: Numba cannot compile the primitive texts") as caught:
        odd.run(a=5)
    assert "\n" not in str(caught.value)


def test_one_call_leaves_what_is_given():
    at, x = np.array([1], np.uint32), [5, 6]
    made = walking.run(x=x, at=at, table=[10, 20, 30])
    assert (made["y"].tolist(), made["at"].tolist(), at.tolist()) == ([55, 46], [0], [1])
    assert root.run(v=99) == 9
    assert elementwise.run(x=[1], pairs=[5, 3], shift=2)["y"].tolist() == [7]


REFUSED = [
    ({"x": [1.5]}, "whole numbers"),
    ({"x": [True]}, "whole numbers"),
    ({"x": [201]}, "holds 201"),
    ({"x": [-1]}, "holds -1"),
    ({"x": [2**70]}, "whole numbers"),
    ({"x": ["a"]}, "whole numbers"),
    ({"x": [1, 2], "pairs": [1, 2]}, "shape"),
    ({"x": [[1, 2], [3]]}, "several lengths"),
    ({"shift": 1001}, "holds 1001"),
    ({"shift": 1.0}, "no whole number"),
    ({"n": 0}, "outside 1"),
    ({"n": 1.5}, "no whole number"),
    ({"z": 1}, "no parameter z"),
]


@pytest.mark.parametrize("change, words", REFUSED)
def test_refusals_of_one_call(change, words):
    with pytest.raises(InputError, match=words) as caught:
        elementwise.run(**{"x": [1], "pairs": [1, 2], "shift": 3} | change)
    assert "\n" not in str(caught.value)


def test_refusals_of_batches():
    good = {"x": np.ones((4, 2), int), "pairs": np.ones((4, 4), int), "shift": 3}
    assert elementwise.batch(**good)["y"].shape == (4, 2)
    small, floats, same = np.zeros((3, 2), np.int32), np.zeros((4, 2)), np.zeros((4, 2), np.int32)
    for change, words in (
        ({"x": np.ones((4, 2))}, "whole numbers"),
        ({"x": np.full((4, 2), 300)}, "holds 300"),
        ({"x": np.ones((5, 2), int)}, "4 and 5 records"),
        ({"shift": [1, 2]}, "2 and 4 records"),
        ({"pairs": np.ones((4, 3), int)}, "shape"),
        ({"pairs": None}, "needs the array pairs"),
        ({"shift": None}, "needs shift"),
        ({"generator": "dice"}, "choose chacha20 or fast"),
        ({"threads": 0}, "threads"),
        ({"out": {"y": small}}, "out"),
        ({"out": {"y": floats}}, "out"),
        ({"out": {"x": same}}, "does not write x"),
        ({"z": 3}, "no parameter z"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            elementwise.batch(**good | change)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="no records"):
        drawing.batch(table=[1, 2])
    with pytest.raises(InputError, match="seed"):
        drawing.batch(3, table=[1, 2], seed=-1)
    with pytest.raises(InputError, match="needs the array at"):
        walking.batch(x=[[1, 2]], table=[1, 2])
    shared = np.zeros((2, 4), np.int32)
    with pytest.raises(InputError, match="share memory"):
        spof_lean.batch(x=np.ones((2, 4), int), noise=[1, 2], out={"alpha2": shared, "alpha3": shared})
    assert elementwise.batch(**good | {"x": np.ones((0, 2), int), "pairs": np.ones((0, 4), int)})["y"].shape == (0, 2)


@kernel()
def named_as_options(out: WIDE, seed: WIDE, threads: V["n"], generator: V, n: N) -> V:
    """Its parameters are called as options of batch are."""
    last = generator
    for i in range(n):
        last = threads[i]
    return last


def test_a_kernel_whose_parameters_are_called_as_options_of_batch():
    from sensorsim.machine.vectors import by_plain_python, expected, random_vectors

    vectors = random_vectors(named_as_options, {}, 20, 1)
    made = expected(vectors)["returns"]
    for call in range(vectors.count):
        given = {name: np.asarray(value).tolist() for name, value in vectors.of(call).items()}
        assert made[call] == by_plain_python(named_as_options, given)["returns"]
    rows = {name: vectors.values[name] for name in ("out", "seed", "threads", "generator")}
    assert np.array_equal(batch_of(named_as_options, None, rows, threads=2)["returns"], made)
    with pytest.raises(InputError, match="named_as_options has a parameter generator, which batch takes for its own"):
        named_as_options.batch(**rows)
