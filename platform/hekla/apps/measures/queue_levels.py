"""How often the amounts of queues are looked at, and how long they are kept."""

from datetime import timedelta

LOOK_EVERY = timedelta(minutes=1)
CONFIRM_EVERY = timedelta(minutes=10)
"""Amounts that do not change are confirmed so often, because a controller that stopped tells nothing."""
HOLDS = timedelta(minutes=15)
"""Amounts count for so long after the last look, but not longer."""
KEEP_SPANS = timedelta(days=8)
LAG = timedelta(seconds=20)
"""After this time an hour is over: the last look in it is stored."""
MOST_ROWS = 20_000
"""Queues and resources of one cluster."""
MOST_PAIRS = 200
"""Of an hour of a cluster; those with the longest times."""
