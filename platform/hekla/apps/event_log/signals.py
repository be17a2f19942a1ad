"""The wake-up that follows a commit. It carries no fact: who misses it finds the same in the log."""

from django.dispatch import Signal

recorded = Signal()
"""Sent after a unit of work was committed, with `actor` (who did it) and `topics` (a set of str)."""
