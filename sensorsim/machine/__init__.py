"""Compile C for a core, run it on an emulated one, and count and price what it executes."""
