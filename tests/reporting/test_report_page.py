"""The page in a browser: it renders, nothing overlaps, nothing is asked of anyone, and every link is reached by Tab."""

import re

import pytest
from browsing import CUT, browser
from report_files import write_fleet, write_sweep

import sensorsim as ss

pytestmark = pytest.mark.slow
LONG = "a-name-that-does-not-end-" * 6


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """With everything that can be made quickly; the widest of it with names that are too long."""
    folder = tmp_path_factory.mktemp("report")
    sweep, fleet = write_sweep(folder / "results.sqlite", mechanism=LONG), write_fleet(folder / "fleet.sqlite")
    found = ss.report(sweep=sweep, fleet=fleet)
    found.write(folder / "report.html")
    return found, folder / "report.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 360, 768, 1440])
def test_it_renders_without_overlap_scroll_error_or_request(window, made, width, scheme):
    found, path = made
    window.show(path, width, scheme=scheme)
    seen = window.run("return document.body.innerText")
    plan = found.findings.plan
    assert f"{plan.costs.microjoule:.3g} µJ" in seen and f"±{100 * plan.half:.3g} %" in seen
    assert window.run("return document.documentElement.scrollWidth") <= width
    assert window.run("return document.querySelectorAll('svg text').length") > 30
    assert window.overlaps() == [] and window.run(CUT) == []
    assert [entry for entry in window.logs("browser") if entry["level"] != "INFO"] == []
    assert window.requests() == [path.as_uri()]
    ground = window.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 300) == (scheme == "dark")


DEPLOYMENTS = (
    {"devices": 10**9}, {"devices": 1}, {"n": 1, "l": 1}, {"chip": "max32660"}, {"radio": "lora-sf7"},
    {"budget_epsilon": 8, "budget_days": 1}, {"records_per_day": 24, "budget_epsilon": 16}, {"n": 64, "every": 365},
)  # fmt: skip


@pytest.mark.parametrize("chosen", DEPLOYMENTS, ids=str)
def test_figures_fit_whatever_the_deployment(window, chosen, tmp_path):
    path = tmp_path / "page.html"
    ss.report(claims=False, **chosen).write(path)
    for width in (360, 1440):
        window.show(path, width)
        assert window.overlaps() == [] and window.run(CUT) == []
        assert window.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(window, made, scheme):
    """4.5 to 1 (AA) for every colour of text on the colour behind it."""
    window.show(made[1], 1440, scheme=scheme)
    assert window.run(CONTRAST) == []


CONTRAST = """
const light = c => { const v = c.map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
                     return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
const read = s => s.match(/[\\d.]+/g).map(Number);
const behind = (e, box) => {
  if (e.namespaceURI.endsWith('svg')) {
    for (const r of [...e.ownerSVGElement.querySelectorAll('rect')].reverse()) {
      const b = r.getBoundingClientRect();
      const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      if (b.left <= x && x <= b.right && b.top <= y && y <= b.bottom) return read(getComputedStyle(r).fill);
    }
  }
  for (let p = e; p; p = p.parentElement) {
    const c = read(getComputedStyle(p).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
const bad = [];
for (const e of document.querySelectorAll('body *')) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || e.closest('title, desc')) continue;
  const style = getComputedStyle(e);
  const ink = read(e.namespaceURI.endsWith('svg') ? style.fill : style.color);
  const a = light(ink), b = light(behind(e, e.getBoundingClientRect()));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) bad.push([e.textContent.slice(0, 30), ratio]);
}
return bad;
"""


def test_it_prints(window, made):
    window.show(made[1], 1440, scheme="dark")
    pdf = window.printed()
    assert pdf.startswith(b"%PDF-") and len(pdf) > 20_000
    window.cdp("Emulation.setEmulatedMedia", media="print")
    assert window.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert window.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    window.cdp("Emulation.setEmulatedMedia", media="")


def test_tab_reaches_every_link(window, made):
    window.show(made[1], 1440)
    links = window.run("return [...document.querySelectorAll('a')].map(a => a.textContent)")
    reached = []
    for _ in links:
        keys = [{"type": "keyDown", "value": "\ue004"}, {"type": "keyUp", "value": "\ue004"}]
        window.ask("actions", actions=[{"type": "key", "id": "keys", "actions": keys}])
        reached.append(window.run("return document.activeElement.textContent"))
        assert window.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert reached == links and len(links) > 5


def test_a_screen_reader_finds_landmarks_names_and_cells(window, made):
    window.show(made[1], 360)  # where rows are blocks, tables must stay tables
    window.cdp("Accessibility.enable")
    nodes = window.cdp("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node["ignored"]]
    for role in ("banner", "navigation", "main", "contentinfo", "table", "rowheader", "columnheader", "cell"):
        assert role in roles, role
    images = [node for node in nodes if not node["ignored"] and node["role"]["value"] in ("img", "image")]
    assert len(images) == 3 and all(image["name"]["value"] and image["description"]["value"] for image in images)
