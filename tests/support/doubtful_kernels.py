"""Kernels that a careless range proof would accept: cells that are written, masks and growth.

`NEVER` go wrong for some input, so that a proof of them is a mistake. The others are in `doubtful_places`. Each is a
module whose last kernel is `k`, with the names of `PRELUDE`.
"""

from checking import cases
from doubtful_places import NEVER as PLACES

PRELUDE = """
from sensorsim.language import *
A = Q("a", "i32", 0, -100, 100, "")
U = Q("u", "u32", 0, 0, 9, "")
D = Q("d", "u32", 0, 0, 1, "")
C = Q("c", "u8", 0, 0, 200, "")
S = Q("s", "i8", 0, -128, 127, "")
W = Q("w", "u32", 0, 0, 2**32 - 1, "")
I = Q("i", "i32", 0, -2**31, 2**31 - 1, "")
N = Length("n", 1, 6, "")
LARGE = Length("n", 1, 6000, "")
Z = Length("n", 0, 6, "")
M = Length("m", 1, 6, "")
TEN = Length("n", 10, 12, "")
BIT = Length("b", 0, 31, "")
LESS = Length("m", 1, 6, "", at_most="n")
ZLESS = Length("m", 0, 6, "", at_most="n")
LEAST = Length("l", 1, 6, "", at_most="m")
"""

NEVER = PLACES | cases("""
# a loop to a value leaves cells unwritten
def k(a: out(U["10"]), v: U) -> U:
    for i in range(v):
        a[i] = 1
    return a[8]
# a loop from a value leaves cells unwritten
def k(a: out(U["10"]), v: U) -> U:
    for i in range(v, 10):
        a[i] = 1
    return a[0]
# a loop to a value is read behind in its rounds
def k(a: out(U["10"]), v: U) -> U:
    last = u32(0)
    for i in range(v, 10):
        a[i] = 1
        last = a[0]
    return last
# an index that moves between rounds
def k(a: out(U["2 * n"]), n: N) -> U:
    j = n - n
    for i in range(n):
        a[i + j] = 1
        j = i + 1
    return a[n - 1]
# a test that holds in the first round only
def k(a: out(U["n"]), n: TEN) -> U:
    first = u32(1)
    for i in range(n):
        if geu(first, 1):
            a[i] = 1
        first = u32(0)
    return a[n - 1]
# an inner loop that is long in the first round only
def k(a: out(U["n * n"]), n: TEN) -> U:
    m = n + 0
    for i in range(n):
        for j in range(m):
            a[i * n + j] = 1
        m = n - n
    return a[n * n - 1]
# a loop with no round writes nothing
def k(a: out(U["6"]), n: Z) -> U:
    for i in range(n):
        a[0] = 1
    return a[0]
# a branch writes
def k(a: out(U["n"]), v: U, n: N) -> U:
    if geu(v, 5):
        a[0] = 1
    return a[0]
# rows that go back
def k(a: out(U["10"]), n: Length("n", 0, 3, "")) -> U:
    for i in range(3, 2 * n):
        for j in range(i * i - 6 * i + 9, i * i - 4 * i + 4):
            a[j] = 1
    return a[0]
# two branches write two cells
def k(a: out(U["2"]), v: U) -> U:
    if geu(v, 5):
        a[0] = 1
    else:
        a[1] = 1
    return a[0]
# a callee returns before it writes
def f(a: out(U["n"]), v: U, n: N) -> None:
    if geu(v, 5):
        return
    a[0] = 1
def k(a: out(U["n"]), v: U, n: N) -> U:
    f(a, v, n)
    return a[0]
# every second cell
def k(a: out(U["2 * n"]), n: N) -> U:
    for i in range(n):
        a[2 * i] = 1
    return a[1]
# a triangle is no square
def k(a: out(U["n * n"]), n: TEN) -> U:
    for i in range(n):
        for j in range(i):
            a[i * n + j] = 1
    return a[0]
# cells that a return leaves out
def f(a: out(U["n"]), v: U, n: TEN) -> U:
    for i in range(n):
        if geu(v, 5):
            return 1
        a[i] = 1
    return 0
def k(a: out(U["n"]), v: U, n: TEN) -> U:
    x = f(a, v, n)
    return a[x]
# an address under a stale mask
def k(a: U["5"], v: U, w: U, n: N) -> U:
    t = sub(v, 5)
    x = v
    for i in range(n):
        x = w
    m = sign_mask(t)
    return a[or_(and_(u32(x), m), and_(u32(t), not_(m)))]
# a stale mask inside the loop
def k(a: U["5"], v: U, w: U, n: N) -> U:
    t = sub(v, 5)
    x = v
    r = u32(0)
    for i in range(n):
        m = sign_mask(t)
        r = a[or_(and_(u32(x), m), and_(u32(t), not_(m)))]
        x = w
    return r
# a test that is swapped in the loop
def k(a: U["5"], v: U, w: U, n: N) -> U:
    t = sub(v, 5)
    other = sub(w, 5)
    for i in range(n):
        t = other
    m = sign_mask(t)
    return a[or_(and_(u32(v), m), and_(u32(t), not_(m)))]
# a view that is swapped in the loop
def k(a: U["6"], v: A, w: I, n: N) -> U:
    x = u32(max_(v, -1))
    y = u32(w)
    for i in range(n):
        x = y
    s = i32(x)
    return a[min_(add(min_(s, 3), 1), 5)]
# a mask of another test
def k(a: U["5"], v: U, w: U) -> U:
    t = sub(v, 5)
    m = sign_mask(t)
    o = sign_mask(sub(w, 5))
    return a[or_(and_(v, m), and_(u32(t), not_(o)))]
# a mask that is not complemented
def k(a: U["5"], v: U) -> U:
    t = sub(v, 5)
    m = sign_mask(t)
    return a[or_(and_(v, not_(m)), and_(v, m))]
# growth that doubles
def k(n: Length("n", 1, 40, "")) -> I:
    x = i32(1)
    for i in range(n):
        x = add(x, x)
    return x
# growth by the counter
def k(n: Length("n", 1, 70000, "")) -> I:
    x = i32(0)
    for i in range(n):
        x = add(x, i)
    return x
# growth of two that feed each other
def k(n: Length("n", 1, 60, "")) -> I:
    x = i32(1)
    y = i32(1)
    for i in range(n):
        t = add(x, y)
        x = y
        y = t
    return y
# growth with alternating signs
def k(n: Length("n", 1, 40, "")) -> I:
    x = i32(1)
    for i in range(n):
        x = sub(0, add(x, x))
    return x
# growth that an inner loop resets to another
def k(n: LARGE, m: M) -> I:
    x = i32(0)
    y = i32(0)
    for i in range(n):
        y = add(y, 600000)
        for j in range(m):
            x = y
        x = add(x, 1)
    return x
# growth in one branch
def k(v: U, n: LARGE) -> I:
    x = i32(0)
    for i in range(n):
        if geu(v, 5):
            x = add(x, 400000)
        else:
            x = sub(x, 1)
    return x
# growth through a minimum with a grower
def k(n: LARGE) -> I:
    x = i32(0)
    y = i32(0)
    for i in range(n):
        y = add(y, 500000)
        x = min_(add(x, 800000), y)
    return x
""")
