"""The signal after measures were rolled up. A receiver that misses it reads the rows."""

from django.dispatch import Signal

GPUS, JOBS = "measures:gpus", "measures:jobs"
"""Topics of live views: sums of GPUs (and of queues), and sums of jobs."""
rolled_up = Signal()
"""Sent with `topic`."""
