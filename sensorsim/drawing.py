"""A figure as bytes: the same figure is the same bytes, whatever the day and the run."""

import io
from typing import Any

# Neither date nor version inside; and the names that an SVG gives its parts follow from the picture alone.
METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


def picture(figure: Any, kind: str, dpi: int) -> bytes:
    """The figure as a file of this kind: svg, png or pdf."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "sensorsim"}):
        figure.savefig(buffer, format=kind, metadata=METADATA[kind], dpi=dpi)
    return buffer.getvalue()
