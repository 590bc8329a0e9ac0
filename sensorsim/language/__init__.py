"""The kernel language: everything that a kernel is written with. `sensorsim/language/ir.py` is its definition.

from sensorsim.language import Length, Q, add, kernel, out
"""

from sensorsim.language import primitives
from sensorsim.language.intervals import Span
from sensorsim.language.kernel import Kernel, kernel
from sensorsim.language.parse import LanguageError
from sensorsim.language.primitive import Primitive, primitive
from sensorsim.language.primitives import *  # noqa: F403 - each primitive under its own name
from sensorsim.language.types import Array, Below, Length, Port, Q, Struct, board, out, rest, struct

__all__ = ["Array", "Below", "Kernel", "LanguageError", "Length", "Port", "Primitive", "Q", "Span", "Struct", "board"]
__all__ += ["kernel", "out", "primitive", "rest", "struct"]
__all__ += primitives.__all__
