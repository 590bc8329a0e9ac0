"""A results file that is not ours is refused without a touch: no table, no log, no lock beside it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="a results file names the version of torch")

from sensorsim._util.errors import InputError
from sensorsim.training.results_file import TABLES, ResultsFile

OTHERS = {
    "another schema": ["CREATE TABLE recipes (name TEXT)"],
    "names like ours": ["CREATE TABLE meta (name TEXT, value TEXT)", "CREATE TABLE cells (key TEXT, recipe TEXT)"],
    "our meta, nothing in it": [TABLES["meta"]],
    "our meta, and a stranger's": [TABLES["meta"], "INSERT INTO meta VALUES ('results_version', '3')"],
    "a log beside it": ["PRAGMA journal_mode = WAL", *TABLES.values()],
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("other", OTHERS)
def test_a_stranger_s_database(other: str, tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as database:
        for statement in OTHERS[other]:
            database.execute(statement)
        database.commit()
    before = contents(tmp_path)
    with pytest.raises(InputError, match="nothing was changed in it: give another file"):
        ResultsFile(path, "digest")
    assert contents(tmp_path) == before


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("there.sqlite")
    with ResultsFile(tmp_path / "link", "digest") as store:
        store.put("a", {"b": 1})
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there.sqlite").is_file()
    with ResultsFile(tmp_path / "there.sqlite", "digest") as store:
        assert store.get("a") == {"b": 1}


def test_one_that_was_killed_as_it_wrote_goes_on(tmp_path: Path) -> None:
    """Its journal is left behind: it is ours, so it is undone when the file is opened."""
    path = tmp_path / "ours.sqlite"
    with ResultsFile(path, "digest") as store:
        store.put("a", {"b": 1})
    whole = path.read_bytes()
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA cache_size = 1")
    database.execute("BEGIN")
    for number in range(2000):
        database.execute("INSERT INTO cells VALUES (?, ?)", (f"k{number}", "x" * 500))
    journal = path.with_name("ours.sqlite-journal")
    killed, log = path.read_bytes(), journal.read_bytes()
    database.execute("ROLLBACK")
    database.close()
    assert killed != whole and log
    path.write_bytes(killed)
    journal.write_bytes(log)
    with ResultsFile(path, "digest") as store:
        assert store.get("a") == {"b": 1} and store.get("k1") is None


@pytest.mark.parametrize("place", ["/dev/null", "missing/x", "."])
def test_no_place_for_a_file(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="cannot write"):
        ResultsFile(place, "digest")
    assert not contents(tmp_path)
