"""Finding kernels: those that ship, by name, and anyone's, in a file of their own.

A file is loaded as Python would run it, with its folder on the search path, so that it can import from its neighbours.
"""

import ast
import hashlib
import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.files import brief_path, read_bounded
from sensorsim._util.hints import did_you_mean
from sensorsim.language.kernel import Kernel, shipped_module

MOST_BYTES = 1 << 24  # of a file with kernels
OURS = Path(__file__).parent.parent
PLACE = re.compile(r"[^\s:]+:\d+: ")  # how a message begins that says where
FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<names>.*))?")

_loaded: dict[Path, tuple[str, ModuleType]] = {}  # with the hash of the text that it was loaded from
_neighbours: dict[str, Path] = {}  # modules that came along from the folder of a loaded file


@cache
def shipped() -> dict[str, Kernel]:
    """Every kernel that ships, by its name with that of its module."""
    found: dict[str, Kernel] = {}
    for source in sorted(Path(shipped_module().__path__[0]).glob("*.py")):
        if "\n@kernel(" in source.read_text("utf-8"):  # the others may import Numba, which takes a second
            own = kernels_of(shipped_module(source.stem))
            found |= {kernel.qualified: kernel for kernel in own.values()}
    return found


def find(spec: str | Sequence[str], load: Callable[[Path], dict[str, Kernel]] | None = None) -> list[Kernel]:
    """Return the kernels that a text names: `spof`, `dpsgd.total`, all of `sensor`, `FILE.py:a:b`; several with commas.

    A name after a file is looked for in that file first. `load` gives the kernels of a file; without it, it is run.
    """
    found: dict[Kernel, None] = {}
    own: dict[str, Kernel] = {}
    for part in [part.strip() for part in spec.split(",")] if isinstance(spec, str) else spec:
        if match := FILE.fullmatch(part):
            own = load(Path(match["path"])) if load else kernels_of(load_file(Path(match["path"])))
            names = [name for name in (match["names"] or "").split(":") if name]
            if not own:
                raise InputError(f"{match['path']} declares no kernel; mark one with @kernel().")
            found |= dict.fromkeys(_named(name, own, match["path"]) for name in names or own)
        elif part:
            found |= dict.fromkeys([own[part]] if part in own else _shipped(part))
    if not found:
        raise InputError("no kernel is named; give names with commas, or FILE.py:name.")
    return list(found)


def load_file(path: Path) -> ModuleType:
    """The module of a file; InputError, in one sentence with file and line, where it cannot be loaded."""
    full = Path(os.path.realpath(path))  # where links lead in a circle, reading tells it in a sentence
    with _searching(full.parent), _in_one_sentence(path, full):
        digest = hashlib.sha256(read_bounded(path, MOST_BYTES)).hexdigest()
        known, module = _loaded.get(full, ("", None))
        if module is None or known != digest:
            linecache.checkcache(str(full))
            name = _module_name(full)
            loader = SourceFileLoader(name, str(full))
            module = module_from_spec(spec_from_file_location(name, full, loader=loader))  # type: ignore[arg-type]
            sys.modules[name] = module
            try:
                with progress.step(f"importing {path.name}"):  # it may do anything, and for ever
                    loader.exec_module(module)
            except BaseException:
                del sys.modules[name]
                raise
            _loaded[full] = digest, module
    return module


def _module_name(full: Path) -> str:
    """A name of its own for each path, so that no file can stand in for another module."""
    plain = re.sub(r"\W", "_", full.stem)
    return f"{plain}_{hashlib.sha256(str(full).encode()).hexdigest()[:8]}"


def kernels_of(module: ModuleType) -> dict[str, Kernel]:
    """Return the kernels that are declared in that very file, by name, in its order."""
    own = (one for one in vars(module).values() if isinstance(one, Kernel) and one.module == module.__name__)
    return {kernel.name: kernel for kernel in own}


def files_behind(path: Path) -> list[Path]:
    """The file and what it imports from its own folder, found by reading the imports."""
    found: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        one = waiting.pop(0)
        if one in found:
            continue
        found[one] = None
        for name in _imports(one):
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                place = path.parent.joinpath(*parts[:length])
                waiting += [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]
    return list(found)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def offered() -> list[str]:
    """Names of the kernels that ship, without those that are parts of others."""
    known = shipped()
    parts = {part for kernel in known.values() for part in kernel.called}
    return sorted(kernel.name for kernel in known.values() if kernel not in parts)


def _named(name: str, own: dict[str, Kernel], path: str) -> Kernel:
    if name not in own:
        raise InputError(f"{path} declares no kernel {name!r}{did_you_mean(name, own)}; it has {', '.join(own)}.")
    return own[name]


def _shipped(name: str) -> list[Kernel]:
    """Return the kernel of this name, or else all of the file of this name."""
    known = shipped()
    if name in known:
        return [known[name]]
    same = [kernel for kernel in known.values() if kernel.name == name]
    if len(same) > 1:
        raise InputError(f"kernel {name!r} is one of {', '.join(kernel.qualified for kernel in same)}; say which.")
    if not same and (whole := [one for each, one in known.items() if each.startswith(f"{name}.")]):
        return whole
    if not same:
        some = ", ".join(each for each in offered() if "_" not in each)
        hint = did_you_mean(name, offered())
        raise InputError(f"kernel {name!r} is not known{hint}; there are {some}, …; or give FILE.py:name.")
    return same


@contextmanager
def _searching(folder: Path) -> Iterator[None]:
    """The folder comes first on the search path; a neighbour of an earlier file does not stand in for one here."""
    for name, home in list(_neighbours.items()):
        if home != folder:
            sys.modules.pop(name, None)
            del _neighbours[name]
    before, writes = set(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True  # the folder is someone else's, or that of a package
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = writes
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).resolve().is_relative_to(folder) and "site-packages" not in file:
                _neighbours[name] = folder


@contextmanager
def _in_one_sentence(path: Path, full: Path) -> Iterator[None]:
    """Whatever goes wrong in a stranger's file is their line and one sentence."""
    try:
        yield
    except InputError as error:
        if PLACE.match(str(error)) or str(error).startswith(f"{brief_path(path)} "):
            raise  # says where already
        raise InputError(f"{_place(error, path)}: {error}") from None
    except FileNotFoundError as error:
        if error.filename not in (str(path), str(full)):
            raise InputError(f"{_place(error, path)}: {error}; correct the file.") from None
        raise InputError(f"cannot read {path}: there is no such file; give the path of a Python file.") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a Python file.") from None
    except SyntaxError as error:
        file = Path(error.filename or full).name
        raise InputError(f"{file}:{error.lineno or 1}: {error.msg}; correct the file.") from None
    except ModuleNotFoundError as error:
        raise InputError(f"{_place(error, path)}: {error}; install it, or put it beside the file.") from None
    except ImportError as error:  # the module is there, and has no such name
        said = str(error).partition(" (")[0]  # without the path of the module
        raise InputError(f"{_place(error, path)}: {said}; correct the name in the import.") from None
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"while {_place(error, path)} was imported") from None
    except (Exception, SystemExit) as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"{_place(error, path)}: {what[:200]}; correct the file.") from None


def _place(error: BaseException, path: Path) -> str:
    """The last line of the traceback that is the stranger's: not of Python's import machinery, and not ours."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    own = [frame for frame in frames if not Path(frame.filename).is_relative_to(OURS)]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else path.name
