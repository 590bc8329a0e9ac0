"""The door of the language: what is outside is refused where it stands, what is inside is read as Python runs it."""

import pickle
import re
import sys
import types

import pytest
from checking import load
from ill_formed import DECORATED, HEAD, ILL, PRIMITIVES, body

from sensorsim._util.errors import InputError
from sensorsim.language import LanguageError, ir
from sensorsim.language.count import count

LONGEST = 300  # letters of a message


def refused(text):
    with pytest.raises(InputError) as caught:
        load(text, "mine.py")
    message = str(caught.value)
    assert len(message) < LONGEST
    assert "\n" not in message
    assert message.endswith(".")
    return message


@pytest.mark.parametrize("fault", ILL)
def test_what_is_not_in_the_language_is_refused_with_its_line(fault):
    text, line, says = ILL[fault]
    message = refused(HEAD + "@kernel()\n" + text)
    start = HEAD.count("\n") + 1
    assert message.startswith(f"mine.py:{start + line}: kernel "), message
    _, semicolon, instead = message.partition("; ")
    assert semicolon, message
    assert instead[:1].islower() or instead[:1] in "i`", message
    assert re.search(says, message), message


@pytest.mark.parametrize("fault", DECORATED)
def test_a_wrong_declaration_is_refused(fault):
    given, says = DECORATED[fault]
    message = refused(HEAD + f"@kernel({given})\n" + body("return a"))
    assert message.startswith("mine.py:") and says in message


@pytest.mark.parametrize("fault", PRIMITIVES)
def test_a_wrong_primitive_is_refused(fault):
    given, text, says = PRIMITIVES[fault]
    message = refused(HEAD + f"@primitive({given})\n{text}\n")
    assert message.startswith("mine.py:") and says in message


def test_there_are_many_ways_to_be_wrong():
    assert len(ILL) + len(DECORATED) + len(PRIMITIVES) > 100


def test_the_source_must_be_known():
    scope = {}
    with pytest.raises(LanguageError, match="write the kernel in a file or a notebook cell"):
        exec(HEAD.split("def plain")[0] + "@kernel()\ndef k(a: X) -> X:\n    return a\n", scope)


def test_a_format_or_length_that_contradicts_itself_is_refused():
    for text in ('Q("q", "u8", 0, 0, 256, "")', 'Q("q", "u9", 0, 0, 1, "")', 'Length("n", 3, 2, "")',
                 'Length("n", -1, 2, "")', 'Length("n", 1, 2, "", typical=3)'):  # fmt: skip
        with pytest.raises(InputError):
            load(f"from sensorsim.language import *\nF = {text}\n")


# inside

WELL = {
    "constants of a module": ("SIZE = 3", body("return add(a, SIZE)"), 4),
    "numbers that are computed": ("SIZE = 3", body("return add(a, (SIZE << 2) - 1)"), 12),
    "attributes of a module": ("import sensorsim.language as lang", body("return lang.add(a, 1)"), 2),
    "a parameter that is given a value": ("", body("a = add(a, 1)", "return a"), 2),
    "returns on the way": ("", body("if ge(a, 5):", "    return 5", "return a"), 1),
    "returns in a loop": ("", body("for i in range(n):", "    if ge(i, a):", "        return i", "return 9"), 1),
    "both ways return": ("", body("if ge(a, 5):", "    return 5", "else:", "    return 7"), 7),
    "loops that nobody counts": (
        "",
        body("for _ in range(n):", "    for _ in range(2):", "        a = add(a, 1)", "return a"),
        7,
    ),
    "a counter that comes again": (
        "",
        body("for i in range(n):", "    a = add(a, i)", "for i in range(n):", "    a = add(a, i)", "return a"),
        7,
    ),
    "set on both ways": ("", body("if ge(a, 5):", "    c = add(a, 1)", "else:", "    c = sub(a, 1)", "return c"), 0),
    "set where the other way returns": (
        "",
        body("if ge(a, 5):", "    return 1", "else:", "    c = i32(8)", "return c"),
        8,
    ),
    "a flag with a name": ("", body("f = ge(a, 1)", "return selectu(f, 3, 4)"), 3),
    "an index with a name": ("", body("j = n - 1", "return add(x[j], j)"), 6),
    "a text and a remark": ("", body("'''What it is.'''", "# why", "return a  # so"), 1),
    "several lines": ("", body("return add(", "        a,", "        1,", "    )"), 2),
}


