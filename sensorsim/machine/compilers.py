"""Build with your own compiler: its command line as for your firmware, with nothing added but what linking needs.

The command is split as a shell would and started without one. Its flags stay as they are: the proofs are about what it
makes of the code.
"""

import shlex
import shutil
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.files import read_bounded
from sensorsim.machine.elf import MOST_BYTES, identify_core, read_elf
from sensorsim.machine.targets import Target, write_script
from sensorsim.machine.tools import TimedOutError, run_tool

SECONDS = 120  # for one run of the compiler
LINK = ("-nostdlib", "-nostartfiles", "-Wl,--gc-sections")
# What the code may need: the compiler's arithmetic, its C library too, or our own memcpy.
LIBRARIES: tuple[tuple[str, ...], ...] = (("-lgcc",), ("-lc", "-lgcc"), ())
MISSING = ("undefined", "cannot find -l", "unable to find", "unable to provide", "library not found")


class OwnCompiler:
    """Build by a command line as `arm-none-eabi-gcc -Os -mcpu=cortex-m0plus -mthumb`."""

    def __init__(self, command: str) -> None:
        try:
            self.command = shlex.split(command)
        except ValueError as error:
            raise InputError(f"--cc {command!r} cannot be read ({error}); write it as in a shell.") from None
        if not self.command:
            raise InputError("--cc is empty; give a compiler and its flags, as 'arm-none-eabi-gcc -Os -mthumb'.")
        if shutil.which(self.command[0]) is None:
            raise InputError(f"the compiler {self.command[0]} is not found; install it, or give its whole path.")
        self.known: dict[tuple[str, ...], Path] = {}

    @property
    def flags(self) -> str:
        """Return everything behind the compiler's name."""
        return shlex.join(self.command[len(self._name) :])

    def version(self) -> str:
        """Return the first line of its version message."""
        return next(iter(self._run([*self._name, "--version"]).splitlines()), self.command[0])

    @property
    def _name(self) -> list[str]:
        """Return the words before the first flag: `python -m ziglang cc` is a compiler too."""
        words = self.command
        if len(words) > 3 and words[1] == "-m":
            return words[:4]
        place = next((k for k, word in enumerate(words) if word.startswith("-")), len(words))
        return words[:place]

    def elf(
        self,
        target: Target | None,
        sources: Sequence[Path],
        include: Sequence[Path],
        entry: str,
        out: Path,
        options: Sequence[str] = (),
    ) -> Path:
        """Compile the sources, each once, and link the entry with all that it needs."""
        objects = [self._object(source, include, out.parent, options) for source in sources]
        script = write_script("own_compiler.ld", entry, out)
        command = [*self.command, *LINK, f"-Wl,--entry={entry}", "-T", str(script), *map(str, objects), "-o", str(out)]
        first: InputError | None = None
        for libraries in LIBRARIES:
            try:
                with as_file(files("sensorsim.machine") / "own_memory.c") as memory:
                    more = [] if libraries else [str(self._object(memory, [], out.parent, options))]
                self._run([*command, *more, *libraries], out)
                break
            except InputError as error:
                if not any(sign in str(error) for sign in MISSING):
                    raise
                first = first or error
        else:
            assert first is not None
            raise first
        try:
            program = read_elf(read_bounded(out, MOST_BYTES))
        except InputError:  # which speaks of a file, and none was given
            raise InputError(
                f"what {self.command[0]} makes is for no core that is emulated here; give a compiler for a 32-bit "
                "little-endian core with --cc, as in `arm-none-eabi-gcc -Os -mcpu=cortex-m0plus -mthumb`."
            ) from None
        if target is not None:
            identify_core(program, target.name)
        return out

    def _object(self, source: Path, include: Sequence[Path], build: Path, options: Sequence[str]) -> Path:
        key = (str(source), *map(str, include), *options, str(build))
        if key not in self.known:
            out = build / f"own-{len(self.known)}-{source.stem}.o"
            folders = [f"-I{folder}" for folder in include]
            self._run([*self.command, *options, *folders, "-c", str(source), "-o", str(out)], out)
            self.known[key] = out
        return self.known[key]

    def _run(self, command: Sequence[str], out: Path | None = None) -> str:
        """Return what the compiler prints; InputError where it fails, or writes no file where it was told to."""
        name = self.command[0]
        try:
            with progress.step(f"waiting for {name}, {SECONDS} s at most"):
                done = run_tool(command, name, SECONDS)
        except TimedOutError as error:
            raise InputError(f"{str(error).rstrip('.')}; look at the --cc command.") from None
        except OSError as error:
            raise InputError(f"{name} cannot be started ({error.strerror}); look at the --cc command.") from None
        if done.returncode:
            lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
            errors = [line for line in lines if any(sign in line for sign in ("error", "undefined", "cannot find"))]
            raise InputError(f"{name} refused the code ({(errors or lines[-1:] or ['no message'])[0]}); look at --cc.")
        if out is not None and not (out.is_file() and out.stat().st_size):
            raise InputError(f"{name} ended without an error but wrote no code; give a C compiler with --cc.")
        return done.stdout
