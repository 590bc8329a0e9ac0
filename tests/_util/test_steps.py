"""Whatever takes more than two seconds says on stderr what it is at; quick or refused work leaves no trace of it."""

import io
import sys
import time

import pytest

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim.commands.outputs import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_OF_SILENCE", 0.05)


def shown_of(work, monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.shown():
        work()
    return stream.getvalue()


def long(*texts):
    def work():
        for text in texts:
            with progress.step(text):
                time.sleep(0.2)

    return work


def test_a_long_step_is_told_once(soon, monkeypatch):
    assert shown_of(long("reading", "reading", "writing"), monkeypatch, io.StringIO()) == "reading …\nwriting …\n"


def test_a_terminal_is_clean_afterwards(soon, monkeypatch):
    text = shown_of(long("reading"), monkeypatch, Terminal())
    assert text == f"{progress.CLEAR}reading …{progress.CLEAR}"


def test_short_work_is_silent(monkeypatch):
    assert shown_of(long("reading"), monkeypatch, io.StringIO()) == ""


def test_many_short_steps_are_long_work(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_OF_SILENCE", 0.5)

    def work():
        for _ in range(40):
            with progress.step("compiling"):
                time.sleep(0.02)

    assert shown_of(work, monkeypatch, io.StringIO()) == "compiling …\n"


def test_the_step_around_is_told_again_and_phases_follow_each_other(soon, monkeypatch):
    def work():
        with progress.step("auditing"):
            with progress.step("compiling"):
                time.sleep(0.2)
            time.sleep(0.2)
        with progress.phases("planning") as told:
            time.sleep(0.2)
            told("solving")
            time.sleep(0.2)

    assert shown_of(work, monkeypatch, io.StringIO()).split(" …\n") == [
        *("compiling", "auditing", "planning", "solving"),
        "",
    ]


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_beside_a_bar_steps_are_shown_only_where_the_bar_is_not(soon, monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.shown(), progress_bar("sweep", "cells", 1) as update, progress.step("compiling"):
        update(0, "starting")
        time.sleep(0.2)
    assert "sweep" in stream.getvalue() and ("compiling" in stream.getvalue()) != stream.isatty()


def test_a_refused_command_leaves_the_step(soon, monkeypatch):
    def work():
        with pytest.raises(InputError), progress.step("reading"):
            raise InputError("no.")
        time.sleep(0.2)

    assert shown_of(work, monkeypatch, io.StringIO()) == ""
