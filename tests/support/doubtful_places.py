"""More kernels that a careless range proof would accept: places, calls and values. See `doubtful_kernels`."""

from checking import cases

NEVER = cases("""
# a counter past the array in a triangle
def k(a: U["n"], n: N) -> U:
    r = u32(0)
    for i in range(n):
        for j in range(i, n):
            r = a[i + j]
    return r
# an index from the wrong length
def k(a: U["m"], n: N, m: LESS) -> U:
    r = u32(0)
    for i in range(n):
        r = a[i]
    return r
# a chain of limits the wrong way
def k(a: U["l"], n: N, m: LESS, l: LEAST) -> U:
    return a[m - 1]
# a shift by a length
def k(a: U["(1 << n) - 1"], n: N) -> U:
    return a[(1 << n) - 1]
# a shift of a shift
def k(a: U["n"], n: N) -> U:
    return a[((n + 1) >> 1) << 1]
# an index that is lost in a branch
def k(a: U["n"], v: U, n: N) -> U:
    i = n - 1
    if geu(v, 5):
        i = n + 0
    return a[i]
# a wrapped sum as an index
def k(a: U["10"], v: W) -> U:
    return a[wrapping_addu(v, 1)]
# a signed view as an index
def k(a: U["10"], v: A) -> U:
    return a[minu(u32(v), 10)]
# a narrowing of a name that changed
def k(a: U["5"], v: U) -> U:
    x = v
    if geu(4, x):
        x = addu(x, 1)
        return a[x]
    return 0
# a flag of an old value
def k(a: U["5"], v: U, w: U) -> U:
    x = v
    small = geu(4, x)
    x = w
    if small:
        return a[x]
    return 0
# a product of two constants of one name
import types
one = types.ModuleType("one")
other = types.ModuleType("other")
one.SIZE, other.SIZE = 2, 7
def k(a: U["5"], v: U) -> U:
    return a[mulu(one.SIZE, other.SIZE)]
# a square in the middle overflows
def k(a: U["n"], n: Length("n", 1, 100000, "")) -> U:
    return a[n * n - n * n]
# a product of values under a polynomial
def k(a: U["n * n"], x: Below("n"), y: Below("n"), n: N) -> U:
    return a[mulu(addu(x, 1), addu(y, 1))]
# an element of another limit
def k(a: Below("n")["m"], b: U["m"], n: N, m: M) -> U:
    return b[a[0]]
# a callee whose limit is not kept
def f(n: N, m: LESS, a: U["n"]) -> U:
    return a[m - 1]
def k(n: N, m: M, a: U["n"]) -> U:
    return f(n, m, a)
# a word passed where an index below a length is wanted
def f(a: U["n"], x: Below("n"), n: N) -> U:
    return a[x]
def k(a: U["n"], x: Below("m"), n: N, m: M) -> U:
    return f(a, x, n)
# a callee that writes what the caller declares narrower
def f(a: out(C["n"]), v: C, n: N) -> None:
    a[0] = v
B = Q("b", "u8", 0, 0, 7, "")
def k(a: B["n"], v: C, n: N) -> U:
    f(a, v, n)
    return a[0]
# a return in the loop keeps the larger value
D3 = Q("r", "u32", 0, 0, 3, "")
def k(v: U, n: TEN) -> D3:
    x = u32(0)
    for i in range(n):
        x = addu(x, 1)
        if geu(x, v):
            return x
    return 0
# a loop to its own bound that changes
def k(a: U["9"], v: U) -> U:
    r = u32(0)
    m = v
    for i in range(m):
        m = minu(m, 3)
        r = addu(r, 0)
        r = a[addu(i, 1)]
    return r
# a division whose divisor comes to zero
def k(n: N) -> W:
    d = u32(4)
    r = u32(0)
    for i in range(n):
        r = divu(9, d)
        d = subu(d, minu(d, 1))
    return r
# a shift count that grows
def k(n: Length("n", 1, 40, "")) -> W:
    r = u32(1)
    c = u32(0)
    for i in range(n):
        r = shru(r, c)
        c = addu(c, 1)
    return r
# the least number over minus one
def k(v: I, w: A) -> I:
    return div(v, min_(w, -1))
# a negative shift
def k(b: BIT, n: N) -> I:
    return i32(n << (b - n))
# a table that is shorter than what is asked
def k(a: Array(U, "5", (1, 2, 3, 4, 5)), v: U) -> U:
    return a[minu(v, 5)]
# a split that tells nothing
@kernel(split="v")
def k(a: U["5"], v: U) -> U:
    return a[shru(v, 0)]
# the edge of an if
def k(v: U) -> U:
    if geu(v, 5):
        return divu(9, subu(v, 5))
    return 0
# the other edge of an if
def k(v: U) -> U:
    if geu(v, 5):
        return 0
    return divu(9, subu(4, v))
# an if that narrows the other way
def k(a: U["5"], v: U) -> U:
    if geu(v, 4):
        return a[v]
    return 0
# equal names of two kernels
def f(a: U["m"], n: N, m: M) -> U:
    r = u32(0)
    for i in range(n):
        r = a[i]
    return r
def k(a: U["n"], n: N, m: M) -> U:
    return f(a, m, n)
# a sum of many in two loops
def k(v: I, n: N, m: M) -> I:
    x = i32(0)
    for i in range(n):
        for j in range(m):
            x = add(x, asr(v, 3))
    return x
# values that swap in every round
def k(a: U["10"], n: N) -> U:
    x = u32(0)
    y = u32(10)
    for i in range(n):
        t = x
        x = y
        y = t
    return a[x]
# a value that moves through many names
def k(a: U["10"], n: Length("n", 1, 50, "")) -> U:
    x = u32(0)
    p = u32(0)
    q = u32(0)
    r = u32(0)
    s = u32(0)
    t = u32(0)
    for i in range(n):
        x = t
        t = s
        s = r
        r = q
        q = p
        p = u32(50)
    return a[x]
""")

