"""A pytest plugin: in which order the tests are run, and by which of several workers.

Those with tests in a browser come last, for the reason that `browser` gives. Before them, where several workers take
one file after the other, those that take long come first: else one worker is left with the longest while the others
are done. The order within a file is kept, but for its tests in a browser.

A worker takes a whole file. The tests of all files that use the Kubernetes control plane of the run go to one worker,
so that there is one and not one for each worker.
"""

import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

_KUBERNETES = "kubernetes"


class _FilesAndGroups(LoadGroupScheduling):
    """What belongs to no group goes with its file."""

    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid).partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _FilesAndGroups:
    return _FilesAndGroups(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort them; a file with one test in a browser is wholly among the last."""
    are_many = "PYTEST_XDIST_WORKER" in os.environ
    is_late, is_long = _paths_where(items, _needs_browser), _paths_where(items, _is_slow)
    for item in items:
        if _uses_control_plane(item) and not is_late[item.path]:
            item.add_marker(pytest.mark.xdist_group(_KUBERNETES))

    def place(item: pytest.Item) -> tuple[bool, bool, bool, bool]:
        is_grouped = are_many and item.get_closest_marker("xdist_group") is not None
        return is_late[item.path], not is_grouped, not (are_many and is_long[item.path]), _needs_browser(item)

    items.sort(key=place)


def _paths_where(items: list[pytest.Item], is_so: Callable[[pytest.Item], bool]) -> dict[Path, bool]:
    found: dict[Path, bool] = defaultdict(bool)
    for item in items:
        found[item.path] |= is_so(item)
    return found


def _needs_browser(item: pytest.Item) -> bool:
    return "browser" in getattr(item, "fixturenames", ())


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


def _uses_control_plane(item: pytest.Item) -> bool:
    """By its fixtures, or as one of the kinds that it is run with."""
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    is_fixture = "control_plane" in getattr(item, "fixturenames", ())
    return is_fixture or any(kind in parameters for kind in ("kubernetes", "kubernetes-tenants"))
