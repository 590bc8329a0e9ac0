"""The exceptions that a user sees as one sentence."""


class InputError(ValueError):
    """Bad input. The message is one sentence: what was wrong, what is allowed, what to do.

    The command line prints it and exits with code 2; a notebook sees an ordinary exception.
    """


class FailedProofError(InputError):
    """What was to be proved does not hold: no fault of the input, so the command line exits with code 1."""

    exit_code = 1
