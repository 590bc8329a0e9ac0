"""The range reader: a kernel run on intervals, which proves for every input and every length that

* no value leaves its type, where the primitive does not mean it to; no shift count or divisor is out of bounds;
* no index leaves its array, and no cell of an `out` array is read before it is written;
* what is passed, stored or returned lies in the declared format.

Every parameter starts with the whole range of its format. Lengths and loop counters stay symbols (see `bounds`), so an
index is proved for every length at once. A loop is run until nothing grows; a sum that grows by a bounded amount in
each round is taken to its last round at once, and checked there. Calls are followed with what is known of their
arguments. What cannot be proved is refused with file and line.
"""

from sensorsim.language.ranges.body import prove
from sensorsim.language.ranges.facts import Proof, RangeError

__all__ = ["Proof", "RangeError", "prove"]
