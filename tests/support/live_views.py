"""Live views that only a test has."""

from collections.abc import Sequence

import pytest

from hekla.live import registry
from hekla.live.registry import LiveView


def add_view(monkeypatch: pytest.MonkeyPatch, name: str, views: Sequence[LiveView]) -> None:
    """Serve these views by that name for the rest of the test, also instead of those that have it."""
    monkeypatch.setattr(registry, "_sources", [lambda: {name: views}, *registry._sources])
