"""Single pods at a backend, as tests start and stop them."""

from collections.abc import Iterable
from contextlib import suppress

from hekla.backends.base import Backend, BackendError, PodKey, PodOrder


def start_pod(backend: Backend, order: PodOrder) -> None:
    """Raises the errors that the backend yields."""
    _raise_errors(backend.runner.start_many([order], heartbeat=no_heartbeat))


def stop_pod(backend: Backend, key: PodKey, *, reason: str) -> None:
    """Raises the errors that the backend yields."""
    _raise_errors(backend.runner.stop_many([(key, reason)], heartbeat=no_heartbeat))


def stop_all_pods(backend: Backend) -> None:
    """Stop what still runs there: pods outlive the process that started them."""
    with suppress(BackendError):  # a test may have taken the engine of its containers away
        for key in backend.inventory().alive:
            stop_pod(backend, key, reason="the test is over")


def no_heartbeat() -> None:
    """A heartbeat that never interrupts."""


def _raise_errors(results: Iterable[tuple[object, Exception | None]]) -> None:
    errors = [error for _item, error in results]  # the whole generator: a generator that is not exhausted stays in use
    for error in errors:
        if error is not None:
            raise error
