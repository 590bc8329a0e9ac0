"""One page for people who did not run anything: what a private record costs, protects and delivers.

asked.py                     what the page is about; all defaults
gather.py, inputs.py         the values, from the functions that every command uses, and from files of others
package.py                   what a C package says of itself, its table proved again
settings.py                  features, epsilon, mechanism and records of each part, which keep the parts apart
parts.py, words.py           HTML and SVG by small functions that escape whatever they are given; numbers in words
figures.py                   the figures
opening.py, sections.py, delivered.py   the text, section by section
page.py, style.css           the whole page
result.py                    the answer as one value
"""

from sensorsim.doors import open_door
from sensorsim.report.asked import Wanted
from sensorsim.report.result import Report, report

__all__ = ["Report", "Wanted", "report"]
open_door(__name__)
