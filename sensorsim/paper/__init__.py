"""Recompute every checkable statement of the paper, and of this project, from this project's code."""
