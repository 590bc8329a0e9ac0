"""What a mechanism costs: operations counted from the kernels, priced from the processor tables."""
