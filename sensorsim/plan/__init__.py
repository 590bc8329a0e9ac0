"""What a fleet of sensors can reach, before anything is built: design, interval, epsilon and energy of a deployment."""

from sensorsim.doors import open_door
from sensorsim.plan.asked import Asked
from sensorsim.plan.plan import Plan, plan

__all__ = ["Asked", "Plan", "plan"]
open_door(__name__)
