"""What somebody may have meant who mistyped a name: one rule for commands, options and everything that has names."""

from collections.abc import Iterable

CUTOFF = 0.6  # of 1, how alike two names must be; below it guesses are of no help


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """` (did you mean …?)` with the name that is most alike, for the middle of a sentence; nothing where none is.

    Capitals do not count: some names have them, and shells complete none.
    """
    from difflib import get_close_matches

    by_letters = {each.casefold(): each for each in known}
    near = get_close_matches(str(name).casefold(), by_letters, n=1, cutoff=CUTOFF)
    return f" (did you mean {by_letters[near[0]]}?)" if near else ""
