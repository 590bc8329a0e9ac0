"""`--dask`: an address that a scheduler can have, before anything is begun; whether one answers is seen later."""

from typing import Any

import click

from sensorsim.errors import InputError

PORTS = range(1, 1 << 16)
PROTOCOLS = ("", "tcp", "tls", "ws", "wss", "ucx")


def check_address(_context: Any, _parameter: Any, address: str | None) -> str | None:
    """The address, if it is a host and a port, with a protocol before it or not."""
    if not address:  # an empty one is told as that of any option
        return address
    protocol, _, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    known = protocol in PROTOCOLS and address.isprintable() and len(address) <= 300 and " " not in address
    if not (known and host and port.isascii() and port.isdigit() and len(port) <= 5 and int(port) in PORTS):
        shown = address if len(address) <= 60 else f"{address[:57]}…"
        raise InputError(f"{shown!r} is no address of a Dask scheduler; give one as in tcp://127.0.0.1:8786.")
    return address


dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    callback=check_address,
    help="Run on this Dask cluster, as in tcp://127.0.0.1:8786.",
)
