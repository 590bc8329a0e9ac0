"""Data: processor tables, the paper's printed operation list, noise tables, trained encoders."""
