"""The kernels as C for firmware: emit it, write the package."""
