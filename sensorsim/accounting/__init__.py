"""Accounting: composition, amplification and sensitivities. `sensorsim.mechanisms.spent` asks a mechanism by name.

dp-accounting is the reference of the tests and not a dependency: ours composes the integer counts of a table and bounds
its own rounding and discretisation errors from both sides, in a third of the time (bench/bench_accounting.py), and
counts several records of one person under Poisson sampling; importing dp-accounting takes two seconds.
"""
