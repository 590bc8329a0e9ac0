"""`python -m sensorsim` is the command `sensorsim`."""

import atexit
import contextlib
import os
import signal
import sys
from typing import Any


def run() -> Any:
    """The command `sensorsim` of a shell; Ctrl-C ends it quietly from the first import on."""
    code: list[int] = []
    atexit.register(_leave, code)  # the first that is registered is the last that is called
    try:
        from sensorsim.cli import main

        return main()
    except KeyboardInterrupt:  # before or after `main` has heard of it
        sys.stderr.write("Interrupted.\n")
        code.append(130)
        sys.exit(130)
    except SystemExit as end:
        if end.code in (130, 143):
            code.append(int(end.code))
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as Python ends, another Ctrl-C ends it at once


def _leave(code: list[int]) -> None:
    """End with the code of an interruption. Python remembers a Ctrl-C that broke off an `exec`, even one that was
    heard and answered, and would end by that signal in place of our code."""
    if not code:
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code[0])


if __name__ == "__main__":
    run()
