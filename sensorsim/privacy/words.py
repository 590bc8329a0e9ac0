"""Uniform 64-bit words for draws on the host: the ChaCha20 of the kernels, under a key of the operating system or a
seed.

With a key of the operating system nobody can tell the words from even ones, so noise made from them may protect a
record. A seed makes the same words again, for a replication; who knows the seed can take the noise off.
"""

import math
from typing import TYPE_CHECKING

from sensorsim.errors import InputError
from sensorsim.single import Single, process

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sensorsim.language.numba_backend.generators import Seed

BLOCK = 1 << 13
"""Words made at once: 64 KB, which stay in the cache until they are read."""

Shape = int | tuple[int, ...]


class Words(Single):
    """A stream of words. Each word is given once, to whichever thread asks. `private` is True only where no seed was
    given."""

    instead = "make a stream of its own instead"

    def __init__(self, seed: "Seed" = None) -> None:
        import numpy as np

        from sensorsim.language.numba_backend.generators import generator_fill

        self.private = seed is None
        self._seed = seed
        self._fill = generator_fill("chacha20")
        self._block = np.empty(BLOCK, np.uint64)
        self._number = 0
        self._key()

    def take(self, count: int) -> "npt.NDArray[np.uint64]":
        """The next words of the stream, however it is cut: 3 and then 5 are the same words as 8."""
        import numpy as np

        if count < 0:
            raise InputError(f"{count} words were asked for; ask for 0 or more.")
        taken = np.empty(count, np.uint64)
        with self.one_at_a_time:
            if self.private and self._process != process():
                self._key()  # a forked process holds the key of its parent, and would give the same noise
            done = 0
            while done < count:
                if self._used == BLOCK:
                    self._refill()
                some = min(count - done, BLOCK - self._used)
                taken[done : done + some] = self._block[self._used : self._used + some]
                self._used += some
                done += some
        return taken

    def uniform(self, shape: Shape) -> "npt.NDArray[np.float64]":
        """Numbers in (0, 1): 53 bits of a word over 2^53. A 0 is drawn again, so that a logarithm is always finite."""
        import numpy as np

        bits = self.take(_size(shape)) >> np.uint64(11)
        while (zero := bits == 0).any():
            bits[zero] = self.take(int(zero.sum())) >> np.uint64(11)
        return (bits.astype(np.float64) * 2.0**-53).reshape(shape)

    def normal(self, shape: Shape) -> "npt.NDArray[np.float64]":
        """Standard normal numbers, two from two uniform ones (Box and Muller); none is further out than 8.58."""
        import numpy as np

        size = _size(shape)
        u, v = self.uniform((2, (size + 1) // 2))
        length, turn = np.sqrt(-2 * np.log(u)), 2 * np.pi * v
        return np.concatenate([length * np.cos(turn), length * np.sin(turn)])[:size].reshape(shape)

    def _key(self) -> None:
        from sensorsim.language.numba_backend.generators import generator_state

        self._state = generator_state(self._seed)
        self._process = process()
        self._used = BLOCK  # of the block; nothing is made before it is asked for

    def _refill(self) -> None:
        import numpy as np

        self._fill(self._block.view(np.uint32), self._state, self._number)
        self._number += 1
        self._used = 0


def _size(shape: Shape) -> int:
    return math.prod(shape) if isinstance(shape, tuple) else int(shape)
