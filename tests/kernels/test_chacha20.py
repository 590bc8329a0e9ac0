"""ChaCha20 against the vectors of RFC 8439, the obvious reference, and Numba."""

import struct

import naive_release as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensorsim.kernels.chacha20 import CONSTANTS, chacha20, quarter_round

from sensorsim.language.numba_backend import compiled
from sensorsim.language.numba_backend.generators import LANES, generator_fill, generator_state

WORD = st.integers(0, 2**32 - 1)
COUNTING_KEY = bytes(range(32))


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def state_of(key: bytes, counter: int, nonce: bytes) -> list[int]:
    return [*CONSTANTS, *struct.unpack("<8I", key), counter, *struct.unpack("<3I", nonce)]


def run(state: list[int]) -> bytes:
    block = [0] * 16
    chacha20(state, block)
    return struct.pack("<16I", *block)


def test_quarter_round_of_section_2_1_1() -> None:
    block = [*words("11111111 01020304 9b8d6f43 01234567"), *[0] * 12]
    quarter_round(block, 0, 1, 2, 3)
    assert block[:4] == words("ea2a92f4 cb1cf8ce 4581472e 5881c4bb")


def test_quarter_round_of_section_2_2_1_touches_four_words() -> None:
    text = """879531e0 c5ecf37d 516461b1 c9a62f8a 44c20ef3 3390af7f d9fc690b 2a5f714c
              53372767 b00a5631 974c541a 359e9963 5c971061 3d631689 2098d9d6 91dbd320"""
    block = words(text)
    quarter_round(block, 2, 7, 8, 13)
    wanted = words(text)
    wanted[2], wanted[7], wanted[8], wanted[13] = words("bdb886dc cfacafd2 e46bea80 ccc07c79")
    assert block == wanted


BLOCKS = [
    # RFC 8439, section 2.3.2
    (
        COUNTING_KEY,
        1,
        "000000090000004a00000000",
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4ed2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    # RFC 8439, appendix A.1, vector 1
    (
        bytes(32),
        0,
        "00" * 12,
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    # RFC 8439, appendix A.1, vector 2
    (
        bytes(32),
        1,
        "00" * 12,
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
]


@pytest.mark.parametrize("key, counter, nonce, wanted", BLOCKS)
def test_block(key: bytes, counter: int, nonce: str, wanted: str) -> None:
    assert run(state_of(key, counter, bytes.fromhex(nonce))).hex() == wanted
    assert naive.chacha20_block(key, counter, bytes.fromhex(nonce)).hex() == wanted


@settings(max_examples=100, deadline=None)
@given(st.binary(min_size=32, max_size=32), WORD, st.binary(min_size=12, max_size=12))
def test_python_numba_and_reference_agree(key: bytes, counter: int, nonce: bytes) -> None:
    state = state_of(key, counter, nonce)
    fast = np.zeros(18, np.uint32)  # two more, to see that nothing past the end is touched
    fast[16:] = 7
    compiled(chacha20)(np.array(state, np.uint32), fast[:16])
    assert run(state) == naive.chacha20_block(key, counter, nonce) == fast[:16].tobytes()
    assert list(fast[16:]) == [7, 7]


def test_the_generator_is_the_cipher_in_order() -> None:
    """Words of block number b of a stream are those of the cipher's blocks b·size/16 and on, past 2^32 too."""
    state = generator_state(11)
    key = state[4:12].tobytes()
    for blocks in (3, LANES, 2 * LANES + 1):
        found = np.empty(16 * blocks, np.uint32)
        for number in (0, 1, 5, 2**32 // blocks - 1, 2**32 // blocks + 1):
            generator_fill("chacha20")(found, state.copy(), number)
            at = [blocks * number + b for b in range(blocks)]
            wanted = b"".join(naive.chacha20_block(key, a % 2**32, struct.pack("<3I", a // 2**32, 0, 0)) for a in at)
            assert found.tobytes() == wanted


def test_keys_come_from_the_seed_or_from_the_operating_system() -> None:
    assert np.array_equal(generator_state(5), generator_state(5))
    assert not np.array_equal(generator_state(5)[4:12], generator_state((5, 1))[4:12])
    assert not np.array_equal(generator_state(None)[4:12], generator_state(None)[4:12])
