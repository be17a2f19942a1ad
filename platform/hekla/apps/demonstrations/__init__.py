"""Demonstrations: what the scheduler does for gangs and elastic jobs, started by one button on simulated machines."""
