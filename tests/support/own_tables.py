"""A processor and a chip of a user's own, as the text of their files."""

import csv
import io

from sensorsim.costing.chips import CHIP_SCHEMA, energy_file
from sensorsim.costing.prices import CPU_SCHEMA

HEAD = ",".join(CPU_SCHEMA.names)
CORE = f"# title: My core\n# extends: cortex-m4\n{HEAD}\nMYOP,r,,32,any,cycles,1,1,1,,,,a note,confirmed,,\n"
DEAR = (
    f"# title: Dear core\n# alters: cortex-m4\n{HEAD}\nADD,any,ADD/INDEX,8/16/32,any,cycles,9,9,9,,,,me,confirmed,,\n"
)


def board(**changed):
    """The nRF52840's row under another name, with other cells."""
    with energy_file().open(encoding="utf-8", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["chip"] == "nrf52840")
    text = io.StringIO()
    writer = csv.DictWriter(text, CHIP_SCHEMA.names, lineterminator="\n")
    writer.writeheader()
    writer.writerow({**row, "chip": "mine", "name": "My board", **changed})
    return text.getvalue()
