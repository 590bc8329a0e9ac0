"""`--dask`: an address that a scheduler can have, before anything is begun; whether one answers is seen later."""

from typing import Any

import click

from sensorsim._util.errors import InputError

PORTS = range(1, 1 << 16)
PROTOCOLS = ("", "tcp", "tls", "ws", "wss", "ucx")


class Address(click.types.StringParamType):
    """A host and a port, with a protocol before them or not."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        address = str(super().convert(value, param, ctx))
        protocol, _, place = address.rpartition("://")
        host, _, port = place.rpartition(":")
        known = protocol in PROTOCOLS and address.isprintable() and len(address) <= 300 and " " not in address
        if address and not (known and host and port.isascii() and port.isdigit() and int(port[:6]) in PORTS):
            shown = address if len(address) <= 60 else f"{address[:57]}…"
            raise InputError(f"{shown!r} is no address of a Dask scheduler; give one as in tcp://127.0.0.1:8786.")
        return address  # an empty one is told as that of any option


dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    type=Address(),
    help="Run on this Dask cluster, as in tcp://127.0.0.1:8786.",
)
