"""`python -m sensorsim` is the command `sensorsim`."""

import signal
import sys
from typing import Any


def run() -> Any:
    """The command `sensorsim` of a shell; Ctrl-C ends it quietly from the first import on."""
    try:
        from sensorsim.cli import main

        return main()
    except KeyboardInterrupt:  # before or after `main` has heard of it
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as Python ends, another Ctrl-C ends it at once


if __name__ == "__main__":
    run()
