"""Garbage collection in long-running processes skips the objects that are never freed."""

import gc
from collections.abc import Iterator

import pytest
from celery.signals import worker_ready
from django.urls import get_resolver

from hekla.launcher.gc_tuning import settle, settle_with_pages


@pytest.fixture(autouse=True)
def _restore_gc() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_burst_of_tasks_causes_no_full_collection() -> None:
    settle()
    collections = gc.get_stats()[2]["collections"]
    _burst = [[number] for number in range(90_000)]
    assert gc.get_stats()[2]["collections"] == collections


def test_loaded_modules_are_frozen() -> None:
    settle_with_pages()
    pages = get_resolver()
    assert gc.get_freeze_count() > 100_000
    assert not any(one is pages for one in gc.get_objects())


def test_cycles_are_still_collected() -> None:
    settle()
    for _ in range(1000):
        cycle: list[object] = []
        cycle.append(cycle)
    assert gc.collect() >= 999


def test_worker_is_tuned_once_it_is_ready() -> None:
    worker_ready.send(sender=None)
    assert gc.get_freeze_count() > 100_000
    assert gc.get_threshold()[0] > 10_000
