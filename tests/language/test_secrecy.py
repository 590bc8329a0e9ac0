"""What the secrecy reader finds, what it must not miss, and that nothing it passes shows in what runs."""

import random

import pytest
from checking import Checker, TooLongError, load
from generated_kernels import arguments_of, copied, declared, lengths_to_try

from sensorsim._util.errors import InputError
from sensorsim.language.load import shipped
from sensorsim.language.types import Array, Length

HEAD = """from sensorsim.language import *
S = Q("s", "u32", 0, 0, 9, "", secret=True)
T = Q("t", "i32", 0, 0, 9, "", secret=True)
P = Q("p", "u32", 0, 0, 9, "")
W = Q("w", "u32", 0, 0, 2**32 - 1, "")
N = Length("n", 1, 9, "")
TEN = Length("n", 10, 20, "")
@kernel()
def look(a: P["n"], p: P, n: TEN) -> P:
    return a[p]
@kernel()
def put(a: P["n"], p: P, n: TEN) -> None:
    a[0] = p
@kernel()
def early(a: P["n"], p: P, n: TEN) -> None:
    if geu(p, 5):
        return
    a[0] = 1
@kernel()
def pick(p: P) -> P:
    if geu(p, 5):
        return 1
    return 2
@kernel()
def shifted(p: P) -> W:
    k = u32(2)
    return shlu(p, k)
@kernel(exposes={"branch": "known", "address": "known"})
def open_pick(a: P["n"], p: P, n: TEN) -> P:
    if geu(p, 5):
        return a[p]
    return 2
"""

