"""The public functions that bring several rooms together, one file for each; `import sensorsim as ss` finds them.

noise.py        ss.noise_table, ss.read_table, ss.write_table, ss.certify
releasing.py    ss.release

`ss.cost`, `ss.Sensor` and `ss.claims` are in their own rooms. The command line calls these functions and prints what
they return; its defaults are theirs.
"""
