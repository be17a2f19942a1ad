"""Each cluster's backend is opened once, and anew when its configuration is another; no cluster waits for another."""

from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from hekla.backends import pool

_PATIENCE_SECONDS = 30.0


class Slow:
    """Takes as long to close as it is told to."""

    def __init__(self) -> None:
        self.is_closing, self.may_close = Event(), Event()

    def close(self) -> None:
        self.is_closing.set()
        assert self.may_close.wait(_PATIENCE_SECONDS)


@pytest.fixture(autouse=True)
def none_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_backends", {})
    monkeypatch.setattr(pool, "open_backend", lambda *_args, **_facts: Slow())


def of(cluster: int, config: Mapping[str, Any], home: Path) -> Slow:
    found: Any = pool.get_backend(cluster_id=cluster, kind="slow", name=f"c{cluster}", config=config, home=home)
    return found


def test_it_is_the_same_as_long_as_its_configuration_is(tmp_path) -> None:
    first = of(1, {"image": "a"}, tmp_path)
    assert of(1, {"image": "a"}, tmp_path) is first
    first.may_close.set()
    assert of(1, {"image": "b"}, tmp_path) is not first
    assert first.is_closing.is_set()


def test_while_one_is_closed_others_are_there(tmp_path) -> None:
    first, other = of(1, {"image": "a"}, tmp_path), of(2, {}, tmp_path)
    changing = Thread(target=of, args=(1, {"image": "b"}, tmp_path), daemon=True)
    changing.start()
    assert first.is_closing.wait(_PATIENCE_SECONDS)
    assert of(2, {}, tmp_path) is other
    assert of(1, {"image": "b"}, tmp_path) is not first
    first.may_close.set()
    changing.join(_PATIENCE_SECONDS)
    assert not changing.is_alive()