# the body of a kernel (s: S, t: T, p: P, a: P["n"], b: S["n"], o: out(P["n"]), n: TEN) -> W, and what is found in it
FOUND = {
    "nothing": ("return p", []),
    "a secret returned": ("return s", []),
    "arithmetic": ("return addu(minu(s, p), selectu(geu(s, 3), 1, 2))", []),
    "a branch": ("if geu(s, 3):\n    return 1\nreturn 2", ["branch"]),
    "a public branch": ("if geu(p, 3):\n    return 1\nreturn s", []),
    "a branch on a name": ("f = geu(s, 3)\nif f:\n    return 1\nreturn 2", ["branch"]),
    "a loop": ("r = u32(0)\nfor i in range(s):\n    r = u32(1)\nreturn r", ["loop"]),
    "the start of a loop": ("r = u32(0)\nfor i in range(s, 9):\n    r = u32(1)\nreturn r", ["loop"]),
    "the counter of a secret loop": (
        "r = u32(0)\nfor i in range(s):\n    r = a[i]\nreturn r",
        ["address", "loop"],
    ),
    "a read": ("return a[s]", ["address"]),
    "a read of a secret, in public": ("return b[p]", []),
    "a write": ("o[s] = 1\nreturn 0", ["address"]),
    "a secret written": ("o[0] = s\nreturn 0", []),
    "a place that is read": ("return a[b[0]]", ["address"]),
    "a division": ("return divu(s, 3)", ["operation"]),
    "a divisor": ("return divu(3, addu(s, 1))", ["operation"]),
    "a public division": ("return divu(p, 3)", []),
    "a shift count": ("return shlu(3, s)", ["operation"]),
    "a shifted secret": ("return shlu(s, 3)", []),
    "a turn": ("return rotlu(3, addu(s, 1))", ["operation"]),
    "a signed shift count": ("return u32(asr(9, s))", ["operation"]),
    "a name under a branch": ("r = p\nif geu(s, 3):\n    r = u32(1)\nreturn a[r]", ["address", "branch"]),
    "a name beside a branch": ("r = p\nif geu(s, 3):\n    q = u32(1)\nreturn a[r]", ["branch"]),
    "the other way": (
        "r = p\nif geu(s, 3):\n    q = u32(1)\nelse:\n    r = u32(1)\nreturn a[r]",
        ["address", "branch"],
    ),
    "a cell under a branch": ("if geu(s, 3):\n    a[0] = 1\nreturn a[a[0]]", ["address", "branch"]),
    "what runs after an early return": (
        "if geu(s, 3):\n    return 1\nr = u32(1)\nif geu(r, p):\n    return 2\nreturn 3",
        ["branch", "branch"],
    ),
    "an early return in a public branch": (
        "if geu(p, 3):\n    if geu(s, 3):\n        return 1\na[0] = 2\nreturn a[a[0]]",
        ["address", "branch"],
    ),
    "an early return in a loop": (
        "for i in range(n):\n    if geu(b[i], 3):\n        return 1\na[0] = 1\nreturn a[a[0]]",
        ["address", "branch"],
    ),
    "into a call": ("return look(a, s, n)", ["address"]),
    "into a public call": ("return look(a, p, n)", []),
    "out of a call": ("return a[pick(s)]", ["address", "branch"]),
    "through an array and a call": ("put(a, s, n)\nreturn a[a[0]]", ["address"]),
    "an early return in a call": ("early(a, s, n)\nreturn a[a[0]]", ["address", "branch"]),
    "a call under a branch": ("if geu(s, 3):\n    put(a, 1, n)\nreturn a[a[0]]", ["address", "branch"]),
    "a call's own names under a branch": ("if geu(s, 3):\n    return shifted(p)\nreturn 1", ["branch"]),
    "a call's result under a branch": (
        "r = u32(1)\nif geu(s, 3):\n    r = shifted(p)\nreturn a[minu(r, 9)]",
        ["address", "branch"],
    ),
    "around a loop": (
        "r = u32(0)\nq = u32(0)\nz = u32(0)\nfor i in range(n):\n    z = a[r]\n    r = q\n    q = s\nreturn z",
        ["address"],
    ),
    "around a loop through an array": (
        "z = u32(0)\nfor i in range(n):\n    z = a[o[0]]\n    o[0] = s\nreturn z",
        ["address"],
    ),
    "around a loop into a branch": (
        "r = u32(0)\nfor i in range(n):\n    if geu(r, 3):\n        r = u32(1)\n    r = s\nreturn r",
        ["branch"],
    ),
    "in and out": ("b[0] = p\nreturn a[b[0]]", ["address"]),
    "a secret that is overwritten": ("r = s\nr = p\nreturn a[r]", []),
    "a cast": ("return a[u32(t)]", ["address"]),
    "accepted below": ("return open_pick(a, s, n)", []),
    "accepted below, not here": ("r = open_pick(a, s, n)\nreturn a[r]", ["address"]),
}
PARAMETERS = 's: S, t: T, p: P, a: P["n"], b: S["n"], o: out(P["n"]), n: TEN'


def made(body, exposes="", parameters=PARAMETERS):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return load(f"{HEAD}@kernel({exposes})\ndef k({parameters}) -> W:\n{lines}")["k"]


@pytest.mark.parametrize("title", FOUND)
def test_what_is_found(title):
    body, kinds = FOUND[title]
    found = made(body).secrecy()
    assert sorted(finding.kind for finding in found.findings) == kinds, found.verdict
    assert found.secrets == ("s", "t", "b")
    assert found.proved == (not kinds)
    for finding in found.findings:
        assert str(finding.at) in found.verdict


def test_an_exception_is_of_the_kernels_own_lines():
    found = made("return open_pick(a, s, n)").secrecy()
    assert [(e.kind, e.reason) for e in found.exceptions] == [("branch", "known"), ("address", "known")]
    assert not found.same_path
    found = made("return look(a, s, n)", "exposes={'address': 'mine'}").secrecy()
    assert [finding.kind for finding in found.findings] == ["address"]  # the line is look's
    found = made("return a[s]", "exposes={'address': 'mine'}").secrecy()
    assert found.proved and found.same_path
    assert "mine" in found.verdict
    found = made("return a[s]", "exposes={'branch': 'mine'}").secrecy()
    assert not found.proved
    found = made("return a[s]", "exposes={'address': ''}").secrecy()
    assert not found.proved  # no reason is no reason


