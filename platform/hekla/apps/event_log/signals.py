"""The signal after a commit. It carries no facts: a receiver that misses it finds them in the log."""

from django.dispatch import Signal

recorded = Signal()
"""Sent after the commit of a unit of work, with `actor` (name of the last event's actor) and `topics` (set of str)."""
