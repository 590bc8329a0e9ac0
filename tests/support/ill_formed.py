"""Texts outside the language: each with the line at fault (from the `def`, counted as 1) and the message.

The texts are modules with the names of `HEAD`; the kernel at fault is the last one.
"""

HEAD = """from sensorsim.language import *
import math
X = Q("x", "i32", 0, -100, 100, "")
U = Q("u", "u32", 0, 0, 100, "")
I = Q("i", "i32", 0, -(2**31), 2**31 - 1, "")
B = Q("b", "u8", 0, 0, 100, "")
N = Length("n", 1, 9, "")
M = Length("m", 1, 9, "")
TABLE = Array(U, "2", (1, 2))
FLOAT = 1.5
def plain(a): return a
@kernel()
def same(a: X) -> X:
    return a
@kernel()
def quiet(a: X) -> None:
    b = a
@kernel()
def fill(a: U["n"], b: U["n"], n: N) -> None:
    a[0] = b[0]
@kernel()
def sized(n: N) -> U:
    return 1
@kernel()
def looked_up(t: TABLE) -> U:
    return t[0]
@kernel()
def narrow(b: B["n"], n: N) -> U:
    return b[0]
"""


def body(*lines, head="a: X, u: U, x: U['n'], y: U['n'], t: TABLE, b: B['n'], n: N", result="X"):
    return "\n".join([f"def k({head}) -> {result}:", *(f"    {line}" for line in lines)]) + "\n"


