"""A package proved: its files, tables and certificate, its C on every core, and what it executes."""

from sensorsim.doors import open_door

open_door(__name__)
