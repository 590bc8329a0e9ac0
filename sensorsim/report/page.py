"""The whole page: one file, no script, no request."""

from importlib.resources import files

from sensorsim.report import delivered, sections
from sensorsim.report.gather import Findings
from sensorsim.report.opening import opening
from sensorsim.report.parts import Markup, joined, paragraph, tag, text
from sensorsim.terminal import counted

TITLE = "What a private record costs, protects and delivers"
AGAIN = (
    "Made by sensorsim. A number can be computed again by the command below its section, or by the one that wrote the "
    "file it was read from."
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
LINKS = {"costs": "Costs", "protects": "Protects", "delivers": "Delivers", "firmware": "Firmware", "claims": "Claims",
         "made": "How it was made"}  # fmt: skip


def page(found: Findings) -> str:
    """The same findings give the same bytes."""
    style = files("sensorsim.report").joinpath("style.css").read_text("utf-8")
    shown = {
        "costs": sections.costs,
        "protects": sections.protects,
        "delivers": delivered.delivers,
        "firmware": sections.firmware,
        **({} if found.claims is None else {"claims": sections.claims}),
        "made": sections.made,
    }
    links = (tag("li", tag("a", LINKS[name], href=f"#{name}")) for name in shown)
    wanted = found.wanted
    sizes = f"{counted(wanted.n, 'feature')}, {counted(wanted.l, 'hidden unit')}"
    about = f"{sizes} · {found.plan.costs.chip} · {found.plan.costs.radio}"
    body = joined(
        [
            tag("a", "Skip to the numbers", href="#main", class_="skip"),
            tag("header", tag("h1", TITLE), paragraph(about, class_="about"),
                tag("nav", tag("ul", *links), aria_label="Sections")),
            tag("main", opening(found), *(make(found) for make in shown.values()), id="main", tabindex="-1"),
            tag("footer", paragraph(AGAIN)),
        ],
        "\n",
    )  # fmt: skip
    return _document(style, body)


def _document(style: str, body: Markup) -> str:
    head = (
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{text(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(TITLE)}</title>\n<style>\n{style}</style>\n"
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n{body}\n</body>\n</html>\n'
