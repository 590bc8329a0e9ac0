"""The C reader: kernels as C99. `functions` prints one, `files` lays them out, `helpers` is the C behind primitives."""
