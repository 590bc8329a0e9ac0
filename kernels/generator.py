"""Random words for releases: ChaCha20 under a key that every block replaces (fast key erasure).

The first eight words of a block become the next key and the other eight are used: who reads the memory later finds a
key from which no earlier word can be had. The key is made from the board's entropy whenever the sensor is opened, so
nothing of the generator has to be kept, and a reset cannot bring a word back.
"""

from sensorsim.kernels.chacha20 import CONSTANTS, chacha20
from sensorsim.kernels.formats import BLOCKS, NUMBER, RANDOM, SEED, WORD32

from sensorsim.language import kernel, or_, out, shlu, u32, xor

KEY_WORDS = 8
BLOCK_WORDS = 8  # words of a block that are left beside the next key
SEED_BYTES = 32  # that are mixed into the key at once
CONSTANT_0, CONSTANT_1, CONSTANT_2, CONSTANT_3 = CONSTANTS


@kernel(step="random words")
def next_key(
    key: WORD32["8"], state: out(WORD32["16"]), block: out(WORD32["16"]), place: NUMBER, number: NUMBER, epoch: NUMBER
) -> None:
    """One block under the key, whose first eight words replace the key; the other eight are in block[8] to block[15].

    `place`, `number` and `epoch` stand where ChaCha20 has its block counter and nonce. The key alone makes blocks
    differ; with them even a key that came twice would not give the words of another release. What is left of the old
    key, in `state` and in the first half of `block`, is overwritten.

    Scaling and overflow: additions wrap at 32 bits, as the cipher wants.
    """
    state[0] = CONSTANT_0
    state[1] = CONSTANT_1
    state[2] = CONSTANT_2
    state[3] = CONSTANT_3
    for i in range(8):
        state[4 + i] = key[i]
    state[12] = place
    state[13] = number
    state[14] = epoch
    state[15] = 0
    chacha20(state, block)
    for i in range(8):
        key[i] = block[i]
        block[i] = 0
        state[4 + i] = 0


@kernel(step="random words")
def absorb(key: WORD32["8"], bytes: SEED["32"], state: out(WORD32["16"]), block: out(WORD32["16"])) -> None:
    """Mix 32 bytes of entropy into the key: exclusive or, then a block whose first words are the new key.

    The key of a sensor that is opened starts at zero and takes in all start-up bytes, so it is as hard to guess as all
    of them together, up to its 256 bits.

    Scaling and overflow: four bytes make a word, the first the lowest; additions wrap as the cipher wants.
    """
    for i in range(8):
        low = or_(bytes[4 * i], shlu(bytes[4 * i + 1], 8))
        high = or_(bytes[4 * i + 2], shlu(bytes[4 * i + 3], 8))
        key[i] = xor(key[i], or_(low, shlu(high, 16)))
    next_key(key, state, block, 0, 0, 0)
    for i in range(8):
        block[8 + i] = 0


@kernel(step="random words")
def fresh_words(
    key: WORD32["8"],
    word: out(RANDOM["8 * blocks"]),
    state: out(WORD32["16"]),
    block: out(WORD32["16"]),
    number: NUMBER,
    epoch: NUMBER,
    blocks: BLOCKS,
) -> None:
    """Eight random words from each block; no word is made twice, and after it none of them follows from the key.

    `number` and `epoch` are those of the release. What is not used of a block is not kept either.

    Privacy: to one who does not know the key the words cannot be told from uniform, independent ones by any practical
    means. With them a release is private against such an observer (computational differential privacy). Constant time:
    no branch and no address depends on the key.

    Scaling and overflow: additions wrap at 32 bits, as the cipher wants.
    """
    for b in range(blocks):
        next_key(key, state, block, b, number, epoch)
        for i in range(8):
            word[8 * b + i] = block[8 + i]
            block[8 + i] = u32(0)
