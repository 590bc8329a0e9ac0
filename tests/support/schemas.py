"""The JSON Schemas in docs/schemas are written from what the program prints: run under many choices, and merged.

    python tests/support/schemas.py [--write]      compare, or with --write write them; it takes some minutes

Which there are is said by docs/formats.md: each row of its tables of commands links to the schema of what it prints.
`schema_choices.txt` has further choices. Here stand the files that have a schema, and what no value shows: which keys
are data, and which words are all that there can be.
"""

import contextlib
import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from page_text import blocks, commands
from pages import ROOT, ROW, SETTINGS, Console, environment
from schema_text import file_of, schema_of, text_of

from sensorsim.accounting.composition import Covers
from sensorsim.costing.cost_report import ACCOUNTINGS, METRICS
from sensorsim.costing.csv_schema import STATUSES
from sensorsim.costing.prices import UNITS
from sensorsim.fleets.counts import OUTCOMES
from sensorsim.fleets.settings import SCHEDULES
from sensorsim.mechanisms import every
from sensorsim.noise.kinds import KINDS
from sensorsim.paper.recompute import VERDICTS
from sensorsim.planning.deployment import GOALS, SOLVABLE
from sensorsim.training.model_files import NOISE, NORMALISE

PAGE = ROOT / "docs" / "formats.md"
CHOICES = ROOT / "tests" / "support" / "schema_choices.txt"
FILES = {"encoder": "encoder*.json", "sketch": "sketch.json", "lock": "*.lock", "manifest": "*/MANIFEST.json"}
TABLE = {"kind": list(KINDS)}
MODEL = {"trust": sorted({one.trust for one in every()}), "covers_short": [one.value for one in Covers]}


def data(*keys: str) -> dict[str, Any]:
    """Objects whose keys are data."""
    return dict.fromkeys(keys, dict)


def fractions(*keys: str) -> dict[str, Any]:
    """Numbers that tables of your own may have with a fraction."""
    return dict.fromkeys(keys, float)


def nulls(*keys: str) -> dict[str, Any]:
    """Mark what another machine or image may not have."""
    return dict.fromkeys(keys, type(None))


PRICES = {"accounting": ACCOUNTINGS, "metric": METRICS}
RECORD = data("mechanisms", "parts") | fractions("duty_percent_allowed")
MARKS: dict[str, dict[str, Any]] = {
    "cost": PRICES | RECORD | data("steps", "operations", "printed_by_operands", "printed_by_operands.*"),
    "cost-sweep": PRICES,
    "cost-machine": RECORD | data("costs", "counts"),
    "cpus": {"cpus[].unit": UNITS, "status": STATUSES}
    | fractions("overhead_us", "receive_us", "start_us", "MHz", "duty_percent"),
    "cpus-show": {"unit": UNITS, "status": STATUSES},
    **{f"noise-{name}": TABLE for name in ("make", "check", "show")},
    "kernel": {"accounting": ACCOUNTINGS}
    | data("kernels", "at", "formula", "formula_otherwise", "counts", "counts.*", "cost")
    | fractions("typical", "min", "max", "by_data[]"),
    "plan": {"goal": GOALS, "solved_for": SOLVABLE},
    "claims": {"claims[].verdict": VERDICTS},
    "check": fractions("now"),
    "verify": data("lengths", "classes") | nulls("gcc"),
    "verify-binary": data("lengths", "classes") | nulls("price"),
    "receive": TABLE | data("sums"),
    "fleet": {"packets[].name": OUTCOMES, "schedule": list(SCHEDULES)} | data("spend.people", "devices_uJ"),
    "train": MODEL | {"noise": NOISE, "normalise": NORMALISE},
    "evaluate": MODEL | data("trivial"),
    "sweep": MODEL | data("predictors"),
    "encoder": MODEL | {"noise": NOISE},
    "lock": {"command": ["cost", "verify", "kernel"]} | data("choices", "toolchain", "figures"),
    "manifest": {"noise_table.kind": list(KINDS)}
    | data("files", "tables", "operations", "operations.*", "proved", "functions")
    | data("by_function", "by_function.*", "misra_findings"),
}


def seen(console: Console) -> dict[str, list[Any]]:
    """Return what each command printed as JSON, by the name of its schema."""
    found = defaultdict(list)
    for block in blocks(PAGE.read_text("utf-8")):
        if block.kind == "console":
            for command, _ in commands(block.text):
                _run(console, command)
        elif block.kind == "schemas":
            for command, name in ROW.findall(block.text):
                found[name].append(console.json(command))
    for line in CHOICES.read_text("utf-8").replace("{tests}", f"{ROOT}/tests/support").splitlines():
        name, command = line.split(maxsplit=1)
        if name == "-":
            _run(console, command)
        elif name != "#":
            found[name].append(console.json(f"sensorsim {command}"))
    for name, pattern in FILES.items():
        found[name] += [json.loads(path.read_text("utf-8")) for path in sorted(console.folder.glob(pattern))]
    return found


def _run(console: Console, command: str) -> None:
    said = console.run(command)
    assert not console.code, f"{command} ends with exit code {console.code}: {said}"


def made(name: str, values: list[Any]) -> str:
    """The text of a schema, from all that was seen."""
    schema = schema_of(values, MARKS.get(name, {}))
    (version,) = {value["schema_version"] for value in values}
    schema["properties"]["schema_version"] = {"const": version}
    head = {"$schema": Draft202012Validator.META_SCHEMA["$id"], "title": f"sensorsim: {name}"}
    return text_of(head | schema) + "\n"


def main(words: list[str]) -> int:
    """Compare the schemas, or write them; 1 if one differs and is not written."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), environment(**SETTINGS):
        found = seen(Console(Path(folder)))
    code = 0
    for name, values in found.items():
        text, file = made(name, values), file_of(name)
        if file.exists() and file.read_text("utf-8") == text:
            continue
        if "--write" in words:
            file.write_text(text, "utf-8")
        else:
            print(f"{file.name} is not what the program prints; write it with --write")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
