"""The backend pool: one backend for each cluster and configuration; no cluster waits for another."""

from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from hekla.backends import pool

_PATIENCE_SECONDS = 30.0


class SlowBackend:
    """A backend that closes only when it may."""

    def __init__(self) -> None:
        self.is_closing, self.may_close = Event(), Event()

    def close(self) -> None:
        self.is_closing.set()
        assert self.may_close.wait(_PATIENCE_SECONDS)


@pytest.fixture(autouse=True)
def empty_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_backends", {})
    monkeypatch.setattr(pool, "open_backend", lambda *_args, **_facts: SlowBackend())


def get(cluster: int, config: Mapping[str, Any], home: Path) -> SlowBackend:
    found: Any = pool.get_backend(cluster_id=cluster, kind="slow", name=f"c{cluster}", config=config, home=home)
    return found


def test_backend_is_shared_until_its_configuration_changes(tmp_path) -> None:
    first = get(1, {"image": "a"}, tmp_path)
    assert get(1, {"image": "a"}, tmp_path) is first
    first.may_close.set()
    assert get(1, {"image": "b"}, tmp_path) is not first
    assert first.is_closing.is_set()


def test_closing_one_backend_blocks_no_other(tmp_path) -> None:
    first, other = get(1, {"image": "a"}, tmp_path), get(2, {}, tmp_path)
    changing = Thread(target=get, args=(1, {"image": "b"}, tmp_path), daemon=True)
    changing.start()
    assert first.is_closing.wait(_PATIENCE_SECONDS)
    assert get(2, {}, tmp_path) is other
    assert get(1, {"image": "b"}, tmp_path) is not first
    first.may_close.set()
    changing.join(_PATIENCE_SECONDS)
    assert not changing.is_alive()
