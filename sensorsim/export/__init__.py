"""The kernels as C for firmware: emit it, write the package."""

from sensorsim.doors import open_door

open_door(__name__)
