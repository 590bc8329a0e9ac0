"""Kernels as newcomers write them: the range proof must accept `MAY`; `NEVER` have the usual slip."""

from checking import cases

MAY = cases("""
# the place of the largest, by a branch
def k(x: U["n"], n: N) -> Below("n"):
    best = u32(0)
    top = u32(0)
    for i in range(n):
        if geu(x[i], top):
            best = u32(i)
            top = x[i]
    return best
# the place of the largest, by a select
def k(x: U["n"], n: N) -> U:
    best = u32(0)
    for i in range(1, n):
        best = selectu(geu(x[i], x[best]), i, best)
    return x[best]
# what is left of a division
def k(v: W, x: U["n"], n: N) -> U:
    return x[subu(v, mulu(divu(v, n), n))]
# what is left of a division, returned
def k(v: W, n: N) -> Below("n"):
    return subu(v, mulu(divu(v, n), n))
# filled from behind
def k(x: U["n"], y: out(U["n"]), n: N) -> U:
    for i in range(n):
        y[n - 1 - i] = x[i]
    return y[0]
# sums from behind
def k(x: C["n"], y: out(W["n"]), n: N) -> W:
    total = u32(0)
    for i in range(n):
        total = addu(total, x[n - 1 - i])
        y[n - 1 - i] = total
    return y[0]
# rows from behind
def k(y: out(U["n * m"]), n: N, m: M) -> U:
    for r in range(n):
        for i in range(m):
            y[(n - 1 - r) * m + i] = 1
    return y[n * m - 1]
# up to an index
def k(p: Below("n"), y: out(U["n"]), n: N) -> None:
    for i in range(p):
        y[i] = 1
# loops whose counters nobody reads
def k(v: U, n: N) -> U:
    t = v
    for _ in range(n):
        for _ in range(n):
            for _ in range(4):
                t = minu(addu(t, 1), 9)
    return t
# a shift by two counters
def k(x: U["64"], n: N) -> None:
    for i in range(n):
        for j in range(i):
            for h in range(j):
                x[1 << (i - h)] = 1
# a hash
def k(x: C["n"], n: N) -> W:
    h = u32(2166136261)
    for i in range(n):
        h = wrapping_mulu(xor(h, x[i]), 16777619)
    return wrapping_subu(wrapping_shlu(h, 5), h)
""")

NEVER = cases("""
# one past the place of the largest
def k(x: U["n"], n: N) -> U:
    best = u32(0)
    for i in range(n):
        best = u32(i + 1)
    return x[best]
# a place that falls with the counter
def k(x: U["n"], n: N) -> U:
    best = u32(0)
    for i in range(n):
        best = u32(n - i)
    return x[best]
# what is left of another division
def k(v: W, x: U["n"], n: N) -> U:
    return x[subu(v, mulu(divu(v, n), 1))]
# what is left of a division by nothing
def k(v: U, w: U) -> U:
    return subu(v, mulu(divu(v, w), w))
# from behind, all but the first
def k(x: U["n"], y: out(U["n"]), n: N) -> U:
    for i in range(1, n):
        y[n - i] = x[i]
    return y[0]
# up to an index, and read
def k(p: Below("n"), y: out(U["n"]), n: N) -> U:
    for i in range(p):
        y[i] = 1
    return y[0]
# past an index
def k(p: Below("n"), y: out(U["n"]), n: N) -> None:
    for i in range(p):
        y[i + 2] = 1
# a select between a place and one past the end
def k(x: U["n"], v: U, n: N) -> U:
    return x[selectu(geu(v, 5), 0, n)]
""")
