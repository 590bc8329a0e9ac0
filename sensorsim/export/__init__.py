"""The kernels as C for firmware: emit, package, compile for real cores, run and compare."""
