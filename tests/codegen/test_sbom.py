"""The bill of materials and the licence of a package, against the SPDX tools, the specification and others' copies."""

import json
import re
from hashlib import sha1, sha256
from importlib.metadata import files

import pytest

from sensorsim.codegen.compliance import COPYRIGHT, KNOWN, licence_text, sbom

COMMAND = "sensorsim export --out box (sensorsim 0.1.0)"
TEXTS = {
    "src/a_b.c": "/* SPDX-License-Identifier: MIT */\nint a;\n",
    "src/a-b.c": "/* SPDX-License-Identifier: MIT */\nint b;\n",
    "README.md": "# ε\n",
    "test/golden.json": "{}\n",
}


def made(texts=TEXTS, spdx="MIT", version="0.1.0", name="ss_sensor", command=COMMAND):
    return json.loads(sbom(texts, spdx, version, name, command))


@pytest.mark.parametrize("spdx", ["MIT", "MIT OR (Apache-2.0 AND 0BSD)", "LicenseRef-Acme", "GPL-2.0-or-later"])
def test_the_spdx_tools_find_nothing_wrong(spdx, tmp_path):
    pytest.importorskip("spdx_tools", reason="the peer validator spdx-tools is not installed")
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.spdx_element_utils import calculate_package_verification_code
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    path = tmp_path / "ss_sensor.spdx.json"
    texts = {name: text.replace("MIT", spdx) for name, text in TEXTS.items()}
    path.write_text(sbom(texts, spdx, "0.1.0", "ss_sensor", COMMAND))
    document = parse_file(str(path))
    assert [message.validation_message for message in validate_full_spdx_document(document, "SPDX-2.3")] == []
    package = document.packages[0]
    assert calculate_package_verification_code(document.files).value == package.verification_code.value
    assert {file.name for file in document.files} == {f"./{name}" for name in texts}


def test_every_file_has_the_hashes_of_its_bytes():
    document = made()
    assert len(document["files"]) == len(TEXTS)
    assert len({record["SPDXID"] for record in document["files"]}) == len(TEXTS)
    for record in document["files"]:
        content = TEXTS[record["fileName"].removeprefix("./")].encode("utf-8")
        sums = {entry["algorithm"]: entry["checksumValue"] for entry in record["checksums"]}
        assert sums == {"SHA1": sha1(content).hexdigest(), "SHA256": sha256(content).hexdigest()}


def test_the_verification_code_of_two_files_worked_by_hand():
    """SHA-1 of "abc" and of nothing are published; the code is the SHA-1 of both in order, without anything between."""
    of_abc, of_nothing = "a9993e364706816aba3e25717850c26c9cd0d89d", "da39a3ee5e6b4b0d3255bfef95601890afd80709"
    code = made({"z": "", "a": "abc"})["packages"][0]["packageVerificationCode"]
    assert code["packageVerificationCodeValue"] == sha1((of_abc + of_nothing).encode()).hexdigest()
    assert "./ss_sensor.spdx.json" in code["packageVerificationCodeExcludedFiles"]


def test_it_says_what_the_package_is_and_what_made_it():
    document = made()
    relations = [(r["spdxElementId"], r["relationshipType"]) for r in document["relationships"]]
    assert relations[:2] == [("SPDXRef-DOCUMENT", "DESCRIBES"), ("SPDXRef-Package", "GENERATED_FROM")]
    assert relations[2:] == [("SPDXRef-Package", "CONTAINS")] * len(TEXTS)
    package, generator = document["packages"]
    assert package["comment"].endswith(COMMAND) and generator["name"] == "sensorsim"
    found = {record["fileName"]: record["licenseInfoInFiles"] for record in document["files"]}
    assert found["./src/a_b.c"] == ["MIT"] and found["./README.md"] == ["NONE"]
    assert package["licenseInfoFromFiles"] == ["MIT"]
    assert made(spdx="0BSD")["packages"][0]["licenseInfoFromFiles"] == ["MIT"]  # as the files say of themselves


def test_the_same_files_give_the_same_bytes_and_any_other_another_name():
    again = sbom(dict(reversed(TEXTS.items())), "MIT", "0.1.0", "ss_sensor", COMMAND)
    assert again == sbom(TEXTS, "MIT", "0.1.0", "ss_sensor", COMMAND)
    other = [
        made(TEXTS | {"README.md": "# e\n"}),
        made({**TEXTS, "more.md": ""}),
        made(spdx="0BSD"),
        made(version="0.1.1"),
        made(name="acme_sensor"),
        made(command="sensorsim export --out other"),
    ]
    names = {document["documentNamespace"] for document in [made(), *other]}
    assert len(names) == 1 + len(other)
    assert all(re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", name) for name in names)


def words(text, first):
    """The words of a licence from one of them on: how it is broken into lines, and list marks, say nothing."""
    return " ".join(text[text.index(first) :].split())


@pytest.mark.parametrize(
    ("spdx", "package", "first", "last"),
    [
        ("MIT", "pluggy", "Permission is hereby", "IN THE SOFTWARE."),
        ("BSD-3-Clause", "click", "Redistribution and use", "SUCH DAMAGE."),
        ("0BSD", "typing_extensions", "Permission to use, copy, modify, and/or", "PERFORMANCE OF THIS SOFTWARE."),
    ],
)
def test_a_licence_has_the_words_that_others_ship(spdx, package, first, last):
    path = next(path for path in files(package) if "LICENSE" in path.name)
    theirs, ours = words(path.read_text(), first), words(licence_text(spdx), first)
    assert ours.endswith(last)
    assert theirs[: theirs.index(last) + len(last)] == ours
    assert COPYRIGHT in licence_text(spdx)


def test_the_apache_licence_is_the_published_file():
    """The SHA-256 of https://www.apache.org/licenses/LICENSE-2.0.txt."""
    text = licence_text("Apache-2.0")
    head = f"{COPYRIGHT}\n"
    assert text.startswith(head)
    published = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    assert sha256(text.removeprefix(head).encode()).hexdigest() == published


def test_every_licence_that_is_known_comes_whole():
    for spdx in KNOWN:
        assert "@" not in licence_text(spdx) and licence_text(spdx).isascii()


def test_any_other_licence_is_named_with_the_place_of_its_text():
    text = licence_text("GPL-2.0-only WITH Classpath-exception-2.0 OR LicenseRef-Acme")
    assert "SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0 OR LicenseRef-Acme" in text
    assert "https://spdx.org/licenses/GPL-2.0-only.html" in text
    assert "https://spdx.org/licenses/Classpath-exception-2.0.html" in text
    assert "LicenseRef-Acme: a licence of your own" in text
    assert "must add it" in text
