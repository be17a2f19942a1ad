"""Demonstrations of how the scheduler handles gangs and elastic jobs: on simulated nodes, started with one button."""