@pytest.mark.parametrize("title", WELL)
def test_what_is_in_the_language_runs(title):
    above, text, wanted = WELL[title]
    kernel = load(HEAD + above + "\n@kernel()\n" + text.replace("-> X:", "-> I:"))["k"]
    values = {"a": 1, "u": 2, "x": [4, 4, 4], "y": [0, 0, 0], "t": [1, 2], "b": [1, 1, 1], "n": 3}
    assert kernel(*values.values()) == wanted
    counted = []
    count(kernel, values, lambda node, value: counted.append(value) if isinstance(node, ir.Return) else None)
    assert counted == [wanted]
    kernel.prove()


def test_annotations_as_text():
    kernel = load("from __future__ import annotations\n" + HEAD + "@kernel()\n" + body("return a"))["k"]
    assert kernel.parameters["a"].name == "x"
    message = refused(
        "from __future__ import annotations\n" + HEAD + "@kernel()\ndef k(a: Nowhere) -> X:\n    return a\n"
    )
    assert "Nowhere" in message


def test_a_kernel_inside_a_function_sees_what_it_closes_over():
    text = (
        HEAD
        + "def made(size):\n    @kernel()\n    def inner(a: X) -> I:\n        return add(a, size)\n    return inner\n"
    )
    made = load(text)["made"]
    one, other = made(1), made(20)
    assert (one(1), other(1)) == (2, 21)
    assert (one.prove().result, other.prove().result) == ((-99, 101), (-80, 120))
    assert [node.value for node in other.nodes if isinstance(node, ir.Const)] == [20]


def test_a_notebook_that_redefines_a_kernel():
    scope = load(HEAD + "@kernel()\n" + body("return same(a)"), "<cell 1>")
    kernel, old = scope["k"], scope["same"]
    exec(compile("def same(a): return add(a, 7)", "<cell 2>", "exec"), scope)
    assert kernel(1, 0, [0], [0], [1, 2], [0], 1) == 1  # as it was read
    assert kernel.called == (old,)


def test_a_constant_that_changes_later_is_the_one_that_was_read():
    scope = load(HEAD + "SIZE = 3\n@kernel()\n" + body("return add(a, SIZE)"))
    scope["SIZE"] = 50
    assert scope["k"](1, 0, [0], [0], [1, 2], [0], 1) == 4
    assert [node.value for node in scope["k"].nodes if isinstance(node, ir.Const)] == [3]


def test_two_kernels_of_one_name():
    one = load(HEAD + "@kernel()\ndef k(a: X) -> X:\n    return add(a, 1)\n", "one.py")["k"]
    other = load(HEAD + "@kernel()\ndef k(a: X) -> X:\n    return add(a, 2)\n", "other.py")["k"]
    assert (one.qualified, other.qualified) == ("one.k", "other.k")
    both = load(HEAD + "@kernel()\ndef both(a: X) -> U:\n    return u32(max_(add(one.k(a), other.k(a)), 0))\n", "b.py",
                one=_module(k=one), other=_module(k=other))["both"]  # fmt: skip
    assert both(1) == 5
    assert both.called == (one, other)


def test_a_kernel_travels_by_its_name():
    from sensorsim.kernels.root import root

    assert pickle.loads(pickle.dumps(root)) is root
    scope = load(HEAD + "@kernel()\ndef k(a: X) -> X:\n    return a\n")
    sys.modules["generated"] = _module(**scope)
    try:
        assert pickle.loads(pickle.dumps(scope["k"])) is scope["k"]
    finally:
        del sys.modules["generated"]


def _module(**names):
    module = types.ModuleType("made")
    vars(module).update(names)
    return module
