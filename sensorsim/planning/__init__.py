"""Plan a study before anything is built: design, interval, epsilon and energy of a fleet of sensors.

The functions below `Plan` are those that the lines of a plan name to compute a number again.
"""

from sensorsim.planning.deployment import Asked
from sensorsim.planning.estimands import correlation, mean_half, packets, value_sd
from sensorsim.planning.person_epsilon import group_epsilon, most_anywhere, most_releases
from sensorsim.planning.study_plan import Plan, plan, record_of, release_cost
from sensorsim.planning.synthetic_people import column_variance, simulate_model

__all__ = [
    "Asked", "Plan", "column_variance", "correlation", "group_epsilon", "mean_half", "most_anywhere", "most_releases",
    "packets", "plan", "record_of", "release_cost", "simulate_model", "value_sd",
]  # fmt: skip
