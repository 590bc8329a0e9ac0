"""The public functions that bring several rooms together, one file for each; `import sensorsim as ss` finds them.

noise.py        ss.noise_table, ss.read_table, ss.write_table, ss.certify
releasing.py    ss.release
auditing.py     ss.audit
receiving.py    ss.receive
kernels.py      ss.kernel
planning.py     ss.plan
fleets.py       ss.fleet
training.py     ss.train
evaluating.py   ss.evaluate
firmware.py     ss.export, ss.verify

`ss.cost`, `ss.Firmware`, `ss.Sensor`, `ss.claims` and `ss.report` are in their own rooms. The command line calls these
functions and prints what they return; its defaults are theirs.
"""
