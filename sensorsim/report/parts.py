"""HTML and SVG by small functions. A plain string is text and is escaped; only what these functions make is markup."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Anything as text that a browser shows and never reads: no markup, no letter that is none."""
    if isinstance(value, Markup):
        return value
    plain = str(value).encode("utf-8", "replace").decode("utf-8")
    return Markup(escape("".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in plain)))


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """An element. `class_` is class, an underscore elsewhere a hyphen; an attribute that is None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{joined(children)}</{name}>")


def joined(children: Iterable[object], between: str = "") -> Markup:
    return Markup(between.join(text(child) for child in children))


def paragraph(*children: object, class_: str | None = None) -> Markup:
    return tag("p", *children, class_=class_)


def listed(items: Iterable[object], class_: str | None = None) -> Markup:
    return tag("ul", *(tag("li", item) for item in items), class_=class_)


def command(*lines: str) -> Markup:
    """How a section is computed again."""
    shown = joined((tag("code", line) for line in lines), "\n")
    return tag("div", tag("p", "To compute this again:"), tag("pre", shown), class_="again")


@dataclass(frozen=True)
class Column:
    """Of a table: its head; whether its cells are numbers, which stand to the right; whether words stay whole."""

    head: str
    number: bool = False
    whole: bool = False


def table(caption: object, columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> Markup:
    """The first cell of a row is its head. Roles are named, as a phone shows rows as blocks and would lose them."""
    heads = (tag("th", one.head, scope="col", role="columnheader", class_=_class(one)) for one in columns)
    body = (_row(columns, row) for row in rows)
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *heads, role="row"), role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        role="table",
    )


def _row(columns: Sequence[Column], cells: Sequence[object]) -> Markup:
    first, *rest = zip(columns, cells, strict=True)
    made = [tag("th", first[1], scope="row", role="rowheader", class_=_class(first[0]))]
    made += [tag("td", cell, role="cell", class_=_class(column), data_head=column.head) for column, cell in rest]
    return tag("tr", *made, role="row")


def _class(column: Column) -> str | None:
    return "number" if column.number else "whole" if column.whole else None


def section(name: str, title: str, *children: object) -> Markup:
    """A landmark with its heading, which links can lead to."""
    return tag("section", tag("h2", title, id=f"{name}-title"), *children, id=name, aria_labelledby=f"{name}-title")


def figure(drawing: Markup, caption: object) -> Markup:
    return tag("figure", drawing, tag("figcaption", caption))


def drawing(name: str, title: str, description: str, width: int, height: int, *children: object) -> Markup:
    """An SVG that a screen reader reads as one image, by its title and description."""
    return tag(
        "svg",
        tag("title", title, id=f"{name}-name"),
        tag("desc", description, id=f"{name}-about"),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_labelledby=f"{name}-name {name}-about",
    )


def at(x: float, y: float, *children: object, class_: str | None = None, anchor: str | None = None) -> Markup:
    """Text of an SVG."""
    return tag("text", *children, x=f"{x:.1f}", y=f"{y:.1f}", class_=class_, text_anchor=anchor)


def box(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    return tag("rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.1f}", height=f"{height:.1f}", class_=class_)


def line(points: Iterable[tuple[float, float]], class_: str) -> Markup:
    return tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=class_)
