"""The language and the time zone are those that Django would read, in every thread and task."""

import contextvars
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from asgiref.local import Local
from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone, translation
from django.utils.translation import trans_real

from hekla.pages.frame.quick_locals import QuickLocal, replace_steps

_LANGUAGES: Any = trans_real
_ZONES: Any = timezone
_PARIS = ZoneInfo("Europe/Paris")


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    replace_steps()
    with translation.override("zh-hans"), timezone.override(_PARIS):
        yield


def _now() -> tuple[str | None, str]:
    return translation.get_language(), timezone.get_current_timezone_name()


def test_django_reads_and_changes_them() -> None:
    assert isinstance(_LANGUAGES._active, QuickLocal)
    assert isinstance(_ZONES._active, QuickLocal)
    assert _now() == ("zh-hans", "Europe/Paris")
    with translation.override(None), timezone.override(None):
        assert _now() == (None, "UTC")
        with translation.override("en", deactivate=True):
            assert translation.get_language() == "en"
    assert _now() == ("zh-hans", "Europe/Paris")
    translation.deactivate()
    timezone.deactivate()
    assert _now() == ("en", "UTC")


def test_another_thread_has_its_own() -> None:
    inherited = contextvars.copy_context()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(_now).result() == ("en", "UTC")
        assert pool.submit(inherited.run, _now).result() == ("en", "UTC")
    assert _now() == ("zh-hans", "Europe/Paris")


def test_asgiref_moves_them_between_threads() -> None:
    async def later() -> tuple[str | None, str]:
        return await sync_to_async(_now)()

    assert async_to_sync(later)() == ("zh-hans", "Europe/Paris")


def test_readers_of_the_local_itself_agree() -> None:
    local: Any = Local()
    quick = QuickLocal(local)
    assert not hasattr(quick, "value")
    quick.value = 1
    assert (local.value, quick.value) == (1, 1)
    local.value, local.other = 2, 3
    assert quick.value == 2
    del quick.value
    assert not hasattr(local, "value")
    assert not hasattr(quick, "value")
    with pytest.raises(AttributeError):
        del quick.value


def test_again_changes_nothing() -> None:
    before = _LANGUAGES._active, _ZONES._active
    replace_steps()
    assert (_LANGUAGES._active, _ZONES._active) == before
