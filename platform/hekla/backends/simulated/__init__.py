"""Pods that are imagined: nodes and run times from a description, time that runs faster, and no process at all."""
