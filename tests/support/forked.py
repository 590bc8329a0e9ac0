"""Run command lines, each in a fork of a process that has loaded the commands and pandas.

It reads a line in JSON, a list of words, and prints a line in JSON; so on until there is no more.
A fork starts in no time, and what one line imports is seen apart from the others.
"""

import importlib
import json
import os
import sys
import time
from typing import Any

HEAVY = ("torch", "numba", "matplotlib")


def ask(words: list[str]) -> dict[str, Any]:
    """Return exit code, seconds of processor time, output, and which heavy packages were imported."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        streams = [os.memfd_create(name) for name in ("out", "err")]
        for number, stream in enumerate(streams, 1):
            os.dup2(stream, number)
        os.write(write, json.dumps(_run(words, streams)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        found = answer.read()
    os.waitpid(child, 0)
    return dict(json.loads(found or '{"code": -1, "error": "died"}'))


def _run(words: list[str], streams: list[int]) -> dict[str, Any]:
    from sensorsim.commands.program import main

    began, code = time.process_time(), 0
    try:
        main(words)
    except SystemExit as end:
        code = int(end.code or 0)
    took = time.process_time() - began
    sys.stdout.flush()
    sys.stderr.flush()
    texts = [os.pread(stream, 1 << 16, 0).decode("utf-8", "replace") for stream in streams]
    heavy = [name for name in HEAVY if name in sys.modules]
    return {"code": code, "seconds": took, "out": texts[0], "error": texts[1], "heavy": heavy}


if __name__ == "__main__":
    from sensorsim.commands import COMMANDS

    for entry in COMMANDS.values():
        entry.load()
    for module in ("pandas", "scipy.linalg"):
        importlib.import_module(module)
    for line in sys.stdin:
        print(json.dumps(ask(json.loads(line))), flush=True)
