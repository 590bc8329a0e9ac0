"""`python -m sensorsim` is the command `sensorsim`."""

from sensorsim.cli import main

main()
