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
    done = 0
    try:
        from sensorsim.commands.program import main

        return main()
    except KeyboardInterrupt:  # before or after `main` has heard of it
        sys.stderr.write("Interrupted.\n")
        code.append(130)
        sys.exit(130)
    except SystemExit as end:
        done = end.code if isinstance(end.code, int) else 0
        if done in (130, 143):
            code.append(done)
        raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):  # all is done: as Python ends they end it at once, with its code
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: os._exit((code or [done])[0]))


def _leave(code: list[int]) -> None:
    """End with the code of an interruption. Python remembers a Ctrl-C that broke off an `exec`, even one that was
    heard and answered, and would end by that signal in place of our code."""
    if not code:
        for number in (signal.SIGINT, signal.SIGTERM):  # nobody hears them from here on, and nothing is left to do
            signal.signal(number, signal.SIG_IGN)
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code[0])


if __name__ == "__main__":
    run()
