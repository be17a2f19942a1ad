"""Removes a timer of Celery's workers that Hekla does not need: without it, an idle worker sleeps for seconds."""

from typing import Any

from celery import bootsteps


class NoBindingTimer(bootsteps.StartStopStep):
    """Cancels kombu's timer for queues that expire, after each connection to the broker. Hekla's queues do not expire.

    If kombu names the timer differently, the worker wakes up more often, and nothing else changes.
    """

    requires = ("celery.worker.consumer.connection:Connection",)

    def start(self, parent: Any) -> None:  # noqa: ANN401  (a consumer; Celery has no types for it)
        """Cancel the timer of the connection that was just made."""
        cycle = getattr(parent.connection.transport, "cycle", None)
        timer = getattr(cycle, "_binding_expiry_tref", None)
        if timer is not None:
            timer.cancel()