# These never go wrong, and the proof must accept them.
MAY = cases("""
# one less in the middle
def k(a: U["n"], n: N) -> U:
    return a[n >> 1]
# nothing is done to a negative number
def k(v: S) -> I:
    return mul(v, v)
# a pointer that wraps by a mask
def k(a: U["n"], v: Below("n"), w: Below("n"), n: N) -> U:
    p = addu(v, w)
    t = add(i32(p), -n)
    m = sign_mask(t)
    return a[or_(and_(p, m), and_(u32(t), not_(m)))]
# a sum to the last word
def k(v: S["n"], n: Length("n", 1, 2**24, "")) -> I:
    x = i32(0)
    for i in range(n):
        x = add(x, v[i])
    return x
# written cell by cell, read behind
def k(a: out(U["n"]), n: N) -> U:
    a[0] = 1
    for i in range(1, n):
        a[i] = a[i - 1]
    return a[n - 1]
# a triangle filled in rows
def k(a: out(U["n * n"]), n: N) -> U:
    for i in range(n):
        for j in range(n):
            a[i * n + j] = 1
    return a[n * n - 1]
# a chain of limits
def k(a: U["n"], n: N, m: LESS, l: LEAST) -> U:
    r = u32(0)
    for i in range(l):
        r = a[i]
    return r
# a loop bound that the body changes
def k(v: U) -> U:
    m = v
    r = u32(0)
    for i in range(m):
        m = u32(0)
        r = u32(i)
    return r
# a limit with no value at all
def k(a: U["6"], n: Z, m: ZLESS) -> U:
    r = u32(0)
    for i in range(m, n):
        r = a[i]
    return r
# a clamp in the loop
def k(v: S["n"], n: LARGE) -> A:
    x = i32(0)
    for i in range(n):
        x = max_(min_(add(x, v[i]), 100), -100)
    return x
# beside the edge of an if
def k(v: U) -> U:
    if geu(v, 5):
        return divu(9, subu(v, 4))
    return divu(9, subu(5, v))
# a sum that is taken down and up
def k(n: LARGE) -> I:
    x = i32(0)
    for i in range(n):
        x = add(x, 5)
        x = sub(x, 9)
    return x
# two that swap
def k(a: U["11"], n: N) -> U:
    x = u32(0)
    y = u32(10)
    for i in range(n):
        t = x
        x = y
        y = t
    return a[x]
""")
