"""Render the templates of a package, and write its JSON in one form."""

import hashlib
import json
import textwrap
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sensorsim._util.terminal import counted
from sensorsim.language.c.comments import ascii_text, with_prefix, wrap

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _templates() -> "Environment":
    """Return the environment of the templates, with the filters and functions that they use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("sensorsim.codegen"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    made.filters |= {"ascii_text": ascii_text, "json": json.dumps}
    made.filters["one_line"] = lambda text: " ".join(text.split())
    made.filters["in_comment"] = lambda text: "\n * ".join(wrap(" ".join(text.split())))
    made.filters["paragraph"] = lambda text: textwrap.fill(
        " ".join(text.split()), 110, break_long_words=False, break_on_hyphens=False
    )
    made.globals |= {"counted": counted, "version": version("sensorsim")}
    return made


def template(file: str, prefix: str = "ss_", **values: object) -> str:
    """Return a template with its names under the package's prefix, rendered with these values."""
    text = with_prefix((files("sensorsim.codegen") / "templates" / file).read_text("utf-8"), prefix)
    return _templates().from_string(text).render(prefix=prefix, **values)


def json_text(data: Any) -> str:
    """Return data in the one JSON form that a package has."""
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


def sha256(content: str | bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
