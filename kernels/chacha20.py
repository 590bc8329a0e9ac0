"""ChaCha20 (RFC 8439): a cryptographic generator of random words from additions, rotations and exclusive ors."""

from sensorsim.kernels.formats import PLACE, WORD32

from sensorsim.language import kernel, out, rotlu, wrapping_addu, xor

CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)  # "expand 32-byte k": the first four words of a state


@kernel()
def quarter_round(block: WORD32["16"], a: PLACE, b: PLACE, c: PLACE, d: PLACE) -> None:
    """The quarter round of RFC 8439, section 2.1, on four words of the block.

    Scaling and overflow: additions wrap at 32 bits, as the cipher wants.
    """
    wa = wrapping_addu(block[a], block[b])
    wd = rotlu(xor(block[d], wa), 16)
    wc = wrapping_addu(block[c], wd)
    wb = rotlu(xor(block[b], wc), 12)
    wa = wrapping_addu(wa, wb)
    wd = rotlu(xor(wd, wa), 8)
    wc = wrapping_addu(wc, wd)
    block[a] = wa
    block[b] = rotlu(xor(wb, wc), 7)
    block[c] = wc
    block[d] = wd


@kernel(step="random words")
def chacha20(state: WORD32["16"], block: out(WORD32["16"])) -> None:
    """Sixteen random words: the block function of RFC 8439, section 2.3.

    `state` is the four constants, eight words of key, the block's number and three words of nonce. Add 1 to the number
    after each block, and never use a number twice under one key and nonce.

    Privacy: to one who does not know the key the words cannot be told from uniform, independent ones by any practical
    means. With them the guarantee of a release holds against such an observer (computational differential privacy);
    with words of a true generator it holds against everyone. Constant time: no branch and no address depends on the
    key.

    Scaling and overflow: additions wrap at 32 bits, as the cipher wants; there is nothing else to overflow.
    """
    for i in range(16):
        block[i] = state[i]
    for _ in range(10):
        quarter_round(block, 0, 4, 8, 12)
        quarter_round(block, 1, 5, 9, 13)
        quarter_round(block, 2, 6, 10, 14)
        quarter_round(block, 3, 7, 11, 15)
        quarter_round(block, 0, 5, 10, 15)
        quarter_round(block, 1, 6, 11, 12)
        quarter_round(block, 2, 7, 8, 13)
        quarter_round(block, 3, 4, 9, 14)
    for i in range(16):
        block[i] = wrapping_addu(block[i], state[i])
