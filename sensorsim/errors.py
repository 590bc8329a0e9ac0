"""The one exception for input that a user can put right."""


class InputError(ValueError):
    """Bad input. The message is one sentence: what was wrong, what is allowed, what to do.

    The command line prints it and exits with code 2; a notebook sees an ordinary exception.
    """
