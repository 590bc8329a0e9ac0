"""What one part of a verification found."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Proof:
    """Something that was proved just now, or that does not hold; `detail` says of what, or why not."""

    name: str
    passed: bool
    detail: str
