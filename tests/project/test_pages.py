"""Check that pages show what the program prints, that links lead somewhere, and that quotations are exact."""

import configparser
import importlib
import re
import shlex

import click
import pytest
from page_text import blocks, same
from pages import PAGES, ROOT, run_page

import sensorsim
from sensorsim.codegen.compliance import licence_text
from sensorsim.commands.program import CODES, group

TEXTS = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in PAGES}
README = TEXTS["README.md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.S | re.M)


def runs(block):
    return block.kind in ("console", "schemas") or (block.kind == "python" and ">>> " in block.text)


RUN = [name for name, text in TEXTS.items() if any(runs(block) and not block.slow for block in blocks(text))]
SLOW = [name for name, text in TEXTS.items() if any(runs(block) and block.slow for block in blocks(text))]


@pytest.mark.parametrize("name", RUN)
def test_what_is_shown_is_real(name, tmp_path):
    _, wrong = run_page(TEXTS[name], tmp_path, slow=False)
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_what_is_shown_is_real_in_the_slow_blocks_too(name, tmp_path):
    _, wrong = run_page(TEXTS[name], tmp_path, slow=True)
    assert not wrong, "\n\n".join(wrong)


PAGE = """# A page
```console
$ sensorsim cpus check
{files} files, 1,053 rows, no faults
$ sensorsim cost --n 14 --l 20
Error: l = 20 is larger than n = 14; an encoder compresses, so give --l between 1 and 14.
{asked}```
```python
>>> 2**5
{power}
```
"""
GOOD = {"files": "17", "asked": "$ echo $?\n2\n", "power": "32"}


def test_a_page_that_is_wrong_is_found_and_put_right(tmp_path):
    right = PAGE.format(**GOOD)
    assert run_page(right, tmp_path, slow=True) == (right, [])
    for wrong in ({"files": "16"}, {"power": "31"}):
        text, found = run_page(PAGE.format(**GOOD | wrong), tmp_path, slow=True)
        assert len(found) == 1 and text == right
    _, found = run_page(PAGE.format(**GOOD | {"asked": ""}), tmp_path, slow=True)
    assert len(found) == 1 and "ends with exit code 2" in found[0]


def test_left_out_and_varying_lines():
    real = ["a", "b 1.5", "c", "d"]
    assert same(["a", " …", "d"], real) and same(["a", " …"], real) and same([" …", "c", " …"], real)
    assert not same(["b", " …"], real) and not same(["a", " …", "c"], real) and not same(["a", "d"], real)
    assert not same(["a", " …", "c", "b 1.5", " …"], real)
    assert same(["a", "b  -22.75", "c", "d"], real, "^b") and not same(["a", "b 2", "c", "d"], real, "^c")


@pytest.mark.parametrize("name", TEXTS)
def test_no_block_goes_unchecked(name):
    """A console block runs; Python runs, is a file or is quoted; `sh` is for what is installed and nothing else."""
    for block in blocks(TEXTS[name]):
        where = f"{name}:{block.first}"
        assert block.kind in ("console", "schemas", "python", "sh", "text", "c", "yaml", "csv"), where
        if block.kind == "python" and ">>> " not in block.text:
            assert {"file", "from"} & block.remarks.keys(), f"{where}: neither run, nor a file, nor a quotation"
        if block.kind == "sh":
            assert all(line.startswith(("pip ", "python3 -m venv", "git ")) for line in block.text.splitlines()), where
        if path := block.remarks.get("from"):
            source = (ROOT / path).read_text("utf-8")
            lines = [line for line in block.text.splitlines() if line.strip() != "…"]
            assert [line for line in lines if line not in source] == [], where


def anchors(text):
    """The anchors that GitHub makes of the headings."""
    heads = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", TEXTS)
def test_no_link_is_dead(name):
    for target in LINK.findall(FENCED.sub("", TEXTS[name])):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        there = (ROOT / name).parent / path if path else ROOT / name
        assert there.exists(), f"{name}: {target}"
        if anchor:
            assert anchor in anchors(there.read_text("utf-8")), f"{name}: {target}"


def options(command):
    return {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "CHANGELOG.md"])
def test_commands_in_the_prose_exist(name):
    prose = FENCED.sub("", TEXTS[name]).replace("\n", " ")
    for text in re.findall(r"`(sensorsim [a-z][^`]*)`", prose):
        command, words = group, shlex.split(text.replace("'", ""))[1:]
        context = click.Context(group)
        while words and isinstance(command, click.Group):
            head, *words = words
            found = command.get_command(context, head)
            assert found is not None, f"{name}: `{text}`"
            command = found
        asked = {word.split("=")[0] for word in words if word.startswith("--")}
        assert asked <= options(command), f"{name}: `{text}`"


def test_every_page_is_in_the_index():
    listed = set(LINK.findall(TEXTS["docs/README.md"]))
    assert {page.name for page in (ROOT / "docs").glob("*.*") if page.suffix in (".md", ".ipynb")} - {
        "README.md"
    } <= listed


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 130


def test_the_ci_runs_the_readmes_test_command():
    command = next(line.strip() for line in README.splitlines() if "pytest -n" in line)
    assert command in (ROOT / ".ci" / "run").read_text("utf-8").splitlines()


def test_versions_of_files_are_those_of_the_program():
    found = re.findall(r"`(sensorsim[\w.]*)\.([A-Z_]+)` = (\d+)", TEXTS["docs/formats.md"])
    assert len(found) == 7
    for module, name, version in found:
        assert getattr(importlib.import_module(module), name) == int(version), module


def test_the_exit_codes_are_those_of_the_program():
    shown = {int(code): said for code, said in re.findall(r"^\| (\d+) \| (.*) \|$", TEXTS["docs/exit-codes.md"], re.M)}
    assert shown == CODES


def about(name):
    """Return a value of setup.cfg."""
    read = configparser.ConfigParser()
    read.read(ROOT / "setup.cfg", "utf-8")
    return read["metadata"][name]


def test_the_extras_are_those_of_the_setup():
    read = configparser.ConfigParser()
    read.read(ROOT / "setup.cfg", "utf-8")
    shown = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| ", TEXTS["docs/README.md"], re.M))
    assert list(shown) == list(read["options.extras_require"])
    for extra, brings in shown.items():
        for line in read["options.extras_require"][extra].split():
            own = re.fullmatch(r"sensorsim\[(\w+)\]", line)
            word = f"`{own[1]}`" if own else line.partition("==")[0]
            assert extra == "test" or word in brings, f"{extra}: {line}"


def test_one_licence():
    """The file, the package's metadata and what an exported package carries."""
    assert (ROOT / "LICENSE").read_text("utf-8") == licence_text("MIT")
    assert (about("license"), about("license_files")) == ("MIT", "LICENSE")


def test_the_changelog_begins_with_this_version():
    newest = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", TEXTS["CHANGELOG.md"], re.M)
    assert newest and newest[1] == about("version")


def test_every_public_name_is_explained():
    public = {name for name in dir(sensorsim) if not name.startswith("_")}
    assert set(re.findall(r"`ss\.(\w+)`", TEXTS["docs/python.md"])) == public
