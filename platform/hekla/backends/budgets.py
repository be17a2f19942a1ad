"""The contract with a backend that knows budgets of disruptions: how many pods may be taken from their work at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from hekla.backends.base import Backend, PodKey


@runtime_checkable
class BudgetBackend(Backend, Protocol):
    """A backend that can be asked before a pod has to give way to another."""

    def kept(self, keys: Sequence[PodKey], *, meanwhile: Callable[[], None]) -> Mapping[PodKey, str]:
        """Those of these pods that a budget keeps now, with the server's sentence. `meanwhile` as in `start_many`."""
