"""A process that goes on for long does not stop to look through what it will never give back."""

import gc
from collections.abc import Iterator

import pytest
from celery.signals import worker_ready
from django.urls import get_resolver

from hekla.launcher.gc_tuning import settle, settle_with_pages


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_thousands_of_tasks_at_once_make_no_round_among_all_objects() -> None:
    settle()
    rounds = gc.get_stats()[2]["collections"]
    _burst = [[number] for number in range(90_000)]
    assert gc.get_stats()[2]["collections"] == rounds


def test_what_is_loaded_to_begin_with_is_left_out_of_all_rounds() -> None:
    settle_with_pages()
    pages = get_resolver()
    assert gc.get_freeze_count() > 100_000
    assert not any(one is pages for one in gc.get_objects())


def test_cycles_are_still_found() -> None:
    settle()
    for _ in range(1000):
        cycle: list[object] = []
        cycle.append(cycle)
    assert gc.collect() >= 999


def test_a_worker_settles_once_it_is_ready() -> None:
    worker_ready.send(sender=None)
    assert gc.get_freeze_count() > 100_000
    assert gc.get_threshold()[0] > 10_000
