"""The LICENSE of a package: the full text where it is known, and otherwise where it is to be had."""

import re
from importlib.resources import files

COPYRIGHT = "Copyright (c) the sensorsim authors"
KNOWN = ("MIT", "BSD-3-Clause", "Apache-2.0", "0BSD")
OWN = "LicenseRef-"  # how SPDX names a licence that is not on its list


def licence_text(spdx: str) -> str:
    """The file LICENSE for an SPDX identifier or expression."""
    if spdx not in KNOWN:
        return _pointer(spdx)
    text = (files("sensorsim.export") / "templates" / "licences" / f"{spdx}.txt").read_text("utf-8")
    if "@COPYRIGHT@" in text:
        return text.replace("@COPYRIGHT@", COPYRIGHT)
    return f"{COPYRIGHT}\n{text}"  # this text must stay as it is


def licences_in(spdx: str) -> list[str]:
    """The licences of an expression, each once: `A OR (B WITH e)` has A and `B WITH e`."""
    parts = re.split(r"\s+(?:AND|OR)\s+", re.sub(r"[()]", " ", spdx))
    return list(dict.fromkeys(" ".join(part.split()) for part in parts if part.strip()))


def _pointer(spdx: str) -> str:
    lines = [COPYRIGHT, "", f"SPDX-License-Identifier: {spdx}", ""]
    lines += ["The text of the licence is not in this package. Whoever passes it on must add it here:"]
    for licence in licences_in(spdx):
        for name in licence.split(" WITH "):
            own = name.startswith(OWN)
            lines.append(f"- {name}: " + ("a licence of your own" if own else f"https://spdx.org/licenses/{name}.html"))
    return "\n".join(lines) + "\n"
