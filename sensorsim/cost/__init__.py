"""What a mechanism costs: operations counted from the kernels, priced from the processor tables."""

from sensorsim.doors import open_door

open_door(__name__)
