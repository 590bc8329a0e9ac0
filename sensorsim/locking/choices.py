"""The options of each command that a lock keeps, and that --check takes from it."""

# A lock may come from a stranger: what names a file, runs a program or trusts one is never taken from there.
OF_COST = ("n", "l", "m", "cpu", "width", "signed", "accounting", "variant", "metric", "chip", "level", "battery_mah")
KEPT = {
    "cost": (*OF_COST, "random", "radio", "records_per_day"),
    "verify": ("target", "random_host", "random_core", "seed"),
    "kernel": ("at", "cpu", "accounting", "level", "targets"),
}
