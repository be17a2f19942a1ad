"""The signal after a commit that stored metrics. A receiver that misses it reads the rows."""

from django.dispatch import Signal

metrics_changed = Signal()
"""Sent with `jobs`, a set of their primary keys."""
