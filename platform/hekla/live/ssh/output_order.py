"""The order in which the SSH connections of this process send output.

To encrypt a piece takes up to some milliseconds. Programs that print without end, each with a client that reads as
fast, would put many pieces between two messages of somebody else's page.
"""

import asyncio

from hekla.live.threads import per_loop


class OutputOrder:
    """Those of one event loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()  # whoever waits first is first

    async def next(self) -> None:
        """Wait for the turn to send one piece: in each round of the event loop, one piece of one channel."""
        async with self._lock:
            await asyncio.sleep(0)


output_order = per_loop(OutputOrder)
