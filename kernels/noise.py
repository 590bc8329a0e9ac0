"""Noise pre-fetched from a precomputed table (the paper's C_N)."""

from sensorsim.kernels.formats import ENTRIES, POINTER, STRIDE, WORD32

from sensorsim.language import add, and_, i32, kernel, not_, or_, sign_mask, u32


@kernel()
def multiplex(mask: WORD32, a: WORD32, b: WORD32) -> WORD32:
    """The 2:1 multiplexer: `a` where the bits of `mask` are one, `b` where they are zero. NOT, AND, AND, OR.

    Scaling and overflow: bits only, any word in any place.
    """
    return or_(and_(a, mask), and_(b, not_(mask)))


@kernel(step="perturbation")
def advance(cursor: POINTER, stride: STRIDE, size: ENTRIES) -> POINTER:
    """Move the circular pointer of the noise table by a secret stride: two additions and a multiplexer, C_N = 6.

    The new pointer is uniform and independent of the old one when the stride is uniform on 0 … size-1 and secret. A
    fixed stride is no secret at all once the table is known: every draw then follows from the first.

    Scaling and overflow: pointer and stride are below size <= 2^16, so their sum is below 2^17; the second addition
    takes size off again, and its sign says whether the pointer ran past the end.
    """
    moved = add(i32(cursor), i32(stride))
    wrapped = add(moved, -size)
    return multiplex(sign_mask(wrapped), u32(moved), u32(wrapped))