ILL = {
    # operators on values
    "plus": (body("return a + a"), 2, r"`\+` on a, a value; write add\(a, b\)"),
    "times": (body("return a * 2"), 2, "write mul"),
    "left": (body("return a << 2"), 2, "write shl"),
    "negative": (body("return -a"), 2, r"write sub\(0, a\)"),
    "floor division": (body("c = n // 2", "return a"), 2, r"uses `//`; write div"),
    "division": (body("return a / 2"), 2, "uses `/`"),
    "remainder": (body("return a % 2"), 2, "uses `%`"),
    "invert": (body("return ~a"), 2, "write not_"),
    "and": (body("return a & 1"), 2, "write and_"),
    "or": (body("return a | 1"), 2, "write or_"),
    "exclusive or": (body("return a ^ 1"), 2, "write xor"),
    "not": (body("if not ge(a, 1):", "    return 1", "return a"), 2, "uses `not`"),
    "comparison": (body("if a > 1:", "    return 1", "return a"), 2, r"write ge\(a, b\)"),
    "boolean": (body("t = ge(a, 1) or ge(a, 2)", "return a"), 2, "if a or b"),
    "value as a test": (body("if a:", "    return 1", "return a"), 2, "asks whether a; compare"),
    # statements
    "while": (body("while a:", "    a = i32(0)", "return a"), 2, "for i in range"),
    "continue": (body("for i in range(n):", "    continue", "return a"), 3, "turn the condition around"),
    "pass": (body("for i in range(n):", "    pass", "return a"), 3, "pass"),
    "assert": (body("assert a", "return a"), 2, "assert"),
    "del": (body("del a", "return 1"), 2, "del"),
    "import": (body("import os", "return a"), 2, "import"),
    "a function inside": (body("def g(): return 1", "return a"), 2, "def g"),
    "annotated": (body("c: int = add(a, 1)", "return c"), 2, "one at a time"),
    "tuple": (body("c, d = a, a", "return c"), 2, "one at a time"),
    "attribute target": (body("a.b = add(a, 1)", "return a"), 2, "one at a time"),
    "an expression alone": (body("a", "return a"), 2, "uses `a`"),
    "a result dropped": (body("add(a, 1)", "return a"), 2, "drops it"),
    "a step": (body("for i in range(0, n, 2):", "    a = i32(i)", "return a"), 2, r"write range\(last\)"),
    "a list": (body("for i in x:", "    a = i32(i)", "return a"), 2, r"write range\(last\)"),
    "two counters": (body("for i, j in range(n):", "    a = i32(i)", "return a"), 2, "for"),
    "a flag as an end": (body("for i in range(ge(a, 1)):", "    a = i32(i)", "return a"), 2, "give a length"),
    # expressions
    "lambda": (body("c = lambda: 1", "return a"), 2, "lambda"),
    "ternary": (body("return 1 if ge(a, 1) else 2"), 2, "selectu"),
    "keyword": (body("return add(a=a, b=1)"), 2, "in order, without names"),
    "star": (body("return add(*x)"), 2, "spread the pack"),
    "string": (body("return add(a, 'b')"), 2, "whole numbers"),
    "float": (body("return add(a, 1.0)"), 2, "whole numbers"),
    "a float by name": (body("return add(a, FLOAT)"), 2, "a float and no whole number"),
    "a slice": (body("return x[0:1]"), 2, "give one index"),
    "two places": (body("return x[0, 1]"), 2, "give one index"),
    "a place from the end": (body("return x[-1]"), 2, r"a\[n - 1\]"),
    "an array as a value": (body("return add(a, x)"), 2, r"x\[i\]"),
    "a scalar as an array": (body("return a[0]"), 2, "no array"),
    "unknown name": (body("return add(a, nowhere)"), 2, "nowhere, which is not known here; define or import"),
    "unknown call": (body("return nowhere(a)"), 2, "not known here"),
    "a plain function": (body("return plain(a)"), 2, "declare it with @kernel"),
    "a module's function": (body("return math.floor(a)"), 2, "declare it with @kernel"),
    "an attribute of a value": (body("return a.real"), 2, "real"),
    "Python's abs": (body("return abs(a)"), 2, "Python's own; write max_"),
    "Python's len": (body("return add(a, len(x))"), 2, "the array's length"),
    "a for with an else": (
        body("for i in range(n):", "    u = u32(1)", "else:", "    u = u32(2)", "return a"),
        2,
        "else",
    ),
    "recursion": (body("return k(a, u, x, y, t, b, n)"), 2, "calls itself"),
    "a kernel as a value": (body("return same"), 2, "call it"),
    "a name of its own called": (body("add = same(a)", "return add(a, 1)"), 3, "a name of its own"),
    "too few": (body("return add(a)"), 2, "1 arguments; give it 2"),
    "other storage": (body("return narrow(x, n)"), 2, "use the same storage"),
    "the same array twice": (body("fill(x, x, n)", "return a"), 2, "pass two arrays"),
    "a table is written": (body("t[0] = 1", "return a"), 2, "a constant table; store to another"),
    "a table is written by a callee": (body("fill(t, y, n)", "return a"), 2, "a constant table; pass another"),
    "another table": (body("return looked_up(x)"), 2, "pass the same"),
    "a value for an array": (body("fill(x, a, n)", "return a"), 2, "name an array"),
    "a value as a length": (body("return sized(u)"), 2, "pass a length"),
    "a flag as a value": (body("return ge(a, 1)"), 2, r"selectu\(flag, a, b\)"),
    "a value as a flag": (body("return selectu(a, 1, 2)"), 2, "give it a flag"),
    "a flag stored": (body("x[0] = ge(a, 1)", "return a"), 2, "where a word is wanted"),
    "nothing as a value": (body("c = quiet(a)", "return c"), 2, "call it alone"),
    "nothing returned": (body("return quiet(a)"), 2, "where a word is wanted"),
    "too large a number": (body("return add(a, 4294967296)"), 2, "use another type or number"),
    "a negative word": (body("return addu(u, -1)"), 2, "where 0"),
    "a shift of numbers": (body("return add(a, 1 << 40)"), 2, "shift by 0"),
    # names
    "counter given a value": (body("for i in range(n):", "    i = n - 1", "return a"), 3, "loop counter i"),
    "counter of a parameter": (body("for a in range(n):", "    u = u32(1)", "return a"), 2, "use another name"),
    "counter of a local": (body("c = n - 1", "for c in range(n):", "    u = u32(1)", "return a"), 3, "another name"),
    "counter of a loop": (
        body("for i in range(n):", "    for i in range(n):", "        u = u32(1)", "return a"),
        3,
        "i",
    ),
    "counter after the loop": (body("for i in range(n):", "    u = u32(i)", "return i"), 4, "no value"),
    "a length given a value": (body("n = n - 1", "return a"), 2, "the parameter n"),
    "an array given a value": (body("x = a", "return a"), 2, "the parameter x"),
    "set in one branch": (body("if ge(a, 1):", "    c = add(a, 1)", "return c"), 4, "every way"),
    "set in a loop": (body("for i in range(n):", "    c = add(a, 1)", "return c"), 4, "every way"),
    "read before it is set": (body("d = add(c, 1)", "c = add(a, 1)", "return c"), 2, "no value"),
    "index then value": (body("c = n - 1", "c = add(a, 1)", "return c"), 3, "c, an index"),
    "value then flag": (body("c = add(a, 1)", "c = ge(a, 1)", "return a"), 3, "a flag, and it is a i32"),
    "flag then value": (body("c = ge(a, 1)", "c = add(a, 1)", "return a"), 3, "it is a flag"),
    "an open type": (body("c = 5", "return a"), 2, r"write i32\(5\)"),
    "a word of C": (body("short = add(a, 1)", "return short"), 2, "which C cannot have"),
    "the unread counter read": (body("for _ in range(n):", "    a = i32(_)", "return a"), 3, "_"),
    # the whole
    "no return": (body("c = add(a, 1)"), 1, "on every way through"),
    "a return on one way": (body("if ge(a, 1):", "    return 1"), 1, "on every way through"),
    "never reached": (body("return a", "return 1"), 3, "never reached"),
    "no value returned": (body("return"), 2, "make `return` and `->` agree"),
    "a value returned of none": (body("return a", result="None"), 2, "agree"),
    "nothing but a text": (body("'''Says nothing.'''"), 1, "no statement"),
    "no format": ("def k(a) -> X:\n    return a\n", 1, "without a format; declare it with"),
    "int as a format": ("def k(a: int) -> X:\n    return 1\n", 1, "without a format"),
    "int returned": ("def k(a: X) -> int:\n    return a\n", 1, "declare `-> None`"),
    "an array returned": ("def k(a: X) -> X['3']:\n    return a\n", 1, "without a format"),
    "below no length": ("def k(a: Below('u'), u: U) -> X:\n    return 1\n", 1, "no length of it"),
    "stars": ("def k(*a: X) -> X:\n    return 1\n", 1, "without a kernel"),
    "a default": ("def k(a: X = 1) -> X:\n    return a\n", 1, "no plain names"),
    "a parameter of C": ("def k(int: X) -> X:\n    return 1\n", 1, "which C cannot have"),
    "a length of a stranger": ("def k(x: X['z']) -> X:\n    return x[0]\n", 1, "make z a length"),
    "a length of nothing": ("def k(x: X['0']) -> X:\n    return x[0]\n", 1, "1 or more"),
    "a length of noise": ("def k(x: X['n +']) -> X:\n    return x[0]\n", 1, "write a number, n, 2"),
    "a table outside its format": ("def k(t: Array(B, '2', (1, 500))) -> U:\n    return t[0]\n", 1, "widen the format"),
    "below a length of 0": ("def k(z: Length('z', 0, 9, ''), v: Below('z')) -> U:\n    return v\n", 1, "can be 0"),
    "at most a value": (
        "def k(z: Length('z', 1, 9, '', at_most='a'), a: X) -> X:\n    return a\n",
        1,
        "no other length",
    ),
    "at most itself": ("def k(z: Length('z', 1, 9, '', at_most='z')) -> X:\n    return 1\n", 1, "no other length"),
    "at most each other": (
        "def k(z: Length('z', 1, 9, '', at_most='y'), y: Length('y', 1, 9, '', at_most='z')) -> X:\n    return 1\n",
        1,
        "no other length",
    ),
    "a parameter called range": ("def k(range: N) -> X:\n    return 1\n", 1, "which loops need"),
    "a local called range": (body("range = add(a, 1)", "return a"), 2, "which loops need"),
    "a table to fill": ("def k(t: out(TABLE)) -> U:\n    return t[0]\n", 1, "leave one of the two"),
}
DECORATED = {
    "a split of nobody": ("split='z'", "splits z, which is no scalar parameter"),
    "a split of an array": ("split='x'", "splits x"),
    "an exposure of nothing": ("exposes={'colour': 'red'}", "give branch, loop, address, operation"),
}
PRIMITIVES = {
    "no operation": ("operands='u32', result='u32'", "def p(a): return a", "would cost nothing"),
    "no type": ("'ADD', operands='u64', result='u32'", "def p(a): return a", "give u32, i32, i64 or flag"),
    "no result": ("'ADD', operands='u32', result='int'", "def p(a): return a", "give u32, i32, i64 or flag"),
    "other arguments": ("'ADD', operands='u32 u32', result='u32'", "def p(a): return a", "other arguments"),
}
