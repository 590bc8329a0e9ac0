"""A command of the program, run in this process."""

from typing import Any

from sensorsim.commands.program import main


def run(capsys: Any, *words: Any) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    try:
        main([str(word) for word in words])
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err
