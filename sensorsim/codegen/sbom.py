"""The licence and the bill of materials of a package: SPDX 2.3 as JSON (ISO/IEC 5962). Equal files, equal bytes."""

import json
import re
from collections.abc import Mapping
from hashlib import sha1, sha256
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any
from uuid import NAMESPACE_URL, uuid5

COPYRIGHT = "Copyright (c) the sensorsim authors"
KNOWN = ("MIT", "BSD-3-Clause", "Apache-2.0", "0BSD")
OWN = "LicenseRef-"  # how SPDX names a licence that is not on its list


def licence_text(spdx: str) -> str:
    """Return the file LICENSE for an SPDX identifier or expression."""
    if spdx not in KNOWN:
        return _pointer(spdx)
    text = (files("sensorsim.codegen") / "templates" / "licences" / f"{spdx}.txt").read_text("utf-8")
    if "@COPYRIGHT@" in text:
        return text.replace("@COPYRIGHT@", COPYRIGHT)
    return f"{COPYRIGHT}\n{text}"  # this text must stay as it is


def licences_in(spdx: str) -> list[str]:
    """Return the licences of an expression, each once: `A OR (B WITH e)` has A and `B WITH e`."""
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


# The document must say when it was made. A package is the same bytes whenever it is made, so this says nothing.
CREATED = "1970-01-01T00:00:00Z"
DOCUMENT, PACKAGE, GENERATOR = "SPDXRef-DOCUMENT", "SPDXRef-Package", "SPDXRef-Generator"
TYPES = {".c": "SOURCE", ".h": "SOURCE", ".py": "SOURCE", ".md": "DOCUMENTATION"}
UNKNOWN = "NOASSERTION"
MANIFEST = "MANIFEST.json"  # holds the hash of this document, so this document cannot hold its


def sbom(texts: Mapping[str, str], spdx: str, version: str, name: str, command: str) -> str:
    """Return the document for a package of these files; it goes beside them as `name`.spdx.json.

    `texts` are all files of the package but itself and the manifest, `version` is sensorsim's.
    """
    records = [_file(number, path, texts[path], spdx) for number, path in enumerate(sorted(texts), 1)]
    found = sorted({licence for record in records for licence in record["licenseInfoInFiles"]} - {"NONE"})
    package = {
        "SPDXID": PACKAGE,
        "name": name,
        "versionInfo": version,
        "supplier": UNKNOWN,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": True,
        "packageVerificationCode": {
            "packageVerificationCodeValue": _verification_code(texts),
            "packageVerificationCodeExcludedFiles": [f"./{MANIFEST}", f"./{name}.spdx.json"],
        },
        "licenseConcluded": spdx,
        "licenseDeclared": spdx,
        "licenseInfoFromFiles": found or [UNKNOWN],
        "copyrightText": COPYRIGHT,
        "primaryPackagePurpose": "LIBRARY",
        "comment": f"Made by: {command}",
    }
    generator = {
        "SPDXID": GENERATOR,
        "name": "sensorsim",
        "versionInfo": version,
        "supplier": UNKNOWN,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": UNKNOWN,
        "copyrightText": UNKNOWN,
        "primaryPackagePurpose": "APPLICATION",
        "comment": "Made the package; is no part of it.",
    }
    document: dict[str, Any] = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": DOCUMENT,
        "name": f"{name}-{version}",
        "creationInfo": {
            "created": CREATED,
            "creators": [f"Tool: sensorsim-{version}"],
            "comment": "The date is fixed: the same input gives the same bytes.",
        },
        "packages": [package, generator],
        "files": records,
        "relationships": [
            _relation(DOCUMENT, "DESCRIBES", PACKAGE),
            _relation(PACKAGE, "GENERATED_FROM", GENERATOR),
            *(_relation(PACKAGE, "CONTAINS", record["SPDXID"]) for record in records),
        ],
    }
    if own := _own_licences(spdx):
        document["hasExtractedLicensingInfos"] = own
    document["documentNamespace"] = _namespace(document)
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _file(number: int, path: str, text: str, spdx: str) -> dict[str, Any]:
    content = text.encode()
    header = re.search(r"SPDX-License-Identifier: ([\w.+() -]*[\w+)])", text[:2000])
    return {
        "SPDXID": f"SPDXRef-File-{number}-{re.sub('[^a-zA-Z0-9.]', '-', path)}",
        "fileName": f"./{path}",
        "fileTypes": [TYPES.get(PurePosixPath(path).suffix, "TEXT")],
        "checksums": [
            {"algorithm": "SHA1", "checksumValue": _sha1(content)},
            {"algorithm": "SHA256", "checksumValue": sha256(content).hexdigest()},
        ],
        "licenseConcluded": spdx,
        "licenseInfoInFiles": licences_in(header[1]) if header else ["NONE"],
        "copyrightText": COPYRIGHT,
    }


def _verification_code(texts: Mapping[str, str]) -> str:
    """Return the SHA-1 of all files' SHA-1s, sorted, one after the other (section 7.9 of the specification)."""
    return _sha1("".join(sorted(_sha1(text.encode()) for text in texts.values())).encode())


def _sha1(content: bytes) -> str:
    """Return the hash that SPDX names files by; it stops no attacker, the SHA-256 beside it does."""
    return sha1(content, usedforsecurity=False).hexdigest()


def _own_licences(spdx: str) -> list[dict[str, str]]:
    """Return the licences that are not on the list of SPDX, which wants a text for each."""
    names = [licence for licence in licences_in(spdx) if licence.startswith(OWN)]
    return [{"licenseId": name, "name": name, "extractedText": "To be found in LICENSE."} for name in names]


def _relation(element: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": other}


def _namespace(document: Mapping[str, Any]) -> str:
    """Return a name for the document that no other content has."""
    return uuid5(NAMESPACE_URL, "sensorsim:" + sha256(json.dumps(document).encode()).hexdigest()).urn
