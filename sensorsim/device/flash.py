"""Memory that survives a power cut, simulated: two slots that can lose power at any byte of a store, wear out and lie.

Blank memory reads 0xFF. A store that fails raises FlashError, as a board's store returns something other than 0. A cut
raises PowerCut through everything, as a cut stops a board: open a sensor again after it.
"""

from sensorsim._util.errors import InputError
from sensorsim._util.uncopyable import Single, process
from sensorsim.kernels.journal import SLOT_BYTES

SLOTS = 2
BLANK = bytes([0xFF] * SLOT_BYTES)
MODES = ("bytes", "bits", "erase first", "whole store")


class FlashError(OSError):
    """The memory could not be read or written, and said so."""


class PowerCut(Exception):  # noqa: N818 - it is no error of the program
    """The power went in the middle of a store, or right after it."""


class Flash(Single):
    """Two slots, blank at first. They belong to one process: in a forked one, where they would be a copy, each load and
    store fails.

    wear        stores fail and change nothing
    fail_load   loads fail
    stuck_bits  {(slot, place): bits} that keep what they hold, whatever is stored; no store says so
    stores      how many were begun: what flash wears out by
    """

    instead = "to put an image back on purpose, make a Flash(image)"

    def __init__(self, image: bytes = BLANK * SLOTS) -> None:
        self._process = process()
        self.restore(image)
        self.wear = False
        self.fail_load = False
        self.stuck_bits: dict[tuple[int, int], int] = {}
        self.stores = 0
        self._cut: tuple[int, str, int] | None = None

    @property
    def image(self) -> bytes:
        """Return both slots."""
        return bytes(self._slots[0] + self._slots[1])

    def restore(self, image: bytes) -> None:
        """Set both slots to what `image` holds."""
        if len(image) != SLOTS * SLOT_BYTES:
            raise InputError(f"an image of the flash has {SLOTS * SLOT_BYTES} bytes, not {len(image)}; give as many.")
        self._slots = [bytearray(image[:SLOT_BYTES]), bytearray(image[SLOT_BYTES:])]

    def cut(self, after_bytes: int, mode: str = "bytes", bits: int = 0x55) -> None:
        """Cut the power when `after_bytes` more bytes are stored, by one store or several: at the byte after them.

        bytes        that byte and those after it stay as they were
        bits         of that byte only `bits` take their new value
        erase first  the slot is erased before its first byte is stored, so the rest of it is blank
        whole store  the store goes to its end, and nothing after it happens
        """
        if mode not in MODES or after_bytes < 0 or not 0 <= bits <= 255:
            raise InputError(f"a cut comes after 0 or more bytes, its bits are a byte and its mode {', '.join(MODES)}.")
        self._cut = (after_bytes, mode, bits)

    def never_cut(self) -> None:
        """Cancel the cut."""
        self._cut = None

    def load(self, slot: int) -> bytes:
        """Return the bytes of a slot."""
        self._check_process()
        if self.fail_load:
            raise FlashError("the flash cannot be read")
        return bytes(self._slots[slot])

    def store(self, slot: int, entry: bytes) -> None:
        """Replace the bytes of a slot, the first first."""
        if len(entry) != SLOT_BYTES:
            raise InputError(f"a slot has {SLOT_BYTES} bytes, not {len(entry)}; store as many.")
        self._check_process()
        self.stores += 1
        if self.wear:
            raise FlashError("the flash is worn out")
        cut, held = self._cut, self._slots[slot]
        torn = cut is not None and cut[0] < SLOT_BYTES
        if cut is not None:
            after, mode, bits = cut
            self._cut = None if torn else (after - SLOT_BYTES, mode, bits)
            if torn and mode != "whole store":
                kept, through = BLANK if mode == "erase first" else bytes(held), bits if mode == "bits" else 0
                middle = kept[after] & ~through | entry[after] & through
                entry = entry[:after] + bytes([middle]) + kept[after + 1 :]
        for place, byte in enumerate(entry):
            stuck = self.stuck_bits.get((slot, place), 0)
            held[place] = held[place] & stuck | byte & ~stuck
        if torn:
            raise PowerCut(f"the power went in a store to slot {slot} after {after} bytes ({mode})")

    def _check_process(self) -> None:
        if self._process != process():
            raise FlashError("the flash belongs to the process that this one was forked from")