def test_a_kernel_without_secrets():
    found = made("return a[p]", parameters='p: P, a: P["n"], n: TEN').secrecy()
    assert found.proved and not found.secrets
    assert found.verdict == "no parameter is declared secret"


# every kernel that ships and has an exception, and what it is
ADDRESSES = """
    choice.choose_next dinar.dinar dinar.dinar_fetch dinar.dinar_scrambled dpsgd.perturb_gradient encoder.encoder
    encoder.squash rows.reached rows.release_rows rows.rows rows.sampled_rows rows.sampled_rows_one
    rows_bit.sampled_rows_bit rows_bit.sampled_rows_bit_one rows_lookup.release_rows_lookup rows_lookup.rows_lookup
    rows_lookup.sampled_rows_lookup rows_lookup.sampled_rows_lookup_one rows_mirrored.release_rows_mirrored
    rows_mirrored.rows_mirrored rows_mirrored.sampled_rows_mirrored rows_mirrored.sampled_rows_mirrored_one
    rows_search.release_rows_search rows_search.rows_search rows_search.sampled_rows_search
    rows_search.sampled_rows_search_one sketch.sketch_rows sketch.sketch_rows_lookup sketch.sketch_rows_mirrored
    sketch.sketch_rows_search sketch.sketch_stairs stairs.stairs
    spof.fm spof.spof spof_lean.spof_lean stairs.pick_stair
    stairs.release_stairs stairs.sampled_stairs stairs.sampled_stairs_one zeroth_order.dpzo
    zeroth_order.hidden_both zeroth_order.sigmoid_line zeroth_order.sigmoid_smooth
"""
SHIPPED = {
    **{name: {"address"} for name in ADDRESSES.split()},
    "dpsgd.clip_gradient": {"operation"},
    "dpsgd.dpsgd": {"address", "operation"},
    "dpsgd_lean.reciprocal": {"operation"},
    "dpsgd_lean.dpsgd_lean": {"address", "branch", "operation"},
    "root.root": {"operation"},
    **{f"sensor.{name}": {"result"} for name in ("judge", "gather", "seed", "open_sensor")},
}


def test_every_kernel_that_ships():
    verdicts = {name: kernel.secrecy() for name, kernel in shipped().items()}
    assert all(found.proved for found in verdicts.values())
    exceptions = {name: {e.kind for e in found.exceptions} for name, found in verdicts.items() if found.exceptions}
    assert exceptions == SHIPPED
    assert all(e.reason for found in verdicts.values() for e in found.exceptions)


# two runs that differ in secrets only


def paths(kernel, lengths, chosen):
    """The nodes and places of two runs with the same public values."""
    one, other = (arguments_of(kernel, lengths, chosen) for _ in range(2))
    for name, kind in kernel.parameters.items():
        element = kind.element if isinstance(kind, Array) else kind
        if isinstance(kind, Length) or not element.secret:
            other[name] = copied(one)[name]
    found = []
    for arguments in (one, other):
        checker = Checker(None, 20_000)
        checker.run(kernel, arguments)
        found.append(checker.path)
    return found


def assert_no_secret_shows(seeds):
    proved = 0
    for seed in seeds:
        try:
            kernel = declared(seed, secret=0.4)
            kernel.prove()
        except InputError:
            continue
        found = kernel.secrecy()
        if not found.proved or not found.secrets:
            continue
        proved += 1
        chosen = random.Random(seed)
        for lengths in lengths_to_try(kernel, 6):
            for _ in range(3):
                try:
                    one, other = paths(kernel, lengths, chosen)
                except TooLongError:
                    break
                assert one == other, kernel.at
    return proved


@pytest.mark.parametrize("block", range(4))
def test_nothing_that_runs_depends_on_a_secret(block):
    assert assert_no_secret_shows(range(3000 + 40 * block, 3040 + 40 * block)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_nothing_that_runs_depends_on_a_secret_for_many(block):
    assert assert_no_secret_shows(range(50_000 + 200 * block, 50_200 + 200 * block)) >= 20
