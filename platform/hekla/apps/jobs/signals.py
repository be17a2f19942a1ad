"""The signal after a commit that changed messages about pods that prepare. A receiver that misses it reads the rows."""

from django.dispatch import Signal

preparation_changed = Signal()
"""Sent with `pods`, their primary keys."""
