"""The kernels: integer functions written once, read by Numba, the counters, the range check and the C emitter."""
