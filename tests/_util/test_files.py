"""Where files may be written, and what becomes of output that cannot be."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sensorsim._util.errors import InputError
from sensorsim._util.files import check_target, check_targets, read_bounded, write_all, write_whole
from sensorsim._util.terminal import PLAIN
from sensorsim.commands.program import main

PROGRAM = [sys.executable, "-m", "sensorsim"]


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a file, a folder, a pipe, and links to all that a link can lead to."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("old")
    Path("folder").mkdir()
    os.mkfifo("pipe")
    links = {
        "to file": "file",
        "to link": "to file",
        "to folder": "folder",
        "to pipe": "pipe",
        "to nothing": "folder/new",
        "to nowhere": "missing/new",
        "to itself": "to itself",
        "round": "about",
        "about": "round",
    }
    for name, target in links.items():
        Path(name).symlink_to(target)


def kept() -> dict[str, str | None]:
    """All that is there, by the content of files."""
    return {str(path): path.read_text() if path.is_file() else None for path in sorted(Path().rglob("*"))}


def test_a_file_that_is_closed_to_others_stays_so() -> None:
    for mode in (0o600, 0o640):
        Path("file").chmod(mode)
        write_whole("file", "new")
        assert Path("file").stat().st_mode & 0o777 == mode and Path("file").read_text() == "new"
    before = os.umask(0o027)
    try:
        write_whole("fresh", "new")
    finally:
        os.umask(before)
    assert Path("fresh").stat().st_mode & 0o777 == 0o640


# ---- one place

REFUSED = {
    "folder": "is a folder",
    "to folder": "is a folder",
    "": "without a name",
    "pipe": "device or a pipe",
    "to pipe": "device or a pipe",
    "/dev/null": "device or a pipe",
    "/dev/full": "device or a pipe",
    "missing/new": "no folder",
    "to nowhere": "no folder",
    "file/new": "no folder",
    "to itself": "no path",
    "round": "no path",
    "a\0b": "no path",
    "x" * 300: "no path",
    "y/" * 3000: "cannot write y/y/",
}


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path[:12].replace("\0", "zero"))
def test_where_nothing_can_be_written(path: str) -> None:
    before = kept()
    ways = [check_target, lambda place: check_targets([None, place]), lambda place: write_whole(place, "new")]
    for write in ways[:2] if path.startswith("/dev") else ways:  # a device of the machine is never put at risk
        with pytest.raises(InputError, match=REFUSED[path]) as caught:
            write(path)
        assert len(str(caught.value)) < 250 and "\n" not in str(caught.value)
    assert kept() == before and Path("pipe").is_fifo()


def test_a_device_of_ours() -> None:
    try:
        os.mknod("zero", 0o20666, os.makedev(1, 5))
    except OSError:
        pytest.skip("only root makes devices")
    for refuse in (check_target, lambda path: read_bounded(path, 9)):
        with pytest.raises(InputError, match="device or a pipe"):
            refuse("zero")
    assert Path("zero").is_char_device()


def test_standard_output_of_a_pipe_is_no_file() -> None:
    """The link leads to a name like pipe:[123], which is nowhere."""
    code = "from sensorsim._util.files import check_target; check_target('/dev/stdout')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "it is a device or a pipe" in done.stderr.splitlines()[-1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_takes_no_files() -> None:
    Path("folder").chmod(0o500)
    with pytest.raises(InputError, match="takes no files"):
        check_target("folder/new")


@pytest.mark.parametrize(
    ("path", "place"), [("to file", "file"), ("to link", "file"), ("to nothing", "folder/new"), ("file", "file")]
)
def test_a_link_stays_one(path: str, place: str) -> None:
    was_link = Path(path).is_symlink()
    assert check_target(path) == Path(place).absolute()
    before = set(kept())
    write_whole(path, "new")
    assert Path(path).is_symlink() == was_link and Path(place).read_text() == "new"
    assert not Path(place).is_symlink() and set(kept()) - before <= {place}


def test_what_else_has_a_file_keeps_it() -> None:
    """A hard link is another name: the new file takes one name, and the old content stays under the other."""
    os.link("file", "same")
    check_targets(["same"], read=["file"])
    write_whole("same", "new")
    assert (Path("file").read_text(), Path("same").read_text()) == ("old", "new")


# ---- several


@pytest.mark.parametrize(
    "pair", [("file", "./file"), ("file", "to file"), ("to file", "to link"), ("folder/new", "to nothing")]
)
def test_one_file_by_two_names(pair: tuple[str, str]) -> None:
    before = kept()
    for refuse in (check_targets, lambda names: write_all(dict.fromkeys(names, "new"))):
        with pytest.raises(InputError, match="are one file"):
            refuse(pair)
    assert kept() == before


READ: list[tuple[str, str]] = [
    ("file", "file"),
    ("file", "./folder/../file"),
    ("file", "to link"),
    ("to file", "file"),
    ("to link", "to file"),
    ("to nothing", "folder/new"),
]


@pytest.mark.parametrize(("out", "read"), READ)
def test_what_is_read_is_not_written(out: str, read: str) -> None:
    with pytest.raises(InputError, match="is read, and would be written over"):
        check_targets(["other", None, out], read=[None, "to itself", "a\0b", Path(read)])
    check_targets(["other", None, out], read=[None, "to itself", "a\0b", "folder", "another"])


def test_nothing_is_renamed_before_all_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    before, real = kept(), os.fdopen

    def full(handle: int, mode: str) -> object:
        if len(list(Path().glob(".*"))) == 2:
            os.close(handle)
            raise OSError(28, "No space left on device")
        return real(handle, mode)

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(InputError, match=r"cannot write .*other: No space left"):
        write_all({"to file": "new", "other": "new"})
    assert kept() == before


# ---- commands


def refused(*words: str) -> None:
    before = kept()
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    assert caught.value.code == 2 and kept() == before


def test_commands_do_not_write_over_what_they_read(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("fitbit_marginals.csv", "fitbit_correlations.csv"):
        Path(name).write_text("a,b\n1,2\n")
        refused("data", "fit", name, "--out", ".")
        assert f"{name} is read, and would be written over" in capsys.readouterr().err
    Path("to.json").symlink_to("to file")
    for given in (["to file", "--table", "t"], ["p", "--table", "to file"], ["p", "--table", "t", "--sketch", "file"]):
        for option in ("--out", "--write-sketch"):
            if "--sketch" not in given or option == "--out":
                refused("receive", *given, option, "to.json")
                assert "to.json is read, and would be written over" in capsys.readouterr().err
    for option in ("--data", "--table", "--ranges", "--packets"):
        Path("m.npz").symlink_to("file")
        refused("train", option, "to file", "--out", "m.npz")
        assert "m.npz is read, and would be written over" in capsys.readouterr().err
        Path("m.npz").unlink()


# ---- standard output


def run(*words: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
    wanted = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    more = wanted.pop("variables", {})
    return subprocess.run([*PROGRAM, *words], env={**os.environ, **more}, **wanted)  # type: ignore[call-overload]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "latin-1:strict"])
def test_json_loses_no_letter(encoding: str) -> None:
    done, plain = (run("cost", "--format=json", variables={"PYTHONIOENCODING": name}) for name in (encoding, "utf-8"))
    assert json.loads(done.stdout) == json.loads(plain.stdout) and "·".encode() in plain.stdout
    text = run("cost", variables={"PYTHONIOENCODING": "ascii"}).stdout.decode("ascii")
    assert "(19 + l)*n" in text and "AMD K7 - macro" in text and "42<-" in text and "?" not in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "latin-1:strict"])
def test_letters_that_a_terminal_does_not_have(encoding: str) -> None:
    done, plain = (run("cpus", variables={"PYTHONIOENCODING": name}) for name in (encoding, "utf-8"))
    shown = plain.stdout.decode()
    name = encoding.partition(":")[0]
    assert done.returncode == 0 and done.stderr == b"" and shown.encode(name, PLAIN) == done.stdout
    assert "–" in shown and b"?" not in done.stdout and "–".encode(name, PLAIN) in (b"-", b"\x96")
    wrong = run("cost", "--n", "…ü", variables={"PYTHONIOENCODING": encoding})
    assert wrong.returncode == 2 and wrong.stderr.count(b"\n") == 1 and "ü".encode(name, PLAIN) in wrong.stderr


@pytest.mark.parametrize("words", [["cpus"], ["data", "ranges"], ["--help"], []])
@pytest.mark.parametrize("variables", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["", "unbuffered"])
def test_a_full_disk(words: list[str], variables: dict[str, str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run(*words, stdout=full, variables=variables)
        assert done.returncode == 2
        assert done.stderr == b"Error: cannot write the output: No space left on device; send it elsewhere.\n"


def test_a_full_disk_takes_no_sentence_either() -> None:
    with Path("/dev/full").open("wb") as full:
        assert run("cpus", stdout=full, stderr=full).returncode == 2
        assert run("bad", stderr=full).returncode == 2


def test_a_reader_that_goes_away() -> None:
    """As `head` does."""
    for variables in ({}, {"PYTHONUNBUFFERED": "1"}):
        mouth, end = os.pipe()
        os.close(mouth)
        done = run("cpus", stdout=end, variables=variables)
        os.close(end)
        assert (done.returncode, done.stderr) == (0, b"")


def test_no_output_at_all() -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *PROGRAM, "cpus"]
    done = subprocess.run(closed, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def failing(error: OSError) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_an_error_of_another_file_is_not_blamed_on_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a fault of ours, and is shown as one."""
    monkeypatch.setattr("sensorsim.commands.program.group.main", failing(OSError(28, "No space left on device")))
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 70
