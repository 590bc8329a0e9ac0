"""A package proved: its files, tables and certificate, its C on every core, and what it executes."""
