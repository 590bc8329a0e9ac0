"""The page as text: its structure, its numbers against the functions they come from, and untrusted input."""

import json
import os
import re
import sqlite3
from dataclasses import asdict, replace
from decimal import Decimal
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from report_files import SAID, write_fleet, write_sweep

import sensorsim as ss
import sensorsim.paper.recompute
from sensorsim._util.errors import InputError
from sensorsim.commands.program import main
from sensorsim.costing.chips import energy_file
from sensorsim.costing.cost_report import cost
from sensorsim.costing.record_energy import PARTS, Choices, price_whole_record
from sensorsim.language.secrecy import NOT_PROVED
from sensorsim.noise.certificate import format_epsilon as epsilon
from sensorsim.noise.noise_table import make_table, ready_table
from sensorsim.paper.recompute import VERDICTS, Claim, Claims
from sensorsim.planning import Asked, plan
from sensorsim.reporting import ReportRequest
from sensorsim.reporting.findings import CERTIFIED, PackageFacts, _certify_table, package_facts
from sensorsim.reporting.page import headlines, printable, render_page

HOSTILE = "<script>alert(1)</script>\"'><img src=//x.example onerror=a>&amp;"
VOID = {"meta"}
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "a", "header", "nav", "main", "footer", "section", "h1", "h2"),
    *("h3", "p", "ul", "li", "dl", "dt", "dd", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure"),
    *("figcaption", "code", "pre", "span", "svg", "desc", "rect", "text", "polyline", "circle"),
}


class Page(HTMLParser):
    """Elements with their attributes and text, as a browser's parser would see them; every one is closed."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", "inside": [one["tag"] for one in self.open], **dict(attrs)}
        assert len(attrs) == len(dict(attrs))
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag):
        return [one for one in self.elements if one["tag"] == tag]

    def cells(self, caption):
        """Rows of the table with this caption, as texts."""
        found, on = [], False
        for one in self.elements:
            on = one["text"] == caption if one["tag"] == "caption" else on
            if on and one["tag"] == "tr":
                found.append([])
            if on and one["tag"] in ("th", "td"):
                found[-1].append(one["text"])
        assert found, caption
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A page with a sweep and a fleet whose names are a stranger's, and claims that stand in."""
    folder = tmp_path_factory.mktemp("report")
    sweep = write_sweep(folder / "a <b>.sqlite", mechanism=HOSTILE, source=HOSTILE)
    fleet = write_fleet(folder / "fleet.sqlite")
    stand_in = Claim("cost-x", HOSTILE, "364", "1403 & more", "does not hold", "by hand")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sensorsim.paper.recompute, "claims", lambda: type("Claims", (), {"claims": (stand_in,)}))
        return ss.report(sweep=sweep, fleet=fleet)


@pytest.fixture(scope="module")
def seen(made):
    return Page(made.html)


def test_nothing_of_a_stranger_is_markup(seen, made):
    assert {one["tag"] for one in seen.elements} == TAGS
    assert all(not name.startswith("on") for one in seen.elements for name in one)
    shown = HOSTILE[:40]
    assert sum(shown in one["text"] for one in seen.all("p")) >= 2  # the setting, the source
    assert "a <b>.sqlite" in [row[1] for row in seen.cells("Files that were read")]
    assert seen.cells("Printed and computed values")[1][1] == HOSTILE


def test_characters_that_no_browser_shows_are_replaced():
    assert printable("a\x07\ud800\u202eb\n") == "a\ufffd\ufffd\ufffdb\n" and printable(1.5) == 1.5


def test_options_are_those_of_a_shell():
    request = ReportRequest(battery_mah=1234567.25, sweep=Path("my file.0"), budget_epsilon=2.0, every=7)
    assert request.changed_options() == " --budget-epsilon 2 --battery-mah 1234567.25 --sweep 'my file.0'"
    assert request.options("n", "chip") == " --n 14"


