"""Starts and stops what watches clusters, with the worker of the control queue.

Every process connects these signals, and only that worker imports the controller, which takes a third of a second.
"""

from typing import Any

from celery.signals import worker_ready, worker_shutting_down


@worker_ready.connect
def start(sender: Any = None, **_kwargs: Any) -> None:  # noqa: ANN401
    """Watch in the worker of the control queue only."""
    if "control" in {queue.name for queue in sender.task_consumer.queues}:
        from hekla.controller.watcher import watcher  # noqa: PLC0415

        watcher.start()


@worker_shutting_down.connect
def stop(**_kwargs: Any) -> None:  # noqa: ANN401
    """Release the clusters."""
    from hekla.controller import watcher  # noqa: PLC0415

    watcher.stop()
