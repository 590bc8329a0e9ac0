"""What somebody may have meant who mistyped a name: one rule for commands, options and everything that has names."""

from collections.abc import Iterable

ALIKE = 0.6  # of 1, how alike two names must be; below it guesses are of no help
SHORT = 2  # letters of a name, of which half may be wrong: k8 is like k7


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """` (did you mean …?)` with the name that is most alike, for the middle of a sentence; nothing where none is.

    Capitals do not count, nor do the dashes before an option, which are alike in all of them.
    """
    from difflib import get_close_matches

    asked = _letters(str(name))
    by_letters = {_letters(each): each for each in known}
    near = get_close_matches(asked, by_letters, n=1, cutoff=ALIKE)
    if not near and len(asked) <= SHORT:
        near = get_close_matches(asked, [each for each in by_letters if len(each) <= SHORT], n=1, cutoff=1 / SHORT)
    return f" (did you mean {by_letters[near[0]]}?)" if near else ""


def _letters(name: str) -> str:
    return name.casefold().lstrip("-")