def test_no_request_leaves_the_page(seen, made):
    policy = next(one for one in seen.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=.(https?:)?//", made.html)
    assert "<svg" in made.html and "url(" not in made.html and "@import" not in made.html
    assert all(one.get("href", "#").startswith("#") and "src" not in one for one in seen.elements)


def test_structure_for_those_who_listen(seen):
    assert seen.all("html")[0]["lang"] == "en" and len(seen.all("h1")) == len(seen.all("main")) == 1
    levels = [int(one["tag"][1]) for one in seen.elements if re.fullmatch(r"h\d", one["tag"])]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    ids = [one["id"] for one in seen.elements if "id" in one]
    assert len(ids) == len(set(ids))
    pointed = [one["href"][1:] for one in seen.all("a")]
    pointed += [name for one in seen.elements for name in one.get("aria-labelledby", "").split()]
    assert set(pointed) <= set(ids) and pointed[0] == "main"
    for one in seen.all("svg"):
        assert one["role"] == "img" and "figure" in one["inside"]
    assert len(seen.all("svg")) == len(seen.all("figcaption")) == 3
    assert len(seen.all("caption")) == len(seen.all("table")) and all(one["text"] for one in seen.all("caption"))
    assert all(one["scope"] in ("col", "row") for one in seen.all("th"))
    assert len([one for one in seen.all("text") if one["text"].strip()]) > 30


def test_costs_are_those_of_cost(seen, made):
    record = price_whole_record(cost(14, 7), Choices(battery_mah=225.0))
    rows = seen.cells("Energy of one record by component")
    assert rows[0] == ["one record", "cycles", *(f"{name}, µJ" for name in PARTS), "total, µJ"]
    for row, name in zip(rows[1:], ("spof", "dpsgd", "spof-lean", "sensor"), strict=True):
        one = record.costs[name]
        energies = [one.parts[part].nJ / 1000 for part in PARTS] + [one.microjoule]
        assert row == [one.title, f"{one.cycles:,.0f}", *(f"{energy:.3g}" for energy in energies)]
    drawn = [one["text"] for one in seen.all("text")]
    assert f"{record.costs['spof'].microjoule:.3g} µJ" in drawn
    assert f"{cost(14, 7).saving():.2f} % less than DP-SGD" in made.html
    items = [one["text"] for one in seen.all("li")]
    assert record.unsettled() and set(record.unsettled()) <= set(items)


def test_a_board_of_ones_own_without_a_figure_has_no_total_and_its_file_is_named(tmp_path):
    lines = energy_file().read_text("utf-8").splitlines()
    own = next(line for line in lines if line.startswith("max32660,")).replace("max32660", "mine", 1)
    (tmp_path / "board.csv").write_text(f"{lines[0]}\n{own}\n", "utf-8")
    found = ss.report(chip=str(tmp_path / "board.csv"), claims=False)
    seen = Page(found.html)
    assert [row[:2] for row in seen.cells("Files that were read")[1:]] == [["--chip", "board.csv"]]
    assert "No file was read" not in found.html
    assert "an energy that is not known in full" in found.html and len(seen.all("svg")) == 2
    assert seen.cells("Energy of one record by component")[1][-1] == "–"


def test_what_is_protected_and_reached_is_that_of_plan(seen, made):
    from sensorsim.noise.certificate import certify

    told = plan(Asked(features=14, battery_mah=225.0))
    proved = certify(told.table)
    assert f"has epsilon {proved.epsilon_record} with delta 0" in made.html
    month = next(one for one in told.protects.spent if one.name == "month")
    big = [one["text"] for one in seen.all("dd") if one.get("class") == "big"]
    wanted = [f"{told.costs.microjoule:.3g} µJ", f"ε {epsilon(proved.epsilon_record)}"]
    assert big[:4] == [*wanted, f"ε {epsilon(month.basic)}", f"±{100 * told.half:.3g} %"]
    rows = seen.cells("Epsilon of all releases of one person")
    year = next(one for one in told.protects.spent if one.name == "year")
    assert rows[-1][:4] == ["a person, any 365 days (year)", "365", f"{year.releases}", epsilon(year.basic)]
    assert rows[2][0] == "a person, any 30 days (budget period, month)"


def test_a_sweep_stands_beside_trivial_predictors(seen):
    row = seen.cells("Accuracies")[1]
    assert row[4:6] == [epsilon(SAID["spent_epsilon"]), epsilon(SAID["epsilon_person_median"])]
    half = 4.302652729911275 / 3**0.5  # Student's t of 2 degrees, times sd 1, over the root of 3 runs
    assert row[6] == f"98.00 ± {half:.2f}" and row[-1] == "3"
    trivial = seen.cells("Trivial predictors on the same data")
    assert ["column mean", "0", "97.60", "–", "89.00"] in trivial


def test_a_fleet_is_told_from_its_sums(seen, made):
    fleet = made.findings.fleet
    assert "2 of 2 packets arrived" in made.html
    rows = seen.cells("Estimates over 7 days, as shares of a range")
    assert (
        len(rows) == 15 and rows[1][:1] == ["feature 0"] and rows[1][2] == f"{fleet.features[0].coverage.covered} of 1"
    )


def test_claims_say_their_verdict_in_words_and_no_two_have_one_mark(made, seen):
    """On the page, in the terminal and in the rows of JSON and CSV."""
    assert seen.cells("Printed and computed values")[1][::4] == ["cost-x", "✗ does not hold"]
    each = [Claim(f"c{place}", "here", "1", "2", verdict, "by hand") for place, verdict in enumerate(VERDICTS)]
    cells = Page(render_page(replace(made.findings, claims=tuple(each)))).cells("Printed and computed values")
    marks = [row[-1].removesuffix(verdict).strip() for row, verdict in zip(cells[1:], VERDICTS, strict=True)]
    assert len(set(marks)) == len(VERDICTS) and all(marks)
    found = Claims(tuple(each), False, "none", 0)
    assert {row["verdict"] for row in found.rows()} == set(VERDICTS)
    assert [line for line in found.text().splitlines() if line.startswith("c")] == [
        f"{one.id}: {one.verdict}" for one in each
    ]


# ---- parts of other settings

OTHER = "The plan has another setting"


def parts_of(html):
    """Return the opening, and the text of every part that begins with its setting, by its heading."""
    opening, _, rest = html.partition('<section id="costs"')
    headings = re.findall(r"<h[23][^>]*>([^<]*)</h[23]>\s*<p class=\"setting\">([^<]*)</p>", rest)
    return opening, dict(headings)


def test_a_sweep_of_other_features_is_kept_apart_and_never_a_headline(tmp_path):
    """Nine features beside a plan of one: each says what it is of, and the headline is the plan's."""
    sweep = write_sweep(tmp_path / "results.sqlite", n=9, accuracies=(91.25, 91.25))
    bare = ss.report(n=1, l=1, budget_epsilon=2, claims=False)
    found = ss.report(n=1, l=1, budget_epsilon=2, claims=False, sweep=sweep)
    assert headlines(found.findings) == headlines(bare.findings) and found.facts() == bare.facts()
    opening, parts = parts_of(found.html)
    assert "91.25" not in opening and "91.25" in found.html and "91.25" not in found._repr_html_()
    setting = parts["Accuracy of a sweep"]
    assert "9 features, epsilon 1.6, mechanism sampled, 456 rows of mine.csv." in setting
    assert "(features 1, epsilon 2, mechanism release)" in setting and len(parts) == 1
    rows = Page(found.html).cells("Settings: the numbers above are those of the plan")[1:]
    assert [row[:4] for row in rows] == [["the plan", "1", "2", "release"], ["the sweep", "9", "1.6", "sampled"]]
    assert [one["features"] for one in found.to_dict()["settings"]] == [1, 9]
    assert "Settings:" not in bare.html and parts_of(bare.html)[1] == {}


@pytest.mark.parametrize("epsilon, other", [("3.2", True), ("1", False)])
def test_a_fleet_of_another_table_is_kept_apart(epsilon, other, tmp_path):
    noise = ready_table(epsilon, 1)
    fleet = write_fleet(tmp_path / "fleet.sqlite", noise=noise, budget=epsilon)
    found = ss.report(fleet=fleet, claims=False)
    _, parts = parts_of(found.html)
    assert (f"{OTHER} (epsilon 1)" in parts["A simulated fleet"]) == other
    assert headlines(found.findings) == headlines(ss.report(claims=False).findings)


def test_the_same_input_gives_the_same_bytes(made, tmp_path):
    assert render_page(made.findings) == made.html
    first, again = (ss.report(claims=False).html for _ in range(2))
    assert first == again


def test_one_value_for_notebooks(made, tmp_path):
    assert (
        len(repr(made)) < 600
        and "ε 2, in any 30 days" in repr(made)
        and made._repr_html_().startswith("<section>")
        and len(made._repr_html_()) < 5000
    )
    assert made.to_dict()["plan"]["schema_version"] and json.dumps(made.to_dict())
    assert {"name", "value", "unit"} == set(made.to_frame().columns) and made.plot().axes
    made.write(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == made.html
    with pytest.raises(InputError, match="is read"):
        made.write(made.findings.request.sweep)


def _foreign(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (name TEXT)")
    database.close()


def _endless(path):
    """A view that never ends, under the name of a table."""
    with sqlite3.connect(path) as database:
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        database.execute(f"CREATE VIEW meta AS {endless} SELECT i AS name, i AS value FROM n WHERE i < 0")
        for name in ("cells", "batches", "sums", "runs", "errors"):
            database.execute(f"CREATE TABLE {name} (key TEXT)")
    database.close()


def _altered(path, write, statement):
    write(path)
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()


def _resaid(path, value):
    _altered(path, write_fleet, f"UPDATE meta SET value = {value} WHERE name = 'settings'")


def _rescored(path, value):
    _altered(path, write_sweep, f"UPDATE runs SET result = replace(result, '98.0', '{value}')")


BAD = {
    "nothing": ("sweep fleet noise package", lambda path: None),
    "empty": ("sweep fleet noise package", lambda path: path.touch()),
    "a folder": ("sweep fleet noise package", lambda path: path.mkdir()),
    "text": ("sweep fleet noise package", lambda path: path.write_bytes(b"SQLite format 3\0" + b"a" * 4096)),
    "a pipe": ("sweep fleet noise package", os.mkfifo),
    "of others": ("sweep fleet noise package", _foreign),
    "endless": ("sweep fleet", _endless),
    "the other's": ("fleet", write_sweep),
    "the other": ("sweep", write_fleet),
    "an accuracy that is text": ("sweep", lambda path: write_sweep(path, accuracies=("<b>",))),
    "an accuracy beyond all": ("sweep", lambda path: _rescored(path, "1e999")),
    "an accuracy that is none": ("sweep", lambda path: _rescored(path, "NaN")),
    "no spend": ("sweep", lambda path: write_sweep(path, said={"trust": "local"})),
    "no runs": ("sweep", lambda path: write_sweep(path, accuracies=())),
    "an old sweep": ("sweep", lambda path: _altered(path, write_sweep, "DELETE FROM cells WHERE key = 'data'")),
    "half a fleet": ("fleet", lambda path: write_fleet(path, finished=False)),
    "no batch": ("fleet", lambda path: _altered(path, write_fleet, "DELETE FROM batches")),
    "sums cut": ("fleet", lambda path: _altered(path, write_fleet, "UPDATE sums SET data = x'00'")),
    "settings cut": ("fleet", lambda path: _resaid(path, "'['")),
    "settings deep": ("fleet", lambda path: _resaid(path, f"'{'[' * 9999}'")),
    "another table": ("fleet", lambda path: _resaid(path, """replace(value, '"identity": "', '"identity": "0')""")),
    "more devices": ("fleet", lambda path: _resaid(path, """replace(value, '"devices": 40', '"devices": 41')""")),
}
QUICK = ("nothing", "empty", "text", "of others", "endless", "an accuracy that is text", "more devices")


def _bad():
    for what, (options, _) in BAD.items():
        marks = [] if what in QUICK else [pytest.mark.slow]
        yield from (pytest.param(option, what, marks=marks) for option in options.split())


@pytest.mark.parametrize(("option", "what"), list(_bad()))
def test_a_bad_file_is_one_sentence_and_nothing_is_touched(option, what, tmp_path, capsys):
    place = tmp_path / "given"
    BAD[what][1](place)
    before = place.read_bytes() if place.is_file() else None
    out = tmp_path / "report.html"
    with pytest.raises(SystemExit) as end:
        main(["report", "--no-claims", "--out", str(out), f"--{option}", str(place)])
    said = capsys.readouterr()
    assert end.value.code == 2 and not said.out
    *before_it, sentence = said.err.splitlines()  # on a slow machine, what was being done
    assert sentence.startswith("Error: ") and len(sentence) < 300, said.err
    assert all(line.endswith("…") for line in before_it) and "Traceback" not in said.err
    assert "given" in sentence
    assert sorted(one.name for one in tmp_path.iterdir()) == (["given"] if place.exists() else [])
    assert before is None or place.read_bytes() == before


def firmware_of(made, package):
    """Return the text of the firmware section for a package."""
    html = render_page(replace(made.findings, package=package))
    return " ".join(one["text"] for one in Page(html).all("section") if one["id"] == "firmware")


def test_a_table_that_is_not_private_is_not_called_proved(made):
    bad, good = make_table("naive", "1.6", release=1, entries=256), ready_table("1.6", 1)
    said = firmware_of(made, PackageFacts("p", "c", "cc", 1, (), bad, bad.certificate, "", ()))
    assert "NOT PRIVATE" in said and "proved again" not in said and str(bad.certificate.delta_record) in said
    said = firmware_of(made, PackageFacts("p", "c", "cc", 1, (), good, good.certify(), "", ()))
    assert "NOT PRIVATE" not in said and f"epsilon {good.certify().epsilon_record} a record" in said


def test_a_manifest_that_says_another_certificate_is_refused(tmp_path):
    from sensorsim.noise.table_file import write_table

    table = ready_table("1.6", 1)
    proof = {name: str(value) for name, value in asdict(table.certify()).items()}
    write_table(tmp_path / "table.txt", table)

    def package(**said):
        manifest = {"noise_table": {"certificate": proof | said}}
        return SimpleNamespace(folder=tmp_path, table_file=tmp_path / "table.txt", manifest=manifest)

    assert _certify_table(package())[1] == table.certify()
    for name in CERTIFIED:
        with pytest.raises(InputError, match="export the package again"):
            _certify_table(package(**{name: "0.1"}))


def test_a_package_of_kernels_tells_its_whole_command_and_what_is_not_proved(made, tmp_path):
    command = "sensorsim export --kernels a-long-name-of-a-file.py:some --variant lean"
    sizes = {"compiler": "cc", "flags": "-O2", "by_function": {}}
    verdicts = {"some": f"{NOT_PROVED}for x: a branch", "other": "proved: all"}
    manifest = {"command": command, "sensorsim": "0", "sizes": sizes, "files": {}, "proved": verdicts}
    said = firmware_of(made, package_facts(SimpleNamespace(folder=tmp_path, manifest=manifest, table_file=None)))
    assert f"made by {command}." in said and "secrecy of some, for x: a branch." in said and "other" not in said
    assert "Every bit of the code is proved by verify" in said and "this table" not in said


@pytest.mark.slow
def test_a_package_is_proved_again_and_an_altered_one_refused(tmp_path, capsys):
    folder = tmp_path / "pack <i>"
    main(["export", "--out", str(folder)])
    found = ss.report(package=folder, claims=False)
    seen = Page(found.html)
    assert found.findings.package.certificate.epsilon_record == Decimal("1.599958023791")
    assert "epsilon 1.599958023791 a record" in found.html and "<i>" not in found.html
    rows = seen.cells("Compiled code")
    assert [row[0] for row in rows[1:]] == [one.core for one in found.findings.package.cores]
    table = folder / "hospital" / "table.txt"
    table.write_bytes(table.read_bytes().replace(b"release 1", b"release 2"))
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(["report", "--no-claims", "--out", str(tmp_path / "report.html"), "--package", str(folder)])
    assert end.value.code == 2 and "altered" in capsys.readouterr().err and not (tmp_path / "report.html").exists()
